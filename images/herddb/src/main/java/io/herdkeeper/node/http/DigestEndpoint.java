package io.herdkeeper.node.http;

import herddb.log.LogSequenceNumber;
import io.herdkeeper.node.digest.FollowerDigest;
import io.herdkeeper.node.digest.FollowerDigest.NotAFollowerException;
import io.herdkeeper.node.digest.FollowerDigest.Result;
import io.herdkeeper.node.http.Request.BadRequestException;
import io.herdkeeper.node.log.FollowerGate.AlreadyHeldException;
import io.herdkeeper.node.log.FollowerGate.AlreadyPassedException;
import io.herdkeeper.node.log.NodeCommitLog;
import io.herdkeeper.node.log.Position;
import io.herdkeeper.node.status.NodeStatus;
import java.time.Duration;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.concurrent.TimeoutException;

/**
 * {@code POST /tablespaces/<name>/digest?ledger=L&entry=E&timeoutSeconds=T&scanSeconds=S}: rows and digest of each table of a
 * follower, exactly after entry (L, E), which it has to reach within T; the scan then takes S at most. It needs the token: it holds the
 * follower, and with it the release of the log.
 */
final class DigestEndpoint extends CopyOrder {

    private static final long DEFAULT_TIMEOUT_SECONDS = 60;
    private static final long LONGEST_SECONDS = 3600;

    DigestEndpoint(NodeStatus node) {
        super("digest", node);
    }

    @Override
    Answer answer(Copy copy, Request request) throws BadRequestException, InterruptedException {
        LogSequenceNumber target = new LogSequenceNumber(
                request.number("ledger", 0, Long.MAX_VALUE, null), request.number("entry", 0, Long.MAX_VALUE, null));
        Duration wait = Duration.ofSeconds(request.number("timeoutSeconds", 1, LONGEST_SECONDS, DEFAULT_TIMEOUT_SECONDS));
        // Who does not know of it waits no longer for a scan either.
        Duration scan = Duration.ofSeconds(request.number("scanSeconds", 1, LONGEST_SECONDS, wait.toSeconds()));
        try {
            return Answer.json(200, json(copy, new FollowerDigest(copy.tablespace(), copy.log()).at(target, wait, scan)));
        } catch (NotAFollowerException | AlreadyPassedException | AlreadyHeldException error) {
            return refusal(409, error, copy.log());
        } catch (TimeoutException error) {
            return refusal(504, error, copy.log());
        }
    }

    private static Map<String, Object> json(Copy copy, Result result) {
        Map<String, Object> json = copy.json();
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
