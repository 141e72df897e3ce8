package io.herdkeeper.node.leadership;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;

import herddb.cluster.LedgersInfo;
import herddb.cluster.ZookeeperMetadataStorageManager;
import herddb.log.LogNotAvailableException;
import herddb.metadata.MetadataStorageManager;
import herddb.metadata.MetadataStorageManagerException;
import herddb.model.StatementExecutionException;
import herddb.model.TableSpace;
import io.herdkeeper.node.internals.HerdInternals;
import io.herdkeeper.node.testing.Await;
import io.herdkeeper.node.testing.BookKeeperForTests;
import io.herdkeeper.node.testing.Node;
import io.herdkeeper.node.testing.RunningNode;
import java.time.Duration;
import java.util.List;
import org.apache.zookeeper.InterposedConnection;
import org.apache.zookeeper.ZooKeeper;
import org.apache.zookeeper.proto.ReplyHeader;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** A tablespace that is dropped, and made again under its name before the nodes look at the metadata. */
class RecreatedTablespaceTest {

    private static final Duration LIMIT = Duration.ofSeconds(60);
    private static final String CREATE = "CREATE TABLESPACE 'app','leader:n0','replica:n0,n1','expectedreplicacount:1'";

    private RunningNode leader;
    private RunningNode follower;

    @BeforeEach
    void start() throws Exception {
        String root = BookKeeperForTests.running().newRoot();
        leader = RunningNode.start("n0", root, null);
        leader.server().waitForTableSpaceBoot("herd", (int) LIMIT.toMillis(), true);
        follower = RunningNode.start("n1", root, null);
        Node.execute(leader.server(), 0, CREATE + ",'wait:30000'");
        Node.execute(leader.server(), 0, "CREATE TABLE app.t (k int primary key)");
        Node.execute(leader.server(), 0, "INSERT INTO app.t(k) VALUES(1)");
        Await.until("the follower has the row", LIMIT, () -> follower.tablespace("app").at("/rows/t").asInt() == 1);
    }

    @AfterEach
    void stop() throws Exception {
        follower.stop();
        leader.stop();
    }

    @Test
    void eachNodeRunsTheNewTablespaceAndTheOldLeaderAcknowledgesNoRow() throws Exception {
        String old = leader.manager("app").getTableSpaceUUID();
        for (RunningNode node : List.of(leader, follower)) {
            pause(node);
        }
        // The node that drops it does not lead it, as a node may that a client is connected to for the tablespace herd.
        Node.executeIn("app", follower.server(), 0, "DROP TABLESPACE 'app'");
        Node.executeIn("app", follower.server(), 0, CREATE);
        assertThrows(RuntimeException.class, () -> Node.execute(leader.server(), 0, "INSERT INTO app.t(k) VALUES(2)"));
        assertEquals("booting", leader.tablespace("app").path("role").asText());
        assertEquals(0, leader.tablespace("app").path("rows").size());

        for (RunningNode node : List.of(leader, follower)) {
            node.server().getManager().setActivatorPauseStatus(false);
        }
        Await.until("the new one is led", LIMIT, () -> leader.tablespace("app").path("role").asText().equals("leader"));
        Await.until("the new one is followed", LIMIT, () -> follower.tablespace("app").path("role").asText().equals("follower"));
        assertNotEquals(old, leader.manager("app").getTableSpaceUUID());
        assertEquals(leader.manager("app").getTableSpaceUUID(), follower.manager("app").getTableSpaceUUID());
        Node.execute(leader.server(), 0, "CREATE TABLE app.t (k int primary key)");
        Node.execute(leader.server(), 0, "INSERT INTO app.t(k) VALUES(3)");
        Await.until("the follower has the row", LIMIT, () -> follower.tablespace("app").at("/rows/t").asInt() == 1);
        assertEquals(1, leader.tablespace("app").at("/rows/t").asInt());
        assertEquals(List.of(), leader.status().contacts().report().failed());
    }

    @Test
    void theLogOfADroppedTablespaceIsNoTrouble() throws Exception {
        pause(leader);
        Node.executeIn("app", follower.server(), 0, "DROP TABLESPACE 'app'");
        assertThrows(RuntimeException.class, () -> Node.execute(leader.server(), 0, "INSERT INTO app.t(k) VALUES(2)"));
        leader.server().getManager().setActivatorPauseStatus(false);
        Await.until("it is stopped", LIMIT, () -> leader.manager("app") == null && follower.manager("app") == null);
        Await.until("nothing failed", LIMIT, () -> leader.status().contacts().report().failed().isEmpty());
    }

