package io.herdkeeper.node.http;

import herddb.core.TableSpaceManager;
import herddb.log.LogNotAvailableException;
import herddb.log.LogSequenceNumber;
import io.herdkeeper.node.check.FullChecks;
import io.herdkeeper.node.digest.FollowerDigest;
import io.herdkeeper.node.evidence.LocalCopies;
import io.herdkeeper.node.http.Request.BadRequestException;
import io.herdkeeper.node.log.NodeCommitLog;
import io.herdkeeper.node.log.NodeCommitLog.LedgerChange;
import io.herdkeeper.node.log.NodeCommitLog.NotNowException;
import io.herdkeeper.node.log.NodeCommitLog.NotWritingException;
import io.herdkeeper.node.log.Position;
import io.herdkeeper.node.refusals.OrderRefusedException;
import io.herdkeeper.node.status.NodeStatus;
import io.herdkeeper.node.tables.FollowerTables;
import java.io.BufferedOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.time.Duration;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeoutException;

/** Orders to the copy of a tablespace that runs on this node; 404 where none does. */
record CopyOrders(NodeStatus node, LocalCopies copies) {

    private static final long DEFAULT_TIMEOUT_SECONDS = 60;
    private static final long LONGEST_SECONDS = 3600;
    private static final long DEFAULT_STOP_MILLIS = 200;
    private static final long LONGEST_STOP_MILLIS = 60_000;
    private static final int BUFFERED = 1 << 16;

    /** Does one of them. */
    private interface Order {

        /** What it throws becomes 400 or 500. */
        Answer answer(Copy copy, Request request) throws Exception;
    }

    /** A running copy and its log. */
    private record Copy(TableSpaceManager tablespace, NodeCommitLog log) {

        /** The begin of each answer: whose it is. */
        Map<String, Object> json() {
            Map<String, Object> json = new LinkedHashMap<>();
            json.put("tablespace", tablespace.getTableSpaceName());
            json.put("uuid", tablespace.getTableSpaceUUID());
            return json;
        }
    }

    List<Endpoint> all() {
        return List.of(
                order("digest", CopyOrders::digest),
                order("tables", CopyOrders::tables),
                order("check", this::check),
                order("close-ledger", CopyOrders::closeLedger),
                order("checkpoint", this::checkpoint));
    }

    private Endpoint order(String name, Order order) {
        return Endpoint.order(name, request -> {
            TableSpaceManager tablespace = node.manager(request.tablespace());
            if (tablespace == null || !(tablespace.getLog() instanceof NodeCommitLog log)) {
                return Answer.error(404, "tablespace " + request.tablespace() + " does not run on this node");
            }
            return order.answer(new Copy(tablespace, log), request);
        });
    }

    /**
     * {@code POST /tablespaces/<name>/digest?ledger=L&entry=E&timeoutSeconds=T&scanSeconds=S}: rows and digest of each table of a
     * follower, exactly after entry (L, E), which it has to reach within T; the scan then takes S at most. It needs the token: it holds the
     * follower, and with it the release of the log.
     */
    private static Answer digest(Copy copy, Request request) throws BadRequestException, InterruptedException {
        LogSequenceNumber target = new LogSequenceNumber(
                request.number("ledger", 0, Long.MAX_VALUE, null), request.number("entry", 0, Long.MAX_VALUE, null));
        Duration wait = Duration.ofSeconds(request.number("timeoutSeconds", 1, LONGEST_SECONDS, DEFAULT_TIMEOUT_SECONDS));
        // Who does not know of it waits no longer for a scan either.
        Duration scan = Duration.ofSeconds(request.number("scanSeconds", 1, LONGEST_SECONDS, wait.toSeconds()));
        try {
            FollowerDigest.Result result = new FollowerDigest(copy.tablespace(), copy.log()).at(target, wait, scan);
            Map<String, Object> json = copy.json();
            json.put("ledger", result.position().ledgerId);
            json.put("entry", result.position().offset);
            json.put("openTransactions", result.openTransactions());
            json.put("tables", result.tables());
            json.put("scanMillis", result.scanMillis());
            return Answer.json(200, json);
        } catch (OrderRefusedException error) {
            return noDigest(409, error, copy.log());
        } catch (TimeoutException error) {
            return noDigest(504, error, copy.log());
        }
    }

