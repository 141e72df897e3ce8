package herddb.model.commands;

import herddb.index.PrimaryIndexSeek;
import herddb.model.ConstValueRecordFunction;
import herddb.model.DMLStatement;
import herddb.model.Predicate;
import herddb.model.Record;
import herddb.model.RecordFunction;
import herddb.model.StatementEvaluationContext;
import herddb.model.StatementExecutionException;
import herddb.utils.Bytes;
import herddb.utils.ObjectSizeUtils;

/**
 * A change of rows, instead of HerdDB's class of this name. That one, given only a key, also changes each row that the transaction has
 * inserted. What can't be computed is refused: see {@link Computing}.
 */
public final class UpdateStatement extends DMLStatement {

    private final RecordFunction function;
    private final Predicate predicate;

    public UpdateStatement(String tablespace, String table, Record record, Predicate predicate) {
        this(tablespace, table, new ConstValueRecordFunction(record.key), new ConstValueRecordFunction(record.value), predicate);
    }

    /** @param key of the one row that may be changed, or null; {@code predicate} tells, too, which rows are, unless it is null */
    public UpdateStatement(String tablespace, String table, RecordFunction key, RecordFunction function, Predicate predicate) {
        super(table, tablespace);
        this.function = Computing.values(function);
        this.predicate = Computing.condition(predicate != null ? predicate : new OfKey(key));
        if (key != null) {
            this.predicate.setIndexOperation(new PrimaryIndexSeek(key));
        }
    }

    public RecordFunction getFunction() {
        return function;
    }

    public Predicate getPredicate() {
        return predicate;
    }

    @Override
    public void validateContext(StatementEvaluationContext context) throws StatementExecutionException {
        predicate.validateContext(context);
    }

    @Override
    public int estimateObjectSizeForCache() {
        return super.estimateObjectSizeForCache() + ObjectSizeUtils.BOOLEAN_FIELD_SIZE + function.estimateObjectSizeForCache()
                + predicate.estimateObjectSizeForCache();
    }

    @Override
    public String toString() {
        return "UpdateStatement{function=" + function + ", predicate=" + predicate + '}';
    }

    /** Met by one row, or by all. */
    static final class OfKey extends Predicate {

        private final RecordFunction key;

        OfKey(RecordFunction key) {
            this.key = key;
        }

        @Override
        public boolean evaluate(Record row, StatementEvaluationContext context) throws StatementExecutionException {
            return key == null || row.key.equals(Bytes.from_array(key.computeNewValue(null, context, null)));
        }

        @Override
        public String toString() {
            return key == null ? "true" : "key=" + key;
        }
    }
}
