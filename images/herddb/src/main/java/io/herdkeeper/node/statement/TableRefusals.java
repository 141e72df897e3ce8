package io.herdkeeper.node.statement;

import herddb.core.AbstractIndexManager;
import herddb.core.AbstractTableManager;
import herddb.core.TableSpaceManager;
import herddb.model.StatementExecutionException;
import herddb.model.Table;
import herddb.model.TransactionContext;
import herddb.model.commands.AlterTableStatement;
import java.util.Locale;
import java.util.Map;

/** What of a whole table is refused: to drop, alter, rename or truncate it, or to give it a name. */
final class TableRefusals {

    private TableRefusals() {
    }

    /** HerdDB logs a DROP of one and can't apply it, then or at any later boot. It compares names without regard to case. */
    static void refuseSystemTable(TableSpaceManager tablespace, String table) {
        AbstractTableManager manager = tablespace.getTableManager(table.toLowerCase(Locale.ROOT));
        if (manager != null && manager.isSystemTable()) {
            throw new StatementExecutionException("nothing was changed: " + table + " is one of HerdDB's system tables, which it makes itself");
        }
    }

    /**
     * Refuses to drop or alter a table whose transaction is still open.
     *
     * <p>HerdDB allows it to any session. If that transaction is rolled back after the DROP, the table comes back on each node that boots from a
     * later local checkpoint, and on no other. Names are compared without regard to case, as by HerdDB.
     *
     * @param own the transaction that asks, which may go on with its own table; null where it may not
     */
    static void refuseUncommitted(TableSpaceManager tablespace, String table, TransactionContext own) {
        for (Table other : tablespace.getAllTablesForPlanner()) {
            AbstractTableManager manager = other.name.equalsIgnoreCase(table) ? tablespace.getTableManager(other.name) : null;
            long maker = manager == null ? 0 : manager.getCreatedInTransaction();
            if (maker > 0 && (own == null || own.transactionId != maker)) {
                throw new StatementExecutionException("nothing was changed: transaction " + maker + " makes the table " + other.name
                        + " and has not been committed; commit it or roll it back first");
            }
        }
    }

    /**
     * HerdDB applies a COMMIT by the names of tables: what the transaction did to a table that was dropped meanwhile would be done to this
     * one, which lacks the rows.
     */
    static void refuseName(TableSpaceManager tablespace, String table) {
        if (tablespace.getTableManager(table) != null) {
            return;
        }
        if (isInATransaction(tablespace, table, TransactionContext.NOTRANSACTION_ID)) {
            throw new StatementExecutionException("there can't be a table " + tablespace.getTableSpaceName() + "." + table
                    + " yet, and nothing was changed: a transaction is open on an earlier table " + table
                    + ", which was dropped; commit it or roll it back first");
        }
        AbstractIndexManager index = IndexRefusals.uniqueIndex(tablespace, table);
        if (index != null) {
            throw new StatementExecutionException("a table in tablespace " + tablespace.getTableSpaceName() + " can't have the name " + table
                    + " of the unique index on table " + index.getIndex().table + ", and nothing was changed: give it another name");
        }
    }

    /**
     * HerdDB would put the table in the other one's place, and lose what a transaction has changed under the old name. An index keeps the old
     * name: the next boot would leave it out, or take it for one of another table, and none would come to an end behind its DROP.
     */
    static void refuseRename(TableSpaceManager tablespace, AlterTableStatement alter, TransactionContext transaction) {
        String refused = "table " + tablespace.getTableSpaceName() + "." + alter.getTable() + " is not renamed: ";
        boolean renames = !alter.getNewTableName().equalsIgnoreCase(alter.getTable());
        if (renames && tablespace.getTableManager(alter.getNewTableName()) != null) {
            throw new StatementExecutionException(refused + "there is a table " + alter.getNewTableName());
        }
        if (isInATransaction(tablespace, alter.getTable(), transaction.transactionId)) {
            throw new StatementExecutionException(refused + "a transaction is open on it; commit it or roll it back first");
        }
        Map<String, AbstractIndexManager> indexes = tablespace.getIndexesOnTable(alter.getTable());
        if (renames && indexes != null) {
            throw new StatementExecutionException(refused + "the index " + String.join(", ", indexes.keySet())
                    + " would be lost; drop it first, and create it again");
        }
        refuseName(tablespace, alter.getNewTableName());
    }

    static void refuseTruncate(TableSpaceManager tablespace, String table) {
        AbstractTableManager manager = tablespace.getTableManager(table);
        if (manager == null) {
            return; // HerdDB says so
        }
        String refused = "TRUNCATE TABLE " + tablespace.getTableSpaceName() + "." + table + " is refused, and nothing was changed: ";
        if (manager.getCreatedInTransaction() > 0) {
            throw new StatementExecutionException(refused + "the transaction that creates the table is open");
        }
        if (isInATransaction(tablespace, table, 0)) {
            throw new StatementExecutionException(refused + "a transaction is open on it; commit it or roll it back first");
        }
        Map<String, AbstractIndexManager> indexes = tablespace.getIndexesOnTable(table);
        if (indexes != null && !indexes.values().stream().allMatch(AbstractIndexManager::isAvailable)) {
            throw new StatementExecutionException(
                    refused + "an earlier version left an index of it unusable, since its transaction was rolled back; drop the index");
        }
    }

    static boolean isInATransaction(TableSpaceManager tablespace, String table, long ownTransaction) {
        return tablespace.getTransactions().stream().anyMatch(open -> open.transactionId != ownTransaction
                && (open.isOnTable(table) || open.changedRecords.containsKey(table)));
    }
}
