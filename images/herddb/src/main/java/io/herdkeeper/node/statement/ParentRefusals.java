package io.herdkeeper.node.statement;

import herddb.core.TableSpaceManager;
import herddb.model.ForeignKeyDef;
import herddb.model.StatementExecutionException;
import herddb.model.Table;
import herddb.model.Transaction;
import herddb.model.TransactionContext;
import java.util.List;

/** Which foreign keys are refused, by a CREATE TABLE or an ALTER TABLE. */
final class ParentRefusals {

    private ParentRefusals() {
    }

    /**
     * HerdDB takes a table for a parent that a transaction has dropped, or that another one has made. Once it is gone, each INSERT of a child
     * would fail and keep a lock of its table, of which no checkpoint could be written any more. At a parent in another tablespace it throws
     * what it does not expect itself.
     */
    static void refuseParents(TableSpaceManager tablespace, List<ForeignKeyDef> keys, TransactionContext transaction) {
        Transaction own = tablespace.getTransaction(transaction.transactionId);
        for (ForeignKeyDef key : keys) {
            Table parent = tablespace.getAllTablesForPlanner().stream()
                    .filter(table -> table.uuid.equals(key.parentTableId)).findAny().orElse(null);
            if (parent == null) {
                throw new StatementExecutionException("the foreign key " + key.name + " is refused, and nothing was changed: there is no such"
                        + " parent table in tablespace " + tablespace.getTableSpaceName());
            }
            TableRefusals.refuseSystemTable(tablespace, parent.name);
            String refused = "the foreign key " + key.name + " is refused, and nothing was changed: a transaction ";
            String open = " has not been committed; commit it or roll it back first";
            if (tablespace.getTransactions().stream().anyMatch(each -> each.isTableDropped(parent.name))) {
                throw new StatementExecutionException(refused + "that drops the table " + parent.name + open);
            }
            if (tablespace.getTableManager(parent.name).getCreatedInTransaction() > 0 && (own == null || !own.isNewTable(parent.name))) {
                throw new StatementExecutionException(refused + "that makes the table " + parent.name + open);
            }
        }
    }
}
