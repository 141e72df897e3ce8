package herddb.sql.expressions;

import herddb.model.StatementEvaluationContext;
import herddb.model.StatementExecutionException;
import herddb.utils.DataAccessor;
import herddb.utils.ObjectSizeUtils;
import herddb.utils.SQLRecordPredicateFunctions;
import herddb.utils.SQLRecordPredicateFunctions.CompareResult;
import java.util.List;

/**
 * An expression. It takes the place of HerdDB's interface of this name, which subtracts whole numbers to compare them. The difference may
 * overflow: there, {@code 5 > column} is false for the least of all longs.
 */
public interface CompiledSQLExpression {

    /** Its value for a row. */
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

    /** The values with which this compares a column by an operator: an index finds rows by them. */
    default List<CompiledSQLExpression> scanForConstraintedValueOnColumnWithOperator(
            String column, String operator, BindableTableScanColumnNameResolver columns) {
        return List.of();
    }

    /** The conditions on a column. */
    default List<CompiledSQLExpression> scanForConstraintsOnColumn(String column, BindableTableScanColumnNameResolver columns) {
        return List.of();
    }

    /** This expression, converted to a type. */
    default CompiledSQLExpression cast(int type) {
        return new CastExpression(this, type);
    }

    /** This expression for a row that has only the columns of the key. HerdDB expects IllegalStateException where there is none. */
    default CompiledSQLExpression remapPositionalAccessToToPrimaryKeyAccessor(int[] projection) {
        throw new IllegalStateException("not implemented for " + getClass());
    }

    /** About how many bytes it takes in the cache of plans. */
    default int estimateObjectSizeForCache() {
        return ObjectSizeUtils.DEFAULT_OBJECT_SIZE_OVERHEAD;
    }

    /** This expression, or a simpler one with the same value. */
    default CompiledSQLExpression simplify() {
        return this;
    }
}
