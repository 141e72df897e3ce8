package herddb.sql.expressions;

import herddb.model.StatementEvaluationContext;
import herddb.model.StatementExecutionException;
import herddb.utils.DataAccessor;
import java.util.List;

/** CAST, instead of HerdDB's class of this name, which cuts a whole number that is too large for the type. */
public final class CastExpression implements CompiledSQLExpression {

    private final CompiledSQLExpression inner;
    private final int type;

    public CastExpression(CompiledSQLExpression inner, int type) {
        this.inner = inner;
        this.type = type;
    }

    @Override
    public Object evaluate(DataAccessor row, StatementEvaluationContext context) throws StatementExecutionException {
        try {
            return Arithmetic.cast(inner.evaluate(row, context), type);
        } catch (IllegalArgumentException error) {
            throw new StatementExecutionException(error);
        }
    }

    @Override
    public void validate(StatementEvaluationContext context) throws StatementExecutionException {
        inner.validate(context);
    }

    @Override
    public List<CompiledSQLExpression> scanForConstraintedValueOnColumnWithOperator(
            String column, String operator, BindableTableScanColumnNameResolver columns) {
        return inner.scanForConstraintedValueOnColumnWithOperator(column, operator, columns);
    }

    @Override
    public List<CompiledSQLExpression> scanForConstraintsOnColumn(String column, BindableTableScanColumnNameResolver columns) {
        return inner.scanForConstraintsOnColumn(column, columns);
    }

    @Override
    public CompiledSQLExpression cast(int type) {
        return inner.cast(type);
    }

    @Override
    public CompiledSQLExpression remapPositionalAccessToToPrimaryKeyAccessor(int[] projection) {
        return new CastExpression(inner.remapPositionalAccessToToPrimaryKeyAccessor(projection), type);
    }
}
