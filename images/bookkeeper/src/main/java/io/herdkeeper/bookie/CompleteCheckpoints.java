package io.herdkeeper.bookie;

import io.netty.buffer.ByteBufAllocator;
import java.io.IOException;
import java.lang.reflect.Field;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import org.apache.bookkeeper.bookie.CheckpointSource.Checkpoint;
import org.apache.bookkeeper.bookie.EntryLocation;
import org.apache.bookkeeper.bookie.LedgerDirsManager;
import org.apache.bookkeeper.bookie.storage.ldb.LedgerMetadataIndex;
import org.apache.bookkeeper.bookie.storage.ldb.SingleDirectoryDbLedgerStorage;
import org.apache.bookkeeper.bookie.storage.ldb.WriteCache;
import org.apache.bookkeeper.conf.ServerConfiguration;
import org.apache.bookkeeper.meta.LedgerManager;
import org.apache.bookkeeper.stats.StatsLogger;

/**
 * The storage of one disk, whose checkpoints leave out nothing that the journal forgets behind them.
 *
 * <p>A bookie that is killed replays its journal from the last checkpoint on. BookKeeper 4.18 ({@code SingleDirectoryDbLedgerStorage}) ends
 * a checkpoint as if it were whole in three cases:
 *
 * <ul>
 * <li>No entry waits to be written. It leaves out what came without one then, such as a fence (apache/bookkeeper#4843): an earlier leader
 *     could write to its ledger again.
 * <li>A ledger was deleted, as no metadata named its copies here any more, and is copied here again before it. It leaves out the new copies.
 * <li>An earlier one failed, as on a disk that was full for a moment. Its entries, or changes of the index, are only in memory still.
 * </ul>
 */
final class CompleteCheckpoints extends SingleDirectoryDbLedgerStorage {

    /** The name of a file that is written to see whether a disk takes one, and its size. */
    static final String PROBE = "probe";
    private static final int PROBE_BYTES = 1 << 16;
    private static final String ANSWERS_OF_ZOOKEEPER = "-EventThread";

    private final Runnable restart;
    private final LedgerDirsManager folders;
    private final LedgerDirsManager indexFolders;
    private final long room;
    private final GuardedEntryLog log;
    private final LedgerMetadataIndex index;
    /** Deletes what belongs to deleted ledgers, one after the other. */
    private final ExecutorService cleanup;
    private final NeededLedgers needed;
    /** Guarded by {@code flushMutex}. */
    private boolean hasFailed;

    /** Calls {@code restart} at each checkpoint behind a write that failed. All other parameters are the parent's. */
    CompleteCheckpoints(Runnable restart, ServerConfiguration configuration, LedgerManager ledgers, LedgerDirsManager folders,
            LedgerDirsManager indexFolders, GuardedEntryLog log, StatsLogger statistics, ByteBufAllocator allocator, long writeCache,
            long readCache, int batchEntries, long batchBytes) throws IOException {
        super(configuration, ledgers, folders, indexFolders, log, statistics, allocator, writeCache, readCache, batchEntries, batchBytes);
        this.restart = restart;
        this.folders = folders;
        this.indexFolders = indexFolders;
        this.log = log;
        room = 2 * writeCache; // a replay writes one at most, and the index needs some
        super.writeCache.close();
        super.writeCacheBeingFlushed.close();
        super.writeCache = new Cache(allocator, writeCache / 2);
        super.writeCacheBeingFlushed = new Cache(allocator, writeCache / 2);
        log.compactBy(new GuardedEntryLog.Index() {
            @Override
            public void awaitFlush() throws IOException {
                requireNoFailure();
            }

            @Override
            public long placeOf(long ledger, long entry) throws IOException {
                return getEntryLocationIndex().getLocation(ledger, entry);
            }
        });
        index = (LedgerMetadataIndex) inherited("ledgerIndex");
        cleanup = (ExecutorService) inherited("cleanupExecutor");
        needed = new NeededLedgers(ledgers, 2L * configuration.getZkTimeout());
    }

