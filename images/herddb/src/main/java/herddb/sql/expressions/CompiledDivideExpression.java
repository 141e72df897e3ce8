package herddb.sql.expressions;

import herddb.model.StatementEvaluationContext;
import herddb.model.StatementExecutionException;
import herddb.utils.DataAccessor;
import herddb.utils.SQLRecordPredicateFunctions;

/** The operator /, whose result is always a double, instead of HerdDB's class of this name, for which NULL is 0. */
public final class CompiledDivideExpression extends CompiledBinarySQLExpression {

    public CompiledDivideExpression(CompiledSQLExpression left, CompiledSQLExpression right) {
        super(left, right);
    }

    @Override
    public Object evaluate(DataAccessor row, StatementEvaluationContext context) throws StatementExecutionException {
        Object one = left.evaluate(row, context);
        Object other = right.evaluate(row, context);
        return one == null || other == null ? null : SQLRecordPredicateFunctions.divide(one, other);
    }
}
