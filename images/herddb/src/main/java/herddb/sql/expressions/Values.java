package herddb.sql.expressions;

import herddb.utils.SQLRecordPredicateFunctions;
import herddb.utils.SQLRecordPredicateFunctions.CompareResult;

/** Compares like HerdDB, except whole numbers: HerdDB subtracts them, and the difference may overflow. */
public final class Values {

    private Values() {
    }

    /** Of two values that are not null: below 0 where the first is less. */
    public static int compare(Object one, Object other) {
        if (isWhole(one) && isWhole(other)) {
            return Long.compare(((Number) one).longValue(), ((Number) other).longValue());
        }
        CompareResult compared = SQLRecordPredicateFunctions.compareConsiderNull(one, other);
        return compared == CompareResult.EQUALS ? 0 : compared == CompareResult.GREATER ? 1 : -1;
    }

    /** Whether it has no decimals, as a column of the types int and long. */
    public static boolean isWhole(Object value) {
        return value instanceof Integer || value instanceof Long;
    }
}
