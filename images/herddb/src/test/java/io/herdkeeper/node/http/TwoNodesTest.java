package io.herdkeeper.node.http;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import herddb.cluster.BookkeeperCommitLog;
import herddb.file.FileDataStorageManager;
import herddb.log.LogSequenceNumber;
import io.herdkeeper.node.digest.FollowerDigest;
import io.herdkeeper.node.digest.RowDigest;
import io.herdkeeper.node.internals.HerdInternals;
import io.herdkeeper.node.leadership.PlannerWarmer;
import io.herdkeeper.node.log.FollowerGate;
import io.herdkeeper.node.log.NodeCommitLog;
import io.herdkeeper.node.testing.Await;
import io.herdkeeper.node.testing.BookKeeperForTests;
import io.herdkeeper.node.testing.Node;
import io.herdkeeper.node.testing.RunningNode;
import java.io.InputStream;
import java.net.Socket;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandlers;
import java.net.http.HttpTimeoutException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeoutException;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** A leader and a follower with their HTTP ports. */
class TwoNodesTest {

    private static final Duration LIMIT = Duration.ofSeconds(60);
    private static final HttpClient HTTP = HttpClient.newHttpClient();
    private static final ObjectMapper JSON = new ObjectMapper();

    private static final String TOKEN = "of-the-secret";
    private static final int FAR_AHEAD = 200;

    private static Path tokenFile;
    private static RunningNode leader;
    private static RunningNode follower;

