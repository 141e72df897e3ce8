package herddb.sql.expressions;

import herddb.model.StatementExecutionException;
import herddb.sql.SQLRecordPredicate;
import java.util.function.BinaryOperator;
import java.util.function.LongBinaryOperator;

/**
 * Shared code of the operators and casts that replace HerdDB's. For HerdDB's, NULL is 0, and a number that is too large is cut.
 *
 * <p>In this package are {@link CompiledAddExpression}, {@link CompiledSubtractExpression}, {@link CompiledMultiplyExpression},
 * {@link CompiledDivideExpression}, {@link CompiledModuloExpression}, {@link CompiledSignedExpression}, {@link CastExpression},
 * {@link ConstantExpression}, {@link TypedJdbcParameterExpression}, {@link AccessCurrentRowExpression}, {@link CompiledSQLExpression},
 * {@link CompiledLikeExpression} and {@link CompiledParenthesisExpression}.
 */
final class Arithmetic {

    private Arithmetic() {
    }

    /** Of whole numbers by {@code whole}, which throws ArithmeticException; of others as HerdDB does it. */
    static Object of(Object one, Object other, LongBinaryOperator whole, BinaryOperator<Object> others) {
        if (one == null || other == null) {
            return null;
        }
        if (!Values.isWhole(one) || !Values.isWhole(other)) {
            return others.apply(one, other);
        }
        try {
            return whole.applyAsLong(((Number) one).longValue(), ((Number) other).longValue());
        } catch (ArithmeticException error) {
            throw new StatementExecutionException("can't compute with " + one + " and " + other + ": " + error.getMessage(), error);
        }
    }

    /** HerdDB cuts decimals off, takes NaN for 0, and the largest whole number for any that is larger. */
    static long whole(double number) {
        if (number != Math.rint(number) || number < Long.MIN_VALUE || number >= -(double) Long.MIN_VALUE) {
            throw new StatementExecutionException(number + " is not a whole number, or too large for an int or long");
        }
        return (long) number;
    }

    /** As HerdDB casts, but for numbers that are too large. */
    static Object cast(Object value, int type) {
        ColumnValues.refuseUnfit(value, type);
        return SQLRecordPredicate.cast(value, type);
    }
}
