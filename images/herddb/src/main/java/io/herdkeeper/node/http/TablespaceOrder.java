package io.herdkeeper.node.http;

import java.util.List;

/** {@code POST /tablespaces/<name>/<order>}: something that is done about one tablespace; with the token only. */
abstract class TablespaceOrder implements Endpoint {

    private final String order;

    TablespaceOrder(String order) {
        this.order = order;
    }

    @Override
    public final List<String> path() {
        return List.of("tablespaces", "*", order);
    }

    @Override
    public boolean needsToken() {
        return true;
    }

    @Override
    public final Answer answer(Request request) throws Exception {
        return answer(request.segments().get(1), request);
    }

    /** Does it; what it throws becomes 400 or 500. */
    abstract Answer answer(String tablespace, Request request) throws Exception;
}
