package io.herdkeeper.node.log;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import herddb.cluster.ZookeeperMetadataStorageManager;
import herddb.server.ServerConfiguration;
import io.herdkeeper.node.testing.BookKeeperForTests;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import org.apache.bookkeeper.client.BookKeeperAdmin;
import org.apache.bookkeeper.client.api.BKException;
import org.apache.bookkeeper.client.api.DigestType;
import org.apache.bookkeeper.client.api.WriteHandle;
import org.apache.bookkeeper.conf.ClientConfiguration;
import org.apache.bookkeeper.stats.NullStatsLogger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** A node rehearses with a ledger of its own, and leaves none behind, whenever its process ends. */
class LedgerRehearsalTest {

    private ZookeeperMetadataStorageManager metadata;
    private NodeCommitLogManager logs;
    private Path folder;
    private Path note;
    private LedgerRehearsal rehearsal;

    @BeforeEach
    void startNode() throws Exception {
        BookKeeperForTests servers = BookKeeperForTests.running();
        metadata = new ZookeeperMetadataStorageManager(servers.zooKeeperAddress(), 20_000, servers.newRoot());
        metadata.start();
        logs = new NodeCommitLogManager(metadata, new ServerConfiguration()
                .set(ServerConfiguration.PROPERTY_BOOKKEEPER_LEDGERS_PATH, BookKeeperForTests.LEDGERS_PATH), NullStatsLogger.INSTANCE);
        logs.start();
        folder = servers.newFolder();
        note = folder.resolve("rehearsal-ledger");
        rehearsal = new LedgerRehearsal(logs, "n0", folder);
    }

    @AfterEach
    void stopNode() throws Exception {
        logs.close();
        metadata.close();
    }

    @Test
    void nothingIsLeftOfARehearsal() throws Exception {
        Set<Long> before = ledgers();
        rehearsal.once();
        assertEquals(before, ledgers());
        assertFalse(Files.exists(note));
    }

    @Test
    void whatAKilledProcessLeftIsDeletedByTheNextOne() throws Exception {
        long left = openLedger(Map.of("application", "herdkeeper", "component", "rehearsal", "node", "n0"));
        Files.writeString(note, Long.toString(left));
        rehearsal.once();
        assertFalse(ledgers().contains(left));
        assertFalse(Files.exists(note));
    }

    @Test
    void whatAProcessLeftThatWasKilledBeforeItKnewTheNumberIsFoundByItsNameAndDeleted() throws Exception {
        long left = openLedger(Map.of("application", "herdkeeper", "component", "rehearsal", "node", "n0"));
        long strangers = openLedger(Map.of("application", "herddb", "component", "commitlog"));
        long ofAnotherNode = openLedger(Map.of("application", "herdkeeper", "component", "rehearsal", "node", "n1"));
        Files.writeString(note, "");
        rehearsal.once();
        Set<Long> found = ledgers();
        assertFalse(found.contains(left));
        assertTrue(found.contains(strangers));
        assertTrue(found.contains(ofAnotherNode));
        assertFalse(Files.exists(note));
    }

    @Test
    void aLedgerThatOnlyHasTheNumberOfAnEarlierRehearsalIsLeftAlone() throws Exception {
        long strangers = openLedger(Map.of("application", "herddb", "component", "commitlog"));
        long ofAnotherNode = openLedger(Map.of("application", "herdkeeper", "component", "rehearsal", "node", "n1"));
        for (long number : new long[]{strangers, ofAnotherNode}) {
            Files.writeString(note, Long.toString(number));
            rehearsal.once();
            assertTrue(ledgers().contains(number));
        }
    }

    @Test
    void aNumberThatIsNoneOrThatNoLedgerHasAnyMoreIsForgotten() throws Exception {
        for (String number : new String[]{"", "none", "4611686018427387904"}) {
            Files.writeString(note, number);
            rehearsal.once();
            assertFalse(Files.exists(note));
        }
    }

    @Test
    void aRehearsalThatFailsHalfWayLeavesNoLedger() throws Exception {
        Set<Long> before = ledgers();
        Files.createDirectory(note);
        assertThrows(IOException.class, rehearsal::once);
        assertEquals(before, ledgers());
    }

    @Test
    void withoutEnoughBookiesItFailsAndLeavesNothing() throws Exception {
        Set<Long> before = ledgers();
        logs.setEnsemble(3);
        logs.setWriteQuorumSize(3);
        logs.setAckQuorumSize(3);
        assertThrows(BKException.class, rehearsal::once);
        assertEquals(before, ledgers());
        assertFalse(Files.exists(note));
    }

    private long openLedger(Map<String, String> description) throws Exception {
        Map<String, byte[]> custom = new HashMap<>();
        description.forEach((key, value) -> custom.put(key, value.getBytes(StandardCharsets.UTF_8)));
        WriteHandle ledger = logs.getBookKeeper().newCreateLedgerOp().withEnsembleSize(1).withWriteQuorumSize(1).withAckQuorumSize(1)
                .withDigestType(DigestType.CRC32C).withPassword(new byte[0]).withCustomMetadata(custom).execute().get();
        return ledger.getId();
    }

    private Set<Long> ledgers() throws Exception {
        Set<Long> found = new HashSet<>();
        for (long ledger : new BookKeeperAdmin(logs.getBookKeeper(), new ClientConfiguration()).listLedgers()) {
            found.add(ledger);
        }
        return found;
    }
}
