package io.herdkeeper.node.statement;

import herddb.core.AbstractTableManager;
import herddb.core.TableSpaceManager;
import herddb.model.ForeignKeyDef;
import herddb.model.StatementExecutionException;
import herddb.model.Table;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.function.Supplier;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * What ON DELETE CASCADE or SET NULL does to the rows that refer to a row: HerdDB executes a statement within the one that deletes the row,
 * before it deletes that.
 *
 * <p>So rows that refer to each other in a circle would be looked for again and again, until the stack is full. And where a table refers to
 * itself, by itself or through others, the inner statement may meet the rows of the outer one. Outside of a transaction it would wait for
 * their locks, that is for itself.
 */
record Cascade(String table, String change, String query, List<Object> values) {

    /** Each takes some 40 frames of a thread's stack. With the 512 KiB that the image gives to one, 40 levels worked, and 50 overflowed it. */
    private static final int LEVELS = 20;
    private static final Pattern CHANGE = Pattern.compile("(?:DELETE FROM|UPDATE) `[^`]+`\\.`([^`]+)`.*?( WHERE .*)");
    /** The outermost one comes first. */
    private static final ThreadLocal<List<Cascade>> UNDER_WAY = ThreadLocal.withInitial(ArrayList::new);

    /** What HerdDB asks for by a statement; null for a query, by which it checks a foreign key. */
    static Cascade of(String tablespace, String statement, List<Object> values) {
        Matcher change = CHANGE.matcher(statement);
        return change.matches() ? new Cascade(change.group(1), statement,
                "SELECT * FROM `" + tablespace + "`.`" + change.group(1) + "`" + change.group(2), new ArrayList<>(values)) : null;
    }

    /** Whether rows of its table may refer to rows of that table, so that a change of one changes another. */
    boolean comesBack(TableSpaceManager tablespace) {
        AbstractTableManager changed = tablespace == null ? null : tablespace.getTableManager(table);
        Deque<Table> parents = new ArrayDeque<>();
        Set<String> seen = new HashSet<>();
        for (Table parent = changed == null ? null : changed.getTable(); parent != null; parent = parents.poll()) {
            Table[] children = tablespace.collectChildrenTables(parent);
            for (Table child : children == null ? new Table[0] : children) {
                if (!changesWith(child, parent)) {
                    continue;
                }
                if (child.name.equals(table)) {
                    return true;
                }
                if (seen.add(child.uuid)) {
                    parents.add(child);
                }
            }
        }
        return false;
    }

    private static boolean changesWith(Table child, Table parent) {
        for (ForeignKeyDef key : child.foreignKeys) {
            if (key.parentTableId.equals(parent.uuid) && key.onDeleteAction != ForeignKeyDef.ACTION_NO_ACTION) {
                return true;
            }
        }
        return false;
    }

    void refuseWithoutTransaction(boolean findsRows) {
        if (findsRows) {
            throw new StatementExecutionException("rows of table " + table + " refer to the row, and this table refers to itself with ON DELETE"
                    + " CASCADE or SET NULL: delete it in a transaction");
        }
    }

    /** Executes it; null stands for a query, which goes no further. */
    static <T> T within(Cascade cascade, Supplier<T> statement) {
        if (cascade == null) {
            return statement.get();
        }
        List<Cascade> underWay = UNDER_WAY.get();
        if (underWay.contains(cascade)) {
            throw new StatementExecutionException("rows of table " + cascade.table + " refer to each other in a circle, with ON DELETE CASCADE"
                    + " or SET NULL: drop the foreign key first");
        }
        if (underWay.size() == LEVELS) {
            throw new StatementExecutionException("rows of table " + cascade.table + " refer to each other over more than " + LEVELS
                    + " levels, with ON DELETE CASCADE or SET NULL: delete the last ones first");
        }
        underWay.add(cascade);
        try {
            return statement.get();
        } finally {
            underWay.remove(underWay.size() - 1);
        }
    }
}
