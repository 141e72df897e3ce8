package io.herdkeeper.node.http;

import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpHandler;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;

/**
 * {@code GET /alive}: a line each second for as long as the process lives.
 *
 * <p>Its end tells at once what a probe finds out seconds later: the kernel closes the connection of a killed process.
 */
final class AliveStream implements HttpHandler {

    private static final byte[] LINE = "alive\n".getBytes(StandardCharsets.UTF_8);
    private static final long PERIOD_MILLIS = 1_000;

    @Override
    public void handle(HttpExchange exchange) throws IOException {
        try (exchange; OutputStream body = begin(exchange)) {
            while (true) {
                body.write(LINE);
                body.flush();
                Thread.sleep(PERIOD_MILLIS);
            }
        } catch (InterruptedException ended) {
            Thread.currentThread().interrupt();
        }
    }

    private static OutputStream begin(HttpExchange exchange) throws IOException {
        exchange.getResponseHeaders().set("Content-Type", "text/plain; charset=utf-8");
        exchange.sendResponseHeaders(200, 0);
        return exchange.getResponseBody();
    }
}
