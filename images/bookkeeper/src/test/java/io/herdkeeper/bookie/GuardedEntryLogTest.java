package io.herdkeeper.bookie;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import io.netty.buffer.UnpooledByteBufAllocator;
import java.io.File;
import java.io.IOException;
import java.io.RandomAccessFile;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.LongUnaryOperator;
import org.apache.bookkeeper.bookie.DefaultEntryLogger;
import org.apache.bookkeeper.bookie.LedgerDirsManager;
import org.apache.bookkeeper.bookie.storage.EntryLogScanner;
import org.apache.bookkeeper.conf.ServerConfiguration;
import org.apache.bookkeeper.stats.NullStatsLogger;
import org.apache.bookkeeper.util.DiskChecker;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class GuardedEntryLogTest {

    private static final long LEDGER = 7;
    /** Bytes, of which the header has 1024. */
    private static final long SMALL_LOG = 1400;

    @TempDir
    private Path folder;

    @Test
    void aCompactionOfBookKeepersOwnLogCopiesEachEntryAsItWasWrittenLast() throws Exception {
        ServerConfiguration configuration = new ServerConfiguration();
        File[] disks = {folder.toFile()};
        LedgerDirsManager folders = new LedgerDirsManager(configuration, disks, new DiskChecker(0.95f, 0.9f), NullStatsLogger.INSTANCE);
        folders.getAllLedgerDirs().forEach(File::mkdirs);
        Map<Long, Long> places = new HashMap<>();
        List<String> copied = new ArrayList<>();
        try (GuardedEntryLog log = new GuardedEntryLog(
                new DefaultEntryLogger(configuration, folders, null, NullStatsLogger.INSTANCE, UnpooledByteBufAllocator.DEFAULT))) {
            log.compactBy(index(places::get));
            for (char version : "ab".toCharArray()) {
                for (long entry = version == 'a' ? 0 : 1; entry < 3; entry++) {
                    places.put(entry, log.addEntry(LEDGER, Unpooled.buffer().writeLong(LEDGER).writeLong(entry).writeByte(version)));
                }
            }
            log.flush();
            log.scanEntryLog(GuardedEntryLog.logOf(places.get(0L)), new EntryLogScanner() {
                @Override
                public boolean accept(long ledger) {
                    return ledger == LEDGER;
                }

                @Override
                public void process(long ledger, long offset, ByteBuf entry) {
                    copied.add(entry.getLong(8) + "" + (char) entry.getByte(16));
                }
            });
        }
        assertEquals(List.of("0a", "1b", "2b"), copied);
    }

    @ParameterizedTest
    @ValueSource(ints = {36 ^ 64, 36 ^ 1 << 30})
    void aLogWithADamagedLengthIsNotCompactedSinceNothingBehindItWouldBeFound(int length) throws Exception {
        ServerConfiguration configuration = new ServerConfiguration();
        configuration.setEntryLogSizeLimit(SMALL_LOG);
        File[] disks = {folder.toFile()};
        LedgerDirsManager folders = new LedgerDirsManager(configuration, disks, new DiskChecker(0.95f, 0.9f), NullStatsLogger.INSTANCE);
        folders.getAllLedgerDirs().forEach(File::mkdirs);
        List<Long> places = new ArrayList<>();
        List<Long> copied = new ArrayList<>();
        try (GuardedEntryLog log = new GuardedEntryLog(new DefaultEntryLogger(configuration, folders, null, NullStatsLogger.INSTANCE,
                new EntryBuffers(UnpooledByteBufAllocator.DEFAULT, 1)))) {
            log.compactBy(index(entry -> places.get((int) entry)));
            while (places.isEmpty() || GuardedEntryLog.logOf(places.get(places.size() - 1)) < 2) {
                places.add(log.addEntry(LEDGER, Unpooled.buffer().writeLong(LEDGER).writeLong(places.size()).writeZero(20)));
            }
            log.flush();
            try (RandomAccessFile file = new RandomAccessFile(folder.resolve("current/1.log").toFile(), "rw")) {
                long first = places.stream().filter(place -> GuardedEntryLog.logOf(place) == 1).findFirst().orElseThrow();
                file.seek((int) first - Integer.BYTES);
                file.writeInt(length);
            }
            log.scanEntryLog(0, copying(copied));
            assertEquals(places.stream().filter(place -> GuardedEntryLog.logOf(place) == 0).count(), copied.size());
            assertThrows(IOException.class, () -> log.scanEntryLog(1, copying(copied)));
            copied.clear();
            assertThrows(IOException.class, () -> log.scanEntryLog(1, copying(copied)));
            assertEquals(List.of(), copied);
        }
    }

    private static GuardedEntryLog.Index index(LongUnaryOperator places) {
        return new GuardedEntryLog.Index() {
            @Override
            public void awaitFlush() {
                // there is none
            }

            @Override
            public long placeOf(long ledger, long entry) {
                return places.applyAsLong(entry);
            }
        };
    }

    private static EntryLogScanner copying(List<Long> copied) {
        return new EntryLogScanner() {
            @Override
            public boolean accept(long ledger) {
                return ledger == LEDGER;
            }

            @Override
            public void process(long ledger, long offset, ByteBuf entry) {
                copied.add(entry.getLong(8));
            }
        };
    }
}
