package io.herdkeeper.node.statement;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import herddb.core.TableManager;
import herddb.model.DataScanner;
import herddb.model.ScanResult;
import herddb.model.StatementExecutionException;
import herddb.model.TransactionContext;
import herddb.sql.TranslatedQuery;
import io.herdkeeper.node.testing.BookKeeperForTests;
import io.herdkeeper.node.testing.Node;
import io.herdkeeper.node.testing.RunningNode;
import java.time.Duration;
import java.util.List;
import java.util.TreeMap;
import java.util.TreeSet;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Statements that were planned before an ALTER TABLE, and waited for it. */
class AlteredTablesTest {

    private static final Duration LIMIT = Duration.ofSeconds(60);

    private static RunningNode leader;
    private static int tables;

    private String table;

    @BeforeAll
    static void start() throws Exception {
        leader = RunningNode.start("n0", BookKeeperForTests.running().newRoot(), null);
        leader.server().waitForTableSpaceBoot("herd", (int) LIMIT.toMillis(), true);
    }

    @AfterAll
    static void stop() throws Exception {
        leader.stop();
    }

    @BeforeEach
    void makeATable() {
        table = "t" + tables++;
        execute("CREATE TABLE %s (k int primary key, a int, b int)");
        execute("INSERT INTO %s(k,a,b) VALUES(1,10,100)");
    }

    @Test
    void anUpdateKeepsTheValuesOfAColumnThatWasAdded() {
        TranslatedQuery update = plan("UPDATE %s SET a=a+1 WHERE b=100");
        execute("ALTER TABLE %s ADD COLUMN c int");
        execute("UPDATE %s SET c=1000");
        execute(update);
        assertEquals(List.of("{a=11, b=100, c=1000, k=1}"), rows());
    }

    @ParameterizedTest
    @CsvSource({"10,1", "100,0"})
    void aDeleteGoesByTheColumnThatItNames(int value, int left) {
        TranslatedQuery delete = plan("DELETE FROM %s WHERE b=" + value);
        execute("ALTER TABLE %s DROP COLUMN a");
        execute(delete);
        assertEquals(left, rows().size());
    }

    @ParameterizedTest
    @ValueSource(strings = {"INSERT INTO %s(k,a,b) VALUES(2,20,200)", "INSERT INTO %s(k,b) VALUES(2,200),(3,300)",
        "INSERT INTO %s(k,b) SELECT k+1,b FROM %s", "UPDATE %s SET a=5 WHERE k=1", "UPDATE %s SET b=b+a WHERE k=1"})
    void aRowGetsNoValueOfAColumnThatWasDropped(String change) {
        TranslatedQuery planned = plan(change);
        execute("ALTER TABLE %s DROP COLUMN a");
        StatementExecutionException refusal = assertThrows(StatementExecutionException.class, () -> execute(planned));
        assertTrue(refusal.getMessage().contains("the columns of table " + table + " were changed"), refusal.getMessage());
        assertEquals(List.of("{b=100, k=1}"), rows());
    }

    @ParameterizedTest
    @ValueSource(strings = {"INSERT INTO %s(k,a) VALUES(2,20)", "INSERT INTO %s(k,a) VALUES(2,20),(3,30)"})
    void aRowDoesNotLackTheDefaultOfAColumnThatWasAdded(String insert) {
        TranslatedQuery planned = plan(insert);
        execute("ALTER TABLE %s ADD COLUMN c int NOT NULL DEFAULT 5");
        StatementExecutionException refusal = assertThrows(StatementExecutionException.class, () -> execute(planned));
        assertTrue(refusal.getMessage().contains("the columns of table " + table + " were changed"), refusal.getMessage());
        assertEquals(1, rows().size());
    }

    @Test
    void aRowNeedsNoValueOfAnAddedColumnThatMayBeNull() {
        TranslatedQuery insert = leader.server().getManager().getPlanner()
                .translate("herd", "INSERT INTO " + table + "(k,a,b) VALUES(?,?,?)", List.of(2, 20, 200), false, true, false, -1);
        execute("ALTER TABLE %s ADD COLUMN c int");
        execute(insert);
        assertEquals(List.of("{a=10, b=100, k=1}", "{a=20, b=200, k=2}"), rows());
    }

    @ParameterizedTest
    @ValueSource(strings = {"INSERT INTO %s(k,a,b) VALUES(2,20,200)", "INSERT INTO %s(k,a,b) VALUES(2,20,200),(3,30,300)",
        "INSERT INTO %s(k,a,b) SELECT k+1,a+10,b+100 FROM %s"})
    void aRowOfLiteralsOrOfAQueryNeedsNoValueOfAnAddedColumnEither(String insert) {
        TranslatedQuery planned = plan(insert);
        execute("ALTER TABLE %s ADD COLUMN c int");
        execute("UPDATE %s SET c=1000");
        execute(planned);
        assertEquals(List.of("{a=10, b=100, c=1000, k=1}", "{a=20, b=200, k=2}"), rows().subList(0, 2));
    }

