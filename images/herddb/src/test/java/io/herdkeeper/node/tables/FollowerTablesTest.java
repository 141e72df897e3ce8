package io.herdkeeper.node.tables;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import herddb.core.AbstractIndexManager;
import herddb.model.Table;
import io.herdkeeper.node.digest.RowDigest;
import io.herdkeeper.node.tables.StreamedTables.StreamedTable;
import io.herdkeeper.node.testing.Await;
import io.herdkeeper.node.testing.BookKeeperForTests;
import io.herdkeeper.node.testing.Node;
import io.herdkeeper.node.testing.RunningNode;
import java.io.InputStream;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandlers;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;

/** The tables of a real follower, asked for over HTTP. */
class FollowerTablesTest {

    private static final Duration LIMIT = Duration.ofSeconds(60);
    private static final HttpClient HTTP = HttpClient.newHttpClient();
    private static final String TOKEN = "of-the-secret";

    private static RunningNode leader;
    private static RunningNode follower;

    @BeforeAll
    static void startLeaderAndFollower() throws Exception {
        Path tokenFile = BookKeeperForTests.running().newFolder().resolve("token");
        Files.writeString(tokenFile, TOKEN);
        String root = BookKeeperForTests.running().newRoot();
        leader = RunningNode.start("n0", root, tokenFile);
        leader.server().waitForTableSpaceBoot("herd", (int) LIMIT.toMillis(), true);
        follower = RunningNode.start("n1", root, tokenFile);
        Node.execute(leader.server(), 0, "CREATE TABLESPACE 'app','leader:n0','replica:n0,n1','expectedreplicacount:1','wait:30000'");
        Await.until("both are ready", LIMIT,
                () -> leader.tablespace("app").path("role").asText().equals("leader")
                        && follower.tablespace("app").path("role").asText().equals("follower"));
    }

    @AfterAll
    static void stop() throws Exception {
        follower.stop();
        leader.stop();
    }

    @Test
    void allTablesComeAsTheyAreStoredAfterOneEntryWithIndexesAndNextKeys() throws Exception {
        Node.execute(leader.server(), 0, "CREATE TABLE app.counted (id long primary key auto_increment, n string, m int default 7)");
        Node.execute(leader.server(), 0, "CREATE TABLE app.pair (k int, j int, n string, primary key (k, j))");
        Node.execute(leader.server(), 0, "CREATE UNIQUE INDEX by_n ON app.counted(n)");
        for (int i = 0; i < 20; i++) {
            Node.execute(leader.server(), 0, "INSERT INTO app.counted(n) VALUES(?)", "row" + i);
            Node.execute(leader.server(), 0, "INSERT INTO app.pair(k,j,n) VALUES(?,?,?)", i, -i, "row" + i);
        }
        Node.execute(leader.server(), 0, "ALTER TABLE app.pair ADD COLUMN later string");
        Node.execute(leader.server(), 0, "UPDATE app.pair SET later='set' WHERE k=3");
        Node.execute(leader.server(), 0, "DELETE FROM app.counted WHERE id=20");
        Node.execute(leader.server(), 0, "CREATE TABLE app.blank (k string primary key)");
        caughtUp("blank", 0);

        StreamedTables streamed = StreamedTables.read(tables(follower, "").body());
        assertNull(streamed.failure());
        assertEquals(leader.manager("app").getTableSpaceUUID(), streamed.uuid());
        List<Table> expected = leader.manager("app").getAllCommittedTables().stream()
                .filter(table -> !leader.manager("app").getTableManager(table.name).isSystemTable())
                .sorted(Comparator.comparing(table -> table.name)).toList();
        assertEquals(expected.size(), streamed.tables().size());
        for (int i = 0; i < expected.size(); i++) {
            Table table = expected.get(i);
            StreamedTable found = streamed.tables().get(i);
            assertArrayEquals(table.serialize(), found.definition(), table.name);
            RowDigest stored = new RowDigest();
            leader.manager("app").getTableManager(table.name).scanForIndexRebuild(row ->
                    stored.add(ByteBuffer.wrap(row.key.to_array()), ByteBuffer.wrap(row.value.to_array())));
            String said = stored.rows() + " " + stored.hex();
            assertEquals(said, found.rows().rows() + " " + found.rows().hex(), table.name);
            assertEquals(said, found.counted(), table.name);
        }
        StreamedTable counted = streamed.tables().get(expected.stream().map(table -> table.name).toList().indexOf("counted"));
        assertEquals(21, counted.nextAutoIncrement(), "the deleted top row counts");
        AbstractIndexManager index = leader.manager("app").getIndexesOnTable("counted").get("by_n");
        byte[] told = counted.indexes().get(0);
        assertEquals(1, told[0]);
        assertArrayEquals(index.getIndex().serialize(), Arrays.copyOfRange(told, 1, told.length));
    }

