package io.herdkeeper.node.http;

import io.herdkeeper.node.check.FullChecks;
import io.herdkeeper.node.check.FullChecks.NotCheckedException;
import io.herdkeeper.node.check.FullChecks.Order;
import io.herdkeeper.node.http.Request.BadRequestException;
import io.herdkeeper.node.status.NodeStatus;
import java.time.Duration;
import java.util.Map;

/**
 * {@code POST /tablespaces/<name>/check?maxStopMillis=M}: the leader starts a check of all tables with its followers. Each part blocks
 * writes for at most M ms.
 */
final class CheckEndpoint extends CopyOrder {

    private static final long DEFAULT_STOP_MILLIS = 200;
    private static final long LONGEST_STOP_MILLIS = 60_000;

    private final FullChecks checks;

    CheckEndpoint(NodeStatus node) {
        super("check", node);
        checks = node.fullChecks();
    }

    @Override
    Answer answer(Copy copy, Request request) throws BadRequestException {
        Duration longestStop = Duration.ofMillis(request.number("maxStopMillis", 1, LONGEST_STOP_MILLIS, DEFAULT_STOP_MILLIS));
        try {
            Order order = checks.start(copy.tablespace(), longestStop);
            Map<String, Object> json = copy.json();
            json.put("started", order.started());
            json.put("fullCheck", order.check());
            return Answer.json(order.started() ? 202 : 200, json);
        } catch (NotCheckedException error) {
            return Answer.error(409, error.getMessage());
        }
    }
}
