package io.herdkeeper.node.http;

import herddb.core.TableSpaceManager;
import herddb.log.LogSequenceNumber;
import io.herdkeeper.node.digest.FollowerDigest;
import io.herdkeeper.node.digest.FollowerDigest.NotAFollowerException;
import io.herdkeeper.node.digest.FollowerDigest.Result;
import io.herdkeeper.node.http.Request.BadRequestException;
import io.herdkeeper.node.log.FollowerGate.AlreadyHeldException;
import io.herdkeeper.node.log.FollowerGate.AlreadyPassedException;
import io.herdkeeper.node.log.NodeCommitLog;
import io.herdkeeper.node.status.NodeStatus;
import io.herdkeeper.node.status.Position;
import java.time.Duration;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeoutException;

/**
 * {@code POST /tablespaces/<name>/digest?ledger=L&entry=E&timeoutSeconds=T}: rows and digest of each table of a follower,
 * exactly after entry (L, E).
 */
final class DigestEndpoint implements Endpoint {

    private static final long DEFAULT_TIMEOUT_SECONDS = 60;
    private static final long LONGEST_TIMEOUT_SECONDS = 3600;

    private final NodeStatus node;

    DigestEndpoint(NodeStatus node) {
        this.node = node;
    }

    @Override
    public String method() {
        return "POST";
    }

    @Override
    public List<String> path() {
        return List.of("tablespaces", "*", "digest");
    }

    @Override
    public Answer answer(Request request) throws BadRequestException, InterruptedException {
        String name = request.segments().get(1);
        LogSequenceNumber target = new LogSequenceNumber(
                request.number("ledger", 0, Long.MAX_VALUE, null), request.number("entry", 0, Long.MAX_VALUE, null));
        Duration timeout = Duration.ofSeconds(
                request.number("timeoutSeconds", 1, LONGEST_TIMEOUT_SECONDS, DEFAULT_TIMEOUT_SECONDS));
        TableSpaceManager tablespace = node.manager(name);
        if (tablespace == null || !(tablespace.getLog() instanceof NodeCommitLog log)) {
            return Answer.error(404, "tablespace " + name + " does not run on this node");
        }
        try {
            return Answer.json(200, json(tablespace, new FollowerDigest(tablespace, log).at(target, timeout)));
        } catch (NotAFollowerException | AlreadyPassedException | AlreadyHeldException error) {
            return refusal(409, error, log);
        } catch (TimeoutException error) {
            return refusal(504, error, log);
        }
    }

    private static Map<String, Object> json(TableSpaceManager tablespace, Result result) {
        Map<String, Object> json = new LinkedHashMap<>();
        json.put("tablespace", tablespace.getTableSpaceName());
        json.put("uuid", tablespace.getTableSpaceUUID());
        json.put("ledger", result.position().ledgerId);
        json.put("entry", result.position().offset);
        json.put("openTransactions", result.openTransactions());
        json.put("tables", result.tables());
        json.put("scanMillis", result.scanMillis());
        return json;
    }

    private static Answer refusal(int status, Exception reason, NodeCommitLog log) {
        Map<String, Object> json = new LinkedHashMap<>();
        json.put("error", reason.getMessage());
        json.put("position", Position.of(log.appliedPosition()));
        return Answer.json(status, json);
    }
}
