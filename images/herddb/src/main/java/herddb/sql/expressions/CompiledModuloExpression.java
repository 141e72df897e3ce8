package herddb.sql.expressions;

import herddb.model.StatementEvaluationContext;
import herddb.model.StatementExecutionException;
import herddb.utils.DataAccessor;
import herddb.utils.SQLRecordPredicateFunctions;

/** MOD, instead of HerdDB's class of this name; {@link Arithmetic} has the reason. */
public final class CompiledModuloExpression extends CompiledBinarySQLExpression {

    public CompiledModuloExpression(CompiledSQLExpression left, CompiledSQLExpression right) {
        super(left, right);
    }

    @Override
    public Object evaluate(DataAccessor row, StatementEvaluationContext context) throws StatementExecutionException {
        return Arithmetic.of(left.evaluate(row, context), right.evaluate(row, context), (one, other) -> one % other, SQLRecordPredicateFunctions::modulo);
    }
}
