package herddb.model.commands;

import herddb.model.ConstValueRecordFunction;
import herddb.model.Predicate;
import herddb.utils.Bytes;

/** A deletion of rows, instead of HerdDB's class of this name. */
public final class DeleteStatement extends ChangeStatement {

    public DeleteStatement(String tablespace, String table, Bytes key, Predicate predicate) {
        super(tablespace, table, key == null ? null : new ConstValueRecordFunction(key), predicate);
    }

    @Override
    public String toString() {
        return "DeleteStatement{predicate=" + getPredicate() + '}';
    }
}
