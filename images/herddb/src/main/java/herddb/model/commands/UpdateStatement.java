package herddb.model.commands;

import herddb.model.ConstValueRecordFunction;
import herddb.model.Predicate;
import herddb.model.Record;
import herddb.model.RecordFunction;
import herddb.utils.ObjectSizeUtils;

/**
 * New values of rows, instead of HerdDB's class of this name. That one, given only a key, also changes each row that the transaction has
 * inserted.
 */
public final class UpdateStatement extends ChangeStatement {

    private final RecordFunction function;

    public UpdateStatement(String tablespace, String table, Record record, Predicate predicate) {
        this(tablespace, table, new ConstValueRecordFunction(record.key), new ConstValueRecordFunction(record.value), predicate);
    }

    public UpdateStatement(String tablespace, String table, RecordFunction key, RecordFunction function, Predicate predicate) {
        super(tablespace, table, key, predicate);
        this.function = Computing.values(function);
    }

    public RecordFunction getFunction() {
        return function;
    }

    @Override
    public int estimateObjectSizeForCache() {
        return super.estimateObjectSizeForCache() + ObjectSizeUtils.BOOLEAN_FIELD_SIZE + function.estimateObjectSizeForCache();
    }

    @Override
    public String toString() {
        return "UpdateStatement{function=" + function + ", predicate=" + getPredicate() + '}';
    }
}
