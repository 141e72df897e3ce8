package io.herdkeeper.node.contact;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;
import herddb.server.ServerConfiguration;
import io.herdkeeper.node.testing.Await;
import io.herdkeeper.node.testing.BookKeeperForTests;
import io.herdkeeper.node.testing.Cable;
import io.herdkeeper.node.testing.Node;
import io.herdkeeper.node.testing.RunningNode;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.DoublePredicate;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** A node tells on its stream what it can't reach. */
class ContactsTest {

    private static final Duration LIMIT = Duration.ofSeconds(90);
    private static final int ZOOKEEPER_SESSION_MILLIS = 6_000;

    @AfterEach
    void resumeBookie() throws Exception {
        BookKeeperForTests.running().resumeBookie();
    }

    @Test
    void aNodeThatIsCutOffFromZooKeeperTellsForHowLongAndSinceWhenItIsNotAnyMore() throws Exception {
        BookKeeperForTests servers = BookKeeperForTests.running();
        try (Cable cable = new Cable(servers.zooKeeperAddress())) {
            RunningNode node = RunningNode.start(configuration()
                    .set(ServerConfiguration.PROPERTY_ZOOKEEPER_ADDRESS, cable.address()), null);
            Await.until("it leads", LIMIT, () -> node.tablespace("herd").path("role").asText().equals("leader"));
            Await.until("ZooKeeper answers it for a while", LIMIT, () -> saysFor(node, true, seconds -> seconds > 3));
            assertTrue(node.report().path("failed").isEmpty());

            cable.pull();
            Await.until("it notices, though its session lives", LIMIT,
                    () -> saysFor(node, false, seconds -> seconds < ZOOKEEPER_SESSION_MILLIS / 1e3));
            Await.until("it goes on counting", LIMIT, () -> saysFor(node, false, seconds -> seconds > ZOOKEEPER_SESSION_MILLIS / 1e3));
            assertEquals(503, node.ask("GET", "/tablespaces").statusCode());
            assertFalse(node.report().at("/zooKeeper/answers").asBoolean());

            cable.plug();
            Await.until("it is answered again, and has been for a moment", LIMIT,
                    () -> saysFor(node, true, seconds -> seconds < ZOOKEEPER_SESSION_MILLIS / 1e3));
            node.stop();
        }
    }

    @Test
    void aLeaderTellsForHowLongItsBookiesAcknowledgeNothingAndNothingOnceTheyDo() throws Exception {
        RunningNode node = RunningNode.start(configuration().set("bookkeeper.addEntryTimeoutSec", 300), null);
        Await.until("it leads", LIMIT, () -> node.tablespace("herd").path("role").asText().equals("leader"));
        Node.execute(node.server(), 0, "CREATE TABLE herd.t (k int primary key)");
        assertTrue(node.report().path("unacknowledgedSeconds").isEmpty());

        BookKeeperForTests.running().suspendBookie();
        CompletableFuture<Void> insert =
                CompletableFuture.runAsync(() -> Node.execute(node.server(), 0, "INSERT INTO herd.t(k) VALUES(1)"));
        Await.until("the entry waits", LIMIT, () -> node.report().at("/unacknowledgedSeconds/herd").asDouble() > 3);
        assertFalse(insert.isDone());
        assertEquals("leader", node.tablespace("herd").path("role").asText());

        BookKeeperForTests.running().resumeBookie();
        insert.join();
        Await.until("nothing waits", LIMIT, () -> node.report().path("unacknowledgedSeconds").isEmpty());
        assertTrue(node.report().path("failed").isEmpty());
        node.stop();
    }

    @Test
    void aLeaderWhoseLogFailedSaysSoUntilItLeadsAgain() throws Exception {
        RunningNode node = RunningNode.start(configuration()
                .set("bookkeeper.addEntryTimeoutSec", 5)
                .set("bookkeeper.readEntryTimeoutSec", 1)
                .set("server.bookkeeper.wait.cluser.ready.timeout", 1), null);
        Await.until("it leads", LIMIT, () -> node.tablespace("herd").path("role").asText().equals("leader"));
        Node.execute(node.server(), 0, "CREATE TABLE herd.t (k int primary key)");

        BookKeeperForTests.running().suspendBookie();
        CompletableFuture<Void> insert =
                CompletableFuture.runAsync(() -> Node.execute(node.server(), 0, "INSERT INTO herd.t(k) VALUES(1)"));
        Await.until("its log fails", LIMIT, () -> node.report().path("failed").path(0).asText().equals("herd"));
        Await.until("HerdDB stops the tablespace", LIMIT, () -> node.manager("herd") == null);
        JsonNode stopped = node.tablespace("herd");
        assertEquals("failed", stopped.path("role").asText());
        assertTrue(stopped.path("lastError").asText().contains("the log failed: "), stopped.path("lastError").asText());
        insert.handle((done, error) -> error).thenAccept(error -> assertTrue(error instanceof CompletionException)).join();

        BookKeeperForTests.running().resumeBookie();
        Await.until("it leads again", LIMIT, () -> node.tablespace("herd").path("role").asText().equals("leader"));
        Await.until("nothing has failed", LIMIT, () -> node.report().path("failed").isEmpty());
        node.stop();
    }

    @Test
    void aBreakIsCountedFromTheLastAnswerAndWhatFollowsFromTheFirstOne() {
        AtomicLong nanos = new AtomicLong();
        ZooKeeperContact contact = new ZooKeeperContact(() -> null, "/", nanos::get);
        after(nanos, 1_000);
        contact.answered();
        after(nanos, 1_000);
        assertEquals(new Period(true, 2), contact.period());
        after(nanos, 500);
        assertEquals(new Period(false, 1.5), contact.period());
        after(nanos, 4_500);
        contact.answered();
        after(nanos, 250);
        assertEquals(new Period(true, 0.25), contact.period());
    }

    private static boolean saysFor(RunningNode node, boolean answers, DoublePredicate seconds) throws Exception {
        JsonNode zooKeeper = node.report().path("zooKeeper");
        return zooKeeper.path("answers").asBoolean() == answers && seconds.test(zooKeeper.path("seconds").asDouble());
    }

    private static void after(AtomicLong nanos, long millis) {
        nanos.addAndGet(Duration.ofMillis(millis).toNanos());
    }

    private static ServerConfiguration configuration() throws Exception {
        BookKeeperForTests servers = BookKeeperForTests.running();
        return Node.configuration("n0", servers.newRoot(), servers.newFolder())
                .set(ServerConfiguration.PROPERTY_ZOOKEEPER_SESSIONTIMEOUT, ZOOKEEPER_SESSION_MILLIS);
    }
}
