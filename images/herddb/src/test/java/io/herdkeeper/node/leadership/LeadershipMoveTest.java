package io.herdkeeper.node.leadership;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import herddb.metadata.MetadataStorageManager;
import herddb.model.TableSpace;
import io.herdkeeper.node.status.NodeStatus.Phase;
import io.herdkeeper.node.testing.Await;
import io.herdkeeper.node.testing.BookKeeperForTests;
import io.herdkeeper.node.testing.Node;
import io.herdkeeper.node.testing.RunningNode;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import org.junit.jupiter.api.Test;

/** Somebody else changes the leader in the metadata, as the operator does. */
class LeadershipMoveTest {

    private static final Duration LIMIT = Duration.ofSeconds(60);

    @Test
    void aLeaderThatShallStopServesUntilItsTablespaceIsLedElsewhere() throws Exception {
        String root = BookKeeperForTests.running().newRoot();
        RunningNode first = RunningNode.start("n0", root, null);
        first.server().waitForTableSpaceBoot("herd", (int) LIMIT.toMillis(), true);
        RunningNode second = RunningNode.start("n1", root, null);
        Node.execute(first.server(), 0, "CREATE TABLESPACE 'app','leader:n0','replica:n0,n1','expectedreplicacount:1','wait:30000'");
        Node.execute(first.server(), 0, "CREATE TABLE app.t (k int primary key)");
        Node.execute(first.server(), 0, "INSERT INTO app.t(k) VALUES(1)");
        Await.until("the follower has the row", LIMIT, () -> second.tablespace("app").at("/rows/t").asInt() == 1);
        // herd has one replica: nobody could take it over, and it is not waited for.
        assertEquals(List.of("app"), first.status().leaderships());
        assertEquals(List.of(), second.status().leaderships());

        CompletableFuture<Void> leaving =
                CompletableFuture.runAsync(() -> Departure.awaitHandOver(first.status(), LIMIT));
        Node.execute(first.server(), 0, "INSERT INTO app.t(k) VALUES(2)");
        assertFalse(leaving.isDone());
        lead(first.server().getMetadataStorageManager(), "app", "n1");
        leaving.get();
        assertEquals(List.of(), first.status().leaderships());
        Await.until("the other one leads", LIMIT, () -> second.tablespace("app").path("role").asText().equals("leader"));
        Node.executeIn("app", second.server(), 0, "INSERT INTO app.t(k) VALUES(3)");
        assertEquals(3, second.tablespace("app").at("/rows/t").asInt());
        Await.until("the old leader follows", LIMIT, () -> first.tablespace("app").at("/rows/t").asInt() == 3);
        assertEquals("follower", first.tablespace("app").path("role").asText());
        first.stop();
        second.stop();
    }

    @Test
    void aLeaderThatShallStopAcknowledgesWritesToEachTablespaceUntilThatOnesTurn() throws Exception {
        String root = BookKeeperForTests.running().newRoot();
        RunningNode first = RunningNode.start("n0", root, null);
        first.server().waitForTableSpaceBoot("herd", (int) LIMIT.toMillis(), true);
        RunningNode second = RunningNode.start("n1", root, null);
        List<String> tablespaces = List.of("app", "zoo");
        for (String name : tablespaces) {
            Node.execute(first.server(), 0, "CREATE TABLESPACE '" + name + "','leader:n0','replica:n0,n1','expectedreplicacount:1','wait:30000'");
            Node.execute(first.server(), 0, "CREATE TABLE " + name + ".t (k int primary key)");
            Node.execute(first.server(), 0, "INSERT INTO " + name + ".t(k) VALUES(1)");
            Await.until("the follower has the row", LIMIT, () -> second.tablespace(name).at("/rows/t").asInt() == 1);
        }
        first.status().enter(Phase.LEAVING);
        CompletableFuture<Void> leaving = CompletableFuture.runAsync(() -> Departure.awaitHandOver(first.status(), LIMIT));

        lead(first.server().getMetadataStorageManager(), "app", "n1");
        int written = 1;
        while (!second.tablespace("app").path("role").asText().equals("leader")) {
            Node.executeIn("zoo", first.server(), 0, "INSERT INTO zoo.t(k) VALUES(" + ++written + ")");
        }
        Node.executeIn("app", second.server(), 0, "INSERT INTO app.t(k) VALUES(2)");
        Node.executeIn("zoo", first.server(), 0, "INSERT INTO zoo.t(k) VALUES(" + ++written + ")");
        assertFalse(leaving.isDone());
        assertEquals("leader", first.tablespace("zoo").path("role").asText());

        lead(first.server().getMetadataStorageManager(), "zoo", "n1");
        leaving.get();
        Await.until("the other one leads", LIMIT, () -> second.tablespace("zoo").path("role").asText().equals("leader"));
        assertEquals(written, second.tablespace("zoo").at("/rows/t").asInt());
        first.stop();
        second.stop();
    }

    @Test
    void aLeaderThatNobodyTakesOverWaitsNoLongerThanItMay() throws Exception {
        RunningNode node = RunningNode.start("n0", BookKeeperForTests.running().newRoot(), null);
        node.server().waitForTableSpaceBoot("herd", (int) LIMIT.toMillis(), true);
        Node.execute(node.server(), 0, "CREATE TABLESPACE 'app','leader:n0','replica:n0,n9','expectedreplicacount:1','wait:30000'");
        Departure.awaitHandOver(node.status(), Duration.ofMillis(100));
        assertTrue(node.manager("app").isLeader());
        node.stop();
    }

    private static void lead(MetadataStorageManager metadata, String tablespace, String node) throws Exception {
        TableSpace before = metadata.describeTableSpace(tablespace);
        assertTrue(metadata.updateTableSpace(TableSpace.builder().cloning(before).leader(node).build(), before));
    }
}
