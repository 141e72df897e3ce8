package io.herdkeeper.bookie;

import io.netty.buffer.ByteBufAllocator;
import java.io.IOException;
import java.lang.reflect.Field;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.List;
import org.apache.bookkeeper.bookie.CheckpointSource.Checkpoint;
import org.apache.bookkeeper.bookie.EntryLocation;
import org.apache.bookkeeper.bookie.LedgerDirsManager;
import org.apache.bookkeeper.bookie.storage.ldb.LedgerMetadataIndex;
import org.apache.bookkeeper.bookie.storage.ldb.SingleDirectoryDbLedgerStorage;
import org.apache.bookkeeper.conf.ServerConfiguration;
import org.apache.bookkeeper.meta.LedgerManager;
import org.apache.bookkeeper.stats.StatsLogger;

/**
 * The storage of one disk, whose checkpoints leave out nothing that the journal forgets behind them.
 *
 * <p>A bookie that is killed replays its journal from the last checkpoint on. BookKeeper 4.18 ({@code SingleDirectoryDbLedgerStorage}) ends
 * a checkpoint as if it were whole in two cases:
 *
 * <ul>
 * <li>No entry waits to be written. It leaves out what came without one then, such as a fence (apache/bookkeeper#4843): an earlier leader
 *     could write to its ledger again.
 * <li>An earlier one failed, as on a disk that was full for a moment. Its entries, or changes of the index, are only in memory still.
 * </ul>
 */
final class CompleteCheckpoints extends SingleDirectoryDbLedgerStorage {

    /** The name of a file that is written to see whether a disk takes one, and its size. */
    static final String PROBE = "probe";
    private static final int PROBE_BYTES = 1 << 16;

    private final Runnable restart;
    private final LedgerDirsManager folders;
    private final LedgerDirsManager indexFolders;
    private final long room;
    private final GuardedEntryLog log;
    private final LedgerMetadataIndex index;
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
        try {
            Field field = SingleDirectoryDbLedgerStorage.class.getDeclaredField("ledgerIndex");
            field.setAccessible(true);
            index = (LedgerMetadataIndex) field.get(this);
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