    @Test
    void itIsHeldWhereNoTransactionIsOpenAndGivenUpWhenThereIsNone() throws Exception {
        Node.execute(leader.server(), 0, "CREATE TABLE app.opened (k int primary key)");
        long open = Node.begin(leader.server(), "app");
        Node.execute(leader.server(), open, "INSERT INTO app.opened(k) VALUES(1)");
        Node.execute(leader.server(), 0, "INSERT INTO app.opened(k) VALUES(2)");
        caughtUp("opened", 1);
        HttpResponse<InputStream> late = tables(follower, "?timeoutSeconds=1");
        assertEquals(504, late.statusCode());
        assertTrue(text(late).contains("transactions were open at each position"), "and says why");

        CompletableFuture<HttpResponse<InputStream>> waiting = CompletableFuture.supplyAsync(() -> {
            try {
                return tables(follower, "?timeoutSeconds=30");
            } catch (Exception error) {
                throw new IllegalStateException(error);
            }
        });
        Node.execute(leader.server(), open, "INSERT INTO app.opened(k) VALUES(3)");
        Node.execute(leader.server(), 0, "EXECUTE COMMITTRANSACTION 'app'," + open);
        StreamedTables streamed = StreamedTables.read(waiting.get().body());
        assertTrue(streamed.isWhole());
        assertEquals(3, of("opened", streamed).rows().rows());
    }

    @Test
    void aLeaderIsNeverHeldAndNobodyGetsRowsWithoutTheToken() throws Exception {
        HttpResponse<InputStream> refused = tables(leader, "");
        assertEquals(409, refused.statusCode());
        assertTrue(text(refused).contains("never held"));
        assertEquals(401, follower.ask("POST", "/tablespaces/app/tables").statusCode());
        assertEquals(401, follower.order("/tablespaces/app/tables", TOKEN + "x").statusCode());
        assertEquals(405, follower.ask("GET", "/tablespaces/app/tables").statusCode());
        assertEquals(404, follower.order("/tablespaces/none/tables", TOKEN).statusCode());
    }

    @Test
    void whoDoesNotTakeTheRowsHoldsTheFollowerNoLongerThanHeSaid() throws Exception {
        Node.execute(leader.server(), 0, "CREATE TABLE app.bulky (k int primary key, v string)");
        String value = "x".repeat(1 << 19);
        for (int i = 0; i < 48; i++) {
            Node.execute(leader.server(), 0, "INSERT INTO app.bulky(k,v) VALUES(?,?)", i, value);
        }
        caughtUp("bulky", 48);
        HttpResponse<InputStream> untaken = tables(follower, "?scanSeconds=1");
        assertEquals(200, untaken.statusCode());
        Node.execute(leader.server(), 0, "CREATE TABLE app.behind (k int primary key)");
        Await.until("the follower goes on", LIMIT, () -> follower.tablespace("app").path("rows").has("behind"));
        StreamedTables torn = StreamedTables.read(untaken.body());
        assertFalse(torn.isWhole());
        assertTrue(torn.failure().contains("held for the allowed time, and continues") || torn.failure().contains("the log moved"), torn.failure());
        assertTrue(StreamedTables.read(tables(follower, "").body()).isWhole(), "the next one is not in its way");
    }

    private static void caughtUp(String table, int rows) throws Exception {
        Await.until("the follower has the rows", LIMIT, () -> follower.tablespace("app").at("/rows/" + table).asInt(-1) == rows);
    }

    private static StreamedTable of(String name, StreamedTables streamed) {
        return streamed.tables().stream().filter(table -> Table.deserialize(table.definition()).name.equals(name)).findFirst().orElseThrow();
    }

    private static String text(HttpResponse<InputStream> answer) throws Exception {
        return new String(answer.body().readAllBytes());
    }

    private static HttpResponse<InputStream> tables(RunningNode node, String query) throws Exception {
        URI uri = URI.create("http://127.0.0.1:" + node.http().port() + "/tablespaces/app/tables" + query);
        return HTTP.send(HttpRequest.newBuilder(uri).header("Authorization", "Bearer " + TOKEN).POST(BodyPublishers.noBody()).build(),
                BodyHandlers.ofInputStream());
    }
}
