package io.herdkeeper.bookie;

import io.netty.buffer.ByteBufAllocator;
import java.io.IOException;
import java.lang.reflect.Field;
import org.apache.bookkeeper.bookie.CheckpointSource.Checkpoint;
import org.apache.bookkeeper.bookie.LedgerDirsManager;
import org.apache.bookkeeper.bookie.storage.EntryLogger;
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

    private final Runnable restart;
    private final LedgerDirsManager folders;
    private final LedgerDirsManager indexFolders;
    private final long room;
    private final LedgerMetadataIndex index;
    /** Guarded by {@code flushMutex}. */
    private boolean hasFailed;

    /** Calls {@code restart} at the first checkpoint that writes to the disk behind one that failed. All other parameters are the parent's. */
    CompleteCheckpoints(Runnable restart, ServerConfiguration configuration, LedgerManager ledgers, LedgerDirsManager folders,
            LedgerDirsManager indexFolders, EntryLogger log, StatsLogger statistics, ByteBufAllocator allocator, long writeCache,
            long readCache, int batchEntries, long batchBytes) throws IOException {
        super(configuration, ledgers, folders, indexFolders, log, statistics, allocator, writeCache, readCache, batchEntries, batchBytes);
        this.restart = restart;
        this.folders = folders;
        this.indexFolders = indexFolders;
        room = writeCache;
        try {
            Field field = SingleDirectoryDbLedgerStorage.class.getDeclaredField("ledgerIndex");
            field.setAccessible(true);
            index = (LedgerMetadataIndex) field.get(this);
        } catch (ReflectiveOperationException other) {
            throw new IOException("another BookKeeper: see whether its checkpoints are whole", other);
        }
    }

    /**
     * Behind one that failed no other one counts: the bookie restarts, and replays its journal from before it. It does so once its disk takes
     * entries again, and has room for those of the replay: on a full one it could not start, and serves reads meanwhile.
     */
    @Override
    public void checkpoint(Checkpoint checkpoint) throws IOException {
        flushMutex.lock();
        try {
            boolean writes = !writeCache.isEmpty();
            boolean whole = false;
            try {
                super.checkpoint(checkpoint);
                index.flush();
                whole = true;
            } finally {
                hasFailed = hasFailed || !whole;
            }
            if (hasFailed) {
                if (writes && hasRoom(folders) && hasRoom(indexFolders)) {
                    restart.run();
                }
                throw new IOException("an earlier checkpoint failed: the bookie keeps its journal, and restarts once its disk takes entries");
            }
        } finally {
            flushMutex.unlock();
        }
    }

    private boolean hasRoom(LedgerDirsManager disk) {
        return disk.getAllLedgerDirs().get(0).getUsableSpace() > room;
    }
}
