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
 * BookKeeper's HTTP server with those endpoints alone that somebody needs: probes, metrics, the mode for drains, the state, and garbage
 * collection. BookKeeper asks nobody who he is, and would also delete ledgers, show entries, change its configuration and give bookies up.
 */
public final class GuardedHttpServer extends VertxHttpServer {

    private static final Set<ApiType> OPEN = EnumSet.of(
            ApiType.HEARTBEAT,
            ApiType.METRICS,
            ApiType.BOOKIE_IS_READY,
            ApiType.BOOKIE_STATE,
            ApiType.BOOKIE_STATE_READONLY,
            ApiType.BOOKIE_INFO,
            ApiType.GC,
            ApiType.GC_DETAILS,
            ApiType.LIST_BOOKIES,
            ApiType.LIST_UNDER_REPLICATED_LEDGER,
            ApiType.WHO_IS_AUDITOR);

    @Override
    public void initialize(HttpServiceProvider provider) {
        super.initialize(new OpenEndpoints(provider));
    }

    /** What a provider has, as far as it is open. */
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
