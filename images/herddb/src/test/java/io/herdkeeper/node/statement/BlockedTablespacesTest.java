package io.herdkeeper.node.statement;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.herdkeeper.node.internals.HerdInternals;
import io.herdkeeper.node.testing.Await;
import io.herdkeeper.node.testing.BookKeeperForTests;
import io.herdkeeper.node.testing.Node;
import io.herdkeeper.node.testing.RunningNode;
import java.time.Duration;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.StampedLock;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;

/** What a node says of a tablespace that it leads and on which statements hang. */
class BlockedTablespacesTest {

    private static final Duration LIMIT = Duration.ofSeconds(60);

    private static RunningNode leader;
    private static RunningNode follower;
    private static StampedLock lock;

    @BeforeAll
    static void start() throws Exception {
        String root = BookKeeperForTests.running().newRoot();
        leader = RunningNode.start("n0", root, null);
        leader.server().waitForTableSpaceBoot("herd", (int) LIMIT.toMillis(), true);
        follower = RunningNode.start("n1", root, null);
        Node.execute(leader.server(), 0, "CREATE TABLESPACE 'app','leader:n0','replica:n0,n1','expectedreplicacount:1','wait:30000'");
        Node.execute(leader.server(), 0, "CREATE TABLE app.t (k int primary key)");
        Await.until("the other one follows", LIMIT, () -> follower.tablespace("app").path("role").asText().equals("follower"));
        lock = HerdInternals.statementLock(leader.manager("app"));
    }

    @AfterAll
    static void stop() throws Exception {
        follower.stop();
        leader.stop();
    }

    @Test
    void aDefinitionThatWaitsForAStatementThatNeverEndsIsToldOfUntilThatEnds() throws Exception {
        long statement = lock.readLock();
        CompletableFuture<Void> definition;
        try {
            definition = begin("CREATE TABLE app.behind (k int primary key)");
            awaitBlocked();
            assertBlocked();
            assertFalse(definition.isDone());
        } finally {
            lock.unlockRead(statement);
        }
        definition.get(LIMIT.toSeconds(), TimeUnit.SECONDS);
        assertRuns();
    }

    @Test
    void aLockThatWasNotGivenBackBlocksTheTablespaceUntilItIs() throws Exception {
        long definition = lock.writeLock();
        CompletableFuture<Void> row;
        try {
            row = begin("INSERT INTO app.t(k) VALUES(1)");
            awaitBlocked();
            assertBlocked();
            assertFalse(row.isDone());
        } finally {
            lock.unlockWrite(definition);
        }
        row.get(LIMIT.toSeconds(), TimeUnit.SECONDS);
        assertRuns();
    }

    @Test
    void statementsThatTakeLongBlockNobodyByThemselves() throws Exception {
        long statement = lock.readLock();
        try {
            BlockedTablespaces blocked = new BlockedTablespaces(leader.server().getManager());
            blocked.look();
            Await.until("it had its turn", LIMIT, () -> !blocked.waitsFor(leader.manager("app")));
            Node.execute(leader.server(), 0, "INSERT INTO app.t(k) VALUES(2)");
        } finally {
            lock.unlockRead(statement);
        }
    }

    private static CompletableFuture<Void> begin(String statement) {
        return CompletableFuture.runAsync(() -> Node.execute(leader.server(), 0, statement));
    }

    private static void awaitBlocked() throws Exception {
        Await.until("statements hang", LIMIT, () -> leader.tablespace("app").path("blockedSeconds").asLong() > 1);
    }

    /** By every way in which it is told; the follower and another tablespace say nothing of the kind. */
    private static void assertBlocked() throws Exception {
        assertEquals("leader", leader.tablespace("app").path("role").asText());
        assertTrue(leader.report().at("/blockedSeconds/app").asLong() > 0);
        assertTrue(metric(leader, "app") > 0);
        assertEquals(0, metric(leader, "herd"));
        assertEquals(0, leader.tablespace("herd").path("blockedSeconds").asLong(-1));
        assertEquals(0, follower.tablespace("app").path("blockedSeconds").asLong(-1));
        assertEquals(Map.of(), follower.status().blocked().seconds());
    }

    private static void assertRuns() throws Exception {
        Await.until("nobody hangs", LIMIT, () -> leader.tablespace("app").path("blockedSeconds").asLong(-1) == 0);
        assertTrue(leader.report().path("blockedSeconds").isEmpty());
        assertEquals(0, metric(leader, "app"));
    }

    private static long metric(RunningNode node, String tablespace) throws Exception {
        String series = "herdkeeper_node_blocked_seconds{tablespace=\"" + tablespace + "\"} ";
        return node.ask("GET", "/metrics").body().lines().filter(line -> line.startsWith(series))
                .mapToLong(line -> Long.parseLong(line.substring(series.length()))).findAny().orElseThrow();
    }
}
