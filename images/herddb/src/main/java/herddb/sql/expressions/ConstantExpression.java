package herddb.sql.expressions;

import herddb.model.ColumnTypes;
import herddb.model.StatementEvaluationContext;
import herddb.model.StatementExecutionException;
import herddb.utils.DataAccessor;

/** A constant, instead of HerdDB's class of this name, which cuts one that is too large for the type that it is cast to. */
public final class ConstantExpression implements CompiledSQLExpression {

    private final Object value;
    private final int type;

    public ConstantExpression(Object value, int type) {
        this.value = value;
        this.type = type;
    }

    public Object getValue() {
        return value;
    }

    public int getType() {
        return type;
    }

    public boolean isNull() {
        return value == null;
    }

    @Override
    public Object evaluate(DataAccessor row, StatementEvaluationContext context) throws StatementExecutionException {
        return value;
    }

    @Override
    public CompiledSQLExpression cast(int to) {
        if (type == to) {
            return this;
        }
        try {
            return new ConstantExpression(Arithmetic.cast(value, to), to);
        } catch (UnfitNumberException error) {
            return new CastExpression(this, to); // refused when it is used, with its column; an index is read without it
        }
    }

    @Override
    public CompiledSQLExpression remapPositionalAccessToToPrimaryKeyAccessor(int[] projection) {
        return this;
    }

    @Override
    public String toString() {
        return "ConstantExpression{" + value + ", type=" + ColumnTypes.typeToString(type) + '}';
    }
}
