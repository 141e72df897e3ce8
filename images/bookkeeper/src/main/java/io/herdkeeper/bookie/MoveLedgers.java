package io.herdkeeper.bookie;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.apache.bookkeeper.client.BKException;
import org.apache.bookkeeper.client.BKException.BKNoSuchLedgerExistsOnMetadataServerException;
import org.apache.bookkeeper.client.BookKeeper;
import org.apache.bookkeeper.client.BookKeeperAdmin;
import org.apache.bookkeeper.client.api.LedgerMetadata;
import org.apache.bookkeeper.client.api.LedgerMetadata.State;
import org.apache.bookkeeper.conf.ClientConfiguration;
import org.apache.bookkeeper.conf.ServerConfiguration;
import org.apache.bookkeeper.meta.LedgerUnderreplicationManager;
import org.apache.bookkeeper.net.BookieId;
import org.apache.bookkeeper.replication.ReplicationException;
import org.apache.zookeeper.KeeperException.NodeExistsException;

/**
 * Moves the recorded ledgers of a draining bookie to other bookies, by BookKeeper's own recovery, while the bookie serves.
 *
 * <p>The shell's {@code recover} would move all closed ledgers. A drain reads back only what it recorded, so only that is moved. Two kinds
 * of recorded ledgers are left for the drain's next round: those that are written there, since a move would fence their writers, and those
 * that got a place on the bookie that the record lacks. A ledger is moved under BookKeeper's lock of its replication, as autorecovery and
 * herdkeeper's repair do it: two at once may choose the same bookie for two places of a segment, and would store one copy as two.
 *
 * <p>Usage: MoveLedgers CONFIGURATION BOOKIE_ID RECORD BYTES_PER_SECOND (-1: no limit). Exit code 1: at least one ledger could not be
 * moved; the others were. The record is that of herdkeeper.codecs.bookkeeper.share.
 */
public final class MoveLedgers {

    /** Threads, each with one ledger. Within a ledger BookKeeper copies all segments at once. */
    private static final int AT_ONCE = 16;

    /** How long a ledger may be copied by somebody else. */
    private static final long LOCK_SECONDS = 1800;
    private static final long POLL_MILLIS = 1000;

    private final BookKeeper bookKeeper;
    private final BookKeeperAdmin admin;
    private final LedgerUnderreplicationManager locks;
    private final BookieId bookie;

    private MoveLedgers(BookKeeper bookKeeper, BookKeeperAdmin admin, LedgerUnderreplicationManager locks, BookieId bookie) {
        this.bookKeeper = bookKeeper;
        this.admin = admin;
        this.locks = locks;
        this.bookie = bookie;
    }

    /** A position of a segment's ensemble. The segment is named by its first entry. */
    record Place(long firstEntry, int position) {}

    /** What is done with a recorded ledger. */
    enum Decision {
        MOVE,
        NOT_THERE,
        IS_WRITTEN,
        CAME_SINCE
    }

    public static void main(String[] arguments) throws Exception {
        ServerConfiguration server = new ServerConfiguration();
        server.loadConf(Path.of(arguments[0]).toUri().toURL());
        server.setReplicationRateByBytes(Integer.parseInt(arguments[3]));
        Map<Long, Set<Place>> record = read(Files.readAllLines(Path.of(arguments[2])));
        ClientConfiguration client = new ClientConfiguration(server);
        List<String> failures;
        try (BookKeeper bookKeeper = new BookKeeper(client);
                BookKeeperAdmin admin = new BookKeeperAdmin(bookKeeper, client);
                LedgerUnderreplicationManager locks = bookKeeper.getLedgerManagerFactory().newLedgerUnderreplicationManager()) {
            failures = new MoveLedgers(bookKeeper, admin, locks, BookieId.parse(arguments[1])).moveAll(record);
        }
        if (!failures.isEmpty()) {
            String more = failures.size() > 3 ? " and " + (failures.size() - 3) + " more" : "";
            System.err.println(String.join("; ", failures.subList(0, Math.min(3, failures.size()))) + more);
            System.exit(1);
        }
    }

