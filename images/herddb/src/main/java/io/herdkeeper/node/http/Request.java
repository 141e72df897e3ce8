package io.herdkeeper.node.http;

import java.net.URI;
import java.net.URLDecoder;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * What an endpoint is asked.
 *
 * @param segments of the path, decoded: {@code /tablespaces/bench/digest} gives three
 * @param query    the first value of each parameter, decoded
 */
record Request(String method, List<String> segments, Map<String, String> query) {

    /** The request itself is wrong; the message names the parameter, its value and the fix. */
    static final class BadRequestException extends Exception {

        private static final long serialVersionUID = 1L;

        BadRequestException(String message) {
            super(message);
        }
    }

    static Request of(String method, URI uri) {
        Map<String, String> query = new HashMap<>();
        if (uri.getRawQuery() != null) {
            for (String pair : uri.getRawQuery().split("&")) {
                String[] parts = pair.split("=", 2);
                query.putIfAbsent(decode(parts[0]), parts.length == 2 ? decode(parts[1]) : "");
            }
        }
        String path = uri.getRawPath().replaceAll("^/+|/+$", "");
        List<String> segments = path.isEmpty() ? List.of() : List.of(path.split("/+")).stream().map(Request::decode).toList();
        return new Request(method, segments, query);
    }

    /** The name in {@code /tablespaces/<name>/<order>}. */
    String tablespace() {
        return segments.get(1);
    }

    /** A whole number within bounds; {@code fallback} when it is absent, or a refusal when that is null. */
    long number(String name, long lowest, long highest, Long fallback) throws BadRequestException {
        String value = query.get(name);
        if (value == null && fallback != null) {
            return fallback;
        }
        try {
            long number = Long.parseLong(value == null ? "" : value);
            if (number >= lowest && number <= highest) {
                return number;
            }
        } catch (NumberFormatException error) {
            // told below
        }
        throw new BadRequestException("query parameter " + name + "=" + (value == null ? "" : value)
                + " must be a whole number from " + lowest + " to " + highest);
    }

    private static String decode(String text) {
        return URLDecoder.decode(text, StandardCharsets.UTF_8);
    }
}
