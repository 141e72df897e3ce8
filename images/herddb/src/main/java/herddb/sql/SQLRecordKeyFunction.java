package herddb.sql;

import herddb.codec.RecordSerializer;
import herddb.model.Column;
import herddb.model.ColumnsList;
import herddb.model.InvalidNullValueForKeyException;
import herddb.model.Record;
import herddb.model.RecordFunction;
import herddb.model.StatementEvaluationContext;
import herddb.model.StatementExecutionException;
import herddb.model.TableContext;
import herddb.sql.expressions.ColumnValues;
import herddb.sql.expressions.CompiledSQLExpression;
import herddb.utils.DataAccessor;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** The key of a row or of an index, or its beginning, instead of HerdDB's class of this name; {@link ColumnValues} has the reason. */
public class SQLRecordKeyFunction extends RecordFunction {

    private final ColumnsList table;
    private final Column[] columns;
    private final List<CompiledSQLExpression> expressions;
    private final String[] keyColumns;
    private final boolean isConstant;

    /** @param table or an index */
    public SQLRecordKeyFunction(List<String> columns, List<CompiledSQLExpression> expressions, ColumnsList table) {
        this.table = table;
        this.columns = columns.stream().map(table::getColumn).toArray(Column[]::new);
        this.expressions = expressions;
        this.keyColumns = Arrays.stream(table.getPrimaryKey()).filter(columns::contains).toArray(String[]::new);
        this.isConstant = expressions.stream().allMatch(SQLRecordPredicate::isConstant);
    }

    /** Whether it computes all columns of a key. */
    public final boolean isFullPrimaryKey() {
        return table.getPrimaryKey().length == columns.length;
    }

    /** Those that it computes. */
    public final Column[] getColumns() {
        return columns.clone();
    }

    @Override
    public byte[] computeNewValue(Record previous, StatementEvaluationContext context, TableContext tableContext)
            throws StatementExecutionException {
        SQLStatementEvaluationContext statement = (SQLStatementEvaluationContext) context;
        byte[] computed = isConstant ? statement.getConstant(this) : null;
        if (computed == null) {
            computed = serialized(values(previous == null ? DataAccessor.NULL : previous.getDataAccessor(tableContext.getTable()), context));
            if (isConstant) {
                statement.cacheConstant(this, computed);
            }
        }
        return computed;
    }

    private Map<String, Object> values(DataAccessor row, StatementEvaluationContext context) {
        Map<String, Object> values = new HashMap<>();
        for (int i = 0; i < columns.length; i++) {
            CompiledSQLExpression expression = expressions.get(i);
            values.put(columns[i].name, ColumnValues.of(columns[i], () -> notNull(expression.evaluate(row, context), values)));
        }
        return values;
    }

    private static Object notNull(Object value, Map<String, Object> before) {
        if (value == null) {
            throw new InvalidNullValueForKeyException("error while converting primary key " + before + ", keys cannot be null");
        }
        return value;
    }

    private byte[] serialized(Map<String, Object> values) {
        try {
            return RecordSerializer.serializePrimaryKeyRaw(values, table, keyColumns);
        } catch (RuntimeException error) {
            throw new StatementExecutionException("error while converting primary key " + values + ": " + error, error);
        }
    }

    @Override
    public String toString() {
        return "SQLRecordKeyFunction{columns=" + Arrays.toString(keyColumns) + ", exp=" + expressions + '}';
    }
}
