package io.herdkeeper.e2e.clients;

import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Semaphore;
import java.util.concurrent.atomic.AtomicBoolean;
import org.apache.bookkeeper.client.api.BookKeeper;
import org.apache.bookkeeper.client.api.DigestType;
import org.apache.bookkeeper.client.api.LedgerEntries;
import org.apache.bookkeeper.client.api.LedgerEntry;
import org.apache.bookkeeper.client.api.LedgerMetadata;
import org.apache.bookkeeper.client.api.OpenBuilder;
import org.apache.bookkeeper.client.api.ReadHandle;
import org.apache.bookkeeper.client.api.WriteHandle;
import org.apache.bookkeeper.conf.ClientConfiguration;

/**
 * Ledgers whose entries are striped (E > Wq), written one after the other with BookKeeper's own client:
 * {@code StripedLedgers METADATA_SERVICE_URI RACKS_SCRIPT NAME ENSEMBLE_SIZE ENTRIES PAUSE_MILLISECONDS}.
 *
 * <p>Each entry is on two bookies and acknowledged by both. A ledger is closed after so many entries; one that can't be written any more is
 * recovered, which fences it, and another one takes its place. RACKS_SCRIPT tells where bookies stand, as autorecovery is told. The ledgers'
 * custom metadata says whose they are.
 */
public final class StripedLedgers implements Log {

    private static final int COPIES = 2;
    private static final int MOST_UNANSWERED = 16;
    private static final int MOST_READ_AT_ONCE = 100;
    private static final long TRIED_AGAIN_AFTER_MILLISECONDS = 200;
    private static final long ASKED_AGAIN_AFTER_MILLISECONDS = 50;
    private static final byte[] PASSWORD = "striped".getBytes(StandardCharsets.UTF_8);

    private final ClientConfiguration configuration;
    private final BookKeeper bookKeeper;
    private final String name;
    private final int ensembleSize;
    private final int entries;
    private final long pause;
    private final List<Long> ledgers = new CopyOnWriteArrayList<>();

    private StripedLedgers(String[] arguments) throws Exception {
        this.configuration = configuration(arguments[0], arguments[1]);
        this.name = arguments[2];
        this.ensembleSize = Integer.parseInt(arguments[3]);
        this.entries = Integer.parseInt(arguments[4]);
        this.pause = Long.parseLong(arguments[5]);
        this.bookKeeper = BookKeeper.newBuilder(configuration).build();
    }

    public static void main(String[] arguments) {
        Program.run(() -> new StripedLedgers(arguments));
    }

    private static ClientConfiguration configuration(String uri, String racks) {
        ClientConfiguration configuration = new ClientConfiguration();
        configuration.setMetadataServiceUri(uri);
        configuration.setProperty("reppDnsResolverClass", "org.apache.bookkeeper.net.ScriptBasedMapping");
        configuration.setProperty("networkTopologyScriptFileName", racks);
        configuration.setMinNumRacksPerWriteQuorum(2);
        configuration.setProperty("ignoreLocalNodeInPlacementPolicy", true);
        return configuration;
    }

    @Override
    public void write(Written written, Until stop) throws Exception {
        while (!stop.over()) {
            WriteHandle ledger = create(stop);
            if (ledger == null) {
                return;
            }
            ledgers.add(ledger.getId());
            fill(ledger, written, stop);
            end(ledger);
        }
    }

    private WriteHandle create(Until stop) throws InterruptedException {
        Map<String, byte[]> whose = Map.of(
                "application", "herdkeeper-e2e".getBytes(StandardCharsets.UTF_8), "component", name.getBytes(StandardCharsets.UTF_8));
        while (!stop.over()) {
            try {
                return bookKeeper.newCreateLedgerOp().withEnsembleSize(ensembleSize).withWriteQuorumSize(COPIES).withAckQuorumSize(COPIES)
                        .withDigestType(DigestType.CRC32C).withPassword(PASSWORD).withCustomMetadata(whose).execute().get();
            } catch (ExecutionException tooFewBookies) {
                System.out.println("no ledger could be created: " + tooFewBookies.getCause());
                stop.pause(TRIED_AGAIN_AFTER_MILLISECONDS);
            }
        }
        return null;
    }

