package io.herdkeeper.node.statement;

import herddb.core.AbstractIndexManager;
import herddb.core.AbstractTableManager;
import herddb.core.TableSpaceManager;
import herddb.model.Column;
import herddb.model.ColumnTypes;
import herddb.model.ForeignKeyDef;
import herddb.model.StatementExecutionException;
import herddb.model.Table;
import herddb.model.Transaction;
import herddb.model.TransactionContext;
import herddb.model.commands.AlterTableStatement;
import io.herdkeeper.node.log.LogFailures;
import java.util.Collections;
import java.util.HashSet;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.function.Supplier;

/** What of the columns of a table is refused, by a CREATE TABLE or an ALTER TABLE. */
final class ColumnRefusals {

    private static final int DEFINITION_BYTES = 1 << 20;
    private static final int MOST_COLUMNS = 128;

    private ColumnRefusals() {
    }

    /** HerdDB throws at a name of more than 64 KiB, and BookKeeper takes no entry of some megabytes: both would end the log. */
    static void refuseUnwritable(Supplier<byte[]> definition) {
        int size;
        try {
            size = definition.get().length;
        } catch (IllegalArgumentException expected) {
            return; // HerdDB says so
        } catch (RuntimeException error) {
            throw new StatementExecutionException("the definition can't be written, and nothing was changed: " + LogFailures.rootOf(error), error);
        }
        if (size > DEFINITION_BYTES) {
            throw new StatementExecutionException("the definition would have " + size + " bytes, and may have " + DEFINITION_BYTES
                    + ": nothing was changed");
        }
    }

    static void refuseUnreadColumns(Table before, AlterTableStatement alter) {
        Set<Integer> known = new HashSet<>();
        for (Column column : before.columns) {
            known.add(column.serialPosition);
        }
        try {
            refuseUnreadColumns(before.applyAlterTable(alter), known);
        } catch (IllegalArgumentException expected) {
            // HerdDB says so
        }
    }

    /**
     * A row has its values by the numbers of their columns. HerdDB takes a number above 127 for the row's end
     * ({@code ByteArrayCursor.readVIntNoEOFException}): it returns NULL from there on, and an UPDATE loses the values.
     */
    static void refuseUnreadColumns(Table table, Set<Integer> known) {
        for (Column column : table.columns) {
            if (column.serialPosition >= MOST_COLUMNS && !known.contains(column.serialPosition)) {
                throw new StatementExecutionException("nothing was changed: HerdDB reads " + MOST_COLUMNS
                        + " columns of a table, dropped ones included, and the column " + column.name + " of table " + table.tablespace + "."
                        + table.name + " would come after them. Divide the columns among several tables or, if columns were dropped, copy"
                        + " the rows to a new table");
            }
        }
    }

    /**
     * HerdDB drops columns with an index, and drops and renames those of foreign keys. Then it logs a DELETE that no node can apply, and
     * refuses whatever looks for a parent or a child.
     */
    static void refuseLostColumns(TableSpaceManager tablespace, AlterTableStatement alter, TransactionContext transaction) {
        AbstractTableManager manager = tablespace.getTableManager(alter.getTable());
        if (manager == null) {
            return; // HerdDB says so
        }
        Table table = manager.getTable();
        Set<String> lost = new HashSet<>();
        alter.getDropColumns().forEach(column -> lost.add(column.toLowerCase(Locale.ROOT)));
        for (Column changed : alter.getModifyColumns()) {
            Column before = table.getColumnBySerialPosition(changed.serialPosition);
            if (before != null && !before.name.equals(changed.name)) {
                lost.add(before.name);
            }
        }
        String refused = "column " + String.join(", ", lost) + " of table " + tablespace.getTableSpaceName() + "." + table.name
                + " stays as it is, since ";
        Transaction own = tablespace.getTransaction(transaction.transactionId);
        Map<String, AbstractIndexManager> indexes = tablespace.getIndexesOnTable(table.name);
        for (AbstractIndexManager index : indexes == null ? List.<AbstractIndexManager>of() : List.copyOf(indexes.values())) {
            boolean dropped = own != null && own.droppedIndexes != null && own.droppedIndexes.contains(index.getIndexName());
            if (!dropped && !Collections.disjoint(lost, List.of(index.getColumnNames()))) {
                throw new StatementExecutionException(refused + "the index " + index.getIndexName() + " needs it: drop that first");
            }
        }
        for (Table child : tablespace.getAllTablesForPlanner()) {
            for (ForeignKeyDef key : child.foreignKeys == null ? new ForeignKeyDef[0] : child.foreignKeys) {
                if (child.uuid.equals(table.uuid) && !Collections.disjoint(lost, List.of(key.columns))
                        || key.parentTableId.equals(table.uuid) && !Collections.disjoint(lost, List.of(key.parentTableColumns))) {
                    throw new StatementExecutionException(
                            refused + "the foreign key " + key.name + " of table " + child.name + " needs it: drop that first");
                }
            }
        }
    }

    /** HerdDB looks for a NULL, or for a row without its parent, among the rows that are committed. */
    static void refuseUncheckedRows(TableSpaceManager tablespace, AlterTableStatement alter, TransactionContext transaction) {
        AbstractTableManager altered = tablespace.getTableManager(alter.getTable());
        if (altered == null) {
            return; // HerdDB says so
        }
        Set<String> checked = new HashSet<>();
        for (Column changed : alter.getModifyColumns()) {
            Column before = altered.getTable().getColumnBySerialPosition(changed.serialPosition);
            if (before != null && !ColumnTypes.isNotNullDataType(before.type) && ColumnTypes.isNotNullDataType(changed.type)) {
                checked.add(alter.getTable());
            }
        }
        for (ForeignKeyDef key : alter.getAddForeignKeys()) {
            checked.add(alter.getTable());
            tablespace.getAllTablesForPlanner().stream().filter(table -> table.uuid.equals(key.parentTableId))
                    .forEach(parent -> checked.add(parent.name));
        }
        for (String table : checked) {
            if (TableRefusals.isInATransaction(tablespace, table, transaction.transactionId)) {
                throw new StatementExecutionException("ALTER TABLE " + tablespace.getTableSpaceName() + "." + alter.getTable()
                        + " is refused, and nothing was changed: a transaction is open on table " + table
                        + ", so its rows can't be checked; commit it or roll it back first");
            }
        }
    }
}
