package io.herdkeeper.bookie;

import static java.nio.charset.StandardCharsets.UTF_8;

import io.vertx.core.Handler;
import io.vertx.core.Vertx;
import io.vertx.core.buffer.Buffer;
import io.vertx.core.http.HttpHeaders;
import io.vertx.core.http.HttpMethod;
import io.vertx.core.http.HttpServerRequest;
import io.vertx.ext.web.Router;
import io.vertx.ext.web.RoutingContext;
import io.vertx.ext.web.handler.BodyHandler;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.security.MessageDigest;
import java.security.SecureRandom;
import java.util.EnumSet;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.CompletionException;
import java.util.concurrent.atomic.AtomicReference;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;
import org.apache.bookkeeper.bookie.ExitCode;
import org.apache.bookkeeper.common.util.JsonUtil;
import org.apache.bookkeeper.http.AbstractHttpHandlerFactory;
import org.apache.bookkeeper.http.HttpRouter;
import org.apache.bookkeeper.http.HttpServer;
import org.apache.bookkeeper.http.HttpServerConfiguration;
import org.apache.bookkeeper.http.HttpServiceProvider;
import org.apache.bookkeeper.http.service.HttpServiceRequest;
import org.apache.bookkeeper.http.service.HttpServiceResponse;
import org.apache.bookkeeper.server.http.service.BookieStateService.BookieState;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * BookKeeper's HTTP server with only the endpoints in use: probes, metrics, the state, the mode for drains, and garbage collection.
 * BookKeeper's own has no password; it also deletes ledgers, shows entries, changes its configuration and decommissions bookies. Each
 * endpoint is known by its type, after routing, so no spelling of a path bypasses the list. BookKeeper's server (VertxHttpServer, 4.18)
 * tells a service neither who asks nor the headers, so this one routes by itself, and counts and logs who is refused.
 *
 * <p>Everybody may read. Whatever is not a GET is an order, and needs a proof that its sender knows the token of the mounted file. The port
 * is in plain text, so the token itself is never sent: the proof is an HMAC of the order and of a challenge. Each answer has the challenge,
 * and a proven order uses it up, so nobody who listens can repeat or change one. The challenge names the bookie, so nobody can lead an order
 * to another one (the operator's side: herdkeeper.bookkeeper.execute).
 *
 * <p>It starts after the bookie, and ends the process if the bookie could not start. Otherwise, a bookie whose registration fails would
 * remain as a process that accepts connections and answers nothing: its server returns without an error, and nothing watches it
 * (BookieServer.start). The bookie has closed its journal by then. BookKeeper's own end is not enough: it closes the components in one
 * thread while another starts them. If the first is faster, the second fails, and nobody ends the process (LifecycleComponentStack.start).
 */
public final class GuardedHttpServer implements HttpServer {

    private static final Set<ApiType> OPEN = EnumSet.of(
            ApiType.HEARTBEAT,
            ApiType.METRICS,
            ApiType.BOOKIE_IS_READY,
            ApiType.BOOKIE_STATE,
            ApiType.BOOKIE_STATE_READONLY,
            ApiType.GC);

    /** Set where a bookie runs, and not autorecovery alone (entrypoint.sh). */
    private static final String OF_A_BOOKIE = "herdkeeper.bookie";

    /** Of the process; BookKeeper's for a failed registration. */
    private static final int EXIT_CODE = ExitCode.ZK_REG_FAIL;

    /** Names the file with the token, for tests. */
    private static final String TOKEN_FILE = "herdkeeper.token";
    /** This bookie's id, for tests. */
    private static final String BOOKIE = "herdkeeper.bookie.id";

    private static final String CHALLENGE = "Herdkeeper-Challenge";
    private static final int UNAUTHORIZED = 401;
    private static final int TOO_LARGE = 413;
    /** A body is kept before its sender is known. An order's has a few dozen bytes; Vert.x would keep 10 MB for each connection. */
    private static final long MOST_BODY_BYTES = 16 << 10;
    private static final SecureRandom RANDOM = new SecureRandom();
    private static final Logger LOGGER = LoggerFactory.getLogger(GuardedHttpServer.class);

    private final Runnable end;
    private final Path token = Path.of(System.getProperty(TOKEN_FILE, "/token/token"));
    private final String bookie = System.getProperty(BOOKIE, Objects.requireNonNullElse(System.getenv("BOOKIE_ID"), ""));
    private final AtomicReference<String> challenge = new AtomicReference<>(fresh());
    private final Refusals unproven = new Refusals("token");
    private final Refusals closed = new Refusals("closed");
    private final Vertx vertx = Vertx.vertx();
    private HttpServiceProvider services;
    private volatile boolean running;

    public GuardedHttpServer() {
        this(() -> Runtime.getRuntime().halt(EXIT_CODE));
    }

    GuardedHttpServer(Runnable end) {
        this.end = end;
    }

    @Override
    public void initialize(HttpServiceProvider provider) {
        services = provider;
    }

    @Override
    public boolean startServer(int port) {
        return startServer(port, "0.0.0.0");
    }

    @Override
    public boolean startServer(int port, String host) {
        return startServer(port, host, new HttpServerConfiguration());
    }

    /** Ends the process beside a bookie that does not run. */
    @Override
    public boolean startServer(int port, String host, HttpServerConfiguration configuration) {
        if (Boolean.getBoolean(OF_A_BOOKIE) && !bookieRuns()) {
            System.err.println("the bookie could not start, see the error above: its process exits, and Kubernetes restarts its container");
            end.run();
            return false;
        }
        try {
            vertx.createHttpServer().requestHandler(router()).listen(port, host).toCompletionStage().toCompletableFuture().join();
            running = true;
        } catch (CompletionException error) {
            LOGGER.error("can't listen on {}:{}", host, port, error);
        }
        return running;
    }

    @Override
    public void stopServer() {
        running = false;
        vertx.close().toCompletionStage().toCompletableFuture().join();
        try {
            services.close();
        } catch (IOException error) {
            LOGGER.error("the HTTP port's services were not closed", error);
        }
    }

    @Override
    public boolean isRunning() {
        return running;
    }

    private Router router() {
        Router router = Router.router(vertx);
        router.route().handler(BodyHandler.create(false).setBodyLimit(MOST_BODY_BYTES)).failureHandler(failed -> {
            if (failed.statusCode() == TOO_LARGE) {
                failed.response().setStatusCode(TOO_LARGE).end(); // Vert.x would log each with its stack
            } else {
                failed.next();
            }
        });
        AbstractHttpHandlerFactory<Handler<RoutingContext>> handlers = new AbstractHttpHandlerFactory<>(services) {
            @Override
            public Handler<RoutingContext> newHandler(ApiType type) {
                return asked -> answer(type, asked);
            }
        };
        new HttpRouter<>(handlers) {
            @Override
            public void bindHandler(String endpoint, Handler<RoutingContext> handler) {
                for (Method method : Method.values()) {
                    router.route(HttpMethod.valueOf(method.name()), endpoint).blockingHandler(handler);
                }
            }
        }.bindAll();
        return router;
    }

    /** What it throws becomes 500. */
    private void answer(ApiType type, RoutingContext asked) {
        String missing = OPEN.contains(type) && !asked.request().method().equals(HttpMethod.GET) ? missingProof(asked) : null;
        if (missing != null) {
            unproven.tell(asked.request().remoteAddress(), asked.request().method() + " " + type + ", " + missing);
            asked.response().putHeader(CHALLENGE, challenge.get()).setStatusCode(UNAUTHORIZED).end(missing);
            return;
        }
        HttpServiceResponse answer = OPEN.contains(type) ? served(type, asked) : refused(type, asked);
        asked.response().putHeader(CHALLENGE, challenge.get()).setStatusCode(answer.getStatusCode());
        if (answer.getContentType() != null) {
            asked.response().putHeader(HttpHeaders.CONTENT_TYPE, answer.getContentType());
        }
        boolean metrics = type == ApiType.METRICS && answer.getStatusCode() == StatusCode.OK.getValue();
        asked.response().end(metrics ? answer.getBody() + refusals() : answer.getBody());
    }

    private String refusals() {
        return "# TYPE herdkeeper_refused_total counter\n" + closed.metric() + TlsRequiredFactory.REFUSALS.metric() + unproven.metric();
    }

    /** Why an order is refused, or null. The file is read each time, since its Secret may change. */
    private String missingProof(RoutingContext asked) {
        byte[] key;
        try {
            key = Files.readString(token).strip().getBytes(UTF_8);
        } catch (IOException error) {
            key = new byte[0];
        }
        if (key.length == 0) {
            return "this process has no token in " + token + ", so it takes no orders";
        }
        String given = challenge.get();
        HttpServerRequest order = asked.request();
        Buffer body = asked.body().buffer();
        byte[] mac;
        try {
            Mac hmac = Mac.getInstance("HmacSHA256");
            hmac.init(new SecretKeySpec(key, "HmacSHA256"));
            hmac.update((given + "\n" + order.method() + " " + order.uri() + "\n").getBytes(UTF_8));
            mac = hmac.doFinal(body == null ? new byte[0] : body.getBytes());
        } catch (GeneralSecurityException error) {
            throw new IllegalStateException(error);
        }
        String shown = Objects.requireNonNullElse(order.getHeader(HttpHeaders.AUTHORIZATION), "");
        byte[] expected = ("HMAC-SHA256 " + HexFormat.of().formatHex(mac)).getBytes(UTF_8);
        boolean proven = MessageDigest.isEqual(expected, shown.getBytes(UTF_8)) && challenge.compareAndSet(given, fresh());
        return proven ? null : "without a proof that its sender knows the token of the Secret <name>-bookie-token";
    }

    /** It names the bookie, so that an order to one is no order to another. */
    private String fresh() {
        byte[] random = new byte[16];
        RANDOM.nextBytes(random);
        return bookie + "/" + HexFormat.of().formatHex(random);
    }

    private HttpServiceResponse served(ApiType type, RoutingContext asked) {
        Map<String, String> parameters = new HashMap<>();
        asked.request().params().forEach(parameters::put);
        Method method = Method.valueOf(asked.request().method().name());
        try {
            return services.provideHttpEndpointService(type).handle(new HttpServiceRequest(asked.body().asString(), method, parameters));
        } catch (Exception error) {
            LOGGER.error("can't answer {} {}", method, type, error);
            throw new IllegalStateException(error);
        }
    }

    private HttpServiceResponse refused(ApiType type, RoutingContext asked) {
        closed.tell(asked.request().remoteAddress(), asked.request().method() + " " + type);
        return new HttpServiceResponse(type + " is closed: use BookKeeper's shell in a bookie's container", StatusCode.FORBIDDEN);
    }

    private boolean bookieRuns() {
        try {
            HttpServiceRequest question = new HttpServiceRequest(null, Method.GET, null);
            String state = services.provideHttpEndpointService(ApiType.BOOKIE_STATE).handle(question).getBody();
            return JsonUtil.fromJson(state, BookieState.class).isRunning();
        } catch (Exception error) {
            System.err.println("the bookie's state can't be read: " + error);
            return false;
        }
    }
}
