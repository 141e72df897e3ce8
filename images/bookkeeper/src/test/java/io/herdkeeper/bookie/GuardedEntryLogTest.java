package io.herdkeeper.bookie;

import static org.junit.jupiter.api.Assertions.assertEquals;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import io.netty.buffer.UnpooledByteBufAllocator;
import java.io.File;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.bookkeeper.bookie.DefaultEntryLogger;
import org.apache.bookkeeper.bookie.LedgerDirsManager;
import org.apache.bookkeeper.bookie.storage.EntryLogScanner;
import org.apache.bookkeeper.conf.ServerConfiguration;
import org.apache.bookkeeper.stats.NullStatsLogger;
import org.apache.bookkeeper.util.DiskChecker;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class GuardedEntryLogTest {

    private static final long LEDGER = 7;

    @TempDir
    private Path folder;

    @Test
    void aCompactionOfBookKeepersOwnLogCopiesEachEntryAsItWasWrittenLast() throws Exception {
        ServerConfiguration configuration = new ServerConfiguration();
        File[] disks = {folder.toFile()};
        LedgerDirsManager folders = new LedgerDirsManager(configuration, disks, new DiskChecker(0.95f, 0.9f), NullStatsLogger.INSTANCE);
        folders.getAllLedgerDirs().forEach(File::mkdirs);
        Map<Long, Long> index = new HashMap<>();
        List<String> copied = new ArrayList<>();
        try (GuardedEntryLog log = new GuardedEntryLog(
                new DefaultEntryLogger(configuration, folders, null, NullStatsLogger.INSTANCE, UnpooledByteBufAllocator.DEFAULT))) {
            log.compactBy(new GuardedEntryLog.Index() {
                @Override
                public void awaitFlush() {
                    // there is none
                }

                @Override
                public long placeOf(long ledger, long entry) {
                    return index.get(entry);
                }
            });
            for (char version : "ab".toCharArray()) {
                for (long entry = version == 'a' ? 0 : 1; entry < 3; entry++) {
                    index.put(entry, log.addEntry(LEDGER, Unpooled.buffer().writeLong(LEDGER).writeLong(entry).writeByte(version)));
                }
            }
            log.flush();
            log.scanEntryLog(GuardedEntryLog.logOf(index.get(0L)), new EntryLogScanner() {
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
}
