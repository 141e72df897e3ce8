package io.herdkeeper.node.leadership;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import herddb.cluster.ZookeeperMetadataStorageManager;
import herddb.model.TableSpace;
import io.herdkeeper.node.testing.Await;
import io.herdkeeper.node.testing.BookKeeperForTests;
import io.herdkeeper.node.testing.Node;
import io.herdkeeper.node.testing.RunningNode;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.logging.Handler;
import java.util.logging.LogRecord;
import java.util.logging.Logger;
import org.apache.zookeeper.ZooDefs;
import org.junit.jupiter.api.Test;

/** What lies between a record that names a follower's node as the leader, and the boot of that leader. */
class FollowerStopTest {

    private static final Duration LIMIT = Duration.ofSeconds(60);
    private static final int MOVES = 20;
    private static final int OTHER_TABLESPACES = 3;

    @Test
    void aHeartbeatThatZooKeeperDoesNotTakeKeepsNoFollowerFromLeading() throws Exception {
        try (Pair nodes = new Pair()) {
            ZookeeperMetadataStorageManager metadata = nodes.metadata();
            String heartbeat = metadata.getBasePath() + "/replicas/" + nodes.second.tablespace("app").path("uuid").asText() + "/n1";
            Await.until("the follower has sent a heartbeat", LIMIT, () -> metadata.ensureZooKeeper().exists(heartbeat, false) != null);
            metadata.ensureZooKeeper().setACL(heartbeat, ZooDefs.Ids.READ_ACL_UNSAFE, -1);
            Map<String, String> before = nodes.second.status().errors();
            nodes.lead("n1");
            nodes.write(nodes.second, 2);
            assertEquals(before, nodes.second.status().errors());
            assertEquals(2, nodes.second.tablespace("app").at("/rows/t").asInt());
        }
    }

    @Test
    void aLeadershipThatGoesToAndFroLosesNoRow() throws Exception {
        try (Pair nodes = new Pair()) {
            for (int number = 0; number < OTHER_TABLESPACES; number++) {
                Node.execute(nodes.first.server(), 0,
                        "CREATE TABLESPACE 'other" + number + "','leader:n0','replica:n0,n1','expectedreplicacount:1','wait:60000'");
            }
            Times times = new Times();
            times.listen();
            try {
                moveToAndFro(nodes, times);
                times.print();
            } finally {
                times.close();
            }
        }
    }

    private static void moveToAndFro(Pair nodes, Times times) throws Exception {
        int rows = 1;
        for (int move = 0; move < MOVES; move++) {
            RunningNode next = move % 2 == 0 ? nodes.second : nodes.first;
            Await.until("the next leader follows", LIMIT, () -> next.tablespace("app").path("role").asText().equals("follower"));
            times.begin(next.server().getNodeId());
            nodes.lead(next.server().getNodeId());
            nodes.write(next, ++rows);
            times.end();
            assertEquals(rows, next.tablespace("app").at("/rows/t").asInt());
        }
    }

    /** Two nodes with a tablespace app, led by the first one, and one row in it. */
    private static final class Pair implements AutoCloseable {

        private final RunningNode first;
        private final RunningNode second;

        Pair() throws Exception {
            String root = BookKeeperForTests.running().newRoot();
            first = RunningNode.start("n0", root, null);
            first.server().waitForTableSpaceBoot("herd", (int) LIMIT.toMillis(), true);
            second = RunningNode.start("n1", root, null);
            Node.execute(first.server(), 0, "CREATE TABLESPACE 'app','leader:n0','replica:n0,n1','expectedreplicacount:1','wait:60000'");
            Node.execute(first.server(), 0, "CREATE TABLE app.t (k int primary key)");
            write(first, 1);
            Await.until("the follower has the row", LIMIT, () -> second.tablespace("app").at("/rows/t").asInt() == 1);
        }

        ZookeeperMetadataStorageManager metadata() {
            return (ZookeeperMetadataStorageManager) first.server().getMetadataStorageManager();
        }

        void lead(String node) throws Exception {
            TableSpace before = metadata().describeTableSpace("app");
            assertTrue(metadata().updateTableSpace(TableSpace.builder().cloning(before).leader(node).build(), before));
        }

        /** Writes a row as soon as the node leads. */
        void write(RunningNode leader, int row) throws Exception {
            Await.until("the node leads", LIMIT, () -> leader.manager("app") != null && leader.manager("app").isLeader());
            Node.executeIn("app", leader.server(), 0, "INSERT INTO app.t(k) VALUES(?)", row);
        }

        @Override
        public void close() throws Exception {
            first.stop();
            second.stop();
        }
    }

    /** When HerdDB tells of a step of a leader change, in ms since its record was written. */
    private static final class Times extends Handler {

        private static final Map<String, String> STEPS = Map.of(
                "need to switch to leadership", "1 the activator has seen the record",
                "FollowerThread of {0} stopped", "2 the follower has stopped",
                "Booting tablespace", "3 the boot begins",
                "Boot success", "4 the boot is over");

        private final Map<String, List<Double>> times = new ConcurrentHashMap<>();
        private final List<Logger> loggers = List.of(Logger.getLogger("herddb.core.DBManager"), Logger.getLogger("herddb.core.TableSpaceManager"));
        private volatile long begun;
        private volatile String leader;

        void listen() {
            loggers.forEach(logger -> logger.addHandler(this));
        }

        void begin(String nextLeader) {
            leader = nextLeader;
            begun = System.nanoTime();
        }

        void end() {
            note("5 a row is acknowledged");
            begun = 0;
        }

        void print() {
            times.keySet().stream().sorted().forEach(step -> {
                List<Double> sorted = new ArrayList<>(times.get(step));
                Collections.sort(sorted);
                System.out.printf("%s: after %.1f ms in the median, %.1f ms at most (%d times)%n",
                        step, sorted.get(sorted.size() / 2), sorted.get(sorted.size() - 1), sorted.size());
            });
        }

        private void note(String step) {
            if (begun != 0) {
                times.computeIfAbsent(step, first -> Collections.synchronizedList(new ArrayList<>())).add((System.nanoTime() - begun) / 1e6);
            }
        }

        @Override
        public void publish(LogRecord event) {
            STEPS.forEach((words, step) -> {
                if (event.getMessage() != null && event.getMessage().contains(words) && ofTheNextLeader(event.getParameters())) {
                    note(step);
                }
            });
        }

        /** Both nodes are in this JVM, and the old leader's boots, too; only a follower's end has no node's name in it. */
        private boolean ofTheNextLeader(Object[] values) {
            return values != null && values[0].equals("app") && (values.length == 1 || values[1].equals(leader));
        }

        @Override
        public void flush() {
            // nothing is buffered
        }

        @Override
        public void close() {
            loggers.forEach(logger -> logger.removeHandler(this));
        }
    }
}
