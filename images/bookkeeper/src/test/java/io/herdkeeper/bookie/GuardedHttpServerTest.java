package io.herdkeeper.bookie;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.reflect.Field;
import java.net.ServerSocket;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandlers;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HexFormat;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicBoolean;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;
import org.apache.bookkeeper.http.HttpRouter;
import org.apache.bookkeeper.http.HttpServer.ApiType;
import org.apache.bookkeeper.http.HttpServer.StatusCode;
import org.apache.bookkeeper.http.HttpServiceProvider;
import org.apache.bookkeeper.http.service.HttpEndpointService;
import org.apache.bookkeeper.http.service.HttpServiceResponse;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** The real HTTP server, asked over the network; what stands behind its endpoints only notes that it was reached. */
class GuardedHttpServerTest {

    private static final HttpClient HTTP = HttpClient.newHttpClient();
    private static final List<ApiType> REACHED = new CopyOnWriteArrayList<>();
    private static GuardedHttpServer server;
    private static Path token;
    private static int port;

    @BeforeAll
    static void start(@TempDir Path folder) throws Exception {
        token = folder.resolve("token");
        Files.writeString(token, "a-token");
        System.setProperty("herdkeeper.token", token.toString());
        server = new GuardedHttpServer();
        try (ServerSocket free = new ServerSocket(0)) {
            port = free.getLocalPort();
        }
        server.initialize(new Noting());
        assertTrue(server.startServer(port, "127.0.0.1"));
    }

    @AfterAll
    static void stop() {
        server.stopServer();
    }

    @BeforeEach
    void forget() {
        REACHED.clear();
    }

    @ParameterizedTest
    @CsvSource({
        "DELETE, /api/v1/ledger/delete?ledger_id=7",
        "GET, /api/v1/ledger/read?ledger_id=7",
        "GET, /api/v1/ledger/list",
        "GET, /api/v1/config/server_config",
        "PUT, /api/v1/config/server_config",
        "PUT, /api/v1/bookie/expand_storage",
        "PUT, /api/v1/bookie/gc/suspend_compaction",
        "PUT, /api/v1/autorecovery/bookie",
        "PUT, /api/v1/autorecovery/trigger_audit",
        "PUT, /api/v1/autorecovery/lost_bookie_recovery_delay",
        "PUT, /api/v1/autorecovery/decommission",
        "GET, /api/v1/bookie/list_bookies",
        "GET, /api/v1/bookie/sanity",
    })
    void nobodyDeletesLedgersReadsEntriesOrChangesABookieOverTheAdminPort(String method, String path) throws Exception {
        long told = refused("closed");
        HttpResponse<String> answer = ask(method, path);
        assertEquals(403, answer.statusCode(), answer.body());
        assertEquals(told + 1, refused("closed"), "who tries does it unnoticed");
        REACHED.remove(ApiType.METRICS);
        REACHED.remove(ApiType.METRICS);
        assertEquals(List.of(), REACHED);
    }

    @ParameterizedTest
    @CsvSource({
        "GET, /heartbeat, HEARTBEAT",
        "GET, /metrics, METRICS",
        "GET, /api/v1/bookie/is_ready, BOOKIE_IS_READY",
        "GET, /api/v1/bookie/state/readonly, BOOKIE_STATE_READONLY",
        "GET, /api/v1/bookie/state, BOOKIE_STATE",
        "GET, /api/v1/bookie/gc, GC",
    })
    void whatProbesScrapersAndTheOperatorReadIsThere(String method, String path, ApiType type) throws Exception {
        assertEquals(200, ask(method, path).statusCode());
        assertEquals(List.of(type), REACHED);
    }

    @ParameterizedTest
    @CsvSource({"PUT, /api/v1/bookie/state/readonly", "POST, /api/v1/bookie/state/readonly", "PUT, /api/v1/bookie/gc", "DELETE, /metrics"})
    void whateverIsNotAGetIsRefusedWithoutAProofOfTheToken(String method, String path) throws Exception {
        for (String shown : List.of("none", "Bearer a-token", "HMAC-SHA256 ", "HMAC-SHA256 " + "0".repeat(64))) {
            long told = refused("token");
            HttpResponse<String> answer = ask(method, path, "Authorization", shown);
            assertEquals(401, answer.statusCode(), answer.body());
            assertEquals(told + 1, refused("token"), "who tries does it unnoticed");
        }
        assertFalse(REACHED.contains(ApiType.GC) || REACHED.contains(ApiType.BOOKIE_STATE_READONLY), REACHED.toString());
    }

