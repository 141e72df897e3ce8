package herddb.index;

import herddb.sql.SQLRecordKeyFunction;

/** A range of primary keys, instead of HerdDB's class of this name; {@link KeyRange} has the reason. */
public final class PrimaryIndexRangeScan implements IndexOperation {

    public final String[] columnsToMatch;
    public final SQLRecordKeyFunction minValue;
    public final SQLRecordKeyFunction maxValue;

    /** The range that a statement asks for; it is widened as {@link KeyRange} says. */
    public PrimaryIndexRangeScan(String[] columnsToMatch, SQLRecordKeyFunction minValue, SQLRecordKeyFunction maxValue) {
        this(new KeyRange(minValue, maxValue).first(), new KeyRange(minValue, maxValue).last(), columnsToMatch);
    }

    private PrimaryIndexRangeScan(SQLRecordKeyFunction minValue, SQLRecordKeyFunction maxValue, String... columnsToMatch) {
        this.columnsToMatch = columnsToMatch;
        this.minValue = minValue;
        this.maxValue = maxValue;
    }

    /** From one key to another as they are stored, both included, each of them null where there is no limit. */
    public static PrimaryIndexRangeScan ofStoredKeys(SQLRecordKeyFunction first, SQLRecordKeyFunction last) {
        return new PrimaryIndexRangeScan(first, last);
    }

    @Override
    public String getIndexName() {
        return "PRIMARY KEY";
    }
}
