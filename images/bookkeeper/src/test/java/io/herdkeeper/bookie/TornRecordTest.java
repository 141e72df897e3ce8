package io.herdkeeper.bookie;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;

import io.netty.buffer.Unpooled;
import java.io.File;
import java.io.IOException;
import java.io.RandomAccessFile;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import org.apache.bookkeeper.bookie.Journal;
import org.apache.bookkeeper.bookie.LedgerDirsManager;
import org.apache.bookkeeper.conf.ServerConfiguration;
import org.apache.bookkeeper.stats.NullStatsLogger;
import org.apache.bookkeeper.util.DiskChecker;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** With journals that BookKeeper wrote and reads. */
class TornRecordTest {

    private static final int LEDGER = 7;
    private static final int SIZE = 300;
    /** With its length this is a group that needs no padding. */
    private static final int ALIGNED = 508;
    private static final int NEXT = 2;
    private static final byte[] PADDING = {(byte) 0xFF, (byte) 0xFF, (byte) 0xFF, 0};

    @TempDir
    private Path folder;
    private Journal journal;
    private Path file;

    @BeforeEach
    void twoEntriesAreAcknowledged() throws Exception {
        ServerConfiguration configuration = new ServerConfiguration();
        configuration.setAllowLoopback(true);
        configuration.setProperty("journalPreAllocSizeMB", 1);
        configuration.setProperty("journalRemoveFromPageCache", false); // it needs an option of the JVM
        File[] disks = {folder.resolve("ledgers").toFile()};
        LedgerDirsManager folders = new LedgerDirsManager(configuration, disks, new DiskChecker(0.95f, 0.9f), NullStatsLogger.INSTANCE);
        folders.getAllLedgerDirs().forEach(File::mkdirs);
        journal = new Journal(0, folder.toFile(), configuration, folders);
        journal.start();
        for (int entry = 0; entry < NEXT; entry++) {
            CountDownLatch acknowledged = new CountDownLatch(1);
            byte[] body = entry(entry, entry == 0 ? SIZE : ALIGNED);
            journal.logAddEntry(Unpooled.wrappedBuffer(body), false, (rc, ledger, id, bookie, context) -> acknowledged.countDown(), null);
            acknowledged.await();
        }
        journal.shutdown();
        file = folder.resolve(Long.toHexString(id()) + ".txn");
    }

    @Test
    void aRecordOfWhichOnlyAPartWasWrittenIsNotReplayed() throws IOException {
        byte[] written = Files.readAllBytes(file);
        byte[] record = ByteBuffer.allocate(Integer.BYTES + SIZE).putInt(SIZE).put(entry(NEXT, SIZE)).array();
        for (int part = 1; part < record.length; part++) {
            Files.write(file, written);
            append(Arrays.copyOf(record, part));
            cut();
            cut(); // as the next start does
            assertEquals(List.of(0L, 1L), replayed(), "part of " + part + " bytes");
        }
    }

    @Test
    void aPartOfPaddingDoesNotStopAReplay() throws IOException {
        byte[] written = Files.readAllBytes(file);
        for (int part = 1; part <= PADDING.length; part++) {
            Files.write(file, written);
            append(ByteBuffer.allocate(Integer.BYTES + SIZE + part).putInt(SIZE).put(entry(NEXT, SIZE)).put(PADDING, 0, part).array());
            cut();
            assertEquals(List.of(0L, 1L), replayed().subList(0, NEXT), "part of " + part + " bytes");
        }
    }

    @Test
    void wholeGroupsAreLeftAlone() throws IOException {
        byte[] before = Files.readAllBytes(file);
        cut();
        assertArrayEquals(before, Files.readAllBytes(file));
    }

    @Test
    void aDamagedJournalIsLeftAlone() throws IOException {
        append(ByteBuffer.allocate(2 * SIZE).putInt(SIZE).put(entry(NEXT, SIZE)).putInt(0).putInt(1).array());
        byte[] before = Files.readAllBytes(file);
        cut();
        assertArrayEquals(before, Files.readAllBytes(file));
    }

    @Test
    void aWholeRecordBeforeATornOneIsLeftAloneAtEachStart() throws IOException {
        append(ByteBuffer.allocate(Integer.BYTES + SIZE + Integer.BYTES + 1).putInt(SIZE).put(entry(NEXT, SIZE)).putInt(SIZE).put((byte) 1).array());
        cut();
        cut();
        assertEquals(List.of(0L, 1L, (long) NEXT), replayed());
    }

    @Test
    void aDamagedLengthCutsNothingOffThatIsBehindIt() throws IOException {
        append(ByteBuffer.allocate(2 * SIZE).putInt(Integer.MAX_VALUE - 0xFF).put(entry(NEXT, SIZE)).array());
        byte[] before = Files.readAllBytes(file);
        cut();
        assertArrayEquals(before, Files.readAllBytes(file));
    }

    private void cut() throws IOException {
        TornRecord.cut(folder.toFile(), List.of(folder.resolve("ledgers/current").toFile()));
    }

    private static byte[] entry(long id, int size) {
        byte[] entry = new byte[size];
        Arrays.fill(entry, (byte) 1);
        ByteBuffer.wrap(entry).putLong(LEDGER).putLong(id);
        return entry;
    }

    /** Behind what was acknowledged: header, padded entry, entry. */
    private void append(byte[] bytes) throws IOException {
        try (RandomAccessFile open = new RandomAccessFile(file.toFile(), "rw")) {
            open.seek(512 + 512 + 512);
            open.write(bytes);
        }
    }

    private long id() {
        return Journal.listJournalIds(folder.toFile(), null).get(0);
    }

    private List<Long> replayed() throws IOException {
        List<Long> entries = new ArrayList<>();
        journal.scanJournal(id(), 0, (version, offset, record) -> {
            assertEquals(LEDGER, record.getLong());
            entries.add(record.getLong());
        }, false);
        return entries;
    }
}
