package io.herdkeeper.node.leadership;

import herddb.core.AbstractTableManager;
import herddb.core.TableSpaceManager;
import herddb.model.Column;
import herddb.model.Table;
import herddb.server.Server;
import io.herdkeeper.node.background.Repeated;
import java.time.Duration;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.WeakHashMap;
import java.util.logging.Level;
import java.util.logging.Logger;
import java.util.stream.Collectors;

/**
 * Keeps the SQL planner of followers warm.
 *
 * <p>A follower plans no statement. The first plan after its promotion costs one to two seconds, in which classes are loaded. So one
 * statement of each kind is planned for each table of a follower. Planning executes and writes nothing, and the plan cache doesn't keep
 * these plans.
 */
public final class PlannerWarmer {

    private static final Logger LOGGER = Logger.getLogger(PlannerWarmer.class.getName());
    private static final Duration PAUSE = Duration.ofSeconds(2);

    private final Server server;
    /** Weak, since a table that is altered or booted again is another object. */
    private final Map<Table, Boolean> warmed = Collections.synchronizedMap(new WeakHashMap<>());

    public PlannerWarmer(Server server) {
        this.server = server;
    }

    /** Looks for new tables from now on, until the thread that it returns is interrupted. */
    public Thread start() {
        return Repeated.start("planner-warmer", PAUSE, this::warm);
    }

    /** Plans statements for the tables that are new since the last time, and gives the number of planned statements. */
    public int warm() {
        int planned = 0;
        for (String name : server.getManager().getLocalTableSpaces()) {
            TableSpaceManager tablespace = server.getManager().getTableSpaceManager(name);
            if (tablespace == null || tablespace.isVirtual() || tablespace.isLeader() || tablespace.isClosed()) {
                continue;
            }
            for (Table table : tablespace.getAllCommittedTables()) {
                AbstractTableManager manager = tablespace.getTableManager(table.name);
                if (manager != null && !manager.isSystemTable() && warmed.put(table, true) == null) {
                    planned += plan(name, table);
                }
            }
        }
        return planned;
    }

    private int plan(String tablespace, Table table) {
        String name = "`" + tablespace + "`.`" + table.name + "`";
        List<String> columns = java.util.Arrays.stream(table.columns).map(PlannerWarmer::quoted).toList();
        String key = java.util.Arrays.stream(table.primaryKey).map(column -> "`" + column + "`=?").collect(Collectors.joining(" and "));
        int planned = 0;
        for (String sql : List.of(
                "INSERT INTO " + name + "(" + String.join(",", columns) + ") VALUES("
                        + String.join(",", Collections.nCopies(columns.size(), "?")) + ")",
                "UPDATE " + name + " SET " + columns.get(columns.size() - 1) + "=? WHERE " + key,
                "DELETE FROM " + name + " WHERE " + key,
                "SELECT * FROM " + name + " WHERE " + key)) {
            try {
                List<Object> values = Collections.nCopies(columns.size() + table.primaryKey.length, null);
                server.getManager().getPlanner().translate(tablespace, sql, values, sql.startsWith("SELECT"), false, false, -1);
                planned++;
            } catch (RuntimeException error) {
                // Such a statement would fail for a client too; the others are still worth it.
                LOGGER.log(Level.FINE, "not plannable: " + sql, error);
            }
        }
        return planned;
    }

    private static String quoted(Column column) {
        return "`" + column.name + "`";
    }
}
