package herddb.index;

import herddb.sql.SQLRecordKeyFunction;

/** A range of primary keys, in place of HerdDB's class of this name; {@link KeyRange} says why. */
public final class PrimaryIndexRangeScan implements IndexOperation {

    public final String[] columnsToMatch;
    public final SQLRecordKeyFunction minValue;
    public final SQLRecordKeyFunction maxValue;

    public PrimaryIndexRangeScan(String[] columnsToMatch, SQLRecordKeyFunction minValue, SQLRecordKeyFunction maxValue) {
        KeyRange range = new KeyRange(minValue, maxValue);
        this.columnsToMatch = columnsToMatch;
        this.minValue = range.first();
        this.maxValue = range.last();
    }

    @Override
    public String getIndexName() {
        return "PRIMARY KEY";
    }
}
