package herddb.model.planner;

import herddb.core.TableSpaceManager;
import herddb.model.AutoIncrementPrimaryKeyRecordFunction;
import herddb.model.Column;
import herddb.model.DMLStatement;
import herddb.model.RecordFunction;
import herddb.model.StatementEvaluationContext;
import herddb.model.StatementExecutionException;
import herddb.model.StatementExecutionResult;
import herddb.model.Table;
import herddb.model.TransactionContext;
import herddb.model.commands.InsertStatement;
import herddb.sql.SQLRecordFunction;
import herddb.sql.SQLRecordKeyFunction;
import herddb.sql.expressions.ColumnValues;
import herddb.sql.expressions.CompiledSQLExpression;
import herddb.sql.expressions.ConstantExpression;
import herddb.utils.DataAccessor;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;

/**
 * An INSERT of the rows of a query, or of several rows, instead of HerdDB's class of this name. That one takes NULL for a column that is
 * declared NOT NULL.
 */
public final class InsertOp extends ChangeOp {

    private final boolean returnValues;
    private final boolean upsert;

    /** As HerdDB's planner makes it. */
    public InsertOp(String tablespace, String tableName, PlannerOp input, boolean returnValues, boolean upsert) {
        super(tablespace, tableName, input);
        this.returnValues = returnValues;
        this.upsert = upsert;
    }

    @Override
    public CompletableFuture<StatementExecutionResult> executeAsync(TableSpaceManager manager, TransactionContext transaction,
            StatementEvaluationContext context, boolean lockRequired, boolean forWrite) {
        Table table = plannedTable(manager);
        List<DMLStatement> rows = rows(manager, transaction, context, row -> insert(row, table));
        if (rows.size() > 1 && returnValues) {
            throw new StatementExecutionException("cannot 'return values' on multi-values insert");
        }
        return each(rows, manager, transaction, context);
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
}