    @BeforeAll
    static void startLeaderAndFollower() throws Exception {
        tokenFile = BookKeeperForTests.running().newFolder().resolve("token");
        Files.writeString(tokenFile, TOKEN + "\n");
        String root = BookKeeperForTests.running().newRoot();
        leader = RunningNode.start("n0", root, tokenFile);
        leader.server().waitForTableSpaceBoot("herd", (int) LIMIT.toMillis(), true);
        follower = RunningNode.start("n1", root, tokenFile);
        Node.execute(leader.server(), 0, "CREATE TABLESPACE 'app','leader:n0','replica:n0,n1','expectedreplicacount:1','wait:30000'");
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
    void countsOfLeaderAndFollowerMeetAtOnePositionWhileNothingIsWritten() throws Exception {
        Node.execute(leader.server(), 0, "CREATE TABLE app.counted (k int primary key)");
        for (int i = 0; i < 7; i++) {
            Node.execute(leader.server(), 0, "INSERT INTO app.counted(k) VALUES(?)", i);
        }
        Await.until("they can be compared", LIMIT, () -> {
            JsonNode first = leader.tablespace("app").path("counts");
            JsonNode copy = follower.tablespace("app").path("counts");
            JsonNode second = leader.tablespace("app").path("counts");
            boolean comparable = first.path("exact").asBoolean() && copy.path("exact").asBoolean() && first.equals(second)
                    && !position(first).after(position(copy));
            if (comparable) {
                assertEquals(7, first.path("tables").path("counted").asInt());
                assertEquals(first.path("tables"), copy.path("tables"));
            }
            return comparable;
        });
    }

    @Test
    void countsAreNotExactWhileAStatementRuns() throws Exception {
        long stamp = HerdInternals.statementLock(leader.manager("app")).readLock();
        try {
            assertEquals(false, leader.tablespace("app").path("counts").path("exact").asBoolean(true));
        } finally {
            HerdInternals.statementLock(leader.manager("app")).unlockRead(stamp);
        }
    }

    @Test
    void aDiskThatDoesNotTellOfItsCheckpointsHidesNothingElse() throws Exception {
        Await.until("it follows", LIMIT, () -> follower.tablespace("app").path("role").asText().equals("follower"));
        Path folder = HerdInternals.dataFolder((FileDataStorageManager) follower.server().getManager().getDataStorageManager())
                .resolve(follower.manager("app").getTableSpaceUUID() + ".tablespace");
        Path aside = folder.resolveSibling("aside");
        Files.move(folder, aside);
        Files.createFile(folder);
        try {
            JsonNode told = follower.tablespace("app");
            assertEquals("follower", told.path("role").asText());
            assertTrue(told.path("checkpoint").isNull());
            assertTrue(told.path("recoverable").isNull());
            assertFalse(follower.server().getManager().isTableSpaceLocallyRecoverable(
                    follower.server().getMetadataStorageManager().describeTableSpace("app")), "it does not promote itself meanwhile");
        } finally {
            Files.delete(folder);
            Files.move(aside, folder);
        }
    }

    private static LogSequenceNumber position(JsonNode counts) {
        return new LogSequenceNumber(counts.path("position").path("ledgerId").asLong(), counts.path("position").path("entryId").asLong());
    }

    @Test
    void aFollowersDigestIsThatOfTheCommittedRowsAtTheWantedEntry() throws Exception {
        Node.execute(leader.server(), 0, "CREATE TABLE app.pair (k int, j int, n string, primary key (k, j))");
        Node.execute(leader.server(), 0, "CREATE TABLE app.elsewhere (k int primary key auto_increment, n int)");
        for (int i = 0; i < 50; i++) {
            Node.execute(leader.server(), 0, "INSERT INTO app.pair(k,j,n) VALUES(?,?,?)", i, -i, "row" + i);
        }
        // The same rows without a follower, a hold or a log. Taken now: a leader's scan waits for locked rows.
        RowDigest expected = committedRows("pair");
        LogSequenceNumber target = farAhead();
        CompletableFuture<HttpResponse<String>> answer = digest("app", target);
        long open = Node.begin(leader.server(), "app");
        Node.execute(leader.server(), open, "INSERT INTO app.pair(k,j,n) VALUES(100,100,'open')");
        Node.execute(leader.server(), open, "UPDATE app.pair SET n='changed' WHERE k=7");
        Node.execute(leader.server(), open, "DELETE FROM app.pair WHERE k=8");
        HttpResponse<String> response = onceWritten(answer, "elsewhere");
        assertEquals(200, response.statusCode(), response.body());
        JsonNode json = JSON.readTree(response.body());
        assertEquals(1, json.get("openTransactions").asInt());
        assertEquals(50, json.at("/tables/pair/rows").asInt());
        assertEquals(expected.hex(), json.at("/tables/pair/digest").asText());

        Node.execute(leader.server(), 0, "EXECUTE COMMITTRANSACTION 'app'," + open);
        JsonNode committed = JSON.readTree(onceWritten(digest("app", farAhead()), "elsewhere").body());
        assertEquals(committedRows("pair").hex(), committed.at("/tables/pair/digest").asText());
        assertNotEquals(expected.hex(), committed.at("/tables/pair/digest").asText());

        HttpResponse<String> tooLate = digest("app", target).get();
        assertEquals(409, tooLate.statusCode());
        assertTrue(JSON.readTree(tooLate.body()).at("/position/entryId").asLong() > target.offset, tooLate.body());
    }

    @Test
    void theLeaderChecksAllTablesOnRequestAndTheFollowersVerdictsAreAboutThatCheck() throws Exception {
        Node.execute(leader.server(), 0, "CREATE TABLE app.fully (k int primary key, n int)");
        Node.execute(leader.server(), 0, "INSERT INTO app.fully(k,n) VALUES(1,1)");
        Node.execute(leader.server(), 0, "CREATE TABLE app.blank (k int primary key)");
        Node.execute(leader.server(), 0, "CREATE TABLE app.`empty` (k int primary key)");
        long before = System.currentTimeMillis();
        HttpResponse<String> order = leader.order("/tablespaces/app/check", TOKEN);
        assertEquals(202, order.statusCode(), order.body());
        assertTrue(JSON.readTree(order.body()).get("started").asBoolean(), order.body());
        JsonNode check = endedCheck();
        assertTrue(check.get("error").isNull(), check.toString());
        assertTrue(check.get("startedAtMillis").asLong() >= before, check.toString());
        assertEquals(leader.tablespace("app").get("rows").size(), check.get("tables").size(), check.toString());
        long perTable = 0;
        for (JsonNode millis : check.get("tables")) {
            perTable += millis.asLong();
        }
        assertEquals(perTable, check.get("writesStoppedMillis").asLong(), check.toString());

        LogSequenceNumber after = lsn(check.get("after"));
        LogSequenceNumber until = lsn(check.get("until"));
        Await.until("the follower has seen all of the check", LIMIT, () -> !until.after(lsn(follower.tablespace("app").get("applied"))));
        JsonNode verdicts = follower.tablespace("app").get("checks");
        LogSequenceNumber last = after;
        for (Iterator<String> tables = check.get("tables").fieldNames(); tables.hasNext();) {
            JsonNode verdict = verdicts.get(tables.next());
            assertTrue(verdict.get("pass").asBoolean(), verdict.toString());
            LogSequenceNumber position = lsn(verdict.get("position"));
            assertTrue(position.after(last) && !position.after(until), verdict + " of " + check);
            last = position;
        }
        assertEquals(until, last, "the last table's entry is the check's last one");
        assertTrue(follower.tablespace("app").get("fullCheck").isNull(), "a follower runs none");
        assertEquals(409, follower.order("/tablespaces/app/check", TOKEN).statusCode());
    }

    @Test
    void aFullCheckWaitsForAStatementThatWaitsForARowAndLetsTheTransactionGoOn() throws Exception {
        Node.execute(leader.server(), 0, "CREATE TABLE app.contended (k int primary key, n int)");
        Node.execute(leader.server(), 0, "INSERT INTO app.contended(k,n) VALUES(1,1)");
        long holder = Node.begin(leader.server(), "app");
        Node.execute(leader.server(), holder, "UPDATE app.contended SET n=2 WHERE k=1");
        CompletableFuture<Void> waiting = CompletableFuture.runAsync(
                () -> Node.execute(leader.server(), 0, "UPDATE app.contended SET n=n+1 WHERE k=1"));
        Await.until("a statement waits for the row", LIMIT,
                () -> HerdInternals.statementLock(leader.manager("app")).isReadLocked() && !waiting.isDone());

        HttpResponse<String> first = leader.order("/tablespaces/app/check?maxStopMillis=200", TOKEN);
        assertEquals(202, first.statusCode(), first.body());
        HttpResponse<String> second = leader.order("/tablespaces/app/check", TOKEN);
        assertEquals(200, second.statusCode(), second.body());
        assertEquals(
                JSON.readTree(first.body()).at("/fullCheck/startedAtMillis"),
                JSON.readTree(second.body()).at("/fullCheck/startedAtMillis"));
        Await.until("it has tried", LIMIT, () -> leader.tablespace("app").at("/fullCheck/writesStoppedMillis").asLong() > 0);

        Node.execute(leader.server(), 0, "EXECUTE COMMITTRANSACTION 'app'," + holder);
        waiting.get();
        JsonNode check = endedCheck();
        assertTrue(check.get("error").isNull(), check.toString());
        assertTrue(check.get("tables").has("contended"), check.toString());
    }

    @Test
    void aCheckStopsWritesForATimeThatMakesSense() throws Exception {
        assertEquals(400, leader.order("/tablespaces/app/check?maxStopMillis=0", TOKEN).statusCode());
        assertEquals(400, leader.order("/tablespaces/app/check?maxStopMillis=600000", TOKEN).statusCode());
    }

    @Test
    void aLeaderIsNeverHeld() throws Exception {
        HttpResponse<String> refused = leader.order("/tablespaces/app/digest?ledger=0&entry=0", TOKEN);
        assertEquals(409, refused.statusCode());
        assertTrue(refused.body().contains("never held"), refused.body());
    }

    @Test
    void nobodyHoldsAFollowerOrGetsItsDigestsWithoutTheToken() throws Exception {
        LogSequenceNumber last = leader.manager("app").getLog().getLastSequenceNumber();
        String order = "/tablespaces/app/digest?ledger=" + last.ledgerId + "&entry=" + (last.offset + 100_000);
        assertEquals(401, follower.ask("POST", order).statusCode());
        assertEquals(401, follower.order(order, "a guess").statusCode());
    }

    @Test
    void whoeverListensToSignsOfLifeTakesNoThreadOfTheOthers() throws Exception {
        List<HttpResponse<InputStream>> streams = new ArrayList<>();
        URI uri = URI.create("http://127.0.0.1:" + follower.http().port() + "/alive");
        try {
            for (int listener = 0; listener < 16; listener++) {
                streams.add(HTTP.send(HttpRequest.newBuilder(uri).build(), BodyHandlers.ofInputStream()));
            }
            assertTrue(streams.stream().allMatch(stream -> stream.statusCode() == 200));
            assertEquals(503, HTTP.send(HttpRequest.newBuilder(uri).build(), BodyHandlers.ofString()).statusCode());
            assertEquals(200, follower.ask("GET", "/healthz").statusCode());
        } finally {
            for (HttpResponse<InputStream> stream : streams) {
                stream.body().close();
            }
        }
        Await.until("somebody else is listened to", LIMIT, () -> {
            HttpResponse<InputStream> another = HTTP.send(HttpRequest.newBuilder(uri).build(), BodyHandlers.ofInputStream());
            another.body().close();
            return another.statusCode() == 200;
        });
    }

    @Test
    void whoeverNeverEndsItsRequestTakesNoThreadOfTheOthers() throws Exception {
        List<Socket> unended = new ArrayList<>();
        HttpRequest probe = HttpRequest.newBuilder(URI.create("http://127.0.0.1:" + follower.http().port() + "/healthz"))
                .timeout(Duration.ofSeconds(1)).build();
        try {
            for (int client = 0; client < 200; client++) {
                Socket socket = new Socket("127.0.0.1", follower.http().port());
                unended.add(socket);
                socket.getOutputStream().write("GET /healthz HTTP/1.1\r\nHost: ".getBytes(StandardCharsets.US_ASCII));
            }
            Await.until("a probe is answered", LIMIT, () -> {
                try {
                    return HTTP.send(probe, BodyHandlers.discarding()).statusCode() == 200;
                } catch (HttpTimeoutException waits) {
                    return false;
                }
            });
        } finally {
            for (Socket socket : unended) {
                socket.close();
            }
        }
    }

    @Test
    void anEntryThatDoesNotComeIsGivenUpAndTheFollowerGoesOn() throws Exception {
        LogSequenceNumber last = leader.manager("app").getLog().getLastSequenceNumber();
        HttpResponse<String> late = follower.order(
                "/tablespaces/app/digest?ledger=" + last.ledgerId + "&entry=" + (last.offset + 100_000) + "&timeoutSeconds=1", TOKEN);
        assertEquals(504, late.statusCode(), late.body());
        Node.execute(leader.server(), 0, "CREATE TABLE app.later (k int primary key)");
        Await.until("the follower has the new table", LIMIT, () -> follower.tablespace("app").path("rows").has("later"));
    }

    @Test
    void aScanHasItsOwnTimeAndTheFollowerGoesOnWhenThatIsOver() throws Exception {
        Node.execute(leader.server(), 0, "CREATE TABLE app.scanned (k int primary key auto_increment, n int)");
        Node.execute(leader.server(), 0, "INSERT INTO app.scanned(n) VALUES(1)");
        NodeCommitLog log = (NodeCommitLog) follower.manager("app").getLog();
        FollowerDigest digest = new FollowerDigest(follower.manager("app"), log);
        CompletableFuture<FollowerDigest.Result> late = digest(digest, farAhead(), Duration.ZERO);
        Throwable reason = assertThrows(ExecutionException.class, () -> onceWritten(late, "scanned")).getCause();
        assertInstanceOf(TimeoutException.class, reason);
        assertTrue(reason.getMessage().contains("scan of"), reason.getMessage());
        LogSequenceNumber next = farAhead();
        assertEquals(next, onceWritten(digest(digest, next, LIMIT), "scanned").position());
    }

    @Test
    void whatIsAskedWronglyIsRefusedByName() throws Exception {
        HttpResponse<String> noEntry = follower.order("/tablespaces/app/digest?ledger=1", TOKEN);
        assertEquals(400, noEntry.statusCode());
        assertTrue(noEntry.body().contains("entry="), noEntry.body());
        assertEquals(404, follower.order("/tablespaces/none/digest?ledger=1&entry=1", TOKEN).statusCode());
        assertEquals(405, follower.ask("GET", "/tablespaces/app/digest?ledger=1&entry=1").statusCode());
        assertEquals(404, follower.ask("GET", "/nothing").statusCode());
    }

    @Test
    void aTablespaceThatNeedsMoreBookiesThanThereAreHoldsUpNoOtherOne() throws Exception {
        Node.execute(leader.server(), 0, "CREATE TABLESPACE 'large','leader:n0','replica:n0','expectedreplicacount:50','wait:0'");
        try {
            Await.until("it can't boot", LIMIT,
                    () -> leader.tablespace("large").path("lastError").asText().contains("BKNotEnoughBookiesException"));
            Node.execute(leader.server(), 0, "CREATE TABLESPACE 'small','leader:n0','replica:n0','expectedreplicacount:1','wait:30000'");
            Node.execute(leader.server(), 0, "DROP TABLESPACE 'small'");
        } finally {
            Node.execute(leader.server(), 0, "DROP TABLESPACE 'large'");
            Await.until("it is gone", LIMIT, () -> leader.ask("GET", "/readyz").statusCode() == 200);
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"n0", "n1", "N1"})
    void noTablespaceGetsTheNameOfANode(String name) throws Exception {
        Exception refusal = assertThrows(Exception.class, () -> Node.execute(leader.server(), 0,
                "CREATE TABLESPACE '" + name + "','leader:n1','replica:n0,n1','expectedreplicacount:1','wait:5000'"));
        assertTrue(refusal.getMessage().contains("a SQL node has this name"), refusal.getMessage());
        for (RunningNode node : List.of(leader, follower)) {
            Await.until("the node is ready", LIMIT, () -> node.ask("GET", "/readyz").statusCode() == 200);
        }
    }

    @Test
    void anOrderReachesATablespaceWhateverLettersItsNameHas() throws Exception {
        Node.execute(leader.server(), 0, "CREATE TABLESPACE 'Parcels','leader:n0','replica:n0,n1','expectedreplicacount:1','wait:30000'");
        try {
            Await.until("it is followed", LIMIT, () -> follower.tablespace("Parcels").path("role").asText().equals("follower"));
            for (String name : List.of("Parcels", "parcels")) { // ZooKeeper has it in small ones
                assertEquals(200, leader.order("/tablespaces/" + name + "/close-ledger", TOKEN).statusCode());
                assertEquals(200, follower.order("/tablespaces/" + name + "/checkpoint", TOKEN).statusCode());
            }
        } finally {
            Node.execute(leader.server(), 0, "DROP TABLESPACE 'Parcels'");
            Await.until("it has stopped", LIMIT, () -> leader.manager("Parcels") == null && follower.manager("Parcels") == null);
        }
    }

    @Test
    void aTablespaceThatASqlUserGaveANameWithCapitalLettersKeepsNoNodeFromBeingReady() throws Exception {
        Node.execute(leader.server(), 0, "CREATE TABLESPACE 'Orders','leader:n0','replica:n0,n1','expectedreplicacount:1','wait:30000'");
        try {
            Await.until("it is led and followed", LIMIT, () -> leader.tablespace("Orders").path("role").asText().equals("leader")
                    && follower.tablespace("Orders").path("role").asText().equals("follower"));
            for (RunningNode node : List.of(leader, follower)) {
                Await.until("the node is ready", LIMIT, () -> node.ask("GET", "/readyz").statusCode() == 200);
            }
        } finally {
            Node.execute(leader.server(), 0, "DROP TABLESPACE 'Orders'");
            Await.until("it has stopped", LIMIT, () -> leader.manager("Orders") == null && follower.manager("Orders") == null);
        }
    }

    @Test
    void probesAndMetricsAnswer() throws Exception {
        assertEquals(200, leader.ask("GET", "/healthz").statusCode());
        assertEquals(200, follower.ask("GET", "/readyz").statusCode());
        assertTrue(leader.ask("GET", "/metrics").body().contains("jvm_threads_current"));
    }

    @Test
    void metricsTellWhoLeadsAndHowFarEachNodeHasApplied() throws Exception {
        Node.execute(leader.server(), 0, "CREATE TABLE app.measured (k int primary key)");
        LogSequenceNumber written = leader.manager("app").getLog().getLastSequenceNumber();
        assertEquals(1, metric("herdkeeper_node_leads", leader.ask("GET", "/metrics").body()));
        // an idle leader writes on, so the follower's position is that of the row or a later one
        Await.until("the follower has applied it", LIMIT, () -> !written.after(position(follower.ask("GET", "/metrics").body())));
        String page = follower.ask("GET", "/metrics").body();
        // the leader's own position leaves out what an idle leader writes
        BookkeeperCommitLog.CommitFileWriter writer = ((BookkeeperCommitLog) leader.manager("app").getLog()).getWriter();
        assertFalse(position(page).after(new LogSequenceNumber(writer.getLedgerId(), writer.getOut().getLastAddConfirmed())), page);
        assertEquals(0, metric("herdkeeper_node_leads", page));
        assertTrue(page.contains("# TYPE herdkeeper_node_volume_free_bytes gauge\n"), page);
    }

    /** How far a page of metrics tells that its node has applied the log. */
    private static LogSequenceNumber position(String page) {
        return new LogSequenceNumber(metric("herdkeeper_node_log_ledger", page), metric("herdkeeper_node_log_entry", page));
    }

    private static long metric(String name, String page) {
        String line = name + "{tablespace=\"app\"} ";
        String value = page.lines().filter(each -> each.startsWith(line)).findFirst().orElseThrow(() -> new AssertionError(name + " is not in " + page));
        return Long.parseLong(value.substring(line.length()));
    }

    @Test
    void theLeaderClosesItsLedgerOnRequestOnceAndLosesNothing() throws Exception {
        Node.execute(leader.server(), 0, "CREATE TABLE app.rolled (k int primary key)");
        long transaction = Node.begin(leader.server(), "app");
        Node.execute(leader.server(), transaction, "INSERT INTO app.rolled(k) VALUES(1)");
        long open = leader.manager("app").getLog().getLastSequenceNumber().ledgerId;
        HttpResponse<String> closed = leader.order("/tablespaces/app/close-ledger?ledger=" + open, TOKEN);
        assertEquals(200, closed.statusCode(), closed.body());
        JsonNode json = JSON.readTree(closed.body());
        assertEquals(open, json.get("closed").asLong());
        assertTrue(json.get("open").asLong() > open, closed.body());
        Node.execute(leader.server(), transaction, "INSERT INTO app.rolled(k) VALUES(2)");
        Node.execute(leader.server(), 0, "EXECUTE COMMITTRANSACTION 'app'," + transaction);

        HttpResponse<String> again = leader.order("/tablespaces/app/close-ledger?ledger=" + open, TOKEN);
        assertEquals(200, again.statusCode(), again.body());
        assertTrue(JSON.readTree(again.body()).get("closed").isNull(), again.body());
        assertEquals(json.get("open"), JSON.readTree(again.body()).get("open"));
        Await.until("the follower has both rows", LIMIT,
                () -> follower.tablespace("app").at("/rows/rolled").asInt() == 2);
    }

    @Test
    void onlyTheLeaderClosesALedgerAndOnlyAFollowerCheckpointsOnRequest() throws Exception {
        assertEquals(409, follower.order("/tablespaces/app/close-ledger", TOKEN).statusCode());
        assertEquals(409, leader.order("/tablespaces/app/checkpoint", TOKEN).statusCode());
        HttpResponse<String> done = follower.order("/tablespaces/app/checkpoint", TOKEN);
        assertEquals(200, done.statusCode(), done.body());
        assertEquals(JSON.readTree(done.body()).get("checkpoint"), follower.tablespace("app").get("checkpoint"));
        assertTrue(follower.tablespace("app").get("recoverable").asBoolean());
    }

    @Test
    void whoDoesNotShowTheTokenChangesNothing() throws Exception {
        for (String path : List.of("/tablespaces/app/close-ledger", "/tablespaces/app/checkpoint", "/tablespaces/app/check",
                "/activator/wake")) {
            assertEquals(401, leader.ask("POST", path).statusCode(), path);
            assertEquals(401, leader.order(path, TOKEN + "x").statusCode(), path);
        }
        assertEquals(202, leader.order("/activator/wake", TOKEN).statusCode());
        assertEquals(200, leader.ask("GET", "/tablespaces").statusCode());
    }

    @Test
    void aFollowersPlannerIsWarmedOnceForEachTableAndNothingIsWritten() throws Exception {
        Node.execute(leader.server(), 0, "CREATE TABLE app.warm (k int, j int, n string, primary key (k, j))");
        Await.until("the follower has the table", LIMIT, () -> follower.tablespace("app").path("rows").has("warm"));
        PlannerWarmer warmer = new PlannerWarmer(follower.server());
        int tables = follower.tablespace("app").get("rows").size();
        assertEquals(4 * tables, warmer.warm());
        assertEquals(0, warmer.warm());
        assertEquals(0, new PlannerWarmer(leader.server()).warm(), "a leader's planner is warm by its own work");
        assertEquals(0, follower.tablespace("app").at("/rows/warm").asInt());
    }

    @Test
    void aStreamTellsEachSecondThatTheProcessLives() throws Exception {
        URI uri = URI.create("http://127.0.0.1:" + leader.http().port() + "/alive");
        try (Stream<String> lines = HTTP.send(HttpRequest.newBuilder(uri).build(), BodyHandlers.ofLines()).body()) {
            for (String line : lines.limit(2).toList()) {
                assertTrue(line.startsWith("alive "), line);
                JsonNode report = JSON.readTree(line.substring("alive ".length()));
                assertTrue(report.at("/zooKeeper/answers").asBoolean(), line);
                assertTrue(report.has("unacknowledgedSeconds") && report.path("failed").isArray(), line);
            }
        }
    }

    private static JsonNode endedCheck() throws Exception {
        Await.until("the full check has ended", LIMIT, () -> leader.tablespace("app").at("/fullCheck/endedAtMillis").isNumber());
        return leader.tablespace("app").get("fullCheck");
    }

    private static LogSequenceNumber lsn(JsonNode position) {
        return new LogSequenceNumber(position.get("ledgerId").asLong(), position.get("entryId").asLong());
    }

    /** An entry that an idle leader, which writes entries of its own, does not come to before it is asked for. */
    private static LogSequenceNumber farAhead() {
        LogSequenceNumber last = leader.manager("app").getLog().getLastSequenceNumber();
        return new LogSequenceNumber(last.ledgerId, last.offset + FAR_AHEAD);
    }

    /** The answer to who asks for such an entry: it is written once the follower knows of it, for it might pass it else. */
    private static <T> T onceWritten(CompletableFuture<T> asked, String table) throws Exception {
        Await.until("somebody waits for the follower", LIMIT, () -> asked.isDone() || Thread.getAllStackTraces().values().stream()
                .flatMap(Stream::of)
                .anyMatch(frame -> frame.getClassName().equals(FollowerGate.class.getName()) && frame.getMethodName().equals("waitFor")));
        while (!asked.isDone()) {
            Node.execute(leader.server(), 0, "INSERT INTO app." + table + "(n) VALUES(1)");
        }
        return asked.get();
    }

    private static CompletableFuture<FollowerDigest.Result> digest(FollowerDigest digest, LogSequenceNumber target, Duration scan) {
        CompletableFuture<FollowerDigest.Result> result = new CompletableFuture<>();
        new Thread(() -> {
            try {
                result.complete(digest.at(target, LIMIT, scan));
            } catch (Exception error) {
                result.completeExceptionally(error);
            }
        }).start();
        return result;
    }

    private static CompletableFuture<HttpResponse<String>> digest(String tablespace, LogSequenceNumber target) {
        URI uri = URI.create("http://127.0.0.1:" + follower.http().port() + "/tablespaces/" + tablespace + "/digest?ledger="
                + target.ledgerId + "&entry=" + target.offset + "&timeoutSeconds=60");
        CompletableFuture<HttpResponse<String>> answer = HTTP.sendAsync(
                HttpRequest.newBuilder(uri).header("Authorization", "Bearer " + TOKEN).POST(BodyPublishers.noBody()).build(),
                BodyHandlers.ofString());
        return answer;
    }

    private static RowDigest committedRows(String table) throws Exception {
        RowDigest digest = new RowDigest();
        leader.manager("app").getTableManager(table).scanForIndexRebuild(row ->
                digest.add(ByteBuffer.wrap(row.key.to_array()), ByteBuffer.wrap(row.value.to_array())));
        return digest;
    }
}
