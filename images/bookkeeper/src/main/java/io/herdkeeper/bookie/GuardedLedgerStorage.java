package io.herdkeeper.bookie;

import io.netty.buffer.ByteBufAllocator;
import java.io.File;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.locks.LockSupport;
import org.apache.bookkeeper.bookie.Bookie.NoLedgerException;
import org.apache.bookkeeper.bookie.BookieException;
import org.apache.bookkeeper.bookie.BookieImpl;
import org.apache.bookkeeper.bookie.LedgerDirsManager;
import org.apache.bookkeeper.bookie.StateManager;
import org.apache.bookkeeper.bookie.storage.EntryLogger;
import org.apache.bookkeeper.bookie.storage.ldb.DbLedgerStorage;
import org.apache.bookkeeper.bookie.storage.ldb.SingleDirectoryDbLedgerStorage;
import org.apache.bookkeeper.common.util.MathUtils;
import org.apache.bookkeeper.conf.ServerConfiguration;
import org.apache.bookkeeper.meta.LedgerManager;
import org.apache.bookkeeper.stats.StatsLogger;

/**
 * BookKeeper's storage, to which a key of zeros is no key of a ledger, and whose checkpoints are whole ({@link CompleteCheckpoints}).
 *
 * <p>A bookie that has restarted knows the key of a ledger when it is written or fenced next: it compares the client's key with the stored
 * one. BookKeeper 4.18 ({@code LedgerMetadataIndex.setMasterKey}) does not do so for a key of zeros, or without bytes. So anybody could write
 * into ledgers and fence them, and the ledger's own key would be refused then.
 */
public final class GuardedLedgerStorage extends DbLedgerStorage {

    private static final int ENDED = 1;
    private static final long LATEST_END_SECONDS = 60;
    /** A disk that hangs would hold up the end for ever. */
    private static final long LONGEST_END_SECONDS = 60;
    private static final long LOOK_MILLIS = 100;
    private static final AtomicBoolean ENDING = new AtomicBoolean();

    private final Runnable end;
    private final List<CompleteCheckpoints> storages = new ArrayList<>();
    private ByteBufAllocator buffers;
    private LedgerDirsManager disks;
    private StateManager state;

    public GuardedLedgerStorage() {
        this(GuardedLedgerStorage::end);
    }

    GuardedLedgerStorage(Runnable end) {
        this.end = end;
    }

    @Override
    public void initialize(ServerConfiguration configuration, LedgerManager ledgers, LedgerDirsManager folders, LedgerDirsManager indexFolders,
            StatsLogger statistics, ByteBufAllocator allocator) throws IOException {
        buffers = allocator;
        disks = folders;
        super.initialize(configuration, ledgers, folders, indexFolders, statistics,
                new EntryBuffers(allocator, configuration.getNettyMaxFrameSizeBytes()));
        requireItsLedgers(folders.getAllLedgerDirs());
        // No other process has this storage open, nor so its journal. The replay is next.
        TornRecord.cut(BookieImpl.getCurrentDirectory(configuration.getJournalDirs()[0]), folders.getAllLedgerDirs());
    }

    /** Ledgers are spread over the folders by their numbers. In another folder nobody would find them, and all folders have the same cookie. */
    private void requireItsLedgers(List<File> folders) throws IOException {
        for (int place = 0; place < folders.size(); place++) {
            for (long ledger : storages.get(place).getActiveLedgersInRange(0, Long.MAX_VALUE)) {
                int own = MathUtils.signSafeMod(ledger, folders.size());
                if (own != place) {
                    throw new IOException(folders.get(place) + " has ledger " + ledger + ", which belongs into " + folders.get(own)
                            + ": another ledger volume of this bookie is mounted there. Mount each volume where it was, or retire this bookie");
                }
            }
        }
    }

    @Override
    public void setStateManager(StateManager manager) {
        state = manager;
        super.setStateManager(manager);
    }

    /**
     * Lets a bookie take entries again whose disk was full before it started, and is not now. BookKeeper 4.18 tells it so at its first look at
     * the disks ({@code LedgerDirsMonitor}), which is lost if the replay of the journal takes longer. It would stay read-only for ever then.
     * One that a person or the operator made read-only stays so.
     */
    @Override
    public void start() {
        super.start();
        Thread thread = new Thread(() -> {
            while (!state.isRunning()) { // the mode is read from the disks before
                LockSupport.parkNanos(TimeUnit.MILLISECONDS.toNanos(LOOK_MILLIS));
            }
            if (disks.getFullFilledLedgerDirs().isEmpty()) {
                state.transitionToWritableMode();
            }
        }, "writable");
        thread.setDaemon(true);
        thread.start();
    }

    @Override
    protected SingleDirectoryDbLedgerStorage newSingleDirectoryDbLedgerStorage(ServerConfiguration configuration, LedgerManager ledgers,
            LedgerDirsManager folders, LedgerDirsManager indexFolders, EntryLogger log, StatsLogger statistics, long writeCache,
            long readCache, int batchEntries, long batchBytes) throws IOException {
        CompleteCheckpoints storage = new CompleteCheckpoints(this::restart, configuration, ledgers, folders, indexFolders,
                new GuardedEntryLog(log), statistics, buffers, writeCache, readCache, batchEntries, batchBytes);
        storages.add(storage);
        return storage;
    }

    /** Once all disks take writes, and have room for a replay: on a full one it could not start, and serves reads meanwhile. */
    private void restart() {
        if (storages.stream().allMatch(CompleteCheckpoints::takesWrites)) {
            end.run();
        }
    }

    /** Ends the process, once. At a random moment: what filled one disk may have filled others, and their bookies must not go together. */
    private static void end() {
        if (!ENDING.getAndSet(true)) {
            after(ThreadLocalRandom.current().nextLong(LATEST_END_SECONDS), () -> {
                after(LONGEST_END_SECONDS, () -> Runtime.getRuntime().halt(ENDED));
                System.exit(ENDED);
            });
        }
    }

    private static void after(long seconds, Runnable then) {
        Thread thread = new Thread(() -> {
            try {
                TimeUnit.SECONDS.sleep(seconds);
            } catch (InterruptedException nobodyDoes) {
                Thread.currentThread().interrupt();
            }
            then.run();
        }, "end");
        thread.setDaemon(true);
        thread.start();
    }

    /** Takes a key of zeros only where that is stored, as after the index was rebuilt. */
    @Override
    public void setMasterKey(long ledger, byte[] key) throws IOException {
        if (isZeros(key) && !isZeros(stored(ledger))) {
            // A replay of the journal leaves out what was written so through an earlier image. Any other exception would end the bookie.
            throw new NoLedgerException(ledger);
        }
        super.setMasterKey(ledger, key);
    }

    private byte[] stored(long ledger) throws IOException {
        try {
            return readMasterKey(ledger);
        } catch (BookieException error) {
            throw new IOException(error);
        }
    }

    private static boolean isZeros(byte[] key) {
        for (byte each : key) {
            if (each != 0) {
                return false;
            }
        }
        return true;
    }
}
