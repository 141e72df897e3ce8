package io.herdkeeper.node.http;

import io.herdkeeper.node.check.FullChecks;
import io.herdkeeper.node.check.FullChecks.NotCheckedException;
import io.herdkeeper.node.check.FullChecks.Order;
import io.herdkeeper.node.status.NodeStatus;
import java.util.Map;

/** {@code POST /tablespaces/<name>/check}: the leader begins HerdDB's consistency check of all tables, which stops writes while it scans. */
final class CheckEndpoint extends CopyOrder {

    private final FullChecks checks;

    CheckEndpoint(NodeStatus node) {
        super("check", node);
        checks = node.fullChecks();
    }

    @Override
    Answer answer(Copy copy, Request request) {
        try {
            Order order = checks.start(copy.tablespace());
            Map<String, Object> json = copy.json();
            json.put("started", order.started());
            json.put("fullCheck", order.check());
            return Answer.json(order.started() ? 202 : 200, json);
        } catch (NotCheckedException error) {
            return Answer.error(409, error.getMessage());
        }
    }
}
