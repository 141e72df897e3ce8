package io.herdkeeper.bookie;

import java.io.IOException;
import java.util.concurrent.TimeUnit;
import org.apache.bookkeeper.client.BKException;
import org.apache.bookkeeper.common.concurrent.FutureUtils;
import org.apache.bookkeeper.meta.LedgerManager;
import org.apache.bookkeeper.versioning.LongVersion;
import org.apache.zookeeper.KeeperException.BadVersionException;

/**
 * The ledgers of the metadata, as the majority of ZooKeeper's members knows it. Also one that names no copy on this bookie is needed: a copy
 * is made here before the metadata names it.
 *
 * <p>BookKeeper's garbage collection reads from one member, which may be behind: one that is cut off from its leader, or one that led before
 * it was paused. It does not know of the newest ledgers, nor of copies that were made just now. BookKeeper 4.18
 * ({@code ScanAndCompareGarbageCollector}) deletes them then.
 */
final class NeededLedgers {

    /** No znode is changed so often. */
    private static final LongVersion OF_NO_LEDGER = new LongVersion(Integer.MAX_VALUE);

    private final LedgerManager ledgers;
    private final long patienceMillis;

    NeededLedgers(LedgerManager ledgers, long patienceMillis) {
        this.ledgers = ledgers;
        this.patienceMillis = patienceMillis;
    }

    /** Throws if nobody can tell. Not to be called by ZooKeeper's own thread. */
    boolean contains(long ledger) throws IOException {
        try {
            // A majority takes part in a write, also in one that is refused.
            FutureUtils.result(ledgers.removeLedgerMetadata(ledger, OF_NO_LEDGER), patienceMillis, TimeUnit.MILLISECONDS);
            return false; // it is gone
        } catch (BKException.ZKException refused) {
            if (refused.getCause() instanceof BadVersionException) {
                return true;
            }
            throw unknown(ledger, refused);
        } catch (Exception error) {
            throw unknown(ledger, error);
        }
    }

    private static IOException unknown(long ledger, Exception error) {
        return new IOException("whether ledger " + ledger + " is needed is unknown", error);
    }
}
