package io.herdkeeper.node.http;

import herddb.core.TableSpaceManager;
import herddb.log.LogNotAvailableException;
import io.herdkeeper.node.http.Request.BadRequestException;
import io.herdkeeper.node.log.NodeCommitLog;
import io.herdkeeper.node.log.NodeCommitLog.LedgerChange;
import io.herdkeeper.node.log.NodeCommitLog.NotNowException;
import io.herdkeeper.node.log.NodeCommitLog.NotWritingException;
import io.herdkeeper.node.status.NodeStatus;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** {@code POST /tablespaces/<name>/close-ledger?ledger=L}: the leader closes the ledger that it writes, and opens the next. */
final class CloseLedgerEndpoint implements Endpoint {

    private final NodeStatus node;

    CloseLedgerEndpoint(NodeStatus node) {
        this.node = node;
    }

    @Override
    public String method() {
        return "POST";
    }

    @Override
    public List<String> path() {
        return List.of("tablespaces", "*", "close-ledger");
    }

    @Override
    public boolean needsToken() {
        return true;
    }

    @Override
    public Answer answer(Request request) throws BadRequestException {
        String name = request.segments().get(1);
        long only = request.number("ledger", 0, Long.MAX_VALUE, -1L);
        TableSpaceManager tablespace = node.manager(name);
        if (tablespace == null || !(tablespace.getLog() instanceof NodeCommitLog log)) {
            return Answer.error(404, "tablespace " + name + " does not run on this node");
        }
        try {
            return Answer.json(200, json(tablespace, log.closeLedger(only)));
        } catch (NotWritingException error) {
            return Answer.error(409, error.getMessage());
        } catch (NotNowException error) {
            return Answer.error(503, error.getMessage());
        } catch (LogNotAvailableException error) {
            return Answer.error(503, "the change failed, and the tablespace boots again: " + error);
        }
    }

    private static Map<String, Object> json(TableSpaceManager tablespace, LedgerChange change) {
        Map<String, Object> json = new LinkedHashMap<>();
        json.put("tablespace", tablespace.getTableSpaceName());
        json.put("uuid", tablespace.getTableSpaceUUID());
        json.put("closed", change.closed() < 0 ? null : change.closed());
        json.put("lastEntry", change.closed() < 0 ? null : change.lastEntry());
        json.put("open", change.open());
        return json;
    }
}
