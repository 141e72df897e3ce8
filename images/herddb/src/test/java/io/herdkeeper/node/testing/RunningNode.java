package io.herdkeeper.node.testing;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import herddb.core.TableSpaceManager;
import herddb.server.Server;
import herddb.server.ServerConfiguration;
import io.herdkeeper.node.NodeServer;
import io.herdkeeper.node.check.FullCheck;
import io.herdkeeper.node.evidence.LocalCopies;
import io.herdkeeper.node.http.AdminServer;
import io.herdkeeper.node.http.HttpSettings;
import io.herdkeeper.node.leadership.ActivatorWaker;
import io.herdkeeper.node.release.LogRelease;
import io.herdkeeper.node.status.HerdEvents;
import io.herdkeeper.node.status.NodeStatus;
import io.herdkeeper.node.status.NodeStatus.Phase;
import io.herdkeeper.node.tls.SqlPortTls;
import java.io.BufferedReader;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandlers;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Clock;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicReference;
import org.apache.bookkeeper.stats.prometheus.PrometheusMetricsProvider;
import org.apache.commons.configuration.PropertiesConfiguration;

/** A node with its HTTP port, put together as its program does. */
public record RunningNode(Server server, NodeStatus status, AdminServer http, List<Thread> repeating) {

    private static final HttpClient HTTP = HttpClient.newHttpClient();
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final Duration LIMIT = Duration.ofMinutes(1);
    private static final Duration LONGEST_STOP = Duration.ofSeconds(10);
    private static final Duration LOOK_PERIOD = Duration.ofMillis(500);
    private static final Duration RELEASE_PERIOD = Duration.ofMillis(100);

    /** Starts a node under a root that others may share. */
    public static RunningNode start(String id, String root, Path tokenFile) throws Exception {
        return start(Node.configuration(id, root, BookKeeperForTests.running().newFolder()), tokenFile);
    }

    /** Starts a node on a disk that may have been used before, e.g. {@code Node.configuration(id, root, folder)}. */
    public static RunningNode start(ServerConfiguration configuration, Path tokenFile) throws Exception {
        return start(configuration, tokenFile, null);
    }

    /** The same with an encrypted SQL port, for which the configuration has {@code server.ssl}. */
    public static RunningNode start(ServerConfiguration configuration, Path tokenFile, SqlPortTls tls) throws Exception {
        return start(configuration, tls, new HttpSettings("127.0.0.1", 0, tokenFile, null));
    }

    /** The same with other settings of the HTTP port. With a certificate there, the methods below can't ask the node. */
    public static RunningNode start(ServerConfiguration configuration, SqlPortTls tls, HttpSettings settingsOfHttp) throws Exception {
        PrometheusMetricsProvider metrics = new PrometheusMetricsProvider();
        PropertiesConfiguration settings = new PropertiesConfiguration();
        settings.setProperty("prometheusStatsHttpEnable", false);
        metrics.start(settings);
        HerdEvents events = new HerdEvents();
        events.listen();
        Server server = NodeServer.create(configuration, metrics, tls);
        NodeStatus status = new NodeStatus(server, events);
        ActivatorWaker waker = new ActivatorWaker(server, status);
        LocalCopies copies = new LocalCopies(server, Clock.systemUTC());
        AdminServer http = new AdminServer(settingsOfHttp, status, waker, copies, metrics);
        http.start();
        server.start();
        List<Thread> repeating = new ArrayList<>(status.contacts().start());
        repeating.add(waker.start());
        repeating.add(new LogRelease(server, Clock.systemUTC()).start(RELEASE_PERIOD));
        repeating.add(status.blocked().start(LOOK_PERIOD));
        status.enter(Phase.RUNNING);
        return new RunningNode(server, status, http, repeating);
    }

    /** Asks without a token. */
    public HttpResponse<String> ask(String method, String path) throws Exception {
        return HTTP.send(HttpRequest.newBuilder(uri(path)).method(method, BodyPublishers.noBody()).build(),
                BodyHandlers.ofString());
    }

    /** As the operator asks: a POST with the token. */
    public HttpResponse<String> order(String path, String token) throws Exception {
        return HTTP.send(HttpRequest.newBuilder(uri(path)).header("Authorization", "Bearer " + token)
                .POST(BodyPublishers.noBody()).build(), BodyHandlers.ofString());
    }

    /** What the node says of one tablespace, once it can read its metadata; a null node when it says nothing of it. */
    public JsonNode tablespace(String name) throws Exception {
        AtomicReference<HttpResponse<String>> answer = new AtomicReference<>();
        Await.until("the node tells of its tablespaces", LIMIT, () -> {
            answer.set(ask("GET", "/tablespaces"));
            return answer.get().statusCode() != 503;
        });
        for (JsonNode tablespace : JSON.readTree(answer.get().body())) {
            if (tablespace.get("name").asText().equals(name)) {
                return tablespace;
            }
        }
        return JSON.nullNode();
    }

    /** The first line of a new stream {@code GET /alive}: what the node knows of its own connections. */
    public JsonNode report() throws Exception {
        AtomicReference<HttpResponse<InputStream>> answer = new AtomicReference<>();
        Await.until("one of the streams before has ended", LIMIT, () -> {
            answer.set(HTTP.send(HttpRequest.newBuilder(uri("/alive")).build(), BodyHandlers.ofInputStream()));
            if (answer.get().statusCode() != 200) {
                answer.get().body().close();
            }
            return answer.get().statusCode() == 200;
        });
        try (BufferedReader lines = new BufferedReader(new InputStreamReader(answer.get().body(), StandardCharsets.UTF_8))) {
            return JSON.readTree(lines.readLine().substring("alive ".length()));
        }
    }

    /** Has this node check all tables of a tablespace that it leads, and gives the check once it has ended. */
    public FullCheck checked(String tablespace) throws Exception {
        String uuid = manager(tablespace).getTableSpaceUUID();
        status.fullChecks().start(manager(tablespace), LONGEST_STOP);
        Await.until("the full check has ended", LIMIT, () -> status.fullChecks().last(uuid).endedAtMillis() != null);
        return status.fullChecks().last(uuid);
    }

    public TableSpaceManager manager(String tablespace) {
        return server.getManager().getTableSpaceManager(tablespace);
    }

    public void stop() throws Exception {
        // One would open the session again that the server closes, and all would go on for as long as all tests run.
        for (Thread thread : repeating) {
            Await.until(thread.getName() + " has ended", LIMIT, () -> {
                // HerdDB takes some for failures of ZooKeeper. The next one must meet the pause that follows, not the next look.
                thread.interrupt();
                thread.join(RELEASE_PERIOD.toMillis() / 10);
                return !thread.isAlive();
            });
        }
        server.close();
        http.stop();
    }

    private URI uri(String path) {
        return URI.create("http://127.0.0.1:" + http.port() + path);
    }
}
