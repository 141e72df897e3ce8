package herddb.sql.expressions;

import herddb.model.StatementEvaluationContext;
import herddb.model.StatementExecutionException;
import herddb.utils.DataAccessor;
import herddb.utils.SQLRecordPredicateFunctions;

/** NOT, instead of HerdDB's class of this name, for which NOT NULL is true. */
public final class CompiledParenthesisExpression implements CompiledSQLExpression {

    private final boolean not;
    private final CompiledSQLExpression inner;

    public CompiledParenthesisExpression(boolean not, CompiledSQLExpression inner) {
        this.not = not;
        this.inner = inner;
    }

    @Override
    public Object evaluate(DataAccessor row, StatementEvaluationContext context) throws StatementExecutionException {
        Object value = inner.evaluate(row, context);
        return not && value != null ? (Object) !SQLRecordPredicateFunctions.toBoolean(value) : value;
    }

    @Override
    public void validate(StatementEvaluationContext context) throws StatementExecutionException {
        inner.validate(context);
    }

    @Override
    public CompiledSQLExpression remapPositionalAccessToToPrimaryKeyAccessor(int[] projection) {
        return new CompiledParenthesisExpression(not, inner.remapPositionalAccessToToPrimaryKeyAccessor(projection));
    }
}