    private static Answer noDigest(int status, Exception reason, NodeCommitLog log) {
        Map<String, Object> json = new LinkedHashMap<>();
        json.put("error", reason.getMessage());
        json.put("position", Position.of(log.appliedPosition()));
        return Answer.json(status, json);
    }

    /**
     * {@code POST /tablespaces/<name>/tables?timeoutSeconds=T&scanSeconds=S}: all tables of a follower, definitions and rows, as
     * {@link io.herdkeeper.node.tables.TablesWriter} writes them. It is held for S at most, at a position without open transactions, which it
     * has to reach within T. A leader refuses.
     */
    private static Answer tables(Copy copy, Request request) throws BadRequestException, InterruptedException {
        Duration wait = Duration.ofSeconds(request.number("timeoutSeconds", 1, LONGEST_SECONDS, DEFAULT_TIMEOUT_SECONDS));
        Duration scan = Duration.ofSeconds(request.number("scanSeconds", 1, LONGEST_SECONDS, LONGEST_SECONDS));
        try {
            return Answer.stream("application/octet-stream",
                    new Tables(FollowerTables.held(copy.tablespace(), copy.log(), wait, scan)));
        } catch (OrderRefusedException error) {
            return Answer.error(409, error.getMessage());
        } catch (TimeoutException error) {
            return Answer.error(504, error.getMessage());
        }
    }

    private record Tables(FollowerTables held) implements Answer.Content {

        @Override
        public void writeTo(OutputStream body) throws IOException {
            OutputStream buffered = new BufferedOutputStream(body, BUFFERED);
            held.writeTo(buffered);
            buffered.flush();
        }

        @Override
        public void close() {
            held.close();
        }
    }

    /**
     * {@code POST /tablespaces/<name>/check?maxStopMillis=M}: the leader starts a check of all tables with its followers. Each part blocks
     * writes for at most M ms.
     */
    private Answer check(Copy copy, Request request) throws BadRequestException {
        Duration longestStop = Duration.ofMillis(request.number("maxStopMillis", 1, LONGEST_STOP_MILLIS, DEFAULT_STOP_MILLIS));
        try {
            FullChecks.Order order = node.fullChecks().start(copy.tablespace(), longestStop);
            Map<String, Object> json = copy.json();
            json.put("started", order.started());
            json.put("fullCheck", order.check());
            return Answer.json(order.started() ? 202 : 200, json);
        } catch (OrderRefusedException error) {
            return Answer.error(409, error.getMessage());
        }
    }

    /**
     * {@code POST /tablespaces/<name>/close-ledger?ledger=L}: the leader closes the ledger that it writes, and opens the next. Any
     * node closes one that a leader has left unlisted.
     */
    private static Answer closeLedger(Copy copy, Request request) throws BadRequestException {
        long only = request.number("ledger", 0, Long.MAX_VALUE, -1L);
        try {
            LedgerChange change = copy.log().closeLedger(only);
            Map<String, Object> json = copy.json();
            json.put("closed", change.closed() < 0 ? null : change.closed());
            json.put("lastEntry", change.closed() < 0 ? null : change.lastEntry());
            json.put("open", change.open() < 0 ? null : change.open());
            return Answer.json(200, json);
        } catch (NotWritingException error) {
            return Answer.error(409, error.getMessage());
        } catch (NotNowException error) {
            return Answer.error(503, error.getMessage());
        } catch (LogNotAvailableException error) {
            return Answer.error(503, "the change failed, and the tablespace boots again: " + error);
        }
    }

    /** {@code POST /tablespaces/<name>/checkpoint}: a follower writes its tables to its disk, so that its next boot replays less. */
    private Answer checkpoint(Copy copy, Request request) {
        if (copy.tablespace().isLeader()) {
            return Answer.error(409, "this node leads the tablespace, and a checkpoint would hold its writes: ask a follower");
        }
        long start = System.nanoTime();
        try {
            Map<String, Object> json = copy.json();
            json.put("checkpoint", Position.of(copies.checkpoint(copy.tablespace())));
            json.put("millis", (System.nanoTime() - start) / 1_000_000);
            return Answer.json(200, json);
        } catch (OrderRefusedException error) {
            return Answer.error(409, error.getMessage());
        }
    }
}