    @Test
    void aDropOfATablespaceThatWasChangedMeanwhileIsNotAcknowledged() throws Exception {
        MetadataStorageManager metadata = leader.server().getMetadataStorageManager();
        TableSpace read = metadata.describeTableSpace("app");
        assertEquals(true, metadata.updateTableSpace(TableSpace.builder().cloning(read).maxLeaderInactivityTime(60_000).build(), read));
        assertThrows(MetadataStorageManagerException.class, () -> metadata.dropTableSpace("app", read));
        Node.execute(leader.server(), 0, "INSERT INTO app.t(k) VALUES(2)");
    }

    @Test
    void aChangeThatIsMeantForTheEarlierTablespaceDoesNotReachTheNewOneThoughItsRecordHasThatVersion() throws Exception {
        MetadataStorageManager metadata = follower.server().getMetadataStorageManager();
        TableSpace read = metadata.describeTableSpace("app");
        Node.execute(leader.server(), 0, "DROP TABLESPACE 'app'");
        Node.execute(leader.server(), 0, CREATE);
        TableSpace made = metadata.describeTableSpace("app");
        assertEquals(read.metadataStorageVersion, made.metadataStorageVersion);
        assertNotEquals(read.uuid, made.uuid);

        assertEquals(false, metadata.updateTableSpace(TableSpace.builder().cloning(read).leader("n1").build(), read));
        assertEquals(made.uuid, metadata.describeTableSpace("app").uuid);
        assertEquals(true, metadata.updateTableSpace(TableSpace.builder().cloning(made).leader("n1").build(), made));
    }

    @Test
    void aDropThatIsMeantForTheEarlierTablespaceLeavesTheNewOneThoughItsRecordHasThatVersion() throws Exception {
        MetadataStorageManager metadata = follower.server().getMetadataStorageManager();
        TableSpace read = metadata.describeTableSpace("app");
        Node.execute(leader.server(), 0, "DROP TABLESPACE 'app'");
        Node.execute(leader.server(), 0, CREATE);
        TableSpace made = metadata.describeTableSpace("app");
        assertEquals(read.metadataStorageVersion, made.metadataStorageVersion);

        metadata.dropTableSpace("app", read);
        assertEquals(made.uuid, metadata.describeTableSpace("app").uuid);
        metadata.dropTableSpace("app", made);
        assertNull(metadata.describeTableSpace("app"));
    }

    @Test
    void aDropOfTheUuidOfTheEarlierTablespaceThatComesLateIsRefused() throws Exception {
        String old = leader.manager("app").getTableSpaceUUID();
        Node.executeIn("app", follower.server(), 0, "DROP TABLESPACE 'app'", old);
        Node.execute(leader.server(), 0, CREATE + ",'wait:30000'");
        assertThrows(StatementExecutionException.class, () -> Node.executeIn("app", follower.server(), 0, "DROP TABLESPACE 'app'", old));
        String made = leader.server().getMetadataStorageManager().describeTableSpace("app").uuid;
        assertNotEquals(old, made);
        Node.executeIn("app", follower.server(), 0, "DROP TABLESPACE 'app'", made);
        assertNull(leader.server().getMetadataStorageManager().describeTableSpace("app"));
    }

    @Test
    void aDropWhoseAnswerIsLostEndsTheLogAsWell() throws Exception {
        pause(leader);
        ZooKeeper asking = ((ZookeeperMetadataStorageManager) follower.server().getMetadataStorageManager()).ensureZooKeeper();
        InterposedConnection.into(asking, (operation, path, changes, sending) -> {
            ReplyHeader answer = sending.send();
            return operation.equals("delete") ? null : answer;
        });
        Node.executeIn("app", follower.server(), 0, "DROP TABLESPACE 'app'");
        assertThrows(RuntimeException.class, () -> Node.execute(leader.server(), 0, "INSERT INTO app.t(k) VALUES(2)"));
        leader.server().getManager().setActivatorPauseStatus(false);
    }

    @Test
    void aLeaderThatHasMadeItsNextLedgerCanNotListItBehindADrop() throws Exception {
        ZookeeperMetadataStorageManager metadata = (ZookeeperMetadataStorageManager) leader.server().getMetadataStorageManager();
        String uuid = leader.manager("app").getTableSpaceUUID();
        LedgersInfo read = metadata.getActualLedgersList(uuid);
        Node.executeIn("app", follower.server(), 0, "DROP TABLESPACE 'app'");
        read.addLedger(Long.MAX_VALUE);
        assertThrows(LogNotAvailableException.class, () -> metadata.saveActualLedgersList(uuid, read));
    }

    private static void pause(RunningNode node) throws Exception {
        node.server().getManager().setActivatorPauseStatus(true);
        Thread activator = HerdInternals.activator(node.server().getManager());
        Await.until("the activator pauses", LIMIT, () -> List.of(activator.getStackTrace()).stream()
                .anyMatch(frame -> frame.getMethodName().equals("awaitUninterruptibly")));
    }
}
