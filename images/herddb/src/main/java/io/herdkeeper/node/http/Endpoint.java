package io.herdkeeper.node.http;

import java.util.List;

/** One thing that can be asked over HTTP. */
interface Endpoint {

    /** GET or POST. */
    String method();

    /** The path's segments; {@code *} matches any one. */
    List<String> path();

    /** Whether the request must show the token, since it changes something. */
    default boolean needsToken() {
        return false;
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
