package herddb.sql.expressions;

import herddb.codec.RecordSerializer;
import herddb.model.Column;
import herddb.model.ColumnTypes;
import herddb.model.InvalidNullValueForKeyException;
import herddb.model.StatementExecutionException;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.util.function.Supplier;

/** What a statement gives to a column. HerdDB stores the largest whole number for each that is larger, 0 for NaN, and 32 bits of a long. */
public final class ColumnValues {

    private ColumnValues() {
    }

    /** A computed value as {@link RecordSerializer} takes it; what is refused is told with the column. */
    public static Object of(Column column, Supplier<Object> computed) {
        return named(column, () -> {
            Object value = computed.get();
            refuseUnfit(value, column.type);
            return RecordSerializer.convert(column.type, value);
        });
    }

    /** What is refused while a value is computed is told with its column. */
    public static Object named(Column column, Supplier<Object> computed) {
        try {
            return computed.get();
        } catch (InvalidNullValueForKeyException error) {
            throw error;
        } catch (StatementExecutionException error) {
            String told = "error on column " + column.name + " (" + ColumnTypes.typeToString(column.type) + "):" + error.getMessage();
            throw error instanceof UnfitNumberException ? new UnfitNumberException(told) : new StatementExecutionException(told, error);
        }
    }

    /** A number that the type of a column, or of a CAST, can't hold. Decimals are cut off, as HerdDB does it. */
    public static void refuseUnfit(Object value, int type) {
        switch (type) {
            case ColumnTypes.INTEGER, ColumnTypes.NOTNULL_INTEGER -> refuseUnfit(value, "an int", Integer.MIN_VALUE, Integer.MAX_VALUE);
            case ColumnTypes.LONG, ColumnTypes.NOTNULL_LONG -> refuseUnfit(value, "a long", Long.MIN_VALUE, Long.MAX_VALUE);
            default -> {
            }
        }
    }

    private static void refuseUnfit(Object value, String type, long least, long most) {
        if (value instanceof Number number && !fits(number, least, most)) {
            double asDouble = number.doubleValue();
            throw new UnfitNumberException((Double.isNaN(asDouble) ? "NaN is no whole number" : value + " is too large for " + type)
                    + (Double.isFinite(asDouble) ? "" : ", as the result of a division by zero is")
                    + ": write NULL, or a number from " + least + " to " + most);
        }
    }

    private static boolean fits(Number number, long least, long most) {
        if (number instanceof Double || number instanceof Float) {
            double cut = number.doubleValue() < 0 ? Math.ceil(number.doubleValue()) : Math.floor(number.doubleValue());
            return cut >= least && cut < most + 1.0;
        }
        if (number instanceof BigDecimal || number instanceof BigInteger) {
            BigDecimal exact = new BigDecimal(number.toString()); // compared as it is: 1e1000000000 would fill the memory with digits
            return exact.compareTo(BigDecimal.valueOf(least).subtract(BigDecimal.ONE)) > 0
                    && exact.compareTo(BigDecimal.valueOf(most).add(BigDecimal.ONE)) < 0;
        }
        return number.longValue() >= least && number.longValue() <= most;
    }
}