    private Object inherited(String name) throws IOException {
        try {
            Field field = SingleDirectoryDbLedgerStorage.class.getDeclaredField(name);
            field.setAccessible(true);
            return field.get(this);
        } catch (ReflectiveOperationException other) {
            throw new IOException("another BookKeeper: see whether its checkpoints are whole", other);
        }
    }

    /** Behind one that failed there is none: the bookie restarts, and replays its journal from before it. */
    @Override
    public void checkpoint(Checkpoint checkpoint) throws IOException {
        flushMutex.lock();
        try {
            try {
                requireNoFailure();
            } catch (IOException earlier) {
                restart.run();
                throw earlier;
            }
            hasFailed = true;
            super.checkpoint(checkpoint);
            index.flush();
            log.requireNoFailure(); // a compaction may have failed to write what is in the same log
            hasFailed = false;
        } finally {
            flushMutex.unlock();
        }
    }

    /** Waits for the checkpoint under way. */
    private void requireNoFailure() throws IOException {
        flushMutex.lock();
        try {
            if (hasFailed) {
                throw new IOException("an earlier checkpoint failed: the bookie keeps its journal, and restarts once its disk takes writes");
            }
            log.requireNoFailure();
        } finally {
            flushMutex.unlock();
        }
    }

    /** Whether its disk, and that of its index, take writes and have room for the entries of a replay. */
    boolean takesWrites() {
        return takesWrites(folders) && takesWrites(indexFolders);
    }

    private boolean takesWrites(LedgerDirsManager disk) {
        Path folder = disk.getAllLedgerDirs().get(0).toPath();
        Path probe = folder.resolve(PROBE);
        try {
            try {
                Files.write(probe, new byte[PROBE_BYTES], StandardOpenOption.CREATE, StandardOpenOption.SYNC);
            } finally {
                Files.deleteIfExists(probe);
            }
        } catch (IOException full) {
            return false;
        }
        return folder.toFile().getUsableSpace() > room;
    }

    /**
     * Returns once nothing is left to delete. BookKeeper deletes the places of the entries, and the ledger's key, after its next flush, also
     * those of a ledger that was copied here again meanwhile.
     *
     * <p>Throws if the ledger is in the metadata. What BookKeeper deletes because its copies are elsewhere is not looked at again: it has the
     * ledger's lock, and calls this from the thread that ZooKeeper's answers come by.
     */
    @Override
    public void deleteLedger(long ledger) throws IOException {
        if (!Thread.currentThread().getName().endsWith(ANSWERS_OF_ZOOKEEPER) && needed.contains(ledger)) {
            throw new IOException("ledger " + ledger + " is in the metadata: the list that it was not in is older");
        }
        super.deleteLedger(ledger);
        try {
            cleanup.submit(() -> {
                getEntryLocationIndex().removeOffsetFromDeletedLedgers();
                index.removeDeletedLedgers();
                return null;
            }).get();
        } catch (InterruptedException stopping) {
            Thread.currentThread().interrupt();
            throw leftInTheIndex(ledger, stopping);
        } catch (ExecutionException failed) {
            throw leftInTheIndex(ledger, failed);
        }
    }

    private static IOException leftInTheIndex(long ledger, Exception why) {
        return new IOException("ledger " + ledger + " is deleted, but not from the index", why);
    }

    /** BookKeeper's drops at a flush what it has of ledgers that were deleted since the one before, though they were copied here again. */
    private static final class Cache extends WriteCache {

        Cache(ByteBufAllocator allocator, long size) {
            super(allocator, size);
        }

        @Override
        public void deleteLedger(long ledger) {
            // what it has of it is written, and no ledger needs it
        }
    }

    /** Leaves out what was written again, or deleted, during the compaction: the index does not name the compacted log any more. */
    @Override
    public void updateEntriesLocations(Iterable<EntryLocation> copies) throws IOException {
        flushMutex.lock();
        try {
            requireNoFailure();
            List<EntryLocation> newest = new ArrayList<>();
            for (EntryLocation copy : copies) {
                if (log.isCompacted(getEntryLocationIndex().getLocation(copy.getLedger(), copy.getEntry()))) {
                    newest.add(copy);
                }
            }
            super.updateEntriesLocations(newest);
        } finally {
            flushMutex.unlock();
        }
    }
}
