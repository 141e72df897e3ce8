package io.herdkeeper.node.tables;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import herddb.core.TableSpaceManager;
import herddb.metadata.MetadataStorageManager;
import herddb.model.TableSpace;
import herddb.utils.Bytes;
import io.herdkeeper.node.testing.Await;
import io.herdkeeper.node.testing.BookKeeperForTests;
import io.herdkeeper.node.testing.Node;
import io.herdkeeper.node.testing.RunningNode;
import java.io.InputStream;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse.BodyHandlers;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** A follower that is held by somebody who does not take its rows: what waits for it, which is nothing but its own log. */
class HeldFollowerTest {

    private static final Duration LIMIT = Duration.ofSeconds(60);
    /** Longer than any wait of these tests: what comes while the follower is held has not waited for the end of that. */
    private static final int HELD_SECONDS = 600;
    /** More than all buffers between a node and whoever reads it. */
    private static final int BULKY_ROWS = 48;
    private static final int BULKY_BYTES = 1 << 19;
    private static final int ROWS = 40;
    private static final String TOKEN = "of-the-secret";
    private static final HttpClient HTTP = HttpClient.newHttpClient();

    private String root;
    private Path token;
    private Path disk;
    private RunningNode leader;
    private RunningNode follower;
    private InputStream untaken;

    @BeforeEach
    void aFollowerIsHeldWithOneRow() throws Exception {
        root = BookKeeperForTests.running().newRoot();
        token = BookKeeperForTests.running().newFolder().resolve("token");
        Files.writeString(token, TOKEN);
        disk = BookKeeperForTests.running().newFolder();
        leader = RunningNode.start("n0", root, token);
        leader.server().waitForTableSpaceBoot("herd", (int) LIMIT.toMillis(), true);
        follower = RunningNode.start(Node.configuration("n1", root, disk), token);
        Node.execute(leader.server(), 0, "CREATE TABLESPACE 'app','leader:n0','replica:n0,n1','expectedreplicacount:1','wait:30000'");
        Node.execute(leader.server(), 0, "CREATE TABLE app.bulky (k int primary key, v string)");
        String value = "x".repeat(BULKY_BYTES);
        for (int i = 0; i < BULKY_ROWS; i++) {
            Node.execute(leader.server(), 0, "INSERT INTO app.bulky(k,v) VALUES(?,?)", i, value);
        }
        Node.execute(leader.server(), 0, "CREATE TABLE app.t (k int primary key)");
        Node.execute(leader.server(), 0, "INSERT INTO app.t(k) VALUES(0)");
        Await.until("the follower has all rows", LIMIT, () -> follower.tablespace("app").at("/rows/t").asInt() == 1);
        URI uri = URI.create("http://127.0.0.1:" + follower.http().port() + "/tablespaces/app/tables?scanSeconds=" + HELD_SECONDS);
        untaken = HTTP.send(HttpRequest.newBuilder(uri).header("Authorization", "Bearer " + TOKEN).POST(BodyPublishers.noBody()).build(),
                BodyHandlers.ofInputStream()).body();
        requireHeld();
    }

    @AfterEach
    void stop() throws Exception {
        untaken.close();
        follower.stop();
        leader.stop();
    }

    @Test
    void clientsOfTheLeaderDoNotWaitForItAndItLeadsWithAllTheirRows() throws Exception {
        Set<Integer> acknowledged = writeWhileItIsHeld();
        lead("n1");
        Await.until("the held node leads", LIMIT, () -> leads(follower));
        assertEquals(acknowledged, rows(follower));
        Node.executeIn("app", follower.server(), 0, "INSERT INTO app.t(k) VALUES(?)", ROWS);
        Await.until("the other one has what it writes", LIMIT, () -> follows(leader) && rows(leader).contains(ROWS));
        assertFalse(StreamedTables.read(untaken).isWhole(), "who asked for the rows is told that they are not whole");
    }

    @Test
    void itStopsWithoutWaitingForItsRowsToBeTakenAndComesBackWithAll() throws Exception {
        Set<Integer> acknowledged = writeWhileItIsHeld();
        CompletableFuture.runAsync(() -> {
            try {
                follower.stop();
            } catch (Exception error) {
                throw new IllegalStateException(error);
            }
        }).get(LIMIT.toSeconds(), TimeUnit.SECONDS);
        follower = RunningNode.start(Node.configuration("n1", root, disk), token);
        Await.until("it has all rows", LIMIT, () -> follows(follower) && rows(follower).equals(acknowledged));
    }

    /** Each INSERT comes back when it is acknowledged. Returns all rows of the table. */
    private Set<Integer> writeWhileItIsHeld() throws Exception {
        for (int i = 1; i < ROWS; i++) {
            Node.execute(leader.server(), 0, "INSERT INTO app.t(k) VALUES(?)", i);
        }
        requireHeld();
        assertEquals(Set.of(0), rows(follower), "none of this has come to the held follower");
        return IntStream.range(0, ROWS).boxed().collect(Collectors.toSet());
    }

    private void requireHeld() throws Exception {
        assertEquals(409, follower.order("/tablespaces/app/tables?timeoutSeconds=1", TOKEN).statusCode(), "it is held");
    }

    private void lead(String node) throws Exception {
        MetadataStorageManager metadata = leader.server().getMetadataStorageManager();
        TableSpace before = metadata.describeTableSpace("app");
        assertTrue(metadata.updateTableSpace(TableSpace.builder().cloning(before).leader(node).build(), before));
    }

    private static boolean leads(RunningNode node) {
        TableSpaceManager manager = node.manager("app");
        return manager != null && manager.isLeader() && !manager.isFailed() && !manager.isClosed();
    }

    private static boolean follows(RunningNode node) throws Exception {
        return node.tablespace("app").path("role").asText().equals("follower") && node.manager("app").getTableManager("t") != null;
    }

    private static Set<Integer> rows(RunningNode node) {
        Set<Integer> rows = new TreeSet<>();
        node.manager("app").getTableManager("t").scanForIndexRebuild(row -> rows.add(Bytes.toInt(row.key.to_array(), 0)));
        return rows;
    }
}
