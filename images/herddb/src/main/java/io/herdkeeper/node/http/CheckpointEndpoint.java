package io.herdkeeper.node.http;

import herddb.core.TableSpaceManager;
import io.herdkeeper.node.evidence.LocalCopies;
import io.herdkeeper.node.evidence.LocalCopies.NotWrittenException;
import io.herdkeeper.node.log.Position;
import io.herdkeeper.node.status.NodeStatus;
import java.util.Map;

/** {@code POST /tablespaces/<name>/checkpoint}: a follower writes its tables to its disk, so that its next boot replays less. */
final class CheckpointEndpoint extends CopyOrder {

    private final LocalCopies copies;

    CheckpointEndpoint(NodeStatus node, LocalCopies copies) {
        super("checkpoint", node);
        this.copies = copies;
    }

    @Override
    Answer answer(Copy copy, Request request) {
        TableSpaceManager tablespace = copy.tablespace();
        if (tablespace.isLeader()) {
            return Answer.error(409, "this node leads the tablespace, and a checkpoint would hold its writes: ask a follower");
        }
        long start = System.nanoTime();
        try {
            Map<String, Object> json = copy.json();
            json.put("checkpoint", Position.of(copies.checkpoint(tablespace)));
            json.put("millis", (System.nanoTime() - start) / 1_000_000);
            return Answer.json(200, json);
        } catch (NotWrittenException error) {
            return Answer.error(409, error.getMessage());
        }
    }
}
