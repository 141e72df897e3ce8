package io.herdkeeper.node.leadership;

import static org.junit.jupiter.api.Assertions.assertEquals;

import herddb.core.TableSpaceManager;
import herddb.metadata.MetadataStorageManager;
import herddb.model.TableSpace;
import herddb.utils.Bytes;
import io.herdkeeper.node.testing.Await;
import io.herdkeeper.node.testing.BookKeeperForTests;
import io.herdkeeper.node.testing.Node;
import io.herdkeeper.node.testing.RunningNode;
import java.time.Duration;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.ConcurrentSkipListMap;
import java.util.concurrent.atomic.AtomicBoolean;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;

/**
 * A leadership that goes to and fro while somebody writes.
 *
 * <p>How often it moves is the system property {@code leadership.moves}; the times without an acknowledged write are printed.
 */
class AcknowledgedRowsTest {

    private static final Duration LIMIT = Duration.ofSeconds(60);
    private static final int MOVES = Integer.getInteger("leadership.moves", 4);
    private static final int ROWS_BETWEEN = 50;

    private static List<RunningNode> nodes;
    /** Row to the time of its acknowledgement. */
    private final ConcurrentSkipListMap<Integer, Long> acknowledged = new ConcurrentSkipListMap<>();
    private final AtomicBoolean writes = new AtomicBoolean(true);

    @BeforeAll
    static void start() throws Exception {
        String root = BookKeeperForTests.running().newRoot();
        RunningNode first = RunningNode.start("n0", root, null);
        first.server().waitForTableSpaceBoot("herd", (int) LIMIT.toMillis(), true);
        nodes = List.of(first, RunningNode.start("n1", root, null));
        for (RunningNode node : nodes) {
            node.repeating().add(new PlannerWarmer(node.server()).start());
        }
        Node.execute(first.server(), 0, "CREATE TABLESPACE 'app','leader:n0','replica:n0,n1','expectedreplicacount:1','wait:30000'");
        Node.execute(first.server(), 0, "CREATE TABLE app.t (k int primary key)");
    }

    @AfterAll
    static void stop() throws Exception {
        for (RunningNode node : nodes) {
            node.stop();
        }
    }

    @Test
    void areOnEveryNodeHoweverOftenTheLeaderChanges() throws Exception {
        Thread writer = new Thread(this::write);
        writer.start();
        for (int move = 1; move <= MOVES; move++) {
            RunningNode next = nodes.get(move % 2);
            Await.until("the other one follows", LIMIT, () -> next.tablespace("app").path("role").asText().equals("follower"));
            awaitRows();
            long before = System.nanoTime();
            lead("n" + move % 2);
            Await.until("the other one leads", LIMIT, () -> leads(next));
            awaitRows();
            System.out.printf("move %d: %.3f s without an acknowledged write%n", move, longestGapSince(before) / 1e9);
        }
        writes.set(false);
        writer.join();
        for (RunningNode node : nodes) {
            Await.until("every acknowledged row is on " + node.server().getNodeId(), LIMIT,
                    () -> rows(node).containsAll(acknowledged.keySet()));
        }
        assertEquals(rows(nodes.get(0)), rows(nodes.get(1)));
    }

    /** Writes row after row to whoever leads. A row whose write failed may be there or not, and is not tried again. */
    private void write() {
        for (int row = 0; writes.get(); row++) {
            RunningNode leader = nodes.stream().filter(AcknowledgedRowsTest::leads).findFirst().orElse(null);
            if (leader == null) {
                Thread.onSpinWait();
                continue;
            }
            try {
                Node.executeIn("app", leader.server(), 0, "INSERT INTO app.t(k) VALUES(?)", row);
                acknowledged.put(row, System.nanoTime());
            } catch (RuntimeException unknown) {
                // the leader changed
            }
        }
    }

    private void awaitRows() throws Exception {
        int before = acknowledged.size();
        Await.until("further rows are acknowledged", LIMIT, () -> acknowledged.size() > before + ROWS_BETWEEN);
    }

    private long longestGapSince(long moment) {
        long longest = 0;
        long last = moment;
        for (long at : acknowledged.values()) {
            if (at > moment) {
                longest = Math.max(longest, at - last);
                last = at;
            }
        }
        return longest;
    }

    private static boolean leads(RunningNode node) {
        TableSpaceManager manager = node.manager("app");
        return manager != null && manager.isLeader() && !manager.isFailed() && !manager.isClosed();
    }

    private static Set<Integer> rows(RunningNode node) {
        Set<Integer> rows = new TreeSet<>();
        TableSpaceManager manager = node.manager("app");
        if (manager != null) {
            manager.getTableManager("t").scanForIndexRebuild(row -> rows.add(Bytes.toInt(row.key.to_array(), 0)));
        }
        return rows;
    }

    private static void lead(String node) throws Exception {
        MetadataStorageManager metadata = nodes.get(0).server().getMetadataStorageManager();
        TableSpace before = metadata.describeTableSpace("app");
        metadata.updateTableSpace(TableSpace.builder().cloning(before).leader(node).build(), before);
    }
}
