package io.herdkeeper.node.http;

import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import io.herdkeeper.node.evidence.LocalCopies;
import io.herdkeeper.node.http.Request.BadRequestException;
import io.herdkeeper.node.leadership.ActivatorWaker;
import io.herdkeeper.node.refusals.Refusals;
import io.herdkeeper.node.refusals.Refusals.Reason;
import io.herdkeeper.node.status.NodeStatus;
import io.herdkeeper.node.tls.RenewedCertificate;
import io.herdkeeper.node.tls.TlsFront;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.SocketAddress;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.logging.Level;
import java.util.logging.Logger;
import java.util.stream.Stream;
import org.apache.bookkeeper.stats.prometheus.PrometheusMetricsProvider;

/** The node's HTTP port: finds the endpoint of a request and sends what it answers. */
public final class AdminServer {

    private static final Logger LOGGER = Logger.getLogger(AdminServer.class.getName());

    private static final int MOST_THREADS = 128;

    static {
        // The server reads a request in one of these threads, by default without a limit: a few clients that never end theirs would hold all.
        // Its clock may be 10 s late, so less would end requests that have just begun.
        System.setProperty("sun.net.httpserver.maxReqTime", "15");
    }

    private final HttpServer server;
    /** What clients connect to instead of the server, which then listens on the loopback alone; null in plain text. */
    private final TlsFront front;
    private final List<Endpoint> endpoints;
    private final BearerToken token;

    /**
     * Binds the port; {@link #start()} serves it.
     */
    public AdminServer(HttpSettings settings, NodeStatus node, ActivatorWaker waker, LocalCopies copies,
            PrometheusMetricsProvider metrics) throws IOException {
        InetSocketAddress port = settings.host().isEmpty()
                ? new InetSocketAddress(settings.port())
                : new InetSocketAddress(InetAddress.getByName(settings.host()), settings.port());
        RenewedCertificate certificate = settings.certificate();
        token = new BearerToken(settings.tokenFile());
        endpoints = Stream.of(
                new NodeEndpoints(node, waker, copies, metrics, new TimeLimited()).all(),
                new CopyOrders(node, copies).all(),
                new DiskOrders(copies).all()).flatMap(List::stream).toList();
        server = HttpServer.create(certificate == null ? port : new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0);
        server.setExecutor(boundedThreads());
        server.createContext("/", this::handle);
        server.createContext("/alive", new AliveStream(node));
        front = certificate == null ? null : new TlsFront(certificate, port, server.getAddress());
    }

    /**
     * Many more threads than requests that wait at a time, so no probe waits for a thread: streams have their own limit, and requests that
     * wait for an entry need the token. But not one for each connection that a client opens.
     */
    private static ExecutorService boundedThreads() {
        ThreadPoolExecutor threads = new ThreadPoolExecutor(MOST_THREADS, MOST_THREADS, 10, TimeUnit.SECONDS, new LinkedBlockingQueue<>(),
                task -> {
                    Thread thread = new Thread(task, "http");
                    thread.setDaemon(true);
                    return thread;
                });
        threads.allowCoreThreadTimeOut(true);
        return threads;
    }

    public void start() {
        server.start();
    }

    /** The bound port. */
    public int port() {
        return front == null ? server.getAddress().getPort() : front.port();
    }

    /** Stops at once. */
    public void stop() {
        if (front != null) {
            front.close();
        }
        server.stop(0);
    }

    private void handle(HttpExchange exchange) throws IOException {
        try (exchange) {
            answer(exchange).send(exchange);
        }
    }

    private SocketAddress peer(HttpExchange exchange) {
        return front == null ? exchange.getRemoteAddress() : front.client(exchange.getRemoteAddress());
    }

    private Answer answer(HttpExchange exchange) {
        try {
            Request request = Request.of(exchange.getRequestMethod(), exchange.getRequestURI());
            List<Endpoint> there = endpoints.stream().filter(endpoint -> endpoint.matches(request.segments())).toList();
            if (there.isEmpty()) {
                return Answer.error(404, "there is no endpoint at " + exchange.getRequestURI().getPath());
            }
            for (Endpoint endpoint : there) {
                if (endpoint.method().equals(request.method())) {
                    String refusal = endpoint.needsToken()
                            ? token.refusal(exchange.getRequestHeaders().getFirst("Authorization")) : null;
                    if (refusal != null) {
                        String asked = endpoint.method() + " /" + String.join("/", endpoint.path());
                        Refusals.tell(Reason.TOKEN, peer(exchange), asked + ": " + refusal);
                        return Answer.error(401, refusal);
                    }
                    return endpoint.handler().answer(request);
                }
            }
            return Answer.error(405, "use " + there.get(0).method());
        } catch (BadRequestException error) {
            return Answer.error(400, error.getMessage());
        } catch (Exception error) {
            LOGGER.log(Level.WARNING, "can't answer " + exchange.getRequestMethod() + " " + exchange.getRequestURI(), error);
            return Answer.error(500, error.toString());
        }
    }
}
