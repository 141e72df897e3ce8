package io.herdkeeper.node.http;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;
import herddb.cluster.LedgersInfo;
import herddb.cluster.ZookeeperMetadataStorageManager;
import herddb.log.LogEntryFactory;
import herddb.log.LogSequenceNumber;
import herddb.model.TableSpaceReplicaState;
import io.herdkeeper.node.log.NodeCommitLogManager;
import io.herdkeeper.node.log.StuckReplays;
import io.herdkeeper.node.testing.Await;
import io.herdkeeper.node.testing.BookKeeperForTests;
import io.herdkeeper.node.testing.Node;
import io.herdkeeper.node.testing.RunningNode;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import org.apache.bookkeeper.client.api.LedgerMetadata.State;
import org.apache.zookeeper.CreateMode;
import org.apache.zookeeper.ZooDefs;
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
    void aLogWhoseListOfLedgersIsGoneIsNotBegunAnew() throws Exception {
        Led led = Led.start();
        led.node.manager("app").checkpoint(false, false, false);
        Node.execute(led.node.server(), 0, "INSERT INTO app.t(k) VALUES(1)");
        led.zooKeeper().delete(led.list(), -1);
        led.node.stop();

        RunningNode node = RunningNode.start(Node.configuration("n0", led.root, led.folder), null);
        assertLost(node, -1, "(?s)the list of its ledgers .* this node's disk has .*");
        assertFalse(node.tablespace("app").path("recoverable").asBoolean(), "nor does the node promote itself");
        assertEquals(List.of(), led.listed(node));
        node.stop();
    }

    @Test
    void aLogWhoseListOfLedgersIsGoneIsNotBegunAnewOnAnEmptyDiskAndGoesOnOnceItIsBack() throws Exception {
        Led led = Led.start();
        Node.execute(led.node.server(), 0, "INSERT INTO app.t(k) VALUES(1)");
        Await.until("ZooKeeper has the leader's heartbeat", LIMIT, () -> led.node.server().getMetadataStorageManager()
                .getTableSpaceReplicaState(led.uuid).stream().anyMatch(state -> state.mode == TableSpaceReplicaState.MODE_LEADER));
        byte[] list = led.zooKeeper().getData(led.list(), false, null);
        led.zooKeeper().delete(led.list(), -1);
        led.node.stop();

        RunningNode node = RunningNode.start(Node.configuration("n0", led.root, BookKeeperForTests.running().newFolder()), null);
        assertLost(node, -1, "(?s)the list of its ledgers .* n0 has led .*");
        assertEquals(List.of(), led.listed(node));
        ((ZookeeperMetadataStorageManager) node.server().getMetadataStorageManager()).ensureZooKeeper()
                .create(led.list(), list, ZooDefs.Ids.OPEN_ACL_UNSAFE, CreateMode.PERSISTENT);
        Await.until("it leads again", LIMIT, () -> node.tablespace("app").path("rows").path("t").asInt() == 1);
        Await.until("and says so", LIMIT, () -> node.tablespace("app").path("unreplayable").isNull());
        node.stop();
    }

    @Test
    void aListedLedgerThatIsGoneFromBookKeeperIsTold() throws Exception {
        Led led = Led.start();
        Node.execute(led.node.server(), 0, "INSERT INTO app.t(k) VALUES(1)");
        long ledger = led.listed(led.node).get(0);
        led.node.stop();
        RunningNode node = RunningNode.start(Node.configuration("n0", led.root, led.folder), null);
        node.server().waitForTableSpaceBoot("app", (int) LIMIT.toMillis(), true);
        long lost = led.listed(node).get(1);
        NodeCommitLogManager.of(node.server().getManager()).getBookKeeper().deleteLedger(lost);
        node.stop();

        RunningNode next = RunningNode.start(Node.configuration("n0", led.root, BookKeeperForTests.running().newFolder()), null);
        assertLost(next, lost, "ledger " + lost + " is listed, and gone from BookKeeper.*");
        assertEquals(List.of(ledger, lost), led.listed(next));
        next.stop();
    }

    private static void assertLost(RunningNode node, long ledger, String why) throws Exception {
        Await.until("the node says why", LIMIT, () -> !node.tablespace("app").path("unreplayable").isNull());
        JsonNode told = node.tablespace("app").path("unreplayable");
        assertEquals(StuckReplays.LOST_LEDGER, told.path("entryType").asText());
        assertEquals(ledger, told.path("ledgerId").asLong());
        assertTrue(told.path("message").asText().matches(why), told.toString());
        node.server().waitForTableSpaceBoot("herd", (int) LIMIT.toMillis(), true);
        Await.until("it serves its other tablespaces", LIMIT, () -> node.ask("GET", "/readyz").statusCode() == 200);
    }

    /** A node that leads the tablespace app, which has a table. */
    private record Led(String root, Path folder, RunningNode node, String uuid) {

        static Led start() throws Exception {
            String root = BookKeeperForTests.running().newRoot();
            Path folder = BookKeeperForTests.running().newFolder();
            RunningNode node = RunningNode.start(Node.configuration("n0", root, folder), null);
            node.server().waitForTableSpaceBoot("herd", (int) LIMIT.toMillis(), true);
            Node.execute(node.server(), 0, "CREATE TABLESPACE 'app','leader:n0','replica:n0','expectedreplicacount:1','wait:30000'");
            Node.execute(node.server(), 0, "CREATE TABLE app.t (k int primary key)");
            return new Led(root, folder, node, node.manager("app").getTableSpaceUUID());
        }

        ZooKeeper zooKeeper() throws Exception {
            return ((ZookeeperMetadataStorageManager) node.server().getMetadataStorageManager()).ensureZooKeeper();
        }

        String list() {
            return root + "/ledgers/" + uuid;
        }

        List<Long> listed(RunningNode by) {
            return ((ZookeeperMetadataStorageManager) by.server().getMetadataStorageManager()).getActualLedgersList(uuid).getActiveLedgers();
        }
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
