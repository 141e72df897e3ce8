package io.herdkeeper.bookie;

import io.vertx.core.Handler;
import io.vertx.core.Vertx;
import io.vertx.core.http.HttpHeaders;
import io.vertx.core.http.HttpMethod;
import io.vertx.ext.web.Router;
import io.vertx.ext.web.RoutingContext;
import io.vertx.ext.web.handler.BodyHandler;
import java.io.IOException;
import java.util.EnumSet;
import java.util.HashMap;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletionException;
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

    private static final Logger LOGGER = LoggerFactory.getLogger(GuardedHttpServer.class);

    private final Runnable end;
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
        router.route().handler(BodyHandler.create(false));
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
        HttpServiceResponse answer = OPEN.contains(type) ? served(type, asked) : refused(type, asked);
        asked.response().setStatusCode(answer.getStatusCode());
        if (answer.getContentType() != null) {
            asked.response().putHeader(HttpHeaders.CONTENT_TYPE, answer.getContentType());
        }
        boolean metrics = type == ApiType.METRICS && answer.getStatusCode() == StatusCode.OK.getValue();
        asked.response().end(metrics ? answer.getBody() + closed.metric() : answer.getBody());
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
