package io.herdkeeper.node.http;

import herddb.core.TableSpaceManager;
import io.herdkeeper.node.log.NodeCommitLog;
import io.herdkeeper.node.status.NodeStatus;
import java.util.LinkedHashMap;
import java.util.Map;

/** An order to the copy of a tablespace that runs on this node; 404 where none does. */
abstract class CopyOrder extends TablespaceOrder {

    private final NodeStatus node;

    CopyOrder(String order, NodeStatus node) {
        super(order);
        this.node = node;
    }

    /** A running copy and its log. */
    record Copy(TableSpaceManager tablespace, NodeCommitLog log) {

        /** The begin of each answer: whose it is. */
        Map<String, Object> json() {
            Map<String, Object> json = new LinkedHashMap<>();
            json.put("tablespace", tablespace.getTableSpaceName());
            json.put("uuid", tablespace.getTableSpaceUUID());
            return json;
        }
    }

    @Override
    final Answer answer(String tablespace, Request request) throws Exception {
        TableSpaceManager manager = node.manager(tablespace);
        if (manager == null || !(manager.getLog() instanceof NodeCommitLog log)) {
            return Answer.error(404, "tablespace " + tablespace + " does not run on this node");
        }
        return answer(new Copy(manager, log), request);
    }

    /** Does it; what it throws becomes 400 or 500. */
    abstract Answer answer(Copy copy, Request request) throws Exception;
}
