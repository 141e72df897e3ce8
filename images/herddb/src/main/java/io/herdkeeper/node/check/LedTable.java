package io.herdkeeper.node.check;

import herddb.core.AbstractTableManager;
import herddb.core.TableSpaceManager;
import herddb.log.LogSequenceNumber;
import herddb.model.Table;
import herddb.utils.Bytes;
import io.herdkeeper.node.digest.RowDigest;
import io.herdkeeper.node.digest.StoredRows;
import io.herdkeeper.node.internals.HerdInternals;
import io.herdkeeper.node.refusals.OrderRefusedException;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.StampedLock;
import java.util.function.LongSupplier;

/**
 * A table that a leader reads in parts, in the order of its keys. It writes the digest of each part to the log.
 *
 * <p>A part is read and logged under the tablespace's write lock: no statement runs, everything logged is applied, and no checkpoint runs.
 * Its rows are those of a follower at that entry. Writes continue between two parts; a later part covers changes after the last one.
 *
 * <p>A part is as large as can be read in half of the allowed pause. The other half is for the lock, since a waiter for the lock blocks
 * new statements. At least one row is read.
 */
final class LedTable {

    private final TableSpaceManager tablespace;
    private final Table table;
    private final String check;
    private final long halfNanos;
    private final LongSupplier nanos;
    private int part;
    private Bytes after;
    private boolean complete;
    private boolean gone;

    LedTable(TableSpaceManager tablespace, Table table, String check, Duration longestStop, LongSupplier nanos) {
        this.tablespace = tablespace;
        this.table = table;
        this.check = check;
        this.halfNanos = longestStop.toNanos() / 2;
        this.nanos = nanos;
    }

    /** Whether its last part was read. */
    boolean isComplete() {
        return complete;
    }

    /** Whether it was dropped or renamed before. */
    boolean isGone() {
        return gone;
    }

    /**
     * Reads the next part.
     *
     * @return the position of its entry, once the bookies have that; null when statements were under way for too long, or the table is gone
     * @throws OrderRefusedException this node does not lead the tablespace any more
     */
    Future<LogSequenceNumber> next() throws OrderRefusedException, InterruptedException {
        StampedLock lock = HerdInternals.statementLock(tablespace);
        long stamp = lock.tryWriteLock(halfNanos, TimeUnit.NANOSECONDS);
        if (stamp == 0) {
            return null;
        }
        try {
            return read();
        } finally {
            lock.unlockWrite(stamp);
        }
    }

    private CompletableFuture<LogSequenceNumber> read() throws OrderRefusedException {
        FullChecks.refuseUnlessLed(tablespace);
        AbstractTableManager rows = tablespace.getTableManager(table.name);
        if (rows == null || !rows.getTable().uuid.equals(table.uuid)) {
            gone = true;
            return null;
        }
        long deadline = nanos.getAsLong() + halfNanos;
        RowDigest digest = new RowDigest();
        Bytes[] last = {null};
        complete = StoredRows.visit(rows, after, null, row -> {
            digest.add(row);
            last[0] = row.key;
            return nanos.getAsLong() - deadline < 0;
        });
        CheckEntry entry = new CheckEntry(check, tablespace.getDbmanager().getNodeId(), table.uuid, part, after,
                complete ? null : last[0], digest.rows(), digest.hex());
        part++;
        after = last[0];
        return tablespace.getLog().log(entry.of(rows.getTable()), true).logSequenceNumber;
    }
}
