import java.io.IOException;
import java.io.RandomAccessFile;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Optional;
import java.util.stream.Stream;
import org.rocksdb.Options;
import org.rocksdb.RocksDB;
import org.rocksdb.RocksDBException;
import org.rocksdb.WriteBatch;
import org.rocksdb.WriteOptions;

/**
 * Takes entries of one ledger away from a stopped bookie, so that it answers NoEntry for exactly these; or damages them, so that it answers with
 * bytes that don't match their digest.
 *
 * <p>Usage: {@code DropEntries <ledgers directory> <journal directory> <ledger id> <first entry> <last entry> [damage]}, with the directories as the
 * bookie's configuration names them.
 *
 * <p>DbLedgerStorage finds an entry through its RocksDB index {@code current/locations}: 16 bytes of ledger and entry id, both big-endian, give
 * the place in the entry log. Without its key a read of that entry alone fails, but a read of the one before it would still find it: the bookie
 * reads ahead in the log and serves from that cache. So the record in the log gets the ledger id -1 as well, which every scan of a log skips.
 * To damage an entry, its key is left alone, and the last byte of its record is changed: the payload's, which a bookie never looks at.
 *
 * <p>At its start a bookie replays its journal from the position in {@code current/lastMark}, which a shutdown does not move, and would bring
 * young entries back. After SIGTERM everything is flushed, so the mark may be moved to the journal's end, as the next checkpoint would do. A bookie
 * that was killed has not flushed: don't use this tool on it. RocksDB's lock refuses a bookie that still runs.
 *
 * <p>Exit codes: 0 dropped or damaged, 1 an entry was not there (nothing is changed), 2 the arguments are wrong.
 */
public final class DropEntries {
    private DropEntries() {
    }

    public static void main(String[] arguments) throws IOException, RocksDBException {
        boolean damages = arguments.length == 6 && arguments[5].equals("damage");
        if (arguments.length != 5 && !damages) {
            System.err.println("usage: DropEntries <ledgers directory> <journal directory> <ledger id> <first entry> <last entry> [damage]");
            System.exit(2);
        }
        Path ledgers = Path.of(arguments[0], "current");
        Path journal = Path.of(arguments[1], "current");
        long ledger = Long.parseLong(arguments[2]);
        long first = Long.parseLong(arguments[3]);
        long last = Long.parseLong(arguments[4]);
        Path index = ledgers.resolve("locations");
        if (!Files.isRegularFile(index.resolve("CURRENT")) || !Files.isDirectory(journal) || first < 0 || first > last) {
            System.err.println("expected a RocksDB directory " + index + ", a journal " + journal + ", and 0 <= " + first + " <= " + last);
            System.exit(2);
        }
        int outcome = drop(ledgers, ledger, first, last, damages);
        if (outcome == 0) {
            markJournalAsFlushed(journal, ledgers.resolve("lastMark"));
        }
        System.exit(outcome);
    }

    /** The mark is the number of a journal file, which is its name in hexadecimal, and a position in it, both 8 bytes big-endian. */
    private static void markJournalAsFlushed(Path journal, Path mark) throws IOException {
        Optional<Path> newest;
        try (Stream<Path> files = Files.list(journal)) {
            newest = files.filter(file -> file.toString().endsWith(".txn")).max(Comparator.comparingLong(DropEntries::journalId));
        }
        if (newest.isPresent()) {
            byte[] end = ByteBuffer.allocate(16).putLong(journalId(newest.get())).putLong(Files.size(newest.get())).array();
            Files.write(mark, end);
        }
    }

    private static long journalId(Path file) {
        String name = file.getFileName().toString();
        return Long.parseLong(name.substring(0, name.indexOf('.')), 16);
    }

    private static int drop(Path ledgers, long ledger, long first, long last, boolean damages) throws IOException, RocksDBException {
        try (Options options = new Options();
                RocksDB locations = RocksDB.open(options, ledgers.resolve("locations").toString());
                WriteBatch deletions = new WriteBatch();
                WriteOptions durable = new WriteOptions().setSync(true)) {
            List<Long> records = new ArrayList<>();
            for (long entry = first; entry <= last; entry++) {
                byte[] key = ByteBuffer.allocate(16).putLong(ledger).putLong(entry).array();
                byte[] location = locations.get(key);
                if (location == null) {
                    System.err.println("entry " + entry + " of ledger " + ledger + " is not on this bookie; nothing was changed");
                    return 1;
                }
                records.add(ByteBuffer.wrap(location).getLong());
                deletions.delete(key);
            }
            if (!damages) {
                // One batch: all entries go or none does.
                locations.write(durable, deletions);
            }
            for (long record : records) {
                changeRecord(ledgers, record, ledger, damages);
            }
            String done = damages ? "damaged" : "dropped";
            System.out.println(done + " entries " + first + ".." + last + " of ledger " + ledger + " in " + ledgers);
            return 0;
        }
    }

    /**
     * A location is the number of an entry log, whose name is that in hexadecimal, in its upper 32 bits, and the record's position in the lower. The
     * record begins with the ledger's id; its size stands in the four bytes before it.
     */
    private static void changeRecord(Path ledgers, long location, long ledger, boolean damages) throws IOException {
        Path log = ledgers.resolve(Long.toHexString(location >> 32) + ".log");
        try (RandomAccessFile file = new RandomAccessFile(log.toFile(), "rwd")) {
            long position = location & 0xffffffffL;
            file.seek(position);
            long found = file.readLong();
            if (found != ledger) {
                throw new IOException(log + " at " + position + ": expected a record of ledger " + ledger + ", found " + found);
            }
            if (damages) {
                file.seek(position - Integer.BYTES);
                long last = position + file.readInt() - 1;
                file.seek(last);
                int content = file.read();
                file.seek(last);
                file.write(content ^ 1);
            } else {
                file.seek(position);
                file.writeLong(-1L);
            }
        }
    }
}
