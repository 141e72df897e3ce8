package herddb.model.commands;

import herddb.index.PrimaryIndexSeek;
import herddb.model.DMLStatement;
import herddb.model.Predicate;
import herddb.model.Record;
import herddb.model.RecordFunction;
import herddb.model.StatementEvaluationContext;
import herddb.model.StatementExecutionException;
import herddb.utils.Bytes;

/** A change of the rows that meet a predicate. What can't be computed is refused: see {@link Computing}. */
abstract class ChangeStatement extends DMLStatement {

    private final Predicate predicate;

    /** @param key of the one row that may be changed, or null; {@code predicate} tells, too, which rows are, unless it is null */
    ChangeStatement(String tablespace, String table, RecordFunction key, Predicate predicate) {
        super(table, tablespace);
        this.predicate = condition(key, predicate);
    }

    static Predicate condition(RecordFunction key, Predicate predicate) {
        Predicate condition = Computing.condition(predicate != null ? predicate : new OfKey(key));
        if (key != null) {
            condition.setIndexOperation(new PrimaryIndexSeek(key));
        }
        return condition;
    }

    public final Predicate getPredicate() {
        return predicate;
    }

    @Override
    public final void validateContext(StatementEvaluationContext context) throws StatementExecutionException {
        predicate.validateContext(context);
    }

    @Override
    public int estimateObjectSizeForCache() {
        return super.estimateObjectSizeForCache() + predicate.estimateObjectSizeForCache();
    }

    /** Met by one row, or by all. */
    private static final class OfKey extends Predicate {

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
