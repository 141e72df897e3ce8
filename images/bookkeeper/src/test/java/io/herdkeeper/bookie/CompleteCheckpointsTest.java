package io.herdkeeper.bookie;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import io.netty.buffer.UnpooledByteBufAllocator;
import java.io.File;
import java.io.IOException;
import java.lang.reflect.Proxy;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.bookkeeper.bookie.CheckpointSource.Checkpoint;
import org.apache.bookkeeper.bookie.LedgerDirsManager;
import org.apache.bookkeeper.bookie.storage.EntryLogger;
import org.apache.bookkeeper.conf.ServerConfiguration;
import org.apache.bookkeeper.stats.NullStatsLogger;
import org.apache.bookkeeper.util.DiskChecker;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class CompleteCheckpointsTest {

    private static final long LEDGER = 7;

    @TempDir
    private Path folder;
    private final AtomicInteger failures = new AtomicInteger();
    private final AtomicInteger restarts = new AtomicInteger();

    @Test
    void noCheckpointCountsBehindOneThatFailedAndTheBookieRestartsOnceItsDiskTakesOneAgain() throws Exception {
        CompleteCheckpoints storage = storage();
        storage.addEntry(entry(0));
        storage.checkpoint(Checkpoint.MAX);
        failures.set(2);
        for (int entry = 1; entry <= 2; entry++) {
            storage.addEntry(entry(entry));
            assertThrows(IOException.class, () -> storage.checkpoint(Checkpoint.MAX));
            assertEquals(0, restarts.get());
        }
        // BookKeeper swaps two caches, and would write the newer entry alone.
        assertThrows(IOException.class, () -> storage.checkpoint(Checkpoint.MAX));
        assertEquals(1, restarts.get());
        storage.shutdown();
    }

    @Test
    void aCheckpointWithoutAnEntryDoesNotProveThatAFullDiskHasRoomAgain() throws Exception {
        CompleteCheckpoints storage = storage();
        failures.set(1);
        storage.addEntry(entry(0));
        for (int times = 0; times < 3; times++) {
            assertThrows(IOException.class, () -> storage.checkpoint(Checkpoint.MAX));
        }
        assertEquals(0, restarts.get());
        storage.addEntry(entry(1));
        assertThrows(IOException.class, () -> storage.checkpoint(Checkpoint.MAX));
        assertEquals(1, restarts.get());
        storage.shutdown();
    }

    @Test
    void checkpointsOfADiskThatWorksRestartNobody() throws Exception {
        CompleteCheckpoints storage = storage();
        for (int entry = 0; entry < 3; entry++) {
            storage.addEntry(entry(entry));
            storage.checkpoint(Checkpoint.MAX);
            storage.checkpoint(Checkpoint.MAX);
        }
        assertEquals(0, restarts.get());
        storage.shutdown();
    }

    private CompleteCheckpoints storage() throws IOException {
        ServerConfiguration configuration = new ServerConfiguration();
        configuration.setAllowLoopback(true);
        File[] disks = {folder.toFile()};
        LedgerDirsManager folders = new LedgerDirsManager(configuration, disks, new DiskChecker(0.95f, 0.9f), NullStatsLogger.INSTANCE);
        folders.getAllLedgerDirs().forEach(File::mkdirs);
        CompleteCheckpoints storage = new CompleteCheckpoints(restarts::incrementAndGet, configuration, null, folders, folders, log(),
                NullStatsLogger.INSTANCE, UnpooledByteBufAllocator.DEFAULT, 2 << 20, 1 << 20, 1, 1 << 10);
        storage.setMasterKey(LEDGER, new byte[] {1});
        return storage;
    }

    /** A log of entries whose next flushes may fail. */
    private EntryLogger log() {
        return (EntryLogger) Proxy.newProxyInstance(getClass().getClassLoader(), new Class<?>[] {EntryLogger.class}, (self, method, given) -> {
            if (method.getName().equals("flush") && failures.getAndUpdate(left -> Math.max(0, left - 1)) > 0) {
                throw new IOException("No space left on device");
            }
            return method.getReturnType() == long.class ? (Object) 1L : method.getReturnType() == boolean.class ? (Object) false
                    : method.getReturnType().isAssignableFrom(List.class) ? List.of() : null;
        });
    }

    private static ByteBuf entry(long entry) {
        return Unpooled.buffer().writeLong(LEDGER).writeLong(entry).writeLong(entry - 1).writeLong(0).writeByte(1);
    }
}