    /** Returns when all that it tried was answered. */
    private void fill(WriteHandle ledger, Written written, Until stop) throws InterruptedException {
        Semaphore unanswered = new Semaphore(MOST_UNANSWERED);
        AtomicBoolean failed = new AtomicBoolean();
        for (int i = 0; i < entries && !failed.get() && !stop.over(); i++) {
            unanswered.acquire();
            long sequence = written.attempt();
            ledger.appendAsync(Content.of(ledger.getId(), sequence)).whenComplete((entry, error) -> {
                if (error == null) {
                    written.acknowledged(sequence);
                } else if (!failed.getAndSet(true)) {
                    System.out.println("ledger " + ledger.getId() + " can't be written any more: " + error);
                }
                unanswered.release();
            });
            stop.pause(pause);
        }
        unanswered.acquire(MOST_UNANSWERED);
    }

    /** A ledger that the writer can't close is recovered, as by anybody who takes over from a dead writer. */
    private void end(WriteHandle ledger) throws InterruptedException {
        try {
            ledger.closeAsync().get();
            return;
        } catch (ExecutionException notClosed) {
            System.out.println("ledger " + ledger.getId() + " is recovered: " + notClosed.getCause());
        }
        while (true) {
            try {
                open(bookKeeper, ledger.getId(), true).closeAsync().get();
                return;
            } catch (ExecutionException tooFewBookies) {
                System.out.println("ledger " + ledger.getId() + " can't be recovered: " + tooFewBookies.getCause());
                Thread.sleep(TRIED_AGAIN_AFTER_MILLISECONDS);
            }
        }
    }

    @Override
    public void tail(Received received, Until over) throws Exception {
        read(bookKeeper, received, over);
    }

    @Override
    public void readBack(Received received, Until over) throws Exception {
        try (BookKeeper fresh = BookKeeper.newBuilder(configuration).build()) {
            read(fresh, received, over);
        }
    }

    private void read(BookKeeper client, Received received, Until over) throws Exception {
        for (int i = 0; !over.over(); ) {
            if (i < ledgers.size()) {
                readLedger(client, ledgers.get(i++), received, over);
            } else {
                over.pause(ASKED_AGAIN_AFTER_MILLISECONDS);
            }
        }
    }

    /** Up to what is confirmed while the ledger is open, and to its end once it is closed. A read that fails is tried again. */
    private void readLedger(BookKeeper client, long ledger, Received received, Until over) throws Exception {
        long next = 0;
        while (!over.over()) {
            try (ReadHandle handle = open(client, ledger, false)) {
                // The handle hears of a close, its LAC stays that of the open: the metadata alone tell of both at one moment. A read beyond
                // the LAC is refused, and tried again by a handle that was opened after the close.
                LedgerMetadata metadata = handle.getLedgerMetadata();
                boolean closed = metadata.isClosed();
                long last = closed ? metadata.getLastEntryId() : handle.readLastAddConfirmed();
                while (next <= last) {
                    long until = Math.min(last, next + MOST_READ_AT_ONCE - 1);
                    try (LedgerEntries found = handle.read(next, until)) {
                        for (LedgerEntry entry : found) {
                            received.next(entry.getEntryBytes(), ledger, "ledger " + ledger + ", entry " + entry.getEntryId());
                        }
                    }
                    next = until + 1;
                }
                if (closed) {
                    return;
                }
            } catch (ExecutionException | org.apache.bookkeeper.client.api.BKException tryAgain) {
                System.out.println("ledger " + ledger + " from entry " + next + " on could not be read: " + tryAgain);
            }
            over.pause(ASKED_AGAIN_AFTER_MILLISECONDS);
        }
    }

    private static ReadHandle open(BookKeeper client, long ledger, boolean recovery) throws ExecutionException, InterruptedException {
        OpenBuilder opening = client.newOpenLedgerOp().withLedgerId(ledger).withDigestType(DigestType.CRC32C).withPassword(PASSWORD);
        return opening.withRecovery(recovery).execute().get();
    }

    @Override
    public void close() throws Exception {
        bookKeeper.close();
    }
}
