package io.herdkeeper.bookie;

import java.io.IOException;
import java.util.EnumSet;
import java.util.Set;
import org.apache.bookkeeper.http.HttpServer;
import org.apache.bookkeeper.http.HttpServiceProvider;
import org.apache.bookkeeper.http.service.HttpEndpointService;
import org.apache.bookkeeper.http.service.HttpServiceResponse;
import org.apache.bookkeeper.http.vertx.VertxHttpServer;

/**
 * BookKeeper's HTTP server with only those endpoints that somebody uses: probes, metrics, the state, the mode for drains, and garbage
 * collection. BookKeeper's own has no password; it also deletes ledgers, shows entries, changes its configuration and decommissions bookies.
 * Each endpoint asks for its service by type, after routing, so no spelling of a path gets round the list.
 */
public final class GuardedHttpServer extends VertxHttpServer {

    private static final Set<ApiType> OPEN = EnumSet.of(
            ApiType.HEARTBEAT,
            ApiType.METRICS,
            ApiType.BOOKIE_IS_READY,
            ApiType.BOOKIE_STATE,
            ApiType.BOOKIE_STATE_READONLY,
            ApiType.GC);

    @Override
    public void initialize(HttpServiceProvider provider) {
        super.initialize(new OpenEndpoints(provider));
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
