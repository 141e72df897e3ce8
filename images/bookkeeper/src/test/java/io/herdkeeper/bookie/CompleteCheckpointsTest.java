package io.herdkeeper.bookie;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import io.netty.buffer.UnpooledByteBufAllocator;
import java.io.File;
import java.io.IOException;
import java.lang.reflect.Field;
import java.lang.reflect.Proxy;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.bookkeeper.bookie.CheckpointSource.Checkpoint;
import org.apache.bookkeeper.bookie.EntryLocation;
import org.apache.bookkeeper.bookie.EntryLogMetadata;
import org.apache.bookkeeper.bookie.LedgerDirsManager;
import org.apache.bookkeeper.bookie.storage.EntryLogScanner;
import org.apache.bookkeeper.bookie.storage.EntryLogger;
import org.apache.bookkeeper.bookie.storage.ldb.SingleDirectoryDbLedgerStorage;
import org.apache.bookkeeper.client.BKException;
import org.apache.bookkeeper.client.LedgerMetadataBuilder;
import org.apache.bookkeeper.client.api.DigestType;
import org.apache.bookkeeper.conf.ServerConfiguration;
import org.apache.bookkeeper.meta.LedgerManager;
import org.apache.bookkeeper.net.BookieId;
import org.apache.bookkeeper.stats.NullStatsLogger;
import org.apache.bookkeeper.util.DiskChecker;
import org.apache.bookkeeper.versioning.LongVersion;
import org.apache.bookkeeper.versioning.Version;
import org.apache.bookkeeper.versioning.Versioned;
import org.apache.zookeeper.KeeperException.BadVersionException;
import org.apache.zookeeper.KeeperException.ConnectionLossException;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class CompleteCheckpointsTest {

    private static final long LEDGER = 7;

    @TempDir
    private Path folder;
    private final AtomicInteger failures = new AtomicInteger();
    private final AtomicInteger flushes = new AtomicInteger();
    private final AtomicInteger restarts = new AtomicInteger();
    private final AtomicLong place = new AtomicLong(1);
    private final List<Long> copied = new ArrayList<>();
    private static final BookieId HERE = BookieId.parse("here");
    private static final BookieId ELSEWHERE = BookieId.parse("elsewhere");
    private volatile Map<Long, List<BookieId>> metadata = Map.of(LEDGER, List.of(HERE));
    private volatile Map<Long, List<BookieId>> seen = Map.of();
    private volatile boolean isAway;
    private CompleteCheckpoints made;
    private Runnable flushed = () -> { };
    private final GuardedEntryLog log = new GuardedEntryLog(disk());

    @Test
    void noCheckpointCountsBehindOneThatFailedAndTheBookieRestartsOnceItsDiskTakesOneAgain() throws Exception {
        CompleteCheckpoints storage = storage();
        storage.addEntry(entry(0));
        storage.checkpoint(Checkpoint.MAX);
        int before = flushes.get();
        failures.set(1);
        fillDisk();
        for (int entry = 1; entry <= 3; entry++) {
            storage.addEntry(entry(entry));
            assertThrows(IOException.class, () -> storage.checkpoint(Checkpoint.MAX));
            assertEquals(0, restarts.get());
        }
        giveRoom();
        assertThrows(IOException.class, () -> storage.checkpoint(Checkpoint.MAX));
        assertEquals(1, restarts.get());
        // BookKeeper writes the rest of a buffer of which the disk took a part, and names wrong places in its index
        assertEquals(before + 1, flushes.get());
        for (int entry = 0; entry <= 3; entry++) {
            assertTrue(storage.entryExists(LEDGER, entry));
        }
        storage.shutdown();
    }

    @Test
    void aBookieThatGetsNoEntriesRestartsToo() throws Exception {
        CompleteCheckpoints storage = storage();
        failures.set(1);
        storage.addEntry(entry(0));
        assertThrows(IOException.class, () -> storage.checkpoint(Checkpoint.MAX));
        assertEquals(0, restarts.get());
        assertThrows(IOException.class, () -> storage.checkpoint(Checkpoint.MAX));
        assertEquals(1, restarts.get());
        storage.shutdown();
    }

    @Test
    void noCheckpointCountsBehindACompactionThatCouldNotWrite() throws Exception {
        CompleteCheckpoints storage = storage();
        failures.set(1);
        assertThrows(IOException.class, log::flush);
        assertThrows(IOException.class, () -> storage.checkpoint(Checkpoint.MAX));
        assertEquals(1, restarts.get());
        storage.shutdown();
    }

    @Test
    void aCheckpointBesideWhichACompactionCouldNotWriteDoesNotCount() throws Exception {
        CompleteCheckpoints storage = storage();
        storage.addEntry(entry(0));
        flushed = () -> {
            failures.set(1);
            assertThrows(IOException.class, log::flush);
        };
        assertThrows(IOException.class, () -> storage.checkpoint(Checkpoint.MAX));
        storage.shutdown();
    }

    @Test
    void noCopyOfACompactionIsNamedBehindAWriteThatFailed() throws Exception {
        CompleteCheckpoints storage = storage();
        place.set(1L << 32 | 100);
        storage.addEntry(entry(0));
        storage.checkpoint(Checkpoint.MAX);
        failures.set(1);
        assertThrows(IOException.class, log::flush);
        assertThrows(IOException.class, () -> storage.updateEntriesLocations(List.of(new EntryLocation(LEDGER, 0, 3L << 32 | 100))));
        assertEquals(1L << 32 | 100, storage.getEntryLocationIndex().getLocation(LEDGER, 0));
        storage.shutdown();
    }

    @Test
    void anEntryThatWasWrittenAgainDuringACompactionKeepsItsNewPlace() throws Exception {
        CompleteCheckpoints storage = storage();
        place.set(1L << 32 | 100);
        storage.addEntry(entry(0));
        storage.checkpoint(Checkpoint.MAX);
        log.scanEntryLog(1, copying());
        storage.updateEntriesLocations(List.of(new EntryLocation(LEDGER, 0, 3L << 32 | 100)));
        assertEquals(3L << 32 | 100, storage.getEntryLocationIndex().getLocation(LEDGER, 0));
        log.scanEntryLog(3, copying());
        place.set(4L << 32 | 100);
        storage.addEntry(entry(0));
        storage.checkpoint(Checkpoint.MAX);
        // the copies of a compaction may be in an older log than what is written meanwhile, or in a newer one
        storage.updateEntriesLocations(List.of(new EntryLocation(LEDGER, 0, 5L << 32 | 50), new EntryLocation(LEDGER, 1, 5L << 32 | 90)));
        assertEquals(4L << 32 | 100, storage.getEntryLocationIndex().getLocation(LEDGER, 0));
        assertEquals(0, storage.getEntryLocationIndex().getLocation(LEDGER, 1));
        storage.shutdown();
    }

    @Test
    void aLedgerThatIsCopiedAgainSoonAfterItWasDeletedKeepsItsNewEntries() throws Exception {
        CompleteCheckpoints storage = storage();
        storage.addEntry(entry(0));
        storage.addEntry(entry(1));
        storage.checkpoint(Checkpoint.MAX);
        metadata = Map.of();
        storage.deleteLedger(LEDGER);
        assertEquals(0, storage.getEntryLocationIndex().getLocation(LEDGER, 1));
        storage.setMasterKey(LEDGER, new byte[] {1});
        storage.addEntry(entry(0));
        storage.checkpoint(Checkpoint.MAX);
        storage.shutdown(); // it waits for what the checkpoint has left to another thread
        assertEquals(place.get(), storage().getEntryLocationIndex().getLocation(LEDGER, 0));
        made.shutdown();
    }

    @Test
    void aLedgerIsKeptThatOnlyAMemberOfZooKeeperWhichIsBehindDoesNotKnowOf() throws Exception {
        CompleteCheckpoints storage = storage();
        storage.addEntry(entry(0));
        storage.checkpoint(Checkpoint.MAX);
        assertThrows(IOException.class, () -> storage.deleteLedger(LEDGER));
        assertEquals(place.get(), storage.getEntryLocationIndex().getLocation(LEDGER, 0));
        storage.shutdown();
    }

    @Test
    void aCopyThatIsBeingMadeHereIsKeptThoughTheMetadataDoesNotNameItYet() throws Exception {
        CompleteCheckpoints storage = storage();
        storage.addEntry(entry(0));
        storage.checkpoint(Checkpoint.MAX);
        metadata = Map.of(LEDGER, List.of(ELSEWHERE));
        assertThrows(IOException.class, () -> storage.deleteLedger(LEDGER));
        assertEquals(place.get(), storage.getEntryLocationIndex().getLocation(LEDGER, 0));
        storage.shutdown();
    }

    @Test
    void aLedgerIsKeptWhileZooKeeperDoesNotAnswer() throws Exception {
        CompleteCheckpoints storage = storage();
        storage.addEntry(entry(0));
        storage.checkpoint(Checkpoint.MAX);
        metadata = Map.of();
        isAway = true;
        assertThrows(IOException.class, () -> storage.deleteLedger(LEDGER));
        assertEquals(place.get(), storage.getEntryLocationIndex().getLocation(LEDGER, 0));
        isAway = false;
        storage.deleteLedger(LEDGER);
        assertEquals(0, storage.getEntryLocationIndex().getLocation(LEDGER, 0));
        storage.shutdown();
    }

    @Test
    void aLedgerWhoseCopiesAreElsewhereIsDeletedAlsoByTheThreadOfZooKeepersAnswers() throws Exception {
        CompleteCheckpoints storage = storage();
        storage.addEntry(entry(0));
        storage.checkpoint(Checkpoint.MAX);
        isAway = true; // this thread would wait for itself
        Thread answers = new Thread(() -> {
            try {
                storage.deleteLedger(LEDGER);
            } catch (IOException unexpected) {
                throw new IllegalStateException(unexpected);
            }
        }, "main-EventThread");
        answers.start();
        answers.join();
        assertEquals(0, storage.getEntryLocationIndex().getLocation(LEDGER, 0));
        storage.shutdown();
    }

    /** A member that is behind, until the majority has answered to a write. */
    private LedgerManager member() {
        Class<?>[] it = {LedgerManager.class};
        return (LedgerManager) Proxy.newProxyInstance(getClass().getClassLoader(), it, (self, method, given) -> {
            if (isAway) {
                return CompletableFuture.failedFuture(new BKException.ZKException(new ConnectionLossException()));
            }
            switch (method.getName()) {
                case "removeLedgerMetadata":
                    assertNotEquals(Version.ANY, given[1]);
                    seen = metadata;
                    return metadata.containsKey(given[0])
                            ? CompletableFuture.failedFuture(new BKException.ZKException(new BadVersionException()))
                            : CompletableFuture.completedFuture(null);
                case "readLedgerMetadata":
                    List<BookieId> bookies = seen.get(given[0]);
                    return bookies == null
                            ? CompletableFuture.failedFuture(new BKException.BKNoSuchLedgerExistsOnMetadataServerException())
                            : CompletableFuture.completedFuture(new Versioned<>(LedgerMetadataBuilder.create().withId(LEDGER)
                                    .withDigestType(DigestType.CRC32C).withPassword(new byte[0])
                                    .withEnsembleSize(1).withWriteQuorumSize(1).withAckQuorumSize(1)
                                    .newEnsembleEntry(0, bookies).build(), new LongVersion(0)));
                default:
                    return null;
            }
        });
    }

    @Test
    void aThreadThatIsInterruptedWhileItDeletesALedgerStaysInterrupted() throws Exception {
        CompleteCheckpoints storage = storage();
        metadata = Map.of();
        Field field = SingleDirectoryDbLedgerStorage.class.getDeclaredField("cleanupExecutor");
        field.setAccessible(true);
        CountDownLatch others = new CountDownLatch(1);
        ((ExecutorService) field.get(storage)).submit(() -> {
            others.await();
            return null;
        });
        try {
            Thread.currentThread().interrupt();
            IOException failed = assertThrows(IOException.class, () -> storage.deleteLedger(LEDGER));
            assertTrue(Thread.interrupted());
            assertInstanceOf(InterruptedException.class, failed.getCause());
        } finally {
            others.countDown();
        }
        storage.shutdown();
    }

    @Test
    void aCompactionCopiesOnlyTheRecordsThatTheIndexNames() throws Exception {
        CompleteCheckpoints storage = storage();
        place.set(7L << 32 | 504);
        storage.addEntry(entry(0));
        storage.checkpoint(Checkpoint.MAX);
        log.scanEntryLog(6, copying());
        assertEquals(List.of(), copied);
        log.scanEntryLog(7, copying());
        assertEquals(List.of(500L), copied);
        storage.shutdown();
    }

    @Test
    void aCompactionWaitsForTheFlushThatHasWrittenALogAndNotYetItsIndex() throws Exception {
        CompleteCheckpoints storage = storage();
        place.set(7L << 32 | 504);
        storage.addEntry(entry(0));
        Thread compaction = new Thread(() -> {
            try {
                log.scanEntryLog(7, copying());
            } catch (IOException unexpected) {
                throw new IllegalStateException(unexpected);
            }
        });
        flushed = () -> {
            compaction.start();
            while (compaction.getState() != Thread.State.WAITING && compaction.isAlive()) {
                Thread.onSpinWait();
            }
        };
        storage.checkpoint(Checkpoint.MAX);
        compaction.join();
        assertEquals(List.of(500L), copied);
        storage.shutdown();
    }

    @Test
    void nothingIsCompactedBehindACheckpointThatFailed() throws Exception {
        CompleteCheckpoints storage = storage();
        failures.set(1);
        storage.addEntry(entry(0));
        assertThrows(IOException.class, () -> storage.checkpoint(Checkpoint.MAX));
        assertThrows(IOException.class, () -> log.scanEntryLog(7, copying()));
        storage.shutdown();
    }

    private EntryLogScanner copying() {
        return new EntryLogScanner() {
            @Override
            public boolean accept(long ledger) {
                return true;
            }

            @Override
            public void process(long ledger, long offset, ByteBuf entry) {
                copied.add(offset);
            }
        };
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
        configuration.setBookieId(HERE.toString());
        File[] disks = {folder.toFile()};
        LedgerDirsManager folders = new LedgerDirsManager(configuration, disks, new DiskChecker(0.95f, 0.9f), NullStatsLogger.INSTANCE);
        folders.getAllLedgerDirs().forEach(File::mkdirs);
        CompleteCheckpoints storage = new CompleteCheckpoints(this::restart, configuration, member(), folders, folders, log,
                NullStatsLogger.INSTANCE, UnpooledByteBufAllocator.DEFAULT, 2 << 20, 1 << 20, 1, 1 << 10);
        storage.setMasterKey(LEDGER, new byte[] {1});
        made = storage;
        return storage;
    }

    private void restart() {
        if (made.takesWrites()) {
            restarts.incrementAndGet();
        }
    }

    /** A log of entries whose next flushes may fail. A scan of any log finds entry 0 thrice, and what is left of a torn one. */
    private EntryLogger disk() {
        return (EntryLogger) Proxy.newProxyInstance(getClass().getClassLoader(), new Class<?>[] {EntryLogger.class}, (self, method, given) -> {
            switch (method.getName()) {
                case "flush":
                    flushes.incrementAndGet();
                    if (failures.getAndUpdate(left -> Math.max(0, left - 1)) > 0) {
                        throw new IOException("No space left on device");
                    }
                    flushed.run();
                    return null;
                case "addEntry":
                    return place.get();
                case "getEntryLogMetadata":
                    return new EntryLogMetadata((long) given[0]);
                case "scanEntryLog":
                    for (long offset : new long[] {400, 500, 600}) {
                        ((EntryLogScanner) given[1]).process(LEDGER, offset, entry(0));
                    }
                    ((EntryLogScanner) given[1]).process(LEDGER, 500, Unpooled.buffer().writeLong(LEDGER));
                    return null;
                default:
                    return method.getReturnType() == boolean.class ? (Object) false
                            : method.getReturnType().isAssignableFrom(List.class) ? List.of() : null;
            }
        });
    }

    /** Nothing can be written where a folder is. */
    private void fillDisk() throws IOException {
        Files.createDirectories(probe().resolve("in the way"));
    }

    private void giveRoom() throws IOException {
        Files.delete(probe().resolve("in the way"));
        Files.delete(probe());
    }

    private Path probe() {
        return folder.resolve("current").resolve(CompleteCheckpoints.PROBE);
    }

    private static ByteBuf entry(long entry) {
        return Unpooled.buffer().writeLong(LEDGER).writeLong(entry).writeLong(entry - 1).writeLong(0).writeByte(1);
    }
}
