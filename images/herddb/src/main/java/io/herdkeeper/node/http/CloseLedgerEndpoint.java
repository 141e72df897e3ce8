package io.herdkeeper.node.http;

import herddb.log.LogNotAvailableException;
import io.herdkeeper.node.http.Request.BadRequestException;
import io.herdkeeper.node.log.NodeCommitLog.LedgerChange;
import io.herdkeeper.node.log.NodeCommitLog.NotNowException;
import io.herdkeeper.node.log.NodeCommitLog.NotWritingException;
import io.herdkeeper.node.status.NodeStatus;
import java.util.Map;

/** {@code POST /tablespaces/<name>/close-ledger?ledger=L}: the leader closes the ledger that it writes, and opens the next. */
final class CloseLedgerEndpoint extends CopyOrder {

    CloseLedgerEndpoint(NodeStatus node) {
        super("close-ledger", node);
    }

    @Override
    Answer answer(Copy copy, Request request) throws BadRequestException {
        long only = request.number("ledger", 0, Long.MAX_VALUE, -1L);
        try {
            return Answer.json(200, json(copy, copy.log().closeLedger(only)));
        } catch (NotWritingException error) {
            return Answer.error(409, error.getMessage());
        } catch (NotNowException error) {
            return Answer.error(503, error.getMessage());
        } catch (LogNotAvailableException error) {
            return Answer.error(503, "the change failed, and the tablespace boots again: " + error);
        }
    }

    private static Map<String, Object> json(Copy copy, LedgerChange change) {
        Map<String, Object> json = copy.json();
        json.put("closed", change.closed() < 0 ? null : change.closed());
        json.put("lastEntry", change.closed() < 0 ? null : change.lastEntry());
        json.put("open", change.open());
        return json;
    }
}
