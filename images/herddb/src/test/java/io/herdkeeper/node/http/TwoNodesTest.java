package io.herdkeeper.node.http;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import herddb.core.TableSpaceManager;
import herddb.log.LogSequenceNumber;
import herddb.server.Server;
import io.herdkeeper.node.NodeServer;
import io.herdkeeper.node.digest.RowDigest;
import io.herdkeeper.node.status.HerdEvents;
import io.herdkeeper.node.status.NodeStatus;
import io.herdkeeper.node.status.NodeStatus.Phase;
import io.herdkeeper.node.testing.Await;
import io.herdkeeper.node.testing.BookKeeperForTests;
import io.herdkeeper.node.testing.Node;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandlers;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import org.apache.bookkeeper.stats.prometheus.PrometheusMetricsProvider;
import org.apache.commons.configuration.PropertiesConfiguration;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;

/** A leader and a follower with their HTTP ports. */
class TwoNodesTest {

    private static final Duration LIMIT = Duration.ofSeconds(30);
    private static final HttpClient HTTP = HttpClient.newHttpClient();
    private static final ObjectMapper JSON = new ObjectMapper();

    private static RunningNode leader;
    private static RunningNode follower;

    private record RunningNode(Server server, NodeStatus status, AdminServer http) {

        static RunningNode start(String id, String root) throws Exception {
            PrometheusMetricsProvider metrics = new PrometheusMetricsProvider();
            PropertiesConfiguration settings = new PropertiesConfiguration();
            settings.setProperty("prometheusStatsHttpEnable", false);
            metrics.start(settings);
            HerdEvents events = new HerdEvents();
            events.listen();
            Server server = NodeServer.create(
                    Node.configuration(id, root, BookKeeperForTests.running().newFolder()), metrics);
            NodeStatus status = new NodeStatus(server, events);
            AdminServer http = new AdminServer("127.0.0.1", 0, status, metrics);
            http.start();
            server.start();
            status.enter(Phase.RUNNING);
            return new RunningNode(server, status, http);
        }

        HttpResponse<String> ask(String method, String path) throws Exception {
            URI uri = URI.create("http://127.0.0.1:" + http.port() + path);
            return HTTP.send(HttpRequest.newBuilder(uri).method(method, BodyPublishers.noBody()).build(),
                    BodyHandlers.ofString());
        }

        JsonNode tablespace(String name) throws Exception {
            for (JsonNode tablespace : JSON.readTree(ask("GET", "/tablespaces").body())) {
                if (tablespace.get("name").asText().equals(name)) {
                    return tablespace;
                }
            }
            return JSON.nullNode();
        }

        TableSpaceManager manager(String tablespace) {
            return server.getManager().getTableSpaceManager(tablespace);
        }

        void stop() throws Exception {
            server.close();
            http.stop();
        }
    }

    @BeforeAll
    static void startLeaderAndFollower() throws Exception {
        String root = BookKeeperForTests.running().newRoot();
        leader = RunningNode.start("n0", root);
        leader.server.waitForTableSpaceBoot("herd", (int) LIMIT.toMillis(), true);
        follower = RunningNode.start("n1", root);
        Node.execute(leader.server, 0, "CREATE TABLESPACE 'app','leader:n0','replica:n0,n1','expectedreplicacount:1','wait:30000'");
        Await.until("both are ready", LIMIT,
                () -> leader.ask("GET", "/readyz").statusCode() == 200
                        && leader.tablespace("app").path("role").asText().equals("leader")
                        && follower.tablespace("app").path("role").asText().equals("follower"));
    }

    @AfterAll
    static void stop() throws Exception {
        follower.stop();
        leader.stop();
    }

