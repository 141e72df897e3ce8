package io.herdkeeper.node.http;

import java.util.List;

/** One thing that can be asked over HTTP. */
interface Endpoint {

    /** The path's segments; {@code *} matches any one. */
    List<String> path();

    /** Whether the request must show the token, since it changes something. */
    default boolean needsToken() {
        return false;
    }

    /** POST for what changes something. */
    default String method() {
        return needsToken() ? "POST" : "GET";
    }

    /** Answers; what it throws becomes 400 or 500. */
    Answer answer(Request request) throws Exception;

    /** Whether {@code segments} lead here. */
    default boolean matches(List<String> segments) {
        List<String> path = path();
        if (path.size() != segments.size()) {
            return false;
        }
        for (int i = 0; i < path.size(); i++) {
            if (!path.get(i).equals("*") && !path.get(i).equals(segments.get(i))) {
                return false;
            }
        }
        return true;
    }
}
