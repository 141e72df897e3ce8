package io.herdkeeper.bookie;

import java.io.DataInputStream;
import java.io.File;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.List;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import java.util.zip.CRC32C;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Cuts the record off a journal of which a bookie that was killed, or whose disk was full, wrote a part.
 *
 * <p>A journal is allocated before it is written, so zeros follow that part. BookKeeper 4.18 ({@code Journal.scanJournal}) takes them for the
 * rest of the record. The bookie would serve a damaged entry that nobody acknowledged. A reader that recovers the ledger fails at it unless
 * enough other bookies say that they have no such entry. If the part ends within the entry's number, zeros would take the place of an
 * acknowledged entry.
 *
 * <p>A record is acknowledged once its whole group is written, which ends at a multiple of 512 bytes, by padding if need be. So nobody got
 * an acknowledgement for a last record that ends elsewhere. One that ends there may be whole. Disks and page caches take multiples of 512
 * bytes, too: if it is torn, zeros are in place of its last 512 bytes at least. It is torn if its sum of lengths is less than its own
 * length, or if its digest is wrong. The digest counts only where another record of the ledger shows which kind of digest it has.
 */
final class TornRecord {

    private static final int PADDING = -0x100;
    private static final int HEADER = 512;
    private static final int GROUP = 512;
    private static final int WITH_PADDING = 5;
    /** In an entry: its ledger, its number, the last one that was confirmed, the lengths of all up to it, and the digest. */
    private static final int NUMBER = 8;
    private static final int LENGTHS = 24;
    private static final int DIGEST = 32;
    private static final int LONGEST_DIGEST = 20;
    private static final byte[] MAGIC = {'B', 'K', 'L', 'G'};
    private static final int WINDOW = 1 << 18;
    private static final Logger LOGGER = LoggerFactory.getLogger(TornRecord.class);

    private final FileChannel file;
    private final ByteBuffer window = ByteBuffer.allocate(WINDOW).limit(0);
    private long windowStart;
    /** Where its records end, once {@link #start} was called. */
    private long end;

    private TornRecord(FileChannel file) {
        this.file = file;
    }

    /**
     * Before a replay, in the journals that it reads. Nobody may write to them. Throws if the journal ends before the last checkpoint, up to
     * which its entries were in it.
     */
    static void cut(File folder, List<File> ledgerFolders) throws IOException {
        Mark last = new Mark(0, 0);
        for (File each : ledgerFolders) {
            Mark marked = marked(each.toPath().resolve("lastMark"));
            last = last.compareTo(marked) < 0 ? marked : last;
        }
        for (Path each : journals(folder.toPath(), last.journal)) {
            try (FileChannel file = FileChannel.open(each, StandardOpenOption.READ, StandardOpenOption.WRITE)) {
                TornRecord journal = new TornRecord(file);
                long torn = journal.start();
                if (id(each) == last.journal && journal.endsBefore(last.offset)) {
                    throw new IOException(each + " ends at byte " + journal.end + ", and a ledger volume was written up to byte " + last.offset
                            + ": the journal's volume is an older one, and lacks acknowledged entries. Mount the newest one, or retire this bookie");
                }
                if (torn > 0) {
                    file.truncate(torn);
                    file.force(true);
                    LOGGER.warn("cut a torn record, which nobody got an acknowledgement for, off {} at byte {}", each, torn);
                }
            }
        }
    }

    /** Of the last checkpoint: a journal, and how many of its bytes it has done with. */
    private record Mark(long journal, long offset) implements Comparable<Mark> {
        @Override
        public int compareTo(Mark other) {
            return journal == other.journal ? Long.compare(offset, other.offset) : Long.compare(journal, other.journal);
        }
    }

    private static Mark marked(Path mark) throws IOException {
        if (!Files.exists(mark) || Files.size(mark) < 2 * Long.BYTES) {
            return new Mark(0, 0);
        }
        try (DataInputStream in = new DataInputStream(Files.newInputStream(mark))) {
            return new Mark(in.readLong(), in.readLong());
        }
    }

    private static long id(Path journal) {
        return Long.parseLong(journal.getFileName().toString().replace(".txn", ""), 16);
    }

    private static List<Path> journals(Path folder, long first) throws IOException {
        if (!Files.isDirectory(folder)) {
            return List.of();
        }
        try (Stream<Path> found = Files.list(folder)) {
            return found.filter(each -> each.getFileName().toString().matches("[0-9a-f]{1,15}\\.txn"))
                    .filter(each -> id(each) >= first)
                    .collect(Collectors.toList());
        }
    }

