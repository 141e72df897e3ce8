package io.herdkeeper.node.log;

import herddb.log.CommitLog.FollowerContext;
import io.herdkeeper.node.internals.HerdInternals;
import java.util.Collections;
import java.util.List;
import java.util.function.Supplier;
import org.apache.bookkeeper.client.LedgersWithOwnPasswords;
import org.apache.bookkeeper.client.api.BKException;
import org.apache.bookkeeper.client.api.ReadHandle;

/**
 * Opens a follower's ledgers in HerdDB's place, and so corrects its position at a ledger change.
 *
 * <p>When HerdDB's follower has read a finished ledger, it forgets its reader. One round later it opens the next ledger
 * as if it had just booted: at its position in the <em>old</em> ledger. The first entries of the new ledger are skipped,
 * as many as the old one had (HerdDB 0.29.0, {@code BKFollowerContext.ensureOpenReader}). With a reader that is already
 * open HerdDB takes another path, which compares the position's ledger with the reader's and starts at entry 0. So this
 * class puts an open reader into the follower's context before each round.
 *
 * <p>It is used by the follower's thread only.
 */
final class FollowerReader {

    private final LedgersWithOwnPasswords own;
    private final Supplier<List<Long>> ledgersOfTablespace;
    private final FollowerGate gate;
    private final FollowerEnd end;
    private ReadHandle reader;

    FollowerReader(LedgersWithOwnPasswords own, Supplier<List<Long>> ledgersOfTablespace, FollowerGate gate, FollowerEnd end) {
        this.own = own;
        this.ledgersOfTablespace = ledgersOfTablespace;
        this.gate = gate;
        this.end = end;
    }

    /** Before a round: an open reader of the ledger that the follower wants, unless the tablespace has no ledger yet. */
    void open(FollowerContext context) throws BKException, InterruptedException {
        long ledgerId = HerdInternals.ledgerToTail(context);
        if (ledgerId == -1) {
            List<Long> ledgers = ledgersOfTablespace.get();
            if (ledgers.isEmpty()) {
                return;
            }
            ledgerId = Collections.min(ledgers);
            HerdInternals.ledgerToTail(context, ledgerId);
        }
        if (reader != null && reader.getId() != ledgerId) {
            ReadHandle finished = reader;
            reader = null;
            HerdInternals.reader(context, null);
            finished.close();
        }
        if (reader == null) {
            reader = new LimitedReadHandle(own.openWithoutFencing(ledgerId), gate, end);
        }
        HerdInternals.reader(context, reader);
    }

    /** After a round: HerdDB may have dropped the reader without closing it; the context closes what it still has. */
    void keep(FollowerContext context) {
        HerdInternals.reader(context, reader);
    }
}
