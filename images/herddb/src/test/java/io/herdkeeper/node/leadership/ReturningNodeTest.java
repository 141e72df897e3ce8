package io.herdkeeper.node.leadership;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;
import herddb.cluster.BookkeeperCommitLog;
import herddb.log.LogSequenceNumber;
import herddb.metadata.MetadataStorageManager;
import herddb.model.TableSpace;
import herddb.server.ServerConfiguration;
import io.herdkeeper.node.testing.Await;
import io.herdkeeper.node.testing.BookKeeperForTests;
import io.herdkeeper.node.testing.Node;
import io.herdkeeper.node.testing.RunningNode;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Set;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** A node left, and comes back on its old disk: fewer SQL nodes and then more again, with volumes that were kept. */
class ReturningNodeTest {

    private static final Duration LIMIT = Duration.ofSeconds(60);
    private static final long RETENTION_MILLIS = 2_000;
    private static final int ROWS = 10;

    private String root;
    private Path disk;
    private RunningNode leader;
    private RunningNode other;
    private LogSequenceNumber onDisk;

    @BeforeEach
    void twoNodesHaveTheSameTables() throws Exception {
        root = BookKeeperForTests.running().newRoot();
        disk = BookKeeperForTests.running().newFolder();
        leader = RunningNode.start(configuration("n0", BookKeeperForTests.running().newFolder()), null);
        leader.server().waitForTableSpaceBoot("herd", (int) LIMIT.toMillis(), true);
        other = RunningNode.start(configuration("n1", disk), null);
        sql("CREATE TABLESPACE 'app','leader:n0','replica:n0,n1','expectedreplicacount:1','wait:30000'");
        sql("CREATE TABLE app.kept (k int primary key, n int)");
        sql("CREATE TABLE app.dropped (k int primary key)");
        sql("CREATE INDEX by_n ON app.kept(n)");
        for (int i = 0; i < ROWS; i++) {
            sql("INSERT INTO app.kept(k,n) VALUES(?,?)", i, i);
            sql("INSERT INTO app.dropped(k) VALUES(?)", i);
        }
        Await.until("the follower has the rows", LIMIT, () -> other.tablespace("app").at("/rows/dropped").asInt() == ROWS);
        other.manager("app").checkpoint(true, false, false);
    }

    @AfterEach
    void stop() throws Exception {
        other.stop();
        leader.stop();
    }

    @Test
    void whatItsDiskLacksComesFromTheLog() throws Exception {
        leaveAndMissMuch();
        assertTrue(log().isRecoveryAvailable(onDisk), "the log should still have it");
        comeBack();
    }

    @Test
    void whatTheLogNoLongerHasComesFromTheLeaderAndWhatTheDiskHeldIsDropped() throws Exception {
        leaveAndMissMuch();
        log().rollNewLedger();
        leader.manager("app").checkpoint(true, false, false);
        Await.until("its ledgers are old enough, and dropped", LIMIT, () -> !log().isRecoveryAvailable(onDisk));
        comeBack();
    }

    /** It is taken off the list and stops; meanwhile rows and tables come, change and go, over several ledgers. */
    private void leaveAndMissMuch() throws Exception {
        JsonNode checkpoint = other.tablespace("app").path("checkpoint");
        onDisk = new LogSequenceNumber(checkpoint.get("ledgerId").asLong(), checkpoint.get("entryId").asLong());
        replicas("n0");
        Await.until("its copy has stopped", LIMIT, () -> other.manager("app") == null);
        other.stop();
        for (int i = 0; i < ROWS; i += 2) {
            sql("UPDATE app.kept SET n=? WHERE k=?", -i, i);
            sql("DELETE FROM app.kept WHERE k=?", i + 1);
        }
        log().rollNewLedger();
        sql("DROP TABLE app.dropped");
        sql("CREATE TABLE app.later (k int primary key)");
        sql("INSERT INTO app.later(k) VALUES(1)");
        log().rollNewLedger();
        sql("INSERT INTO app.kept(k,n) VALUES(1000,1000)");
    }

    private void comeBack() throws Exception {
        other = RunningNode.start(configuration("n1", disk), null);
        replicas("n0", "n1");
        Await.until("it follows again", LIMIT, () -> other.tablespace("app").path("role").asText().equals("follower")
                && other.tablespace("app").path("ready").asBoolean()
                && other.tablespace("app").at("/rows/kept").asInt() == ROWS / 2 + 1);
        leader.checked("app");
        Await.until("it has checked", LIMIT, () -> other.tablespace("app").at("/checks/kept/pass").asBoolean()
                && other.tablespace("app").at("/checks/later/pass").asBoolean());
        assertFalse(other.tablespace("app").get("rows").has("dropped"), "a table came back from the old disk");
        TableSpace before = metadata().describeTableSpace("app");
        assertTrue(metadata().updateTableSpace(TableSpace.builder().cloning(before).leader("n1").build(), before));
        Await.until("it leads", LIMIT, () -> other.tablespace("app").path("role").asText().equals("leader"));
        Node.executeIn("app", other.server(), 0, "INSERT INTO app.kept(k,n) VALUES(1001,1001)");
        assertEquals(ROWS / 2 + 2, other.tablespace("app").at("/rows/kept").asInt());
    }

    private ServerConfiguration configuration(String id, Path folder) throws Exception {
        return Node.configuration(id, root, folder)
                .set(ServerConfiguration.PROPERTY_BOOKKEEPER_LEDGERS_RETENTION_PERIOD, RETENTION_MILLIS)
                .set(ServerConfiguration.PROPERTY_CHECKPOINT_PERIOD, 0);
    }

    private void sql(String statement, Object... values) {
        Node.execute(leader.server(), 0, statement, values);
    }

    private BookkeeperCommitLog log() {
        return (BookkeeperCommitLog) leader.manager("app").getLog();
    }

    private MetadataStorageManager metadata() {
        return leader.server().getMetadataStorageManager();
    }

    /** As the operator changes the list. */
    private void replicas(String... nodes) throws Exception {
        TableSpace before = metadata().describeTableSpace("app");
        assertTrue(metadata().updateTableSpace(TableSpace.builder().cloning(before).replicas(Set.of(nodes)).build(), before));
    }
}
