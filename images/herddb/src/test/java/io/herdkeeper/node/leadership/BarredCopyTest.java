package io.herdkeeper.node.leadership;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import herddb.core.DBManager;
import herddb.metadata.MetadataStorageManager;
import herddb.model.TableSpace;
import io.herdkeeper.node.testing.Await;
import io.herdkeeper.node.testing.BookKeeperForTests;
import io.herdkeeper.node.testing.Node;
import io.herdkeeper.node.testing.RunningNode;
import java.net.http.HttpResponse;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Set;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.UnaryOperator;
import java.util.logging.Handler;
import java.util.logging.LogRecord;
import java.util.logging.Logger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** A follower must not make itself the leader, and no operator runs. */
class BarredCopyTest {

    private static final Duration LIMIT = Duration.ofSeconds(60);
    /** HerdDB takes no less. */
    private static final long INACTIVITY_MILLIS = 5_000;
    private static final String TOKEN = "a-token";
    private static final ObjectMapper JSON = new ObjectMapper();

    private String root;
    private Path disk;
    private Path token;
    private String uuid;
    private RunningNode leader;
    private RunningNode follower;

    @BeforeEach
    void twoNodesOfWhichNoneTakesOverByItselfYet() throws Exception {
        root = BookKeeperForTests.running().newRoot();
        disk = BookKeeperForTests.running().newFolder();
        token = Files.writeString(BookKeeperForTests.running().newFolder().resolve("token"), TOKEN);
        leader = RunningNode.start("n0", root, null);
        leader.server().waitForTableSpaceBoot("herd", (int) LIMIT.toMillis(), true);
        startFollower();
        Node.execute(leader.server(), 0, "CREATE TABLESPACE 'app','leader:n0','replica:n0,n1','expectedreplicacount:1','wait:30000'");
        uuid = record().uuid;
        Node.execute(leader.server(), 0, "CREATE TABLE app.t (k int primary key)");
        Node.execute(leader.server(), 0, "INSERT INTO app.t(k) VALUES(1)");
        follows();
        assertFalse(follower.tablespace("app").get("barred").asBoolean());
    }

    @AfterEach
    void stop() throws Exception {
        follower.stop();
        if (leader != null) {
            leader.stop();
        }
    }

    @Test
    void itsNodeDoesNotTakeOverWhenTheLeaderDiesAlsoAfterARestartAndDoesOnceItIsBarredNoMore() throws Exception {
        order("bar", true);
        assertTrue(follower.tablespace("app").get("barredUntil").isNull());
        order("bar", true, "&until=4,9");
        follower.stop();
        startFollower();
        follows();
        JsonNode told = follower.tablespace("app");
        assertTrue(told.get("barred").asBoolean());
        assertEquals(JSON.createObjectNode().put("ledgerId", 4).put("entryId", 9), told.get("barredUntil"));
        assertTrue(told.get("recoverable").asBoolean(), "the log has all that its disk lacks: nothing but the bar keeps it from leading");

        leader.stop();
        leader = null;
        try (Refusals refusals = new Refusals()) {
            change(record -> record.maxLeaderInactivityTime(INACTIVITY_MILLIS));
            Await.until("HerdDB has tried to make it the leader, again and again", LIMIT, () -> refusals.count.get() >= 3);
        }
        assertEquals("n0", record().leaderId);
        assertEquals("follower", follower.tablespace("app").path("role").asText());

        refused(409, "/tablespaces/app/unbar?uuid=" + uuid + "&until=4,8", "another bar");
        assertTrue(follower.tablespace("app").get("barred").asBoolean(), "an order that comes late lifts no later bar");
        order("unbar", false, "&until=4,9");
        order("unbar", false, "&until=4,9");
        leads();
        assertEquals("n1", record().leaderId);
    }

    @Test
    void itsNodeLeadsAllTheSameWhenSomebodyElseNamesIt() throws Exception {
        order("bar", true);
        change(record -> record.leader("n1"));
        leads();
        assertTrue(follower.tablespace("app").get("barred").asBoolean());
    }

    @Test
    void onlyWhoHasTheTokenAndMeansThisCopyBarsIt() throws Exception {
        for (String what : new String[]{"bar", "unbar"}) {
            String path = "/tablespaces/app/" + what + "?uuid=";
            assertEquals(401, follower.ask("POST", path + uuid).statusCode());
            refused(400, path + "..", "uuid=..");
            refused(409, path + "another", "not another");
            refused(404, "/tablespaces/none/" + what + "?uuid=" + uuid, "no tablespace none");
        }
        refused(400, "/tablespaces/app/bar?uuid=" + uuid + "&until=4", "until=4 must be an LSN");
        change(record -> record.replicas(Set.of("n0")));
        refused(409, "/tablespaces/app/bar?uuid=" + uuid, "no replica");
        assertFalse(Files.exists(disk.resolve("data").resolve("barred").resolve(uuid)));
    }

    /** How often HerdDB said that the node can't become the leader. */
    private static final class Refusals extends Handler implements AutoCloseable {

        private final AtomicInteger count = new AtomicInteger();
        /** Held, since loggers are forgotten with their handlers. */
        private final Logger herdDb = Logger.getLogger(DBManager.class.getName());

        Refusals() {
            herdDb.addHandler(this);
        }

        @Override
        public void publish(LogRecord message) {
            if (message.getMessage().contains("cannot become leader")) {
                count.incrementAndGet();
            }
        }

        @Override
        public void flush() {
            // nothing is kept
        }

        @Override
        public void close() {
            herdDb.removeHandler(this);
        }
    }

    private void startFollower() throws Exception {
        follower = RunningNode.start(Node.configuration("n1", root, disk), token);
    }

    private void follows() throws Exception {
        Await.until("it follows", LIMIT, () -> follower.tablespace("app").path("role").asText().equals("follower")
                && follower.tablespace("app").path("ready").asBoolean() && follower.tablespace("app").at("/rows/t").asInt() == 1);
    }

    private void leads() throws Exception {
        Await.until("it leads", LIMIT, () -> follower.tablespace("app").path("role").asText().equals("leader"));
        Node.executeIn("app", follower.server(), 0, "INSERT INTO app.t(k) VALUES(2)");
        assertEquals(2, follower.tablespace("app").at("/rows/t").asInt());
    }

    private void order(String what, boolean barred) throws Exception {
        order(what, barred, "");
    }

    private void order(String what, boolean barred, String query) throws Exception {
        HttpResponse<String> answer = follower.order("/tablespaces/app/" + what + "?uuid=" + uuid + query, TOKEN);
        assertEquals(200, answer.statusCode(), answer.body());
        assertEquals(JSON.createObjectNode().put("tablespace", "app").put("uuid", uuid).put("barred", barred), JSON.readTree(answer.body()));
        assertEquals(barred, follower.tablespace("app").get("barred").asBoolean());
    }

    private void refused(int status, String path, String words) throws Exception {
        HttpResponse<String> answer = follower.order(path, TOKEN);
        assertEquals(status, answer.statusCode(), answer.body());
        assertTrue(answer.body().contains(words), answer.body());
    }

    private TableSpace record() throws Exception {
        return metadata().describeTableSpace("app");
    }

    private MetadataStorageManager metadata() {
        return follower.server().getMetadataStorageManager();
    }

    /** As the operator changes the record. */
    private void change(UnaryOperator<TableSpace.Builder> change) throws Exception {
        TableSpace before = record();
        assertTrue(metadata().updateTableSpace(change.apply(TableSpace.builder().cloning(before)).build(), before));
    }
}
