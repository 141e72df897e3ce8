package io.herdkeeper.node.log;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Arrays;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.logging.Level;
import java.util.logging.Logger;
import java.util.stream.Stream;
import org.apache.bookkeeper.client.BKException.BKNoSuchLedgerExistsOnMetadataServerException;
import org.apache.bookkeeper.client.BKException.BKNotEnoughBookiesException;
import org.apache.bookkeeper.client.BookKeeper;
import org.apache.bookkeeper.client.LedgersWithOwnPasswords;
import org.apache.bookkeeper.client.api.BKException;
import org.apache.bookkeeper.client.api.DigestType;
import org.apache.bookkeeper.client.api.LedgerEntries;
import org.apache.bookkeeper.client.api.ReadHandle;
import org.apache.bookkeeper.client.api.WriteHandle;
import org.apache.bookkeeper.common.concurrent.FutureUtils;
import org.apache.bookkeeper.meta.LedgerManager;

/**
 * Rehearses the ledger operations of a leader's boot once, with a throw-away ledger: create, write, fence and read.
 *
 * <p>A follower only reads. The first ledger of a process costs a quarter of a second or more, since classes are loaded. For a new leader
 * this would be time without an acknowledged write. The ledger is deleted at once. Meanwhile a file has its number, so that the next
 * start of the node deletes what a killed process left. Before the number is known, the file is empty: then the next start searches
 * all ledgers for one with this node's name. An open ledger without a writer would hold up the drain of its bookies for ever.
 */
public final class LedgerRehearsal {

    private static final Logger LOGGER = Logger.getLogger(LedgerRehearsal.class.getName());
    private static final byte[] PASSWORD = LedgersWithOwnPasswords.random();
    private static final String NOTE = "rehearsal-ledger";
    private static final String NUMBER_NOT_KNOWN = "";
    private static final Duration RANGE_TIMEOUT = Duration.ofSeconds(10);
    /** About what a leader writes in a second. */
    private static final int ENTRIES = 200;
    private static final int ENTRY_BYTES = 100;

    private final NodeCommitLogManager logs;
    private final String nodeId;
    private final Path note;

    /**
     * A rehearsal that is still to come.
     *
     * @param logs   of the node, started; their client and quorums are used
     * @param folder of the node, which outlives the process
     */
    public LedgerRehearsal(NodeCommitLogManager logs, String nodeId, Path folder) {
        this.logs = logs;
        this.nodeId = nodeId;
        this.note = folder.resolve(NOTE);
    }

    /**
     * Makes a ledger, writes to it, fences it, reads it, and deletes it.
     *
     * @throws BKException when the bookies or ZooKeeper can't do so now
     * @throws IOException when the ledger's number can't be noted; it is deleted
     */
    public void once() throws BKException, IOException, InterruptedException {
        deleteWhatIsLeft();
        long begun = System.nanoTime();
        Files.writeString(note, NUMBER_NOT_KNOWN);
        WriteHandle ledger = create();
        try {
            Files.writeString(note, Long.toString(ledger.getId()));
            write(ledger);
            fenceAndRead(ledger.getId());
        } finally {
            // Where the deletion fails, too, the note stays for the next time.
            try {
                ledger.close();
            } finally {
                logs.getBookKeeper().deleteLedger(ledger.getId());
            }
        }
        Files.delete(note);
        LOGGER.log(Level.INFO, "rehearsed a leader''s work with ledger {0} in {1} ms",
                new Object[]{String.valueOf(ledger.getId()), String.valueOf((System.nanoTime() - begun) / 1_000_000)});
    }

    /** Only what has this node's name on it: the folder may have come from elsewhere, where the number was another ledger's. */
    private void deleteWhatIsLeft() throws BKException, IOException, InterruptedException {
        if (!Files.exists(note)) {
            return;
        }
        String number = Files.readString(note);
        try {
            if (number.equals(NUMBER_NOT_KNOWN)) {
                deleteAllOfThisNode();
            } else {
                deleteIfOfThisNode(Long.parseLong(number));
            }
        } catch (NumberFormatException noNumber) {
            LOGGER.log(Level.INFO, "the file of an earlier rehearsal holds no ledger number: {0}", noNumber.toString());
        }
    }

    /** A ledger's metadata has no index by its writer, so all are read, in the order of their numbers. */
    private void deleteAllOfThisNode() throws BKException, IOException, InterruptedException {
        LedgerManager.LedgerRangeIterator ranges = logs.getBookKeeper().getLedgerManager().getLedgerRanges(RANGE_TIMEOUT.toMillis());
        while (ranges.hasNext()) {
            for (long ledger : ranges.next().getLedgers()) {
                deleteIfOfThisNode(ledger);
            }
        }
    }

    private void deleteIfOfThisNode(long ledger) throws BKException, InterruptedException {
        try {
            Map<String, byte[]> metadata =
                    FutureUtils.result(logs.getBookKeeper().getLedgerManager().readLedgerMetadata(ledger), org.apache.bookkeeper.client.BKException.HANDLER)
                            .getValue().getCustomMetadata();
            if (describe().entrySet().stream().allMatch(own -> Arrays.equals(own.getValue(), metadata.get(own.getKey())))) {
                logs.getBookKeeper().deleteLedger(ledger);
                LOGGER.log(Level.INFO, "ledger {0} of an earlier rehearsal is deleted", String.valueOf(ledger));
            }
        } catch (BKNoSuchLedgerExistsOnMetadataServerException gone) {
            LOGGER.log(Level.FINE, "ledger {0} is already deleted", String.valueOf(ledger));
        }
    }

    /** A ledger that could not be made for want of bookies leaves nothing to look for. */
    private WriteHandle create() throws BKException, IOException {
        try {
            return createLedger();
        } catch (BKNotEnoughBookiesException none) {
            Files.delete(note);
            throw none;
        }
    }

    private WriteHandle createLedger() throws BKException {
        return FutureUtils.result(logs.getBookKeeper().newCreateLedgerOp()
                .withEnsembleSize(logs.getEnsemble())
                .withWriteQuorumSize(logs.getWriteQuorumSize())
                .withAckQuorumSize(logs.getAckQuorumSize())
                .withDigestType(DigestType.CRC32C)
                .withPassword(PASSWORD)
                .withCustomMetadata(describe())
                .execute(), org.apache.bookkeeper.client.BKException.HANDLER);
    }

    /** What whoever finds the ledger reads of it. */
    private Map<String, byte[]> describe() {
        return Map.of("application", "herdkeeper".getBytes(StandardCharsets.UTF_8),
                "component", "rehearsal".getBytes(StandardCharsets.UTF_8),
                "node", nodeId.getBytes(StandardCharsets.UTF_8));
    }

    private static void write(WriteHandle ledger) throws BKException {
        CompletableFuture<?>[] acknowledged = Stream.generate(() -> ledger.appendAsync(new byte[ENTRY_BYTES]))
                .limit(ENTRIES).toArray(CompletableFuture[]::new);
        FutureUtils.result(CompletableFuture.allOf(acknowledged), org.apache.bookkeeper.client.BKException.HANDLER);
    }

    private void fenceAndRead(long ledger) throws BKException, InterruptedException {
        try (ReadHandle fenced = logs.getBookKeeper().openLedger(ledger, BookKeeper.DigestType.CRC32C, PASSWORD);
                LedgerEntries entries = fenced.read(0, fenced.getLastAddConfirmed())) {
            entries.forEach(entry -> entry.getEntryBytes());
        }
    }
}
