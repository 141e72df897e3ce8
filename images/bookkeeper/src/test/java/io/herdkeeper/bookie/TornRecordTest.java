package io.herdkeeper.bookie;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

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
import java.util.zip.CRC32C;
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
    private static final int OTHER_LEDGER = 8;
    private static final int SIZE = 300;
    private static final int GROUP = 512;
    /** Of the header, an entry with padding, and an entry. */
    private static final int END = 3 * GROUP;
    /** More bytes than an entry has before its payload. */
    private static final int WITH_HEADER = 64;
    /** With its length this is a group that needs no padding. */
    private static final int ALIGNED = 508;
    private static final int NEXT = 2;
    private static final int STARTS = 4;
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
    void aPartOfARecordThatWouldHaveFilledItsGroupIsNotReplayed() throws IOException {
        byte[] written = Files.readAllBytes(file);
        for (int part = 1; part <= WITH_HEADER; part++) {
            Files.write(file, written);
            byte[] torn = Arrays.copyOf(record(NEXT + 1, part + 2 * GROUP - Integer.BYTES), part);
            append(ByteBuffer.allocate(GROUP).put(record(NEXT, GROUP - part - Integer.BYTES)).put(torn).array());
            cut();
            cut();
            assertTrue(List.of(0L, 1L, (long) NEXT).containsAll(replayed()), "part of " + part + " bytes");
        }
    }

    @Test
    void aWholeRecordThatFillsItsGroupAndEndsWithZerosIsLeftAlone() throws IOException {
        byte[] withZeros = Arrays.copyOf(entry(NEXT, ALIGNED), ALIGNED + 2 * GROUP);
        ByteBuffer.wrap(withZeros).putLong(24, 1 << 30);
        append(ByteBuffer.allocate(Integer.BYTES + withZeros.length).putInt(withZeros.length).put(digested(withZeros)).array());
        cut();
        assertEquals(List.of(0L, 1L, (long) NEXT), replayed());
    }

    @Test
    void soIsOneOfALedgerWhoseDigestIsAnotherOne() throws IOException {
        byte[] other = Arrays.copyOf(entry(NEXT, ALIGNED), ALIGNED + 2 * GROUP);
        ByteBuffer.wrap(other).putLong(OTHER_LEDGER).putLong(24, 1 << 30);
        append(ByteBuffer.allocate(Integer.BYTES + other.length).putInt(other.length).put(other).array());
        byte[] before = Files.readAllBytes(file);
        cut();
        assertArrayEquals(before, Files.readAllBytes(file));
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

    @Test
    void aJournalThatEndsBeforeTheLastCheckpointIsRefused() throws IOException {
        byte[] before = Files.readAllBytes(file);
        for (long offset : new long[] {GROUP, END, END + Integer.BYTES, file.toFile().length()}) {
            mark(offset);
            cut();
        }
        for (long offset : new long[] {END + GROUP, file.toFile().length() + GROUP}) {
            mark(offset);
            String refusal = assertThrows(IOException.class, this::cut).getMessage();
            assertTrue(refusal.contains("ends at byte " + END + ", and a ledger volume was written up to byte " + offset), refusal);
        }
        assertArrayEquals(before, Files.readAllBytes(file));
    }

    @Test
    void startsThatGetNoNewJournalDoNotLookLikeAnOlderOne() throws IOException {
        long offset = END;
        for (int start = 0; start < STARTS; start++) {
            mark(offset);
            cut();
            offset = journal.scanJournal(id(), offset, (version, place, record) -> { }, false);
        }
        assertEquals(END + STARTS * Integer.BYTES, offset);
    }

    /** Up to where a checkpoint is done with the journal. */
    private void mark(long offset) throws IOException {
        Files.write(folder.resolve("ledgers/current/lastMark"), ByteBuffer.allocate(2 * Long.BYTES).putLong(id()).putLong(offset).array());
    }

    private void cut() throws IOException {
        TornRecord.cut(folder.toFile(), List.of(folder.resolve("ledgers/current").toFile()));
    }

    private static byte[] entry(long id, int size) {
        byte[] entry = new byte[size];
        Arrays.fill(entry, (byte) 1);
        ByteBuffer.wrap(entry).putLong(LEDGER).putLong(id);
        return digested(entry);
    }

    /** As a client with CRC32C sends it. */
    private static byte[] digested(byte[] entry) {
        if (entry.length >= 36) {
            CRC32C digest = new CRC32C();
            digest.update(entry, 0, 32);
            digest.update(entry, 36, entry.length - 36);
            ByteBuffer.wrap(entry).putInt(32, (int) digest.getValue());
        }
        return entry;
    }

    private static byte[] record(long id, int size) {
        return ByteBuffer.allocate(Integer.BYTES + size).putInt(size).put(entry(id, size)).array();
    }

    /** Behind what was acknowledged. */
    private void append(byte[] bytes) throws IOException {
        try (RandomAccessFile open = new RandomAccessFile(file.toFile(), "rw")) {
            open.seek(END);
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
