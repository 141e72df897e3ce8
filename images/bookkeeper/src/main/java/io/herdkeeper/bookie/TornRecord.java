package io.herdkeeper.bookie;

import java.io.DataInputStream;
import java.io.File;
import java.io.IOException;
import java.io.InputStream;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.List;
import java.util.stream.Collectors;
import java.util.stream.Stream;
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
 * an acknowledgement for a last record that ends elsewhere.
 */
final class TornRecord {

    private static final int PADDING = -0x100;
    private static final int HEADER = 512;
    private static final int GROUP = 512;
    private static final int WITH_PADDING = 5;
    private static final byte[] MAGIC = {'B', 'K', 'L', 'G'};
    private static final int WINDOW = 1 << 18;
    private static final Logger LOGGER = LoggerFactory.getLogger(TornRecord.class);

    private final FileChannel file;
    private final ByteBuffer window = ByteBuffer.allocate(WINDOW).limit(0);
    private long windowStart;

    private TornRecord(FileChannel file) {
        this.file = file;
    }

    /** Before a replay, in the journals that it reads. Nobody may write to them. */
    static void cut(File folder, List<File> ledgerFolders) throws IOException {
        long first = 0;
        for (File each : ledgerFolders) {
            first = Math.max(first, marked(each.toPath().resolve("lastMark")));
        }
        for (Path each : journals(folder.toPath(), first)) {
            try (FileChannel file = FileChannel.open(each, StandardOpenOption.READ, StandardOpenOption.WRITE)) {
                long torn = new TornRecord(file).start();
                if (torn > 0) {
                    file.truncate(torn);
                    file.force(true);
                    LOGGER.warn("cut a torn record, which nobody got an acknowledgement for, off {} at byte {}", each, torn);
                }
            }
        }
    }

    private static long marked(Path mark) throws IOException {
        if (!Files.exists(mark) || Files.size(mark) < Long.BYTES) {
            return 0;
        }
        try (InputStream in = Files.newInputStream(mark)) {
            return new DataInputStream(in).readLong();
        }
    }

    private static List<Path> journals(Path folder, long first) throws IOException {
        if (!Files.isDirectory(folder)) {
            return List.of();
        }
        try (Stream<Path> found = Files.list(folder)) {
            return found.filter(each -> each.getFileName().toString().matches("[0-9a-f]{1,15}\\.txn"))
                    .filter(each -> Long.parseLong(each.getFileName().toString().replace(".txn", ""), 16) >= first)
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
            if (length == PADDING) {
                length = number(at + Integer.BYTES) + Integer.BYTES;
                last = 0;
            } else {
                last = at;
            }
            if (length < 0) {
                return 0; // BookKeeper refuses it
            }
            at += Integer.BYTES + length;
        }
        return at % GROUP != 0 && isFollowedByZeros(at) ? last : 0;
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
