package io.herdkeeper.bookie;

import java.io.IOException;
import java.util.EnumSet;
import java.util.Set;
import org.apache.bookkeeper.bookie.ExitCode;
import org.apache.bookkeeper.common.util.JsonUtil;
import org.apache.bookkeeper.http.HttpServer;
import org.apache.bookkeeper.http.HttpServerConfiguration;
import org.apache.bookkeeper.http.HttpServiceProvider;
import org.apache.bookkeeper.http.service.HttpEndpointService;
import org.apache.bookkeeper.http.service.HttpServiceRequest;
import org.apache.bookkeeper.http.service.HttpServiceResponse;
import org.apache.bookkeeper.http.vertx.VertxHttpServer;
import org.apache.bookkeeper.server.http.service.BookieStateService.BookieState;

/**
 * BookKeeper's HTTP server with only the endpoints in use: probes, metrics, the state, the mode for drains, and garbage collection.
 * BookKeeper's own has no password; it also deletes ledgers, shows entries, changes its configuration and decommissions bookies. Each
 * endpoint requests its service by type, after routing, so no spelling of a path bypasses the list.
 *
 * <p>It starts after the bookie, and ends the process if the bookie could not start. Otherwise, a bookie whose registration fails would
 * remain as a process that accepts connections and answers nothing: its server returns without an error, and nothing watches it
 * (BookieServer.start). The bookie has closed its journal by then. BookKeeper's own end is not enough: it closes the components in one
 * thread while another starts them. If the first is faster, the second fails, and nobody ends the process (LifecycleComponentStack.start).
 */
public final class GuardedHttpServer extends VertxHttpServer {

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

    private final Runnable end;
    private HttpServiceProvider services;

    public GuardedHttpServer() {
        this(() -> Runtime.getRuntime().halt(EXIT_CODE));
    }

    GuardedHttpServer(Runnable end) {
        this.end = end;
    }

    @Override
    public void initialize(HttpServiceProvider provider) {
        services = new OpenEndpoints(provider);
        super.initialize(services);
    }

    /** Ends the process beside a bookie that does not run. */
    @Override
    public boolean startServer(int port, String host, HttpServerConfiguration configuration) {
        if (Boolean.getBoolean(OF_A_BOOKIE) && !bookieRuns()) {
            System.err.println("the bookie could not start, see the error above: its process exits, and Kubernetes restarts its container");
            end.run();
            return false;
        }
        return super.startServer(port, host, configuration);
    }

    private boolean bookieRuns() {
        try {
            HttpServiceRequest question = new HttpServiceRequest(null, HttpServer.Method.GET, null);
            String state = services.provideHttpEndpointService(ApiType.BOOKIE_STATE).handle(question).getBody();
            return JsonUtil.fromJson(state, BookieState.class).isRunning();
        } catch (Exception error) {
            System.err.println("the bookie's state can't be read: " + error);
            return false;
        }
    }

    /** The services of a provider; those that are not open refuse every request. */
    record OpenEndpoints(HttpServiceProvider all) implements HttpServiceProvider {

        @Override
        public HttpEndpointService provideHttpEndpointService(HttpServer.ApiType type) {
            return OPEN.contains(type) ? all.provideHttpEndpointService(type) : request -> closed(type);
        }

        @Override
        public void close() throws IOException {
            all.close();
        }

        private static HttpServiceResponse closed(HttpServer.ApiType type) {
            return new HttpServiceResponse(type + " is closed: use BookKeeper's shell in a bookie's container", HttpServer.StatusCode.FORBIDDEN);
        }
    }
}
