package io.herdkeeper.node.http;

import io.herdkeeper.node.status.NodeStatus;
import java.util.List;
import java.util.Map;

/**
 * {@code GET /healthz}: whether a restart would help.
 *
 * <p>Only a dead activator needs one: nothing in the process can start that thread again. An outage of ZooKeeper, bookies or the leader is
 * no reason: a restart would only add its own outage.
 */
final class HealthEndpoint implements Endpoint {

    private final NodeStatus node;

    HealthEndpoint(NodeStatus node) {
        this.node = node;
    }

    @Override
    public List<String> path() {
        return List.of("healthz");
    }

    @Override
    public Answer answer(Request request) {
        return node.activatorDied()
                ? Answer.error(503, "the activator died: no tablespace boots, stops or checkpoints any more")
                : Answer.json(200, Map.of("phase", node.phase()));
    }
}
