package herddb.model.planner;

import herddb.codec.RecordSerializer;
import herddb.core.AbstractTableManager;
import herddb.core.TableSpaceManager;
import herddb.model.Column;
import herddb.model.DMLStatement;
import herddb.model.DMLStatementExecutionResult;
import herddb.model.DataScanner;
import herddb.model.DataScannerException;
import herddb.model.ScanResult;
import herddb.model.StatementEvaluationContext;
import herddb.model.StatementExecutionException;
import herddb.model.StatementExecutionResult;
import herddb.model.Table;
import herddb.model.TableAwareStatement;
import herddb.model.TransactionContext;
import herddb.utils.Bytes;
import herddb.utils.DataAccessor;
import herddb.utils.LocalLockManager;
import herddb.utils.Wrapper;
import io.herdkeeper.node.log.LogFailures;
import io.herdkeeper.node.log.NodeCommitLog;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.function.Function;

/**
 * A change for each row of a query, one after the other. HerdDB's operators never answer if HerdDB throws at another row than the first. They
 * change rows from the second one in other threads, and keep the locks of one that waits in vain.
 *
 * <p>Each row counts by itself: those before a refused one stay.
 */
public abstract class ChangeOp implements PlannerOp {

    final String tablespace;
    final String tableName;
    private final PlannerOp input;
    /** Null where nobody told. */
    private volatile Table planned;

    ChangeOp(String tablespace, String tableName, PlannerOp input) {
        this.tablespace = tablespace;
        this.tableName = tableName;
        this.input = input.optimize();
    }

    @Override
    public final String getTablespace() {
        return tablespace;
    }

    /** Tells which columns the table has as this is planned. A statement may wait for an ALTER TABLE, and HerdDB goes by their order. */
    public final void plannedFor(TableSpaceManager manager) {
        AbstractTableManager table = planned != null || manager == null ? null : manager.getTableManager(tableName);
        if (table != null) {
            planned = table.getTable();
        }
    }

    /** Reads all rows of the query before one is changed. */
    final <T> List<T> rows(TableSpaceManager manager, TransactionContext transaction, StatementEvaluationContext context,
            Function<DataAccessor, T> change) {
        if (planned != null) {
            refuseAltered(planned, table(manager));
        }
        List<T> changes = new ArrayList<>();
        try (DataScanner scanner = ((ScanResult) input.execute(manager, transaction, context, true, true)).dataScanner) {
            while (scanner.hasNext()) {
                changes.add(change.apply(scanner.next()));
            }
        } catch (DataScannerException error) {
            throw new StatementExecutionException(error);
        }
        return changes;
    }

    /** Whether a change needs the values of columns that were added since it was planned: the rows of the query lack them. */
    boolean needsAllColumns() {
        return false;
    }

    /** Those that were added come last. */
    private void refuseAltered(Table before, Table now) {
        boolean lacks = needsAllColumns() && now.columnNames.length > before.columnNames.length;
        if (now != before && (lacks || !PlannedRows.hasFirst(now.columnNames, before.columnNames))) {
            throw new StatementExecutionException("the columns of table " + now.name + " were changed while this statement was planned, and"
                    + " nothing was written: repeat it");
        }
    }

    final Table table(TableSpaceManager manager) {
        return manager.getTableManager(tableName).getTable();
    }

    /** The table with the columns that the rows of the query have. */
    final Table plannedTable(TableSpaceManager manager) {
        Table before = planned;
        return before == null ? table(manager) : before;
    }

    static Bytes key(DataAccessor row, Table table) {
        return RecordSerializer.serializeIndexKey(row, table, table.getPrimaryKey());
    }

    /** The result has the number of rows, and the last one. */
    static CompletableFuture<StatementExecutionResult> each(List<DMLStatement> changes, TableSpaceManager manager,
            TransactionContext transaction, StatementEvaluationContext context) {
        CompletableFuture<StatementExecutionResult> last =
                CompletableFuture.completedFuture(new DMLStatementExecutionResult(transaction.transactionId, 0, null, null));
        for (DMLStatement change : changes) {
            last = last.thenCompose(before -> stepOrUnknown(change, manager, transaction, context).thenApply(done -> sum(before, done)));
        }
        return last;
    }

    static DMLStatementExecutionResult sum(StatementExecutionResult before, StatementExecutionResult step) {
        DMLStatementExecutionResult after = (DMLStatementExecutionResult) step;
        return new DMLStatementExecutionResult(after.transactionId,
                ((DMLStatementExecutionResult) before).getUpdateCount() + after.getUpdateCount(), after.getKey(), after.getNewvalue());
    }

    /** HerdDB may throw behind the log as well as before it. */
    private static CompletableFuture<StatementExecutionResult> stepOrUnknown(
            DMLStatement change, TableSpaceManager manager, TransactionContext transaction, StatementEvaluationContext context) {
        try {
            return step(change, manager, transaction, context);
        } catch (RuntimeException | Error error) {
            return CompletableFuture.failedFuture(LogFailures.outcomeUnknown(error));
        }
    }

    /** HerdDB answers what it expects. If it throws, it keeps a lock of the table, for which the next checkpoint would wait for ever. */
    static CompletableFuture<StatementExecutionResult> step(
            DMLStatement change, TableSpaceManager manager, TransactionContext transaction, StatementEvaluationContext context) {
        try {
            return transaction.transactionId > 0 ? manager.executeStatementAsync(change, context, transaction)
                    : LocalLockManager.letGoOnFailure(() -> manager.executeStatementAsync(change, context, transaction));
        } catch (RuntimeException | Error error) {
            if (!manager.isClosed() && manager.getLog() instanceof NodeCommitLog log) {
                log.end(error);
            }
            throw error;
        }
    }

    @Override
    public final <T> T unwrap(Class<T> type) {
        return type.isAssignableFrom(TableAwareStatement.class)
                ? type.cast(new TableAwareStatement(tableName, tablespace) {
                }) : Wrapper.unwrap(this, type);
    }

    @Override
    public final Column[] getOutputSchema() {
        return new Column[0];
    }
}
