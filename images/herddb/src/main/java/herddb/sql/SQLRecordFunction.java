package herddb.sql;

import herddb.codec.RecordSerializer;
import herddb.model.Record;
import herddb.model.RecordFunction;
import herddb.model.StatementEvaluationContext;
import herddb.model.StatementExecutionException;
import herddb.model.Table;
import herddb.model.TableContext;
import herddb.sql.expressions.ColumnValues;
import herddb.sql.expressions.CompiledSQLExpression;
import herddb.utils.DataAccessor;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** The values of a row but its key, instead of HerdDB's class of this name; {@link ColumnValues} has the reason. */
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
            Map<String, Object> kept = previous == null ? Map.of() : previous.toBean(table);
            DataAccessor row = previous == null ? DataAccessor.NULL : previous.getDataAccessor(table);
            int size = previous == null || previous.value == null ? 0 : previous.value.getLength();
            return RecordSerializer.buildRecord(size, table, column -> {
                CompiledSQLExpression expression = expressions.get(column);
                return expression == null ? kept.get(column) : ColumnValues.of(table.getColumn(column), () -> expression.evaluate(row, context));
            });
        } catch (IllegalArgumentException error) {
            throw new StatementExecutionException(error);
        }
    }

    @Override
    public String toString() {
        return "SQLRecordFunction{table=" + table + ", exp=" + expressions + '}';
    }
}
