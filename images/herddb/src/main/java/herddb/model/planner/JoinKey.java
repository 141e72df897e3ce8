package herddb.model.planner;

import herddb.sql.expressions.Values;
import herddb.utils.DataAccessor;
import herddb.utils.RawString;
import org.apache.calcite.linq4j.function.Function1;

/** The key of a join, instead of HerdDB's class of this name. For that one NULL equals NULL, and a negative INT differs from the same LONG. */
final class JoinKey implements Comparable<JoinKey> {

    private final Object[] values;

    private JoinKey(Object[] values) {
        this.values = values;
    }

    static Function1<DataAccessor, JoinKey> keyExtractor(int[] fields) {
        return row -> {
            Object[] values = new Object[fields.length];
            for (int i = 0; i < fields.length; i++) {
                values[i] = row.get(fields[i]);
            }
            return new JoinKey(values);
        };
    }

    @Override
    public boolean equals(Object other) {
        return other instanceof JoinKey key && compareTo(key) == 0;
    }

    /** Of values that compare as equal. */
    @Override
    public int hashCode() {
        int hash = 0;
        for (Object value : values) {
            hash = 31 * hash + hash(value);
        }
        return hash;
    }

    static int hash(Object value) {
        if (value instanceof Number number) {
            return Double.hashCode(number.doubleValue());
        }
        return value == null ? 0 : value instanceof String text ? RawString.of(text).hashCode() : value.hashCode();
    }

    /** NULL comes behind all else, and equals nothing: of two, the first is called the smaller one, as a merge needs it. */
    @Override
    public int compareTo(JoinKey other) {
        for (int i = 0; i < values.length; i++) {
            if (values[i] == null || other.values[i] == null) {
                return other.values[i] == null ? -1 : 1;
            }
            int compared = Values.compare(values[i], other.values[i]);
            if (compared != 0) {
                return compared;
            }
        }
        return 0;
    }
}
