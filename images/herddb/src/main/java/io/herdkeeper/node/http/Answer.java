package io.herdkeeper.node.http;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.sun.net.httpserver.HttpExchange;
import java.io.IOException;
import java.io.OutputStream;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.util.Map;

/**
 * What an endpoint answers.
 *
 * @param body    all of it; null when it is streamed
 * @param content what streams it, and is closed whatever becomes of it; null for a whole body
 */
record Answer(int status, String contentType, byte[] body, Content content) {

    /** A body that is written as it is made. */
    interface Content extends AutoCloseable {

        /** Writes all of it. What goes wrong behind the status has to be told in the body itself. */
        void writeTo(OutputStream body) throws IOException;

        @Override
        void close();
    }

    private static final ObjectMapper JSON = new ObjectMapper();

    static Answer text(int status, String contentType, String body) {
        return new Answer(status, contentType, body.getBytes(StandardCharsets.UTF_8), null);
    }

    static Answer json(int status, Object value) {
        try {
            return new Answer(status, "application/json", JSON.writeValueAsBytes(value), null);
        } catch (JsonProcessingException error) {
            throw new UncheckedIOException(error);
        }
    }

    static Answer stream(String contentType, Content content) {
        return new Answer(200, contentType, null, content);
    }

    static Answer error(int status, String message) {
        return json(status, Map.of("error", String.valueOf(message)));
    }

    /** Sends it, and frees what its content holds. */
    void send(HttpExchange exchange) throws IOException {
        try (Content streamed = content) {
            exchange.getResponseHeaders().set("Content-Type", contentType);
            if (streamed == null) {
                exchange.sendResponseHeaders(status, body.length);
                exchange.getResponseBody().write(body);
                return;
            }
            exchange.sendResponseHeaders(status, 0);
            try (OutputStream stream = exchange.getResponseBody()) {
                streamed.writeTo(stream);
            }
        }
    }
}
