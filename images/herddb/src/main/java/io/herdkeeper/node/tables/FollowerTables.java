package io.herdkeeper.node.tables;

import herddb.core.AbstractIndexManager;
import herddb.core.AbstractTableManager;
import herddb.core.TableSpaceManager;
import herddb.log.LogSequenceNumber;
import herddb.model.Table;
import io.herdkeeper.node.digest.FollowerDigest;
import io.herdkeeper.node.digest.StoredRows;
import io.herdkeeper.node.log.FollowerGate.Hold;
import io.herdkeeper.node.log.NodeCommitLog;
import io.herdkeeper.node.refusals.OrderRefusedException;
import io.netty.util.concurrent.DefaultThreadFactory;
import java.io.IOException;
import java.io.OutputStream;
import java.io.UncheckedIOException;
import java.time.Duration;
import java.util.Map;
import java.util.concurrent.ScheduledFuture;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

/**
 * All tables of a follower exactly after one entry of the log: the base of a checkpoint if the log has lost its beginning.
 *
 * <p>The follower is held where no transaction is open: the changes of an open transaction are in its own memory, not in the tables, and
 * its entries are before that position. Rows are read as for a digest ({@link FollowerDigest}). No writer and no other replica waits; a
 * leader is never held.
 */
public final class FollowerTables implements AutoCloseable {

    /** Lets followers go on whose rows somebody asked for and does not take. */
    private static final ScheduledThreadPoolExecutor CLOCK = clock();

    private final TableSpaceManager tableSpace;
    private final NodeCommitLog log;
    private final Hold hold;
    private final long deadline;
    private final ScheduledFuture<?> letGo;

    private FollowerTables(TableSpaceManager tableSpace, NodeCommitLog log, Hold hold, Duration limit) {
        this.tableSpace = tableSpace;
        this.log = log;
        this.hold = hold;
        this.deadline = System.nanoTime() + limit.toNanos();
        this.letGo = CLOCK.schedule(hold::close, limit.toNanos(), TimeUnit.NANOSECONDS);
    }

    /**
     * Waits until no transaction is open on the follower, and holds it there until it is closed, or the limit is over.
     *
     * @param wait  how long it may take until it stands there
     * @param limit how long it may be held
     * @throws OrderRefusedException the node leads the tablespace, or stops or boots, or somebody else holds it
     * @throws TimeoutException      there was no such position in time
     */
    public static FollowerTables held(TableSpaceManager tableSpace, NodeCommitLog log, Duration wait, Duration limit)
            throws OrderRefusedException, TimeoutException, InterruptedException {
        FollowerDigest.checkFollows(tableSpace);
        Hold hold;
        try {
            hold = log.gate().holdWhen(() -> tableSpace.getOpenTransactions().isEmpty(), wait);
        } catch (TimeoutException error) {
            throw new TimeoutException("transactions were open at each position that was examined within " + wait.toSeconds()
                    + " s (now " + tableSpace.getOpenTransactions().size() + "), or the follower did not move: " + error.getMessage());
        }
        return new FollowerTables(tableSpace, log, hold, limit);
    }

    /** Writes all of it as {@link TablesWriter} says; what goes wrong on this node ends it with the reason. */
    public void writeTo(OutputStream stream) throws IOException {
        TablesWriter writer = new TablesWriter(stream);
        LogSequenceNumber position = hold.position();
        writer.position(position.ledgerId, position.offset, tableSpace.getTableSpaceUUID());
        try {
            for (AbstractTableManager table : StoredRows.tables(tableSpace)) {
                write(writer, table);
            }
            checkHeld();
        } catch (UncheckedIOException error) {
            throw error.getCause();
        } catch (OrderRefusedException | TimeoutException | RuntimeException error) {
            writer.failure(error instanceof RuntimeException ? error.toString() : error.getMessage());
            return;
        }
        // Before whoever reads this learns that it is whole, so that he can have the same follower held again.
        close();
        writer.end();
    }

    /** Lets the follower go on; without effect the second time. */
    @Override
    public void close() {
        letGo.cancel(false);
        hold.close();
    }

    private void write(TablesWriter writer, AbstractTableManager manager) throws IOException, OrderRefusedException, TimeoutException {
        Table table = manager.getTable();
        writer.table(manager.getNextPrimaryKeyValue(), table.serialize());
        Map<String, AbstractIndexManager> indexes = tableSpace.getIndexesOnTable(table.name);
        if (indexes != null) {
            for (AbstractIndexManager index : indexes.values()) {
                writer.index(index.isAvailable(), index.getIndex().serialize());
            }
        }
        try {
            manager.scanForIndexRebuild(row -> {
                try {
                    checkHeld();
                    writer.row(StoredRows.buffer(row.key), StoredRows.buffer(row.value));
                } catch (IOException error) {
                    throw new UncheckedIOException(error);
                } catch (OrderRefusedException | TimeoutException error) {
                    throw new Ended(error);
                }
            });
        } catch (Ended ended) {
            if (ended.getCause() instanceof TimeoutException late) {
                throw late;
            }
            throw (OrderRefusedException) ended.getCause();
        }
        writer.endTable();
    }

    /** Behind each row, so that none is sent that another position has. */
    private void checkHeld() throws OrderRefusedException, TimeoutException {
        if (System.nanoTime() - deadline > 0) {
            throw new TimeoutException("the follower was held for the allowed time, and continues");
        }
        FollowerDigest.checkFollows(tableSpace);
        if (!log.appliedPosition().equals(hold.position())) {
            throw new OrderRefusedException("the log moved to " + log.appliedPosition() + " while its tables were read");
        }
    }

    private static ScheduledThreadPoolExecutor clock() {
        ScheduledThreadPoolExecutor clock = new ScheduledThreadPoolExecutor(1, new DefaultThreadFactory("held-followers", true));
        clock.setRemoveOnCancelPolicy(true);
        return clock;
    }

    /** Carries the reason out of HerdDB's scan. */
    private static final class Ended extends RuntimeException {

        private static final long serialVersionUID = 1L;

        Ended(Exception cause) {
            super(null, cause, false, false);
        }
    }
}
