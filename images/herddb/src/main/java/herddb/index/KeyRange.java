package herddb.index;

import herddb.model.Column;
import herddb.model.ColumnTypes;
import herddb.model.ColumnsList;
import herddb.model.InvalidNullValueForKeyException;
import herddb.model.Record;
import herddb.model.StatementEvaluationContext;
import herddb.model.TableContext;
import herddb.sql.SQLRecordKeyFunction;
import herddb.sql.expressions.UnfitNumberException;
import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.List;

/**
 * The keys of an index between which a scan finds all matching rows. The reader checks each row again.
 *
 * <p>HerdDB compares keys byte by byte. So a negative number comes after all others, and a text of a composite key after all shorter ones.
 */
final class KeyRange {

    private static final byte[] BEFORE_ALL = {};
    private static final byte[] BEHIND_ALL = filled();
    private static final byte[][] EVERYWHERE = {BEFORE_ALL, BEHIND_ALL};

    private final SQLRecordKeyFunction least;
    private final SQLRecordKeyFunction most;

    /** From and to the keys that are asked for, each of them null where there is no limit. */
    KeyRange(SQLRecordKeyFunction least, SQLRecordKeyFunction most) {
        this.least = least;
        this.most = most;
    }

    SQLRecordKeyFunction first() {
        return new Bound(0);
    }

    SQLRecordKeyFunction last() {
        return new Bound(1);
    }

    private static byte[] filled() {
        byte[] bytes = new byte[Long.BYTES * Long.BYTES];
        Arrays.fill(bytes, (byte) -1);
        return bytes;
    }

    private byte[][] keys(StatementEvaluationContext context, TableContext table) {
        Column[] columns = (least == null ? most : least).getColumns();
        byte[] from = value(least, context, table);
        byte[] to = value(most, context, table);
        if (columns.length != 1) {
            return EVERYWHERE;
        }
        return switch (columns[0].type) {
            case ColumnTypes.STRING, ColumnTypes.NOTNULL_STRING, ColumnTypes.BYTEARRAY, ColumnTypes.NOTNULL_BYTEARRAY ->
                ordered(from == null ? BEFORE_ALL : from, to);
            case ColumnTypes.INTEGER, ColumnTypes.NOTNULL_INTEGER, ColumnTypes.LONG, ColumnTypes.NOTNULL_LONG -> whole(from, to);
            default -> EVERYWHERE;
        };
    }

    /** All but one condition by NULL, which no row meets, or by a number that is too large for the column. */
    private static byte[] value(SQLRecordKeyFunction bound, StatementEvaluationContext context, TableContext table) {
        try {
            return bound == null ? null : bound.computeNewValue(null, context, table);
        } catch (InvalidNullValueForKeyException | UnfitNumberException none) {
            return null;
        }
    }

    /** Numbers of one sign are in their order. */
    private static byte[][] whole(byte[] from, byte[] to) {
        int bytes = (from == null ? to : from) == null ? Long.BYTES : (from == null ? to : from).length;
        if (from != null && from[0] >= 0) {
            return ordered(from, to == null || to[0] < 0 ? greatest(bytes) : to);
        }
        if (to != null && to[0] < 0) {
            return ordered(from == null ? ByteBuffer.allocate(bytes).put(Byte.MIN_VALUE).array() : from, to);
        }
        return EVERYWHERE;
    }

    private static byte[] greatest(int bytes) {
        byte[] key = Arrays.copyOf(BEHIND_ALL, bytes);
        key[0] = Byte.MAX_VALUE;
        return key;
    }

    /** HerdDB refuses a range whose end is before its beginning. */
    private static byte[][] ordered(byte[] from, byte[] to) {
        byte[] last = to == null ? BEHIND_ALL : to;
        return new byte[][] {from, Arrays.compareUnsigned(from, last) > 0 ? from : last};
    }

    /** One end, as HerdDB asks for it. */
    private final class Bound extends SQLRecordKeyFunction {

        private final int end;

        Bound(int end) {
            super(List.of(), List.of(), NoColumns.INSTANCE);
            this.end = end;
        }

        @Override
        public byte[] computeNewValue(Record previous, StatementEvaluationContext context, TableContext table) {
            return keys(context, table)[end];
        }
    }

    private enum NoColumns implements ColumnsList {
        INSTANCE;

        @Override
        public Column[] getColumns() {
            return new Column[0];
        }

        @Override
        public Column getColumn(String name) {
            return null;
        }

        @Override
        public String[] getPrimaryKey() {
            return new String[0];
        }

        @Override
        public boolean allowNullsForIndexedValues() {
            return false;
        }
    }
}