    @Test
    void aFollowersDigestIsThatOfTheCommittedRowsAtTheWantedEntry() throws Exception {
        Node.execute(leader.server, 0, "CREATE TABLE app.pair (k int, j int, n string, primary key (k, j))");
        for (int i = 0; i < 50; i++) {
            Node.execute(leader.server, 0, "INSERT INTO app.pair(k,j,n) VALUES(?,?,?)", i, -i, "row" + i);
        }
        // The same rows without a follower, a hold or a log. Taken now: a leader's scan waits for locked rows.
        RowDigest expected = committedRows("pair");
        long open = Node.begin(leader.server, "app");
        Node.execute(leader.server, open, "INSERT INTO app.pair(k,j,n) VALUES(100,100,'open')");
        Node.execute(leader.server, open, "UPDATE app.pair SET n='changed' WHERE k=7");
        Node.execute(leader.server, open, "DELETE FROM app.pair WHERE k=8");
        LogSequenceNumber target = leader.manager("app").getLog().getLastSequenceNumber();
        CompletableFuture<HttpResponse<String>> answer = digest("app", target);
        HttpResponse<String> response = answer.get();
        assertEquals(200, response.statusCode(), response.body());
        JsonNode json = JSON.readTree(response.body());
        assertEquals(1, json.get("openTransactions").asInt());
        assertEquals(50, json.at("/tables/pair/rows").asInt());
        assertEquals(expected.hex(), json.at("/tables/pair/digest").asText());

        Node.execute(leader.server, 0, "EXECUTE COMMITTRANSACTION 'app'," + open);
        LogSequenceNumber committed = leader.manager("app").getLog().getLastSequenceNumber();
        JsonNode after = JSON.readTree(digest("app", committed).get().body());
        assertEquals(committedRows("pair").hex(), after.at("/tables/pair/digest").asText());
        assertNotEquals(expected.hex(), after.at("/tables/pair/digest").asText());

        HttpResponse<String> tooLate = digest("app", target).get();
        assertEquals(409, tooLate.statusCode());
        assertTrue(JSON.readTree(tooLate.body()).at("/position/entryId").asLong() > target.offset, tooLate.body());
    }

    @Test
    void theVerdictOfAConsistencyCheckIsShown() throws Exception {
        Node.execute(leader.server, 0, "CREATE TABLE app.checked (k int primary key, n int)");
        Node.execute(leader.server, 0, "INSERT INTO app.checked(k,n) VALUES(1,1)");
        Node.execute(leader.server, 0, "tableconsistencycheck app.checked");
        Await.until("the follower has checked", LIMIT,
                () -> follower.tablespace("app").at("/checks/checked/pass").asBoolean());
    }

    @Test
    void aLeaderIsNeverHeld() throws Exception {
        HttpResponse<String> refused = leader.ask("POST", "/tablespaces/app/digest?ledger=0&entry=0");
        assertEquals(409, refused.statusCode());
        assertTrue(refused.body().contains("never held"), refused.body());
    }

    @Test
    void anEntryThatDoesNotComeIsGivenUpAndTheFollowerGoesOn() throws Exception {
        LogSequenceNumber last = leader.manager("app").getLog().getLastSequenceNumber();
        HttpResponse<String> late = follower.ask("POST",
                "/tablespaces/app/digest?ledger=" + last.ledgerId + "&entry=" + (last.offset + 100_000) + "&timeoutSeconds=1");
        assertEquals(504, late.statusCode(), late.body());
        Node.execute(leader.server, 0, "CREATE TABLE app.later (k int primary key)");
        Await.until("the follower has the new table", LIMIT, () -> follower.tablespace("app").get("rows").has("later"));
    }

    @Test
    void whatIsAskedWronglyIsRefusedByName() throws Exception {
        HttpResponse<String> noEntry = follower.ask("POST", "/tablespaces/app/digest?ledger=1");
        assertEquals(400, noEntry.statusCode());
        assertTrue(noEntry.body().contains("entry="), noEntry.body());
        assertEquals(404, follower.ask("POST", "/tablespaces/none/digest?ledger=1&entry=1").statusCode());
        assertEquals(405, follower.ask("GET", "/tablespaces/app/digest?ledger=1&entry=1").statusCode());
        assertEquals(404, follower.ask("GET", "/nothing").statusCode());
    }

    @Test
    void probesAndMetricsAnswer() throws Exception {
        assertEquals(200, leader.ask("GET", "/healthz").statusCode());
        assertEquals(200, follower.ask("GET", "/readyz").statusCode());
        assertTrue(leader.ask("GET", "/metrics").body().contains("jvm_threads_current"));
    }

    private static CompletableFuture<HttpResponse<String>> digest(String tablespace, LogSequenceNumber target) {
        URI uri = URI.create("http://127.0.0.1:" + follower.http.port() + "/tablespaces/" + tablespace + "/digest?ledger="
                + target.ledgerId + "&entry=" + target.offset + "&timeoutSeconds=20");
        CompletableFuture<HttpResponse<String>> answer = HTTP.sendAsync(
                HttpRequest.newBuilder(uri).POST(BodyPublishers.noBody()).build(), BodyHandlers.ofString());
        return answer;
    }

    private static RowDigest committedRows(String table) throws Exception {
        RowDigest digest = new RowDigest();
        leader.manager("app").getTableManager(table).scanForIndexRebuild(row ->
                digest.add(ByteBuffer.wrap(row.key.to_array()), ByteBuffer.wrap(row.value.to_array())));
        return digest;
    }
}
