package io.herdkeeper.node.http;

import io.herdkeeper.node.status.NodeStatus;
import io.herdkeeper.node.status.NodeStatus.Phase;
import io.herdkeeper.node.status.TablespaceStatus;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** {@code GET /readyz}: whether every tablespace of this node whose log can be replayed has the role that the metadata gives to the node. */
final class ReadyEndpoint implements Endpoint {

    private final NodeStatus node;
    private final TimeLimited metadata;

    ReadyEndpoint(NodeStatus node, TimeLimited metadata) {
        this.node = node;
        this.metadata = metadata;
    }

    @Override
    public List<String> path() {
        return List.of("readyz");
    }

    @Override
    public Answer answer(Request request) {
        if (node.phase() != Phase.RUNNING) {
            return answer(503, "the node is " + node.phase().name().toLowerCase(java.util.Locale.ROOT), List.of());
        }
        try {
            List<TablespaceStatus> unsettled =
                    metadata.call(node::tablespaces).stream().filter(tablespace -> !tablespace.ready()).toList();
            // One whose log can't be replayed is no reason to take the others' clients away.
            boolean ready = unsettled.stream().allMatch(tablespace -> tablespace.unreplayable() != null);
            return answer(ready ? 200 : 503, unsettled.isEmpty() ? "every tablespace is settled in its role"
                    : "not settled: " + unsettled.stream().map(ReadyEndpoint::describe).toList(), unsettled);
        } catch (Exception error) {
            return answer(503, "unknown, since the metadata can't be read: " + error, List.of());
        }
    }

    private static String describe(TablespaceStatus tablespace) {
        return tablespace.name() + " is " + tablespace.role().name().toLowerCase(java.util.Locale.ROOT)
                + ", its leader is " + tablespace.leaderInMetadata()
                + (tablespace.unreplayable() == null ? "" : ", and its log can't be replayed: " + tablespace.unreplayable());
    }

    private static Answer answer(int status, String reason, List<TablespaceStatus> unsettled) {
        Map<String, Object> json = new LinkedHashMap<>();
        json.put("ready", status == 200);
        json.put("reason", reason);
        json.put("tablespaces", unsettled);
        return Answer.json(status, json);
    }
}
