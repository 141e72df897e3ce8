package io.herdkeeper.node.digest;

import herddb.core.AbstractTableManager;
import herddb.core.TableSpaceManager;
import herddb.log.LogSequenceNumber;
import io.herdkeeper.node.log.FollowerGate.Hold;
import io.herdkeeper.node.log.NodeCommitLog;
import io.herdkeeper.node.refusals.OrderRefusedException;
import java.time.Duration;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.TimeoutException;

/**
 * The digest of a follower's tables exactly after one entry of the log.
 *
 * <p>Rows are read without a lock ({@link StoredRows#visit}), so that checkpoints and heartbeats continue. That is sound here: the log
 * consumer is the only writer of a follower's tables, and it is held. So no key appears or disappears while the primary key index is read.
 */
public final class FollowerDigest {

    private final TableSpaceManager tableSpace;
    private final NodeCommitLog log;

    public FollowerDigest(TableSpaceManager tableSpace, NodeCommitLog log) {
        this.tableSpace = tableSpace;
        this.log = log;
    }

    /** Rows and digest of one table. */
    public record TableDigest(long rows, String digest) {
    }

    /** All committed tables after {@code position}. */
    public record Result(LogSequenceNumber position, Map<String, TableDigest> tables, int openTransactions, long scanMillis) {
    }

    /**
     * Waits until the follower has applied {@code target}, holds it there, scans, and lets it go on.
     *
     * @param wait how long it may take until the follower is there
     * @param scan how long the scan may take then, in which the follower does not go on
     * @throws OrderRefusedException the node leads the tablespace, or stops or changed its role meanwhile; or the follower has applied more
     *                               than {@code target}, or is held by another request
     * @throws TimeoutException      it did not come there, or the scan did not end, in time
     */
    public Result at(LogSequenceNumber target, Duration wait, Duration scan)
            throws OrderRefusedException, TimeoutException, InterruptedException {
        checkFollows();
        try (Hold hold = log.gate().holdAt(target, wait)) {
            long start = System.nanoTime();
            long deadline = start + scan.toNanos();
            int openTransactions = tableSpace.getOpenTransactions().size();
            Map<String, TableDigest> tables = new TreeMap<>();
            for (AbstractTableManager table : StoredRows.tables(tableSpace)) {
                tables.put(table.getTable().name, scan(table, deadline));
            }
            checkFollows();
            if (!log.appliedPosition().equals(target)) {
                throw new OrderRefusedException("the log moved to " + log.appliedPosition() + " while it was scanned");
            }
            return new Result(target, tables, openTransactions, (System.nanoTime() - start) / 1_000_000);
        }
    }

    private TableDigest scan(AbstractTableManager table, long deadline) throws TimeoutException {
        RowDigest digest = new RowDigest();
        boolean complete = StoredRows.visit(table, null, null, row -> {
            digest.add(row);
            return System.nanoTime() - deadline < 0;
        });
        if (!complete) {
            throw new TimeoutException("the scan of " + table.getTable().name + " ended after " + digest.rows() + " rows");
        }
        return new TableDigest(digest.rows(), digest.hex());
    }

    private void checkFollows() throws OrderRefusedException {
        checkFollows(tableSpace);
    }

    /**
     * That a copy of a tablespace is a follower's and runs.
     *
     * @throws OrderRefusedException it leads, or stops or boots
     */
    public static void checkFollows(TableSpaceManager tableSpace) throws OrderRefusedException {
        if (tableSpace.isLeader()) {
            throw new OrderRefusedException("this node leads the tablespace, and a leader is never held: ask a follower");
        }
        if (tableSpace.isClosed() || tableSpace.isFailed()) {
            throw new OrderRefusedException("the tablespace is stopping or rebooting on this node: ask again");
        }
    }
}
