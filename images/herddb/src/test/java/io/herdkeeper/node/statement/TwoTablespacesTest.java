package io.herdkeeper.node.statement;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import herddb.model.DataScanner;
import herddb.model.DataScannerException;
import herddb.model.ScanResult;
import herddb.model.StatementExecutionException;
import herddb.model.TransactionContext;
import herddb.sql.TranslatedQuery;
import io.herdkeeper.node.testing.BookKeeperForTests;
import io.herdkeeper.node.testing.Node;
import io.herdkeeper.node.testing.RunningNode;
import java.util.List;
import java.util.TreeSet;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Two tablespaces of one node that have a table of the same name. */
class TwoTablespacesTest {

    private static RunningNode node;

    @BeforeAll
    static void start() throws Exception {
        node = RunningNode.start("n0", BookKeeperForTests.running().newRoot(), null);
        node.server().waitForTableSpaceBoot("herd", 60_000, true);
        for (String name : List.of("north", "south")) {
            execute("CREATE TABLESPACE '" + name + "','leader:n0','replica:n0','expectedreplicacount:1','wait:30000'");
            execute("CREATE TABLE " + name + ".t (k int primary key, n int)");
        }
        execute("INSERT INTO north.t(k,n) VALUES(1,1),(2,2)");
        execute("INSERT INTO south.t(k,n) VALUES(2,20),(3,30)");
    }

    @AfterAll
    static void stop() throws Exception {
        node.stop();
    }

    @ParameterizedTest
    @ValueSource(strings = {"DELETE FROM north.t WHERE k IN (SELECT k FROM south.t)", "INSERT INTO north.t(k,n) SELECT k+10,n FROM south.t",
        "UPDATE north.t SET n=5 WHERE k IN (SELECT k FROM south.t WHERE n>0)", "UPDATE north.t SET k=k+10 WHERE n IN (SELECT k FROM south.t)"})
    void aChangeIsNotComputedFromATableOfAnotherTablespace(String change) {
        assertRefused(() -> execute(change));
        assertEquals(List.of("1=1", "2=2"), rows("SELECT k,n FROM north.t"));
    }

    @ParameterizedTest
    @ValueSource(strings = {"SELECT x.k,y.n FROM north.t x JOIN south.t y ON x.k=y.k", "SELECT k,n FROM north.t UNION ALL SELECT k,n FROM south.t",
        "SELECT k,n FROM north.t WHERE k IN (SELECT k FROM south.t)", "SELECT x.k,y.n FROM north.t x, south.t y WHERE x.k<y.k"})
    void aQueryDoesNotReadATableOfAnotherTablespace(String query) {
        assertRefused(() -> rows(query));
    }

    @ParameterizedTest
    @CsvSource({"north,1=1", "south,3=30"})
    void aStatementOfOneTablespaceIsExecutedThere(String name, String first) {
        assertEquals(List.of(first), rows("SELECT x.k,y.n FROM " + name + ".t x JOIN " + name + ".t y ON x.k=y.k WHERE x.k<>2"));
    }

    @Test
    void theTablesOfTheSystemBelongToEachTablespace() {
        assertEquals(1, rows("SELECT x.table_name,x.table_name FROM south.systables x JOIN south.syscolumns y ON x.table_name=y.table_name"
                + " WHERE x.table_name='t' AND y.column_name='k'").size());
    }

    private static void assertRefused(Runnable statement) {
        StatementExecutionException refusal = assertThrows(StatementExecutionException.class, statement::run);
        assertTrue(refusal.getMessage().contains("a statement reads and changes the tables of one tablespace"), refusal.getMessage());
    }

    private static void execute(String statement) {
        Node.execute(node.server(), 0, statement);
    }

    private static List<String> rows(String query) {
        TranslatedQuery planned = node.server().getManager().getPlanner().translate("herd", query, List.of(), true, true, false, -1);
        TreeSet<String> found = new TreeSet<>();
        try (DataScanner rows = ((ScanResult) node.server().getManager()
                .executePlan(planned.plan, planned.context, TransactionContext.NO_TRANSACTION)).dataScanner) {
            rows.forEach(row -> found.add(row.get(0) + "=" + row.get(1)));
        } catch (DataScannerException error) {
            throw new IllegalStateException(error);
        }
        return List.copyOf(found);
    }
}
