package herddb.sql.expressions;

import herddb.model.ColumnTypes;
import herddb.model.StatementEvaluationContext;
import herddb.model.StatementExecutionException;
import herddb.utils.DataAccessor;

/** A parameter, instead of HerdDB's class of this name, which cuts a number that its type can't hold. */
public final class TypedJdbcParameterExpression implements CompiledSQLExpression {

    private final int index;
    private final int type;

    public TypedJdbcParameterExpression(int index, int type) {
        this.index = index;
        this.type = type;
    }

    @Override
    public Object evaluate(DataAccessor row, StatementEvaluationContext context) throws StatementExecutionException {
        Object value = context.getJdbcParameter(index);
        try {
            return Arithmetic.cast(value instanceof Double number && isWhole() ? Arithmetic.whole(number) : value, type);
        } catch (IllegalArgumentException error) {
            throw new StatementExecutionException("JDBC parameter " + (index + 1) + " has a bad type: " + error.getMessage(), error);
        }
    }

    private boolean isWhole() {
        return switch (type) {
            case ColumnTypes.INTEGER, ColumnTypes.NOTNULL_INTEGER, ColumnTypes.LONG, ColumnTypes.NOTNULL_LONG -> true;
            default -> false;
        };
    }

    @Override
    public void validate(StatementEvaluationContext context) throws StatementExecutionException {
        context.getJdbcParameter(index);
    }

    @Override
    public CompiledSQLExpression cast(int type) {
        return new TypedJdbcParameterExpression(index, type);
    }

    @Override
    public CompiledSQLExpression remapPositionalAccessToToPrimaryKeyAccessor(int[] projection) {
        return this;
    }
}
