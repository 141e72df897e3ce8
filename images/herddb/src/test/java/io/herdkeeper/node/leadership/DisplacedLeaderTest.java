package io.herdkeeper.node.leadership;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import herddb.core.ActivatorRunRequest;
import herddb.core.DBManager;
import herddb.metadata.MetadataStorageManager;
import herddb.model.NotLeaderException;
import herddb.model.TableSpace;
import herddb.model.TransactionContext;
import herddb.sql.AbstractSQLPlanner;
import herddb.sql.TranslatedQuery;
import io.herdkeeper.node.internals.HerdInternals;
import io.herdkeeper.node.leadership.DisplacedLeader.Patience;
import io.herdkeeper.node.log.NodeCommitLog;
import io.herdkeeper.node.status.NodeStatus.DisplacedLeadership;
import io.herdkeeper.node.testing.Await;
import io.herdkeeper.node.testing.BookKeeperForTests;
import io.herdkeeper.node.testing.Node;
import io.herdkeeper.node.testing.RunningNode;
import java.time.Duration;
import java.util.List;
import java.util.Queue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.locks.StampedLock;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** A leader whose activator waits for ever, since a statement waits for a row while it holds the tablespace. */
class DisplacedLeaderTest {

    private static final Duration LIMIT = Duration.ofSeconds(60);
    private static final Duration LONG = Duration.ofMinutes(5);
    private static final Duration SHORT = Duration.ofSeconds(2);

    private final Queue<String> ended = new ConcurrentLinkedQueue<>();

