package herddb.sql.expressions;

import herddb.model.StatementEvaluationContext;
import herddb.model.StatementExecutionException;
import herddb.utils.DataAccessor;
import herddb.utils.ObjectSizeUtils;
import herddb.utils.SQLRecordPredicateFunctions;
import herddb.utils.SQLRecordPredicateFunctions.CompareResult;
import java.util.List;

/**
 * An expression, instead of HerdDB's interface of this name, which subtracts numbers to compare them: {@code 5 > column} is false then for
 * the least of all longs.
 */
public interface CompiledSQLExpression {

    /** Its value, with the columns of a row. */
    Object evaluate(DataAccessor row, StatementEvaluationContext context) throws StatementExecutionException;

    /** Whether both are equal; false where one is NULL. */
    default boolean opEqualsTo(DataAccessor row, StatementEvaluationContext context, CompiledSQLExpression right) {
        Object own = evaluate(row, context);
        Object other = own == null ? null : right.evaluate(row, context);
        return other != null && SQLRecordPredicateFunctions.objectEquals(own, other);
    }

    /** Whether both differ; false where one is NULL. */
    default boolean opNotEqualsTo(DataAccessor row, StatementEvaluationContext context, CompiledSQLExpression right) {
        Object own = evaluate(row, context);
        Object other = own == null ? null : right.evaluate(row, context);
        return other != null && SQLRecordPredicateFunctions.objectNotEquals(own, other);
    }

    /** How both compare. */
    default CompareResult opCompareTo(DataAccessor row, StatementEvaluationContext context, CompiledSQLExpression right) {
        Object own = evaluate(row, context);
        Object other = right.evaluate(row, context);
        return Values.isWhole(own) && Values.isWhole(other) ? CompareResult.fromInt(Values.compare(own, other))
                : SQLRecordPredicateFunctions.compareConsiderNull(own, other);
    }

    /** Refuses parameters that are missing. */
    default void validate(StatementEvaluationContext context) throws StatementExecutionException {
    }

    /** With what this compares a column by an operator, for an index. */
    default List<CompiledSQLExpression> scanForConstraintedValueOnColumnWithOperator(
            String column, String operator, BindableTableScanColumnNameResolver columns) {
        return List.of();
    }

    /** The conditions on a column. */
    default List<CompiledSQLExpression> scanForConstraintsOnColumn(String column, BindableTableScanColumnNameResolver columns) {
        return List.of();
    }

    /** The same as another type. */
    default CompiledSQLExpression cast(int type) {
        return new CastExpression(this, type);
    }

    /** The same with the columns of a key; HerdDB expects IllegalStateException where that can't be. */
    default CompiledSQLExpression remapPositionalAccessToToPrimaryKeyAccessor(int[] projection) {
        throw new IllegalStateException("not implemented for " + getClass());
    }

    /** What it takes in the cache of plans, roughly. */
    default int estimateObjectSizeForCache() {
        return ObjectSizeUtils.DEFAULT_OBJECT_SIZE_OVERHEAD;
    }

    /** The same or a simpler one. */
    default CompiledSQLExpression simplify() {
        return this;
    }
}
