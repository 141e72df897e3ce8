package io.herdkeeper.bookie;

import io.netty.buffer.ByteBuf;
import java.io.IOException;
import java.util.Collection;
import java.util.HashMap;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.bookkeeper.bookie.AbstractLogCompactor.Throttler;
import org.apache.bookkeeper.bookie.EntryLogMetadata;
import org.apache.bookkeeper.bookie.storage.CompactionEntryLog;
import org.apache.bookkeeper.bookie.storage.EntryLogScanner;
import org.apache.bookkeeper.bookie.storage.EntryLogger;

/**
 * BookKeeper's log of the entries on one disk. It takes nothing behind a write that failed, and a compaction copies only what the index names.
 *
 * <p>BookKeeper 4.18 does otherwise, and entries are lost:
 *
 * <ul>
 * <li>A full disk takes a part of a buffer. Once there is room, the whole buffer is written behind that part (apache/bookkeeper#4855).
 *     From there on the index names wrong places. A compaction may have copied entries there, and deletes their old log.
 * <li>A compaction copies each record of a log, and the index then names that copy, even if it named a newer record
 *     ({@code EntryLogCompactor}). A damaged record comes back behind its repair, and a record of which a full disk took a part, behind the
 *     replay of the journal.
 * <li>A compaction goes from record to record by their lengths. Behind a damaged one it may find nothing, and deletes the log all the same.
 *     A log that was ended in order tells how many bytes it has of each ledger.
 * </ul>
 */
final class GuardedEntryLog implements EntryLogger {

    /** Of the size that stands before each entry. The index names the place behind it. */
    private static final int SIZE_BYTES = 4;
    private static final int BITS_OF_A_PLACE = 32;

    /** Where the entries are. */
    interface Index {
        /** Waits for the flush under way, which writes entries to a log first, and then where they are. Throws if one has failed. */
        void awaitFlush() throws IOException;

        /** Where the index finds an entry, or 0. */
        long placeOf(long ledger, long entry) throws IOException;
    }

    private static final long UNKNOWN = -1;

    private final EntryLogger log;
    private volatile Index index;
    private volatile boolean hasFailed;
    private volatile long compacted = UNKNOWN;
    /** Logs that are not compacted again: the copies would fill the disk. */
    private final Set<Long> damaged = ConcurrentHashMap.newKeySet();

    GuardedEntryLog(EntryLogger log) {
        this.log = log;
    }

    /** To be called before anything is compacted. */
    void compactBy(Index places) {
        index = places;
    }

    /** Throws if it takes no more writes. */
    void requireNoFailure() throws IOException {
        if (hasFailed) {
            throw new IOException("an earlier write to this log of entries failed: it takes no more until the bookie has restarted");
        }
    }

    /** Whether a place of the index is in the log that is being compacted. */
    boolean isCompacted(long place) {
        return place != 0 && (compacted == UNKNOWN || logOf(place) == compacted);
    }

    /** The number of the log that has this place. */
    static long logOf(long place) {
        return place >> BITS_OF_A_PLACE;
    }

    @Override
    public long addEntry(long ledger, ByteBuf entry) throws IOException {
        return written(() -> log.addEntry(ledger, entry));
    }

    @Override
    public void flush() throws IOException {
        written(() -> {
            log.flush();
            return null;
        });
    }

    /** One after the other: a flush relies on what another one has begun to write, and must know if that fails. */
    private synchronized <T> T written(Write<T> write) throws IOException {
        requireNoFailure();
        boolean succeeds = false;
        try {
            T result = write.run();
            succeeds = true;
            return result;
        } finally {
            if (!succeeds) {
                hasFailed = true;
            }
        }
    }

    @FunctionalInterface
    private interface Write<T> {
        T run() throws IOException;
    }

    /** Only a compaction does so. It deletes the log if this throws nothing. */
    @Override
    public void scanEntryLog(long number, EntryLogScanner scanner) throws IOException {
        index.awaitFlush();
        compacted = number;
        if (damaged.contains(number) || !isSeenWhole(number, scanner)) {
            damaged.add(number);
            throw new IOException("entry log " + Long.toHexString(number) + " has a record with a damaged length, which hides entries behind it");
        }
    }

    /** Scans a log, and tells whether all was seen that it says it has. */
    private boolean isSeenWhole(long number, EntryLogScanner scanner) throws IOException {
        Map<Long, Long> unseen = new HashMap<>();
        try {
            log.getEntryLogMetadata(number, null).getLedgersMap().forEach((ledger, bytes) -> {
                if (scanner.accept(ledger)) {
                    unseen.put(ledger, bytes);
                }
            });
            scan(number, scanner, unseen);
        } catch (IllegalArgumentException tooLong) { // EntryBuffers refuses it
            return false;
        }
        return unseen.values().stream().allMatch(bytes -> bytes <= 0);
    }

    private void scan(long number, EntryLogScanner scanner, Map<Long, Long> unseen) throws IOException {
        log.scanEntryLog(number, new EntryLogScanner() {
            @Override
            public boolean accept(long ledger) {
                return scanner.accept(ledger);
            }

            @Override
            public void process(long ledger, long offset, ByteBuf entry) throws IOException {
                unseen.merge(ledger, (long) -SIZE_BYTES - entry.readableBytes(), Long::sum);
                long here = number << BITS_OF_A_PLACE | offset + SIZE_BYTES;
                boolean hasIds = entry.readableBytes() >= 2 * Long.BYTES;
                if (hasIds && index.placeOf(ledger, entry.getLong(entry.readerIndex() + Long.BYTES)) == here) {
                    scanner.process(ledger, offset, entry);
                }
            }
        });
    }

    @Override
    public ByteBuf readEntry(long place) throws IOException {
        return log.readEntry(place);
    }

    @Override
    public ByteBuf readEntry(long ledger, long entry, long place) throws IOException {
        try {
            return log.readEntry(ledger, entry, place);
        } catch (IllegalArgumentException damaged) {
            throw new IOException(damaged); // EntryBuffers refuses its length
        }
    }

    @Override
    public void close() throws IOException {
        log.close();
    }

    @Override
    public CompactionEntryLog newCompactionLog(long number) throws IOException {
        return log.newCompactionLog(number);
    }

    /** They are ended next, each for a log of its own. */
    @Override
    public Collection<CompactionEntryLog> incompleteCompactionLogs() {
        compacted = UNKNOWN;
        return log.incompleteCompactionLogs();
    }

    @Override
    public Collection<Long> getFlushedLogIds() {
        return log.getFlushedLogIds();
    }

    @Override
    public EntryLogMetadata getEntryLogMetadata(long number, Throttler throttler) throws IOException {
        return log.getEntryLogMetadata(number, throttler);
    }

    @Override
    public boolean logExists(long number) {
        return log.logExists(number);
    }

    @Override
    public boolean removeEntryLog(long number) {
        return log.removeEntryLog(number);
    }
}
