package herddb.sql;

import herddb.codec.RecordSerializer;
import herddb.model.ColumnTypes;
import herddb.model.Record;
import herddb.model.RecordFunction;
import herddb.model.StatementEvaluationContext;
import herddb.model.StatementExecutionException;
import herddb.model.Table;
import herddb.model.TableContext;
import herddb.sql.expressions.ColumnValues;
import herddb.sql.expressions.CompiledSQLExpression;
import herddb.utils.DataAccessor;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * The values of a row but its key, instead of HerdDB's class of this name; {@link ColumnValues} has the reason.
 *
 * <p>A statement may wait for an ALTER TABLE behind its planning. HerdDB writes the row as it was planned: an UPDATE loses the values of a column
 * that was added meanwhile.
 */
public final class SQLRecordFunction extends RecordFunction {

    private final Table table;
    private final Map<String, CompiledSQLExpression> expressions = new HashMap<>();

    public SQLRecordFunction(List<String> columns, Table table, List<CompiledSQLExpression> expressions) {
        this.table = table;
        for (int i = 0; i < columns.size(); i++) {
            this.expressions.put(columns.get(i), expressions.get(i));
        }
    }

    /** @param previous of an INSERT a row with a key and no value */
    @Override
    public byte[] computeNewValue(Record previous, StatementEvaluationContext context, TableContext tableContext)
            throws StatementExecutionException {
        try {
            Table now = tableContext == null ? table : tableContext.getTable();
            boolean inserts = previous == null || previous.value == null;
            if (now != table) {
                refuseAltered(now, inserts);
            }
            Map<String, Object> kept = previous == null ? Map.of() : previous.toBean(now);
            DataAccessor row = previous == null ? DataAccessor.NULL : previous.getDataAccessor(table);
            int size = inserts ? 0 : previous.value.getLength();
            return RecordSerializer.buildRecord(size, now, column -> {
                CompiledSQLExpression expression = expressions.get(column);
                return expression == null ? kept.get(column) : ColumnValues.of(now.getColumn(column), () -> expression.evaluate(row, context));
            });
        } catch (IllegalArgumentException error) {
            throw new StatementExecutionException(error);
        }
    }

    /** No row has the values of columns that are gone, and a new one needs those that were added, unless they may be NULL. */
    private void refuseAltered(Table now, boolean inserts) {
        boolean lacks = Arrays.stream(table.columnNames).anyMatch(column -> now.getColumn(column) == null)
                || inserts && Arrays.stream(now.columns).anyMatch(column -> table.getColumn(column.name) == null
                        && (column.defaultValue != null || ColumnTypes.isNotNullDataType(column.type)));
        if (lacks) {
            throw new StatementExecutionException("the columns of table " + table.name + " were changed while this statement was planned, and"
                    + " nothing was written: repeat it");
        }
    }

    @Override
    public String toString() {
        return "SQLRecordFunction{table=" + table + ", exp=" + expressions + '}';
    }
}
