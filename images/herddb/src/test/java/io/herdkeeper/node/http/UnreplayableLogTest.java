package io.herdkeeper.node.http;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;
import herddb.cluster.LedgersInfo;
import herddb.cluster.ZookeeperMetadataStorageManager;
import herddb.log.LogEntryFactory;
import herddb.log.LogSequenceNumber;
import io.herdkeeper.node.log.NodeCommitLogManager;
import io.herdkeeper.node.log.StuckReplays;
import io.herdkeeper.node.testing.Await;
import io.herdkeeper.node.testing.BookKeeperForTests;
import io.herdkeeper.node.testing.Node;
import io.herdkeeper.node.testing.RunningNode;
import java.nio.file.Path;
import java.time.Duration;
import org.apache.bookkeeper.client.api.LedgerMetadata.State;
import org.apache.zookeeper.ZooKeeper;
import org.apache.zookeeper.data.Stat;
import org.junit.jupiter.api.Test;

/** A log with an entry that no node can apply, as a leader of an earlier version may have left it; and one whose list names others' ledgers. */
class UnreplayableLogTest {

    private static final Duration LIMIT = Duration.ofSeconds(60);

    @Test
    void isToldAndLeavesTheNodesOtherTablespacesServing() throws Exception {
        String root = BookKeeperForTests.running().newRoot();
        RunningNode leader = RunningNode.start("n0", root, null);
        leader.server().waitForTableSpaceBoot("herd", (int) LIMIT.toMillis(), true);
        RunningNode follower = RunningNode.start("n1", root, null);
        for (String name : new String[]{"bad", "good"}) {
            Node.execute(leader.server(), 0,
                    "CREATE TABLESPACE '" + name + "','leader:n0','replica:n0,n1','expectedreplicacount:1','wait:30000'");
            Node.execute(leader.server(), 0, "CREATE TABLE " + name + ".t (k int primary key, n int)");
            Node.execute(leader.server(), 0, "INSERT INTO " + name + ".t(k,n) VALUES(1,1)");
        }
        Await.until("both are followed", LIMIT, () -> follower.ask("GET", "/readyz").statusCode() == 200
                && follower.tablespace("bad").path("rows").path("t").asInt() == 1 && follower.tablespace("good").path("rows").path("t").asInt() == 1);
        assertTrue(follower.tablespace("bad").path("unreplayable").isNull());
        long open = Node.begin(leader.server(), "bad");
        Node.execute(leader.server(), open, "INSERT INTO bad.t(k,n) VALUES(2,2)");
        // What HerdDB 0.29 writes for a TRUNCATE that it refuses then.
        LogSequenceNumber entry = leader.manager("bad").getLog()
                .log(LogEntryFactory.truncate(leader.manager("bad").getTableManager("t").getTable(), null), true).getLogSequenceNumber();
        Node.execute(leader.server(), open, "INSERT INTO bad.t(k,n) VALUES(3,3)");
        Node.execute(leader.server(), 0, "EXECUTE COMMITTRANSACTION 'bad'," + open);
        Await.until("the node says why", LIMIT, () -> !follower.tablespace("bad").path("unreplayable").isNull());
        JsonNode told = follower.tablespace("bad").path("unreplayable");
        assertEquals(entry.ledgerId, told.path("ledgerId").asLong());
        assertEquals(entry.offset, told.path("offset").asLong());
        assertEquals("TRUNCATE", told.path("entryType").asText());
        assertEquals("t", told.path("table").asText());
        assertTrue(told.path("message").asText().contains("transaction"), told.toString());
        assertEquals(200, follower.ask("GET", "/readyz").statusCode());
        assertTrue(follower.ask("GET", "/readyz").body().contains("bad is"), "the reason names it");
        Node.execute(leader.server(), 0, "INSERT INTO good.t(k,n) VALUES(2,2)");
        Await.until("the other one is followed", LIMIT, () -> follower.tablespace("good").path("rows").path("t").asInt() == 2);
        follower.stop();
        leader.stop();
    }

    @Test
    void aListedLedgerOfAnotherTablespaceIsToldAndStaysOpenAndTheNodesOtherTablespacesServe() throws Exception {
        String root = BookKeeperForTests.running().newRoot();
        Path folder = BookKeeperForTests.running().newFolder();
        RunningNode before = RunningNode.start(Node.configuration("n0", root, folder), null);
        before.server().waitForTableSpaceBoot("herd", (int) LIMIT.toMillis(), true);
        for (String name : new String[]{"bad", "good"}) {
            Node.execute(before.server(), 0, "CREATE TABLESPACE '" + name + "','leader:n0','replica:n0','expectedreplicacount:1','wait:30000'");
            Node.execute(before.server(), 0, "CREATE TABLE " + name + ".t (k int primary key)");
        }
        String bad = before.manager("bad").getTableSpaceUUID();
        before.stop();
        RunningNode others = RunningNode.start("n0", BookKeeperForTests.running().newRoot(), null);
        others.server().waitForTableSpaceBoot("herd", (int) LIMIT.toMillis(), true);
        String owner = others.manager("herd").getTableSpaceUUID();
        ZookeeperMetadataStorageManager lists = (ZookeeperMetadataStorageManager) others.server().getMetadataStorageManager();
        long foreign = lists.getActualLedgersList(owner).getActiveLedgers().get(0);
        list(lists.ensureZooKeeper(), root + "/ledgers/" + bad, foreign);

        RunningNode node = RunningNode.start(Node.configuration("n0", root, folder), null);
        Await.until("the node says why", LIMIT, () -> !node.tablespace("bad").path("unreplayable").isNull());
        JsonNode told = node.tablespace("bad").path("unreplayable");
        assertEquals(foreign, told.path("ledgerId").asLong());
        assertEquals(StuckReplays.FOREIGN_LEDGER, told.path("entryType").asText());
        assertTrue(told.path("message").asText().matches(".*" + foreign + ".*" + bad + ".*" + owner + ".*"), told.toString());
        node.server().waitForTableSpaceBoot("good", (int) LIMIT.toMillis(), true);
        Node.execute(node.server(), 0, "INSERT INTO good.t(k) VALUES(1)");
        Await.until("it is ready", LIMIT, () -> node.ask("GET", "/readyz").statusCode() == 200);
        Node.execute(others.server(), 0, "CREATE TABLE herd.t (k int primary key)");
        Node.execute(others.server(), 0, "INSERT INTO herd.t(k) VALUES(1)");
        assertEquals(State.OPEN, NodeCommitLogManager.of(others.server().getManager()).getBookKeeper().getLedgerManager()
                .readLedgerMetadata(foreign).get().getValue().getState());
        node.stop();
        others.stop();
    }

    private static void list(ZooKeeper zooKeeper, String path, long ledger) throws Exception {
        Stat stat = new Stat();
        LedgersInfo list = LedgersInfo.deserialize(zooKeeper.getData(path, false, stat), stat.getVersion());
        list.addLedger(ledger);
        zooKeeper.setData(path, list.serialize(), stat.getVersion());
    }
}
