package herddb.model.commands;

import herddb.index.PrimaryIndexSeek;
import herddb.model.ConstValueRecordFunction;
import herddb.model.DMLStatement;
import herddb.model.Predicate;
import herddb.model.StatementEvaluationContext;
import herddb.model.StatementExecutionException;
import herddb.utils.Bytes;

/** A deletion of rows, instead of HerdDB's class of this name: see {@link Computing}. */
public final class DeleteStatement extends DMLStatement {

    private final Predicate predicate;

    /** @param key of the one row that may be deleted, or null; {@code predicate} tells, too, which rows are, unless it is null */
    public DeleteStatement(String tablespace, String table, Bytes key, Predicate predicate) {
        super(table, tablespace);
        ConstValueRecordFunction row = key == null ? null : new ConstValueRecordFunction(key);
        this.predicate = Computing.condition(predicate != null ? predicate : new UpdateStatement.OfKey(row));
        if (row != null) {
            this.predicate.setIndexOperation(new PrimaryIndexSeek(row));
        }
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
        return super.estimateObjectSizeForCache() + predicate.estimateObjectSizeForCache();
    }

    @Override
    public String toString() {
        return "DeleteStatement{predicate=" + predicate + '}';
    }
}
