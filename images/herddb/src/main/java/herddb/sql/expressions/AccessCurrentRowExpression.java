package herddb.sql.expressions;

import herddb.model.StatementEvaluationContext;
import herddb.model.StatementExecutionException;
import herddb.utils.DataAccessor;
import herddb.utils.SQLRecordPredicateFunctions.CompareResult;

/** A column of the row, instead of HerdDB's class of this name, which subtracts numbers to compare them: then 2^63 - 1 is less than -5. */
public final class AccessCurrentRowExpression implements CompiledSQLExpression {

    private final int index;
    private final int expectedType;

    public AccessCurrentRowExpression(int index, int type) {
        this.index = index;
        this.expectedType = type;
    }

    @Override
    public Object evaluate(DataAccessor row, StatementEvaluationContext context) throws StatementExecutionException {
        return row.get(index);
    }

    @Override
    public boolean opEqualsTo(DataAccessor row, StatementEvaluationContext context, CompiledSQLExpression right) {
        Object other = right.evaluate(row, context);
        return other != null && row.fieldEqualsTo(index, other);
    }

    @Override
    public boolean opNotEqualsTo(DataAccessor row, StatementEvaluationContext context, CompiledSQLExpression right) {
        Object other = right.evaluate(row, context);
        return other != null && row.fieldNotEqualsTo(index, other);
    }

    @Override
    public CompareResult opCompareTo(DataAccessor row, StatementEvaluationContext context, CompiledSQLExpression right) {
        Object other = right.evaluate(row, context);
        if (other == null) {
            return CompareResult.NULL;
        }
        Object own = Values.isWhole(other) ? row.get(index) : null;
        return Values.isWhole(own) ? CompareResult.fromInt(Values.compare(own, other)) : row.fieldCompareTo(index, other);
    }

    @Override
    public CompiledSQLExpression remapPositionalAccessToToPrimaryKeyAccessor(int[] projection) {
        int position = projection[index];
        if (position < 0) {
            throw new IllegalStateException("column " + index + " is not in the primary key"); // HerdDB expects it
        }
        return new AccessCurrentRowExpression(position, expectedType);
    }

    public int getIndex() {
        return index;
    }

    public int getExpectedType() {
        return expectedType;
    }

    @Override
    public String toString() {
        return "AccessCurrentRow{" + index + '}';
    }
}
