package herddb.sql.expressions;

import herddb.model.StatementEvaluationContext;
import herddb.model.StatementExecutionException;
import herddb.utils.DataAccessor;

/** A sign, instead of HerdDB's class of this name, for which the least whole number is its own negative. */
public final class CompiledSignedExpression implements CompiledSQLExpression {

    private final char sign;
    private final CompiledSQLExpression inner;

    public CompiledSignedExpression(char sign, CompiledSQLExpression inner) {
        this.sign = sign;
        this.inner = inner;
    }

    @Override
    public Object evaluate(DataAccessor row, StatementEvaluationContext context) throws StatementExecutionException {
        Object value = inner.evaluate(row, context);
        return sign == '-' ? negative(value) : value;
    }

    private static Object negative(Object value) {
        if (value instanceof Integer number && number != Integer.MIN_VALUE) {
            return -number;
        }
        if (value instanceof Integer || value instanceof Long) {
            return Arithmetic.of(0L, value, Math::subtractExact, null);
        }
        if (value instanceof Double || value instanceof Float) {
            return -((Number) value).doubleValue();
        }
        throw new StatementExecutionException("can't compute the negative of " + value);
    }

    @Override
    public void validate(StatementEvaluationContext context) throws StatementExecutionException {
        inner.validate(context);
    }
}
