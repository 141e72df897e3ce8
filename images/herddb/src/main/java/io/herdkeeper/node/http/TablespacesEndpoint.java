package io.herdkeeper.node.http;

import io.herdkeeper.node.status.NodeStatus;
import io.herdkeeper.node.status.NodeStatus.Phase;
import java.util.List;

/** {@code GET /tablespaces}: each tablespace of this node with its role and positions. */
final class TablespacesEndpoint implements Endpoint {

    private final NodeStatus node;
    private final TimeLimited metadata;

    TablespacesEndpoint(NodeStatus node, TimeLimited metadata) {
        this.node = node;
        this.metadata = metadata;
    }

    @Override
    public List<String> path() {
        return List.of("tablespaces");
    }

    @Override
    public Answer answer(Request request) {
        if (node.phase() == Phase.STARTING) {
            return Answer.error(503, "the node is starting");
        }
        try {
            return Answer.json(200, metadata.call(node::tablespaces));
        } catch (Exception error) {
            return Answer.error(503, "the metadata can't be read: " + error);
        }
    }
}
