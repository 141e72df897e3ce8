package io.herdkeeper.node.http;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpHandler;
import io.herdkeeper.node.contact.Contacts;
import io.herdkeeper.node.contact.Contacts.Report;
import io.herdkeeper.node.status.NodeStatus;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.Semaphore;

/**
 * {@code GET /alive}: a line each second while the process runs, and at once when a leader's log fails.
 *
 * <p>The end of the stream shows at once what a probe finds seconds later: the kernel closes the connections of a killed process. The
 * lines report the node's connections to ZooKeeper and to its bookies ({@link Report}), the tablespaces on which statements hang, and the
 * active users file.
 */
final class AliveStream implements HttpHandler {

    private static final ObjectMapper JSON = new ObjectMapper();
    private static final int MOST_LISTENERS = 16;
    private static final int LOOKS = 4;
    private static final long LOOK_MILLIS = 250;

    private final NodeStatus node;
    private final Contacts contacts;
    private final Semaphore places = new Semaphore(MOST_LISTENERS);

    AliveStream(NodeStatus node) {
        this.node = node;
        contacts = node.contacts();
    }

    @Override
    public void handle(HttpExchange exchange) throws IOException {
        if (!places.tryAcquire()) {
            try (exchange) {
                Answer.error(503, MOST_LISTENERS + " clients are already connected").send(exchange);
            }
            return;
        }
        try {
            tell(exchange);
        } finally {
            places.release();
        }
    }

    private void tell(HttpExchange exchange) throws IOException {
        try (exchange; OutputStream body = begin(exchange)) {
            while (true) {
                Report report = contacts.report();
                body.write(("alive " + line(report) + "\n").getBytes(StandardCharsets.UTF_8));
                body.flush();
                rest(report);
            }
        } catch (InterruptedException ended) {
            Thread.currentThread().interrupt();
        }
    }

    private String line(Report report) throws IOException {
        ObjectNode line = JSON.valueToTree(report);
        line.set("blockedSeconds", JSON.valueToTree(node.blocked().seconds()));
        line.set("users", JSON.valueToTree(node.users()));
        return JSON.writeValueAsString(line);
    }

    private void rest(Report told) throws InterruptedException {
        for (int look = 0; look < LOOKS && contacts.report().failed().equals(told.failed()); look++) {
            Thread.sleep(LOOK_MILLIS);
        }
    }

    private static OutputStream begin(HttpExchange exchange) throws IOException {
        exchange.getResponseHeaders().set("Content-Type", "text/plain; charset=utf-8");
        exchange.sendResponseHeaders(200, 0);
        return exchange.getResponseBody();
    }
}
