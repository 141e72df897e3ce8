package io.herdkeeper.node.log;

import herddb.log.LogNotAvailableException;
import herddb.log.LogSequenceNumber;
import java.util.List;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.function.Supplier;
import org.apache.bookkeeper.client.BKException.BKNoSuchLedgerExistsException;
import org.apache.bookkeeper.client.BKException.BKNoSuchLedgerExistsOnMetadataServerException;
import org.apache.bookkeeper.client.BKException.ZKException;
import org.apache.bookkeeper.client.BookKeeper;
import org.apache.bookkeeper.client.api.LedgerMetadata;
import org.apache.bookkeeper.versioning.LongVersion;
import org.apache.zookeeper.KeeperException.BadVersionException;

/**
 * Refuses an entry that does not follow the one before it.
 *
 * <p>Within a ledger this costs a comparison, at a ledger change one metadata read. A refused entry stops the follower; the
 * activator then reboots the tablespace from its last local checkpoint, which reads the log again. Without this a gap would
 * be found only by comparing tables, and would become permanent at the next checkpoint.
 */
final class LogContinuity {

    private static final long METADATA_TIMEOUT_SECONDS = 20;
    private static final long EMPTY = -1;
    /** No znode is changed so often. */
    private static final LongVersion OF_NO_LEDGER = new LongVersion(Integer.MAX_VALUE);

    private final BookKeeper bookKeeper;
    private final Supplier<List<Long>> ledgersOfTablespace;

    LogContinuity(BookKeeper bookKeeper, Supplier<List<Long>> ledgersOfTablespace) {
        this.bookKeeper = bookKeeper;
        this.ledgersOfTablespace = ledgersOfTablespace;
    }

    /**
     * Checks one step of a follower, or of a replay that does not fence.
     *
     * @throws LogNotAvailableException when entries lie between {@code last} and {@code next}, or that can't be known
     */
    void check(LogSequenceNumber last, LogSequenceNumber next) {
        boolean follows = last.ledgerId == next.ledgerId
                ? next.offset == last.offset + 1
                : next.ledgerId > last.ledgerId && next.offset == 0 && ledgerWasFinishedAt(last) && nothingBetween(last, next);
        if (!follows) {
            throw new LogNotAvailableException("entries are missing between " + last + " and " + next
                    + ": the follower stops, and reboots from its last checkpoint");
        }
    }

    /**
     * Checks one step of a replay that fences, and so reads whole ledgers in their order.
     *
     * @throws LogNotAvailableException when entries lie between {@code last} and {@code next}
     */
    static void checkReplay(LogSequenceNumber last, LogSequenceNumber next) {
        boolean follows = last.ledgerId == next.ledgerId ? next.offset == last.offset + 1 : next.ledgerId > last.ledgerId && next.offset == 0;
        if (!follows) {
            throw new LogNotAvailableException("entries are missing between " + last + " and " + next + ": the replay stops");
        }
    }

    private boolean ledgerWasFinishedAt(LogSequenceNumber last) {
        if (last.ledgerId < 0) {
            return true;
        }
        LedgerMetadata metadata = metadata(bookKeeper, last.ledgerId);
        // A ledger that the retention has dropped can't be asked any more; it was finished when the reader left it.
        return metadata == null || metadata.isClosed() && metadata.getLastEntryId() == last.offset;
    }

    private boolean nothingBetween(LogSequenceNumber last, LogSequenceNumber next) {
        for (long ledgerId : ledgersOfTablespace.get()) {
            if (ledgerId > last.ledgerId && ledgerId < next.ledgerId) {
                LedgerMetadata metadata = metadata(bookKeeper, ledgerId);
                if (metadata == null || !metadata.isClosed() || metadata.getLastEntryId() != EMPTY) {
                    return false;
                }
            }
        }
        return true;
    }

    /**
     * Has the client see all metadata that was written before this call, as {@link Majority}. The client gives nobody its session, so a
     * majority is asked by a deletion that has to be refused.
     *
     * @param ledgerId any ledger, which stays
     * @throws LogNotAvailableException when ZooKeeper does not answer
     */
    static void catchUp(BookKeeper bookKeeper, long ledgerId) {
        try {
            bookKeeper.getLedgerManager().removeLedgerMetadata(ledgerId, OF_NO_LEDGER).get(METADATA_TIMEOUT_SECONDS, TimeUnit.SECONDS);
        } catch (ExecutionException refused) {
            if (!(refused.getCause() instanceof ZKException) || !(refused.getCause().getCause() instanceof BadVersionException)) {
                throw new LogNotAvailableException("whether the metadata of ledgers is the newest is not known", refused.getCause());
            }
        } catch (TimeoutException error) {
            throw new LogNotAvailableException("whether the metadata of ledgers is the newest is not known in time", error);
        } catch (InterruptedException error) {
            Thread.currentThread().interrupt();
            throw new LogNotAvailableException(error);
        }
    }

    /** The ledger's metadata, or null when the ledger is gone. */
    static LedgerMetadata metadata(BookKeeper bookKeeper, long ledgerId) {
        try {
            return bookKeeper.getLedgerManager().readLedgerMetadata(ledgerId)
                    .get(METADATA_TIMEOUT_SECONDS, TimeUnit.SECONDS).getValue();
        } catch (ExecutionException error) {
            if (error.getCause() instanceof BKNoSuchLedgerExistsException
                    || error.getCause() instanceof BKNoSuchLedgerExistsOnMetadataServerException) {
                return null;
            }
            throw new LogNotAvailableException("can't read the metadata of ledger " + ledgerId, error.getCause());
        } catch (TimeoutException error) {
            throw new LogNotAvailableException("can't read the metadata of ledger " + ledgerId + " in time", error);
        } catch (InterruptedException error) {
            Thread.currentThread().interrupt();
            throw new LogNotAvailableException(error);
        }
    }
}
