package io.herdkeeper.bookie;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.netty.buffer.Unpooled;
import io.netty.buffer.UnpooledByteBufAllocator;
import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.Stream;
import org.apache.bookkeeper.bookie.CheckpointSource.Checkpoint;
import org.apache.bookkeeper.bookie.LedgerDirsManager;
import org.apache.bookkeeper.conf.ServerConfiguration;
import org.apache.bookkeeper.stats.NullStatsLogger;
import org.apache.bookkeeper.util.DiskChecker;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class GuardedLedgerStorageTest {

    @TempDir
    private Path folder;
    private final AtomicInteger ends = new AtomicInteger();

    @Test
    void aBookieWithSeveralDisksEndsOnceAllOfThemTakeWrites() throws Exception {
        GuardedLedgerStorage storage = storage("first", "second");
        for (long ledger = 0; ledger < 2; ledger++) {
            storage.setMasterKey(ledger, new byte[] {1});
            storage.addEntry(Unpooled.buffer().writeLong(ledger).writeLong(0).writeLong(-1).writeLong(0).writeByte(1));
        }
        Path first = folder.resolve("first/current");
        Path away = folder.resolve("away");
        Path inTheWay = Files.createDirectories(folder.resolve("second/current").resolve(CompleteCheckpoints.PROBE).resolve("in the way"));
        Files.move(first, away);
        assertThrows(IOException.class, () -> storage.checkpoint(Checkpoint.MAX));
        Files.move(away, first);
        assertThrows(IOException.class, () -> storage.checkpoint(Checkpoint.MAX));
        assertEquals(0, ends.get());
        Files.delete(inTheWay);
        Files.delete(inTheWay.getParent());
        assertThrows(IOException.class, () -> storage.checkpoint(Checkpoint.MAX));
        assertEquals(1, ends.get());
        storage.shutdown();
    }

    @Test
    void aBookieWhoseLedgerVolumesAreMountedInEachOthersPlaceDoesNotStart() throws Exception {
        GuardedLedgerStorage storage = storage("first", "second");
        storage.setMasterKey(0, new byte[] {1});
        storage.addEntry(Unpooled.buffer().writeLong(0).writeLong(0).writeLong(-1).writeLong(0).writeByte(1));
        storage.checkpoint(Checkpoint.MAX);
        storage.shutdown();
        String refusal = assertThrows(IOException.class, () -> storage("second", "first")).getMessage();
        assertTrue(refusal.contains("first/current has ledger 0, which belongs into " + folder.resolve("second/current")), refusal);
    }

    private GuardedLedgerStorage storage(String... disks) throws IOException {
        GuardedLedgerStorage storage = new GuardedLedgerStorage(ends::incrementAndGet);
        ServerConfiguration configuration = new ServerConfiguration();
        configuration.setAllowLoopback(true);
        configuration.setProperty("dbStorage_writeCacheMaxSizeMb", 2);
        configuration.setProperty("dbStorage_readAheadCacheMaxSizeMb", 2);
        File[] each = Stream.of(disks).map(disk -> folder.resolve(disk).toFile()).toArray(File[]::new);
        LedgerDirsManager folders = new LedgerDirsManager(configuration, each, new DiskChecker(0.95f, 0.9f), NullStatsLogger.INSTANCE);
        folders.getAllLedgerDirs().forEach(File::mkdirs);
        storage.initialize(configuration, null, folders, folders, NullStatsLogger.INSTANCE, UnpooledByteBufAllocator.DEFAULT);
        return storage;
    }
}
