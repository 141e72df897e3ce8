package herddb.model.planner;

import herddb.core.TableSpaceManager;
import herddb.model.AutoIncrementPrimaryKeyRecordFunction;
import herddb.model.Column;
import herddb.model.DMLStatement;
import herddb.model.DMLStatementExecutionResult;
import herddb.model.DataScanner;
import herddb.model.DataScannerException;
import herddb.model.RecordFunction;
import herddb.model.ScanResult;
import herddb.model.StatementEvaluationContext;
import herddb.model.StatementExecutionException;
import herddb.model.StatementExecutionResult;
import herddb.model.Table;
import herddb.model.TableAwareStatement;
import herddb.model.TransactionContext;
import herddb.model.commands.InsertStatement;
import herddb.sql.SQLRecordFunction;
import herddb.sql.SQLRecordKeyFunction;
import herddb.sql.expressions.ColumnValues;
import herddb.sql.expressions.CompiledSQLExpression;
import herddb.sql.expressions.ConstantExpression;
import herddb.utils.DataAccessor;
import herddb.utils.Wrapper;
import io.herdkeeper.node.log.LogFailures;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;

/**
 * An INSERT of the rows of a query, or of several rows, instead of HerdDB's class of this name. That one takes NULL for a column that is
 * declared NOT NULL, and never answers if HerdDB throws at another row than the first.
 *
 * <p>Each row counts by itself: those before a refused one stay.
 */
public final class InsertOp implements PlannerOp {

    private final String tablespace;
    private final String tableName;
    private final PlannerOp input;
    private final boolean returnValues;
    private final boolean upsert;

    /** As HerdDB's planner makes it. */
    public InsertOp(String tablespace, String tableName, PlannerOp input, boolean returnValues, boolean upsert) {
        this.tablespace = tablespace;
        this.tableName = tableName;
        this.input = input.optimize();
        this.returnValues = returnValues;
        this.upsert = upsert;
    }

    @Override
    public String getTablespace() {
        return tablespace;
    }

    @Override
    public CompletableFuture<StatementExecutionResult> executeAsync(TableSpaceManager manager, TransactionContext transaction,
            StatementEvaluationContext context, boolean lockRequired, boolean forWrite) {
        Table table = manager.getTableManager(tableName).getTable();
        List<DMLStatement> rows = new ArrayList<>();
        long begun = transaction.transactionId;
        try (DataScanner scanner = ((ScanResult) input.execute(manager, transaction, context, true, true)).dataScanner) {
            while (scanner.hasNext()) {
                rows.add(insert(scanner.next(), table));
                begun = scanner.getTransactionId() > 0 ? scanner.getTransactionId() : begun;
            }
        } catch (DataScannerException error) {
            throw new StatementExecutionException(error);
        }
        if (rows.size() > 1 && returnValues) {
            throw new StatementExecutionException("cannot 'return values' on multi-values insert");
        }
        CompletableFuture<DMLStatementExecutionResult> last =
                CompletableFuture.completedFuture(new DMLStatementExecutionResult(begun, 0, null, null));
        for (DMLStatement row : rows) {
            last = last.thenCompose(before -> step(row, manager, new TransactionContext(before.transactionId), context).thenApply(done -> {
                DMLStatementExecutionResult after = (DMLStatementExecutionResult) done;
                return new DMLStatementExecutionResult(
                        after.transactionId, before.getUpdateCount() + after.getUpdateCount(), after.getKey(), after.getNewvalue());
            }));
        }
        return last.thenApply(done -> done);
    }

    /** @param row has the table's columns in their order */
    private DMLStatement insert(DataAccessor row, Table table) {
        List<String> keyColumns = new ArrayList<>();
        List<CompiledSQLExpression> keys = new ArrayList<>();
        List<String> columns = new ArrayList<>();
        List<CompiledSQLExpression> values = new ArrayList<>();
        for (int i = 0; i < table.columns.length; i++) {
            int index = i;
            Column column = table.columns[i];
            Object value = ColumnValues.named(column, () -> row.get(index));
            CompiledSQLExpression constant = new ConstantExpression(value, column.type);
            columns.add(column.name);
            values.add(constant);
            if (value != null && table.isPrimaryKeyColumn(column.name)) {
                keyColumns.add(column.name);
                keys.add(constant);
            }
        }
        if (keys.size() != table.primaryKey.length && !(keys.isEmpty() && table.auto_increment)) {
            throw new StatementExecutionException("you must set a value for the primary key (expressions=" + keys.size() + ")");
        }
        RecordFunction key = keys.isEmpty() ? new AutoIncrementPrimaryKeyRecordFunction() : new SQLRecordKeyFunction(keyColumns, keys, table);
        return new InsertStatement(tablespace, tableName, key, new SQLRecordFunction(columns, table, values), upsert)
                .setReturnValues(returnValues);
    }

    /** HerdDB may throw behind the log as well as before it. */
    private static CompletableFuture<StatementExecutionResult> step(
            DMLStatement row, TableSpaceManager manager, TransactionContext transaction, StatementEvaluationContext context) {
        try {
            return ReplaceOp.step(row, manager, transaction, context);
        } catch (RuntimeException | Error error) {
            return CompletableFuture.failedFuture(LogFailures.outcomeUnknown(error));
        }
    }

    @Override
    public <T> T unwrap(Class<T> type) {
        return type.isAssignableFrom(TableAwareStatement.class)
                ? type.cast(new TableAwareStatement(tableName, tablespace) {
                }) : Wrapper.unwrap(this, type);
    }

    @Override
    public Column[] getOutputSchema() {
        return new Column[0];
    }
}
