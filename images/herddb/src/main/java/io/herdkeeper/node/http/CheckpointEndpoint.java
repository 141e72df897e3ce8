package io.herdkeeper.node.http;

import herddb.core.TableSpaceManager;
import io.herdkeeper.node.status.NodeStatus;
import io.herdkeeper.node.status.Position;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** {@code POST /tablespaces/<name>/checkpoint}: a follower writes its tables to its disk, so that its next boot replays less. */
final class CheckpointEndpoint implements Endpoint {

    private final NodeStatus node;

    CheckpointEndpoint(NodeStatus node) {
        this.node = node;
    }

    @Override
    public String method() {
        return "POST";
    }

    @Override
    public List<String> path() {
        return List.of("tablespaces", "*", "checkpoint");
    }

    @Override
    public boolean needsToken() {
        return true;
    }

    @Override
    public Answer answer(Request request) {
        String name = request.segments().get(1);
        TableSpaceManager tablespace = node.manager(name);
        if (tablespace == null) {
            return Answer.error(404, "tablespace " + name + " does not run on this node");
        }
        if (tablespace.isLeader()) {
            return Answer.error(409, "this node leads the tablespace, and a checkpoint would hold its writes: ask a follower");
        }
        long start = System.nanoTime();
        if (tablespace.checkpoint(false, false, false) == null) {
            return Answer.error(409, "tablespace " + name + " is booting: ask again");
        }
        Map<String, Object> json = new LinkedHashMap<>();
        json.put("tablespace", tablespace.getTableSpaceName());
        json.put("uuid", tablespace.getTableSpaceUUID());
        json.put("checkpoint", Position.of(node.checkpoint(tablespace)));
        json.put("millis", (System.nanoTime() - start) / 1_000_000);
        return Answer.json(200, json);
    }
}