    /** Where the torn record starts; 0 if there is none. */
    private long start() throws IOException {
        if (number(0) != ByteBuffer.wrap(MAGIC).getInt() || number(Integer.BYTES) < WITH_PADDING) {
            return 0;
        }
        long last = 0;
        long at = HEADER;
        for (int length = number(at); length != 0; length = number(at)) {
            if (isPartOfPadding(length)) {
                return isFollowedByZeros(at + Integer.BYTES) ? at : 0;
            }
            last = length == PADDING ? 0 : at;
            at = next(at);
            if (at < 0) {
                return 0; // BookKeeper refuses it
            }
        }
        end = at;
        return isFollowedByZeros(at) && last > 0 && (at % GROUP != 0 || lacksItsEnd(last)) ? last : 0;
    }

    /**
     * A checkpoint of what was written is where a group ends. After a replay BookKeeper's mark is behind the zeros that it took for a length, or
     * at the end of the file. Each further start that ends before it has a new journal moves it by another length.
     */
    private boolean endsBefore(long offset) throws IOException {
        return end > 0 && offset > end && offset % GROUP == 0 && offset != file.size() && isFollowedByZeros(end);
    }

    /** Behind the record, or the padding, that starts there. Negative if its length is. */
    private long next(long at) throws IOException {
        long start = number(at) == PADDING ? at + Integer.BYTES : at;
        int length = number(start);
        return length < 0 ? -1 : start + Integer.BYTES + length;
    }

    private boolean lacksItsEnd(long record) throws IOException {
        ByteBuffer entry = entry(record);
        int size = entry.limit();
        if (size < GROUP || !isZeros(entry.slice(size - GROUP, GROUP)) || entry.getLong(NUMBER) < 0) {
            return false;
        }
        if (entry.getLong(LENGTHS) < size - DIGEST - LONGEST_DIGEST) {
            return true;
        }
        return !isWhole(entry) && hasWholeOneOf(entry.getLong(0), record);
    }

    private boolean hasWholeOneOf(long ledger, long end) throws IOException {
        for (long at = HEADER; at < end; at = next(at)) {
            if (number(at) >= DIGEST + Integer.BYTES) {
                ByteBuffer other = entry(at);
                if (other.getLong(0) == ledger && other.getLong(NUMBER) >= 0 && isWhole(other)) {
                    return true;
                }
            }
        }
        return false;
    }

    private static boolean isWhole(ByteBuffer entry) {
        CRC32C digest = new CRC32C();
        digest.update(entry.slice(0, DIGEST));
        digest.update(entry.slice(DIGEST + Integer.BYTES, entry.limit() - DIGEST - Integer.BYTES));
        return (int) digest.getValue() == entry.getInt(DIGEST);
    }

    private static boolean isZeros(ByteBuffer bytes) {
        return bytes.equals(ByteBuffer.allocate(bytes.remaining()));
    }

    private ByteBuffer entry(long record) throws IOException {
        ByteBuffer entry = ByteBuffer.allocate(number(record));
        while (entry.hasRemaining() && file.read(entry, record + Integer.BYTES + entry.position()) > 0) { }
        return entry.flip();
    }

    /** Of its mark, at whose part BookKeeper would refuse to start. */
    private static boolean isPartOfPadding(int length) {
        return length == 0xFF000000 || length == 0xFFFF0000;
    }

    /**
     * If other bytes follow, the journal is not torn but damaged: what is behind may have been acknowledged. If none do, the record before is
     * whole, or BookKeeper reads nothing of it: it may be what an earlier cut has left, or a damaged length points there.
     */
    private boolean isFollowedByZeros(long start) throws IOException {
        long size = file.size();
        if (start >= size) {
            return false;
        }
        for (long at = start; at < size; at += Integer.BYTES) {
            if (number(at) != 0) {
                return false;
            }
        }
        return true;
    }

    /** Behind the end: 0. */
    private int number(long at) throws IOException {
        if (at < windowStart || at + Integer.BYTES > windowStart + window.limit()) {
            window.clear();
            windowStart = at;
            while (window.hasRemaining() && file.read(window, windowStart + window.position()) > 0) { }
            window.flip();
        }
        return window.limit() < Integer.BYTES ? 0 : window.getInt((int) (at - windowStart));
    }
}
