package io.herdkeeper.node.log;

import java.util.concurrent.atomic.AtomicLong;

/**
 * The transaction ids that a leader may assign.
 *
 * <p>HerdDB counts them from 1 at each boot. A client may repeat a COMMIT on the new leader with an id of the old one, and would commit
 * another client's transaction. So the ids of a leader start above {@code ledgerId << 32}, where {@code ledgerId} is the ledger that it
 * writes. BookKeeper's ledger ids are ascending, and a leader's first ledger is made after every ledger of earlier leaders. So no id is
 * assigned twice. An id of an earlier leader is unknown to the new one, and HerdDB refuses unknown ids.
 *
 * <p>Each new ledger raises the counter again. So 2^32 is the limit for one ledger, not for a leader's whole life. A ledger of any size
 * that HerdDB can write has far fewer transactions.
 */
final class TransactionIds {

    private static final int BITS_WITHIN_LEDGER = 32;
    private static final long LEDGER_ID_LIMIT = 1L << (Long.SIZE - 1 - BITS_WITHIN_LEDGER);

    private TransactionIds() {
    }

    /**
     * Raises a tablespace's counter above everything that was given before {@code ledgerId} was made.
     *
     * @param lastTransactionId the id that was given last; never lowered
     * @param ledgerId          the ledger that the leader writes now
     * @throws IllegalStateException when the ledger id is so high that ids above it don't fit into a long
     */
    static void raise(AtomicLong lastTransactionId, long ledgerId) {
        if (ledgerId < 0 || ledgerId >= LEDGER_ID_LIMIT) {
            throw new IllegalStateException("no transaction ids left above ledger " + ledgerId
                    + ": ledger ids must be below " + LEDGER_ID_LIMIT + "; move the tablespace to a new BookKeeper cluster");
        }
        lastTransactionId.accumulateAndGet(ledgerId << BITS_WITHIN_LEDGER, Math::max);
    }
}
