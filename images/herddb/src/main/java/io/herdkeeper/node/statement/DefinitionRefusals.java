package io.herdkeeper.node.statement;

import herddb.core.AbstractIndexManager;
import herddb.core.AbstractTableManager;
import herddb.core.TableSpaceManager;
import herddb.model.Statement;
import herddb.model.Table;
import herddb.model.TransactionContext;
import herddb.model.commands.AlterTableStatement;
import herddb.model.commands.CreateIndexStatement;
import herddb.model.commands.CreateTableStatement;
import herddb.model.commands.DropIndexStatement;
import herddb.model.commands.DropTableStatement;
import herddb.model.commands.TruncateTableStatement;
import java.util.List;
import java.util.Map;
import java.util.Set;

/**
 * What is refused of a TRUNCATE or a change of definitions, before it is logged and while it runs alone in its tablespace; by its kind.
 * {@code docs/refused-statements.md} has the reasons.
 */
final class DefinitionRefusals {

    private DefinitionRefusals() {
    }

    static void refuse(TableSpaceManager tablespace, Statement statement, TransactionContext transaction) {
        if (statement instanceof TruncateTableStatement truncate) {
            TableRefusals.refuseTruncate(tablespace, truncate.getTable());
        } else if (statement instanceof DropTableStatement drop) {
            TableRefusals.refuseSystemTable(tablespace, drop.getTable());
            TableRefusals.refuseUncommitted(tablespace, drop.getTable(), null);
        } else if (statement instanceof DropIndexStatement drop) {
            for (Table table : tablespace.getAllTablesForPlanner()) {
                Map<String, AbstractIndexManager> indexes = tablespace.getIndexesOnTable(table.name);
                AbstractIndexManager index = indexes == null ? null : indexes.get(drop.getIndexName());
                if (index != null && index.getCreatedInTransaction() > 0) {
                    TableRefusals.refuseUncommitted(tablespace, table.name, null);
                }
            }
        } else if (statement instanceof CreateIndexStatement index) {
            TableRefusals.refuseSystemTable(tablespace, index.getIndexDefinition().table);
            ColumnRefusals.refuseUnwritable(index.getIndexDefinition()::serialize);
            IndexRefusals.refuseIndex(tablespace, index.getIndexDefinition(), transaction);
        } else if (statement instanceof AlterTableStatement alter && alter.getNewTableName() != null) {
            TableRefusals.refuseUncommitted(tablespace, alter.getTable(), transaction);
            TableRefusals.refuseRename(tablespace, alter, transaction);
        } else if (statement instanceof AlterTableStatement alter) {
            TableRefusals.refuseUncommitted(tablespace, alter.getTable(), transaction);
            AbstractTableManager altered = tablespace.getTableManager(alter.getTable());
            if (altered != null) {
                ColumnRefusals.refuseUnwritable(() -> altered.getTable().applyAlterTable(alter).serialize());
                ColumnRefusals.refuseUnreadColumns(altered.getTable(), alter);
            }
            ColumnRefusals.refuseLostColumns(tablespace, alter, transaction);
            ParentRefusals.refuseParents(tablespace, alter.getAddForeignKeys(), transaction);
            ColumnRefusals.refuseUncheckedRows(tablespace, alter, transaction);
        } else if (statement instanceof CreateTableStatement create) {
            Table table = create.getTableDefinition();
            ColumnRefusals.refuseUnwritable(table::serialize);
            create.getAdditionalIndexes().forEach(index -> ColumnRefusals.refuseUnwritable(index::serialize));
            TableRefusals.refuseUncommitted(tablespace, table.name, transaction);
            TableRefusals.refuseName(tablespace, table.name);
            IndexRefusals.refuseTwins(table, create.getAdditionalIndexes());
            if (tablespace.getTableManager(table.name) == null) {
                ColumnRefusals.refuseUnreadColumns(table, Set.of());
                create.getAdditionalIndexes().forEach(index -> IndexRefusals.refuseNameOfATable(tablespace, index, table.name));
            }
            ParentRefusals.refuseParents(tablespace, table.foreignKeys == null ? List.of() : List.of(table.foreignKeys), transaction);
        }
    }
}
