package herddb.index;

import herddb.sql.SQLRecordKeyFunction;

/** A range of an index, instead of HerdDB's class of this name; {@link KeyRange} has the reason. */
public final class SecondaryIndexRangeScan implements IndexOperation {

    public final String indexName;
    public final String[] columnsToMatch;
    public final SQLRecordKeyFunction minValue;
    public final SQLRecordKeyFunction maxValue;

    public SecondaryIndexRangeScan(String indexName, String[] columnsToMatch, SQLRecordKeyFunction minValue, SQLRecordKeyFunction maxValue) {
        KeyRange range = new KeyRange(minValue, maxValue);
        this.indexName = indexName;
        this.columnsToMatch = columnsToMatch;
        this.minValue = range.first();
        this.maxValue = range.last();
    }

    @Override
    public String getIndexName() {
        return indexName;
    }
}