    @Test
    void aProofIsGoodForOneOrderAndByTheTokenThatTheFileHasNow() throws Exception {
        String path = "/api/v1/bookie/gc";
        String proof = proof("a-token", "PUT", path);
        assertEquals(401, ask("PUT", "/api/v1/bookie/state/readonly", "Authorization", proof).statusCode());
        assertEquals(200, ask("PUT", path, "Authorization", proof).statusCode());
        assertEquals(401, ask("PUT", path, "Authorization", proof).statusCode());
        try {
            Files.writeString(token, "another-token\n");
            assertEquals(401, ask("PUT", path, "Authorization", proof("a-token", "PUT", path)).statusCode());
            assertEquals(200, ask("PUT", path, "Authorization", proof("another-token", "PUT", path)).statusCode());
            Files.writeString(token, "\n");
            assertTrue(ask("PUT", path, "Authorization", proof("x", "PUT", path)).body().contains("has no token"));
        } finally {
            Files.writeString(token, "a-token");
        }
    }

    @Test
    void aBodyThatIsTooLargeForAnOrderIsNotKept() throws Exception {
        HttpRequest.Builder question = HttpRequest.newBuilder(URI.create("http://127.0.0.1:" + port + "/api/v1/bookie/gc"));
        HttpRequest order = question.method("PUT", BodyPublishers.ofByteArray(new byte[1 << 20])).build();
        assertEquals(413, HTTP.send(order, BodyHandlers.ofString()).statusCode());
        assertEquals(List.of(), REACHED);
    }

    @Test
    void anEndpointThatIsNotOnTheListIsClosed() throws Exception {
        Set<String> open = Set.of("HEARTBEAT", "METRICS", "BOOKIE_IS_READY", "BOOKIE_STATE", "BOOKIE_STATE_READONLY", "GC");
        for (Field endpoint : HttpRouter.class.getFields()) {
            int expected = open.contains(endpoint.getName()) ? 200 : 403;
            assertEquals(expected, ask("GET", (String) endpoint.get(null)).statusCode(), endpoint.getName());
        }
    }

    @ParameterizedTest
    @CsvSource({"true, true, true", "true, false, false", "false, false, true"})
    void besideABookieThatDidNotStartItEndsTheProcess(String ofABookie, boolean running, boolean starts) throws Exception {
        System.setProperty("herdkeeper.bookie", ofABookie);
        AtomicBoolean ended = new AtomicBoolean();
        GuardedHttpServer server = new GuardedHttpServer(() -> ended.set(true));
        try (ServerSocket free = new ServerSocket(0)) {
            server.initialize(new Telling("{\"running\" : " + running + "}"));
            int taken = free.getLocalPort();
            free.close();
            assertEquals(starts, server.startServer(taken, "127.0.0.1"));
            assertEquals(!starts, ended.get());
        } finally {
            System.clearProperty("herdkeeper.bookie");
            server.stopServer();
        }
    }

    /** What the metric says. */
    private static long refused(String reason) throws Exception {
        String start = "herdkeeper_refused_total{reason=\"" + reason + "\"} ";
        return Long.parseLong(ask("GET", "/metrics").body().lines().filter(line -> line.startsWith(start)).findFirst().orElseThrow()
                .substring(start.length()));
    }

    private static HttpResponse<String> ask(String method, String path, String... headers) throws Exception {
        HttpRequest.Builder question = HttpRequest.newBuilder(URI.create("http://127.0.0.1:" + port + path));
        if (headers.length > 0) {
            question.headers(headers);
        }
        return HTTP.send(question.method(method, BodyPublishers.noBody()).build(), BodyHandlers.ofString());
    }

    private static String proof(String key, String method, String path) throws Exception {
        String challenge = ask("GET", path).headers().firstValue("Herdkeeper-Challenge").orElseThrow();
        Mac hmac = Mac.getInstance("HmacSHA256");
        hmac.init(new SecretKeySpec(key.getBytes(UTF_8), "HmacSHA256"));
        return "HMAC-SHA256 " + HexFormat.of().formatHex(hmac.doFinal((challenge + "\n" + method + " " + path + "\n").getBytes(UTF_8)));
    }

    private record Telling(String body) implements HttpServiceProvider {

        @Override
        public HttpEndpointService provideHttpEndpointService(ApiType type) {
            return request -> new HttpServiceResponse(body, StatusCode.OK);
        }

        @Override
        public void close() {
            // it holds nothing
        }
    }

    private static final class Noting implements HttpServiceProvider {

        @Override
        public HttpEndpointService provideHttpEndpointService(ApiType type) {
            return request -> {
                REACHED.add(type);
                return new HttpServiceResponse("reached\n", StatusCode.OK);
            };
        }

        @Override
        public void close() {
            // it holds nothing
        }
    }
}
