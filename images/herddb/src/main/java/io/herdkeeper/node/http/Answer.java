package io.herdkeeper.node.http;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.util.Map;

/** What an endpoint answers. */
record Answer(int status, String contentType, byte[] body) {

    private static final ObjectMapper JSON = new ObjectMapper();

    static Answer text(int status, String contentType, String body) {
        return new Answer(status, contentType, body.getBytes(StandardCharsets.UTF_8));
    }

    static Answer json(int status, Object value) {
        try {
            return new Answer(status, "application/json", JSON.writeValueAsBytes(value));
        } catch (JsonProcessingException error) {
            throw new UncheckedIOException(error);
        }
    }

    static Answer error(int status, String message) {
        return json(status, Map.of("error", String.valueOf(message)));
    }
}