    @Test
    void anUpdateOfAKeyIsRefusedBehindAColumnThatWasAdded() {
        TranslatedQuery update = plan("UPDATE %s SET k=2 WHERE b=100");
        execute("ALTER TABLE %s ADD COLUMN c int");
        execute("UPDATE %s SET c=1000");
        StatementExecutionException refusal = assertThrows(StatementExecutionException.class, () -> execute(update));
        assertTrue(refusal.getMessage().contains("the columns of table " + table + " were changed"), refusal.getMessage());
        assertEquals(List.of("{a=10, b=100, c=1000, k=1}"), rows());
    }

    @ParameterizedTest
    @ValueSource(strings = {"SELECT x.b FROM %s x, %s y WHERE x.k<=y.k", "SELECT x.b FROM %s x JOIN %s y ON x.k=y.k",
        "SELECT b FROM %s WHERE k IN (SELECT k FROM %s WHERE b>0)", "SELECT SUM(b) FROM %s GROUP BY k", "SELECT MAX(b) FROM %s",
        "SELECT b FROM %s UNION ALL SELECT b FROM %s", "SELECT b+0 FROM %s ORDER BY b+0"})
    void aJoinOrAnAggregateHasNoValueOfAnotherColumn(String query) throws Exception {
        for (int i = 2; i <= 4; i++) {
            execute("INSERT INTO %s(k,a,b) VALUES(" + i + ",10,100)");
        }
        execute("ALTER TABLE %s ADD COLUMN c int");
        execute("UPDATE %s SET c=1000");
        String text = query.replace("%s", table);
        TranslatedQuery late = leader.server().getManager().getPlanner().translate("herd", text, List.of(), true, true, false, -1);
        TranslatedQuery begun = leader.server().getManager().getPlanner().translate("herd", text, List.of(), true, true, false, -1);
        try (DataScanner rows = ((ScanResult) leader.server().getManager()
                .executePlan(begun.plan, begun.context, TransactionContext.NO_TRANSACTION)).dataScanner) {
            assertTrue(rows.hasNext());
            assertEquals(100, ((Number) rows.next().get(0)).intValue());
            execute("ALTER TABLE %s DROP COLUMN a");
            try {
                while (rows.hasNext()) {
                    assertEquals(100, ((Number) rows.next().get(0)).intValue());
                }
            } catch (StatementExecutionException refusal) {
                assertTrue(refusal.getMessage().contains("the columns of table " + table + " were changed"), refusal.getMessage());
            }
        }
        StatementExecutionException refusal = assertThrows(StatementExecutionException.class, () -> execute(late));
        assertTrue(refusal.getMessage().contains("the columns of table " + table + " were changed"), refusal.getMessage());
    }

    @Test
    void aQueryHasNoValueOfAnotherColumn() throws Exception {
        execute("INSERT INTO %s(k,a,b) VALUES(2,20,200)");
        TranslatedQuery query = leader.server().getManager().getPlanner()
                .translate("herd", "SELECT b FROM " + table + " WHERE k>0", List.of(), true, true, false, -1);
        try (DataScanner rows = ((ScanResult) leader.server().getManager()
                .executePlan(query.plan, query.context, TransactionContext.NO_TRANSACTION)).dataScanner) {
            assertEquals(100, rows.next().get(0));
            execute("ALTER TABLE %s ADD COLUMN c int");
            execute("ALTER TABLE %s DROP COLUMN a");
            StatementExecutionException refusal = assertThrows(StatementExecutionException.class, rows::next);
            assertTrue(refusal.getMessage().contains("the columns of table " + table + " were changed"), refusal.getMessage());
        }
        StatementExecutionException refusal = assertThrows(StatementExecutionException.class, () -> execute(query));
        assertTrue(refusal.getMessage().contains("the columns of table " + table + " were changed"), refusal.getMessage());
    }

    private TranslatedQuery plan(String statement) {
        return leader.server().getManager().getPlanner()
                .translate("herd", statement.replace("%s", table), List.of(), false, true, false, -1);
    }

    private static void execute(TranslatedQuery planned) {
        leader.server().getManager().executePlan(planned.plan, planned.context, TransactionContext.NO_TRANSACTION);
    }

    private void execute(String statement) {
        Node.execute(leader.server(), 0, statement.replace("%s", table));
    }

    private List<String> rows() {
        TreeSet<String> rows = new TreeSet<>();
        TableManager manager = (TableManager) leader.manager("herd").getTableManager(table);
        manager.scanForIndexRebuild(row -> rows.add(new TreeMap<>(row.toBean(manager.getTable())).toString()));
        return List.copyOf(rows);
    }
}