    static Map<Long, Set<Place>> read(List<String> lines) {
        Map<Long, Set<Place>> record = new HashMap<>();
        for (String line : lines) {
            String[] words = line.split(" ");
            Set<Place> places = new HashSet<>();
            for (String word : Arrays.copyOfRange(words, 1, words.length)) {
                String[] numbers = word.split(":");
                places.add(new Place(Long.parseLong(numbers[0]), Integer.parseInt(numbers[1])));
            }
            record.put(Long.parseLong(words[0]), places);
        }
        return record;
    }

    static Decision decide(LedgerMetadata metadata, BookieId bookie, Set<Place> recorded) {
        Set<Place> places = new HashSet<>();
        metadata.getAllEnsembles().forEach((firstEntry, ensemble) -> {
            for (int position = 0; position < ensemble.size(); position++) {
                if (ensemble.get(position).equals(bookie)) {
                    places.add(new Place(firstEntry, position));
                }
            }
        });
        if (places.isEmpty()) {
            return Decision.NOT_THERE;
        }
        if (metadata.getState() == State.OPEN && metadata.getAllEnsembles().lastEntry().getValue().contains(bookie)) {
            return Decision.IS_WRITTEN;
        }
        return recorded.containsAll(places) ? Decision.MOVE : Decision.CAME_SINCE;
    }

    private List<String> moveAll(Map<Long, Set<Place>> record) throws InterruptedException {
        ExecutorService threads = Executors.newFixedThreadPool(AT_ONCE);
        Map<Long, Future<Void>> moves = new HashMap<>();
        record.forEach((ledger, places) -> moves.put(ledger, threads.submit(move(ledger, places))));
        threads.shutdown();
        List<String> failures = new ArrayList<>();
        for (Map.Entry<Long, Future<Void>> move : moves.entrySet()) {
            try {
                move.getValue().get();
            } catch (ExecutionException failed) {
                failures.add("ledger " + move.getKey() + " could not be moved: " + failed.getCause().getMessage());
            }
        }
        return failures;
    }

    private Callable<Void> move(long ledger, Set<Place> recorded) {
        return () -> {
            lock(ledger);
            try {
                Decision decision = decide(metadata(ledger), bookie, recorded);
                if (decision == Decision.MOVE) {
                    admin.recoverBookieData(ledger, Set.of(bookie), false, false);
                }
                System.out.println("ledger " + ledger + ": " + decision);
            } catch (BKException error) {
                if (exists(ledger)) {
                    throw error;
                }
            } finally {
                locks.releaseUnderreplicatedLedger(ledger);
            }
            return null;
        };
    }

    /** Waits for whoever copies the ledger's entries now. */
    private void lock(long ledger) throws ReplicationException, InterruptedException {
        long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(LOCK_SECONDS);
        while (true) {
            try {
                locks.acquireUnderreplicatedLedger(ledger);
                return;
            } catch (ReplicationException refused) {
                if (System.nanoTime() - deadline > 0 || !isTaken(refused)) {
                    throw refused;
                }
                Thread.sleep(POLL_MILLIS);
            }
        }
    }

    private static boolean isTaken(Throwable refused) {
        return refused instanceof NodeExistsException || refused.getCause() != null && isTaken(refused.getCause());
    }

    /** A ledger may be deleted at any time by its owner. */
    private boolean exists(long ledger) throws BKException, IOException, InterruptedException {
        try {
            metadata(ledger);
            return true;
        } catch (BKNoSuchLedgerExistsOnMetadataServerException deleted) {
            return false;
        }
    }

    private LedgerMetadata metadata(long ledger) throws BKException, IOException, InterruptedException {
        try {
            return bookKeeper.getLedgerMetadata(ledger).get();
        } catch (ExecutionException failed) {
            if (failed.getCause() instanceof BKException error) {
                throw error;
            }
            throw new IOException(failed.getCause());
        }
    }
}
