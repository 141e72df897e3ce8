package io.herdkeeper.node.http;

import java.util.List;
import java.util.stream.IntStream;

/**
 * One thing that can be requested over HTTP.
 *
 * @param method POST for what changes something or holds it up; such a request must show the token
 * @param path   its segments; {@code *} matches any one
 */
record Endpoint(String method, List<String> path, Handler handler) {

    /** Answers a request. */
    interface Handler {

        /** What it throws becomes 400 or 500. */
        Answer answer(Request request) throws Exception;
    }

    static Endpoint get(String path, Handler handler) {
        return new Endpoint("GET", List.of(path), handler);
    }

    static Endpoint post(List<String> path, Handler handler) {
        return new Endpoint("POST", path, handler);
    }

    /** {@code POST /tablespaces/<name>/<order>}: something that is done about one tablespace. */
    static Endpoint order(String order, Handler handler) {
        return post(List.of("tablespaces", "*", order), handler);
    }

    boolean needsToken() {
        return method.equals("POST");
    }

    boolean matches(List<String> segments) {
        return path.size() == segments.size()
                && IntStream.range(0, path.size()).allMatch(i -> path.get(i).equals("*") || path.get(i).equals(segments.get(i)));
    }
}