    @Test
    void aNodeThatCanNotStopLeadingEndsItsProcess() throws Exception {
        String root = BookKeeperForTests.running().newRoot();
        RunningNode first = RunningNode.start("n0", root, null);
        first.server().waitForTableSpaceBoot("herd", (int) LIMIT.toMillis(), true);
        RunningNode second = RunningNode.start("n1", root, null);
        Thread patient = new DisplacedLeader(first.status(), new Patience(LONG, LIMIT), ended::add).start();
        Node.execute(first.server(), 0, "CREATE TABLESPACE 'app','leader:n0','replica:n0,n1','expectedreplicacount:1','wait:30000'");
        Node.execute(first.server(), 0, "CREATE TABLE app.t (k int primary key, n int)");
        Node.execute(first.server(), 0, "INSERT INTO app.t(k,n) VALUES(1,1)");

        // A leader that can stop is left alone.
        lead(first, "n1");
        Await.until("the other one leads", LIMIT, () -> second.tablespace("app").path("role").asText().equals("leader"));
        Await.until("it follows", LIMIT, () -> first.tablespace("app").path("role").asText().equals("follower"));
        lead(first, "n0");
        Await.until("it leads again", LIMIT, () -> first.tablespace("app").path("role").asText().equals("leader"));
        assertEquals(List.of(), List.copyOf(ended));
        patient.interrupt();

        CompletableFuture<Void> waiting = waitForARow(first);
        Thread displaced = new DisplacedLeader(first.status(), new Patience(LONG, SHORT), ended::add).start();
        lead(first, "n1");
        Await.until("it gives itself up", LIMIT, () -> !ended.isEmpty());
        assertTrue(ended.peek().contains("tablespace app has not stopped"), ended.peek());
        assertEquals(List.of(new DisplacedLeadership("app", true)), first.status().displacedLeaderships());
        assertTrue(!waiting.isDone());
        displaced.interrupt();
        // Both stay: a server with a statement that waits for ever can't be closed. The JVM of the tests ends with them.
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void aNodeThatCanNotStopATablespaceThatIsDroppedOrWhoseLogHasFailedEndsItsProcess(boolean dropped) throws Exception {
        RunningNode node = RunningNode.start("n0", BookKeeperForTests.running().newRoot(), null);
        node.server().waitForTableSpaceBoot("herd", (int) LIMIT.toMillis(), true);
        Node.execute(node.server(), 0, "CREATE TABLESPACE 'app','leader:n0','wait:30000'");
        Node.execute(node.server(), 0, "CREATE TABLE app.t (k int primary key, n int)");
        Node.execute(node.server(), 0, "INSERT INTO app.t(k,n) VALUES(1,1)");
        CompletableFuture<Void> waiting = waitForARow(node);
        Thread displaced = new DisplacedLeader(node.status(), new Patience(LONG, SHORT), ended::add).start();
        if (dropped) {
            node.server().getMetadataStorageManager().dropTableSpace("app", node.server().getMetadataStorageManager().describeTableSpace("app"));
        } else {
            ((NodeCommitLog) node.manager("app").getLog()).end(new IllegalStateException("the test ends it"));
        }
        Await.until("it gives itself up", LIMIT, () -> !ended.isEmpty());
        assertTrue(ended.peek().contains("tablespace app has not stopped"), ended.peek());
        assertTrue(!waiting.isDone());
        displaced.interrupt();
        // It stays, as above.
    }

    @Test
    void aNodeWhoseActivatorIsBusyWithAnotherTablespaceIsLeftAlone() throws Exception {
        String root = BookKeeperForTests.running().newRoot();
        RunningNode first = RunningNode.start("n0", root, null);
        first.server().waitForTableSpaceBoot("herd", (int) LIMIT.toMillis(), true);
        RunningNode second = RunningNode.start("n1", root, null);
        for (String name : List.of("app", "busy")) {
            Node.execute(first.server(), 0,
                    "CREATE TABLESPACE '" + name + "','leader:n0','replica:n0,n1','expectedreplicacount:1','wait:30000'");
        }
        StampedLock lock = HerdInternals.statementLock(first.manager("busy"));
        long stamp = lock.readLock();
        awaitCheckpointOfTheActivator(first);
        DisplacedLeader displaced = new DisplacedLeader(first.status(), new Patience(LONG, Duration.ZERO), ended::add);
        lead(first, "n1");
        assertEquals(List.of(new DisplacedLeadership("app", false)), first.status().displacedLeaderships());
        displaced.look();
        displaced.look();
        assertEquals(List.of(), List.copyOf(ended));
        first.server().getManager().setCheckpointPeriod(LIMIT.toMillis());
        lock.unlockRead(stamp);
        Await.until("the other one leads", LIMIT, () -> second.tablespace("app").path("role").asText().equals("leader"));
        second.stop();
        first.stop();
    }

    @Test
    void aNodeWhoseActivatorNeverComesToStopLeadingEndsItsProcess() throws Exception {
        String root = BookKeeperForTests.running().newRoot();
        RunningNode first = RunningNode.start("n0", root, null);
        first.server().waitForTableSpaceBoot("herd", (int) LIMIT.toMillis(), true);
        RunningNode.start("n1", root, null);
        Node.execute(first.server(), 0, "CREATE TABLESPACE 'app','leader:n0','replica:n0,n1','expectedreplicacount:1','wait:30000'");
        HerdInternals.statementLock(first.manager("app")).readLock(); // a statement that never ends
        awaitCheckpointOfTheActivator(first);
        Thread displaced = new DisplacedLeader(first.status(), new Patience(SHORT, LONG), ended::add).start();
        lead(first, "n1");
        Await.until("it gives itself up", LIMIT, () -> !ended.isEmpty());
        assertTrue(ended.peek().contains("has not begun to stop"), ended.peek());
        assertEquals(List.of(new DisplacedLeadership("app", false)), first.status().displacedLeaderships());
        displaced.interrupt();
        // Both stay: a server with a statement that waits for ever can't be closed. The JVM of the tests ends with them.
    }

    @Test
    void aLeaderWhoseLogHasFailedReadsNoRowsUntilItHasStopped() throws Exception {
        RunningNode node = RunningNode.start("n0", BookKeeperForTests.running().newRoot(), null);
        node.server().waitForTableSpaceBoot("herd", (int) LIMIT.toMillis(), true);
        Node.execute(node.server(), 0, "CREATE TABLESPACE 'app','leader:n0','wait:30000'");
        Node.execute(node.server(), 0, "CREATE TABLE app.t (k int primary key, n int)");
        AbstractSQLPlanner planner = node.server().getManager().getPlanner();
        planner.translate("app", "SELECT * FROM t", List.of(), true, true, false, -1);
        StampedLock lock = HerdInternals.statementLock(node.manager("app"));
        long stamp = lock.readLock();
        awaitCheckpointOfTheActivator(node); // so it can't stop the tablespace yet
        ((NodeCommitLog) node.manager("app").getLog()).end(new IllegalStateException("the test ends it"));
        assertThrows(NotLeaderException.class, () -> planner.translate("app", "SELECT * FROM t", List.of(), true, true, false, -1));
        assertThrows(NotLeaderException.class, () -> planner.translate("herd", "SELECT * FROM app.t", List.of(), true, true, false, -1));
        planner.translate("herd", "DROP TABLESPACE 'app'", List.of(), false, true, false, -1); // reads no rows of it
        node.server().getManager().setCheckpointPeriod(LIMIT.toMillis());
        lock.unlockRead(stamp);
        Await.until("it leads again", LIMIT, () -> node.tablespace("app").path("role").asText().equals("leader"));
        planner.translate("app", "SELECT * FROM t", List.of(), true, true, false, -1);
        node.stop();
    }

    @Test
    void aQueryThatMeetsTheStopOfItsTablespaceIsSentToTheNextLeader() throws Exception {
        RunningNode node = RunningNode.start("n0", BookKeeperForTests.running().newRoot(), null);
        node.server().waitForTableSpaceBoot("herd", (int) LIMIT.toMillis(), true);
        Node.execute(node.server(), 0, "CREATE TABLESPACE 'app','leader:n0','wait:30000'");
        Node.execute(node.server(), 0, "CREATE TABLE app.t (k int primary key, n int)");
        Node.execute(node.server(), 0, "INSERT INTO app.t(k,n) VALUES(1,1)");
        DBManager manager = node.server().getManager();
        List<TranslatedQuery> queries = Stream.of("SELECT * FROM t", "SELECT n, COUNT(*) FROM t GROUP BY n", "SELECT * FROM t WHERE k = 1")
                .map(sql -> manager.getPlanner().translate("app", sql, List.of(), true, true, false, -1)).toList();
        node.manager("app").close(); // what the activator does; it has not taken the tablespace off its list yet
        for (TranslatedQuery query : queries) {
            assertThrows(NotLeaderException.class,
                    () -> manager.executePlan(query.plan, query.context, TransactionContext.NO_TRANSACTION), query.plan.toString());
        }
        // It stays: a tablespace can't be closed twice.
    }

    /** A statement outside of transactions waits for a row that a transaction keeps. */
    private static CompletableFuture<Void> waitForARow(RunningNode node) throws Exception {
        long before = Await.threadsThatWaitForRows(); // of tests before
        long holding = Node.begin(node.server(), "app");
        Node.execute(node.server(), holding, "UPDATE app.t SET n=2 WHERE k=1");
        // It waits for as long as the JVM of the tests lives, which has few threads that all tests share.
        CompletableFuture<Void> waiting = CompletableFuture.runAsync(
                () -> Node.execute(node.server(), 0, "UPDATE app.t SET n=3 WHERE k=1"), task -> new Thread(task).start());
        Await.until("the second statement waits for the row", LIMIT, () -> Await.threadsThatWaitForRows() > before);
        return waiting;
    }

    /** As at each checkpoint period: the activator waits for a statement on a tablespace, before it looks who leads. */
    private static void awaitCheckpointOfTheActivator(RunningNode node) throws Exception {
        Thread activator = HerdInternals.activator(node.server().getManager());
        node.server().getManager().setCheckpointPeriod(1);
        node.server().getManager().triggerActivator(ActivatorRunRequest.FULL);
        Await.until("the activator checkpoints", LIMIT, () -> List.of(activator.getStackTrace()).stream()
                .anyMatch(frame -> frame.getMethodName().equals("checkpoint")));
    }

    private static void lead(RunningNode node, String leader) throws Exception {
        MetadataStorageManager metadata = node.server().getMetadataStorageManager();
        TableSpace before = metadata.describeTableSpace("app");
        assertTrue(metadata.updateTableSpace(TableSpace.builder().cloning(before).leader(leader).build(), before));
    }
}
