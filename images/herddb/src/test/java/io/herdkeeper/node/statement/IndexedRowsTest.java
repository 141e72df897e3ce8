package io.herdkeeper.node.statement;

import static org.junit.jupiter.api.Assertions.assertEquals;

import herddb.model.DMLStatementExecutionResult;
import herddb.model.DataScanner;
import herddb.model.ScanResult;
import herddb.model.TransactionContext;
import herddb.server.ServerConfiguration;
import herddb.sql.TranslatedQuery;
import io.herdkeeper.node.testing.BookKeeperForTests;
import io.herdkeeper.node.testing.Node;
import io.herdkeeper.node.testing.RunningNode;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.TreeSet;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** What an index finds is in the table, once, and is all that a statement asks for. */
class IndexedRowsTest {

    private static final Duration LIMIT = Duration.ofSeconds(60);
    private static final int PAGE_BYTES = 16 << 10;
    /** More than fit into a block of the index. */
    private static final int ROWS = 60;
    private static final int LEFT = 8;
    private static final String VALUE = "v".repeat(300);
    private static final String NEXT = "w".repeat(300);

    private static RunningNode node;

    @BeforeAll
    static void start() throws Exception {
        node = RunningNode.start(Node.configuration("n0", BookKeeperForTests.running().newRoot(), BookKeeperForTests.running().newFolder())
                .set(ServerConfiguration.PROPERTY_CHECKPOINT_PERIOD, 0)
                .set(ServerConfiguration.PROPERTY_MAX_LOGICAL_PAGE_SIZE, PAGE_BYTES), null);
        node.server().waitForTableSpaceBoot("herd", (int) LIMIT.toMillis(), true);
    }

    @AfterAll
    static void stop() throws Exception {
        node.stop();
    }

    /** Two blocks have rows of one value. The second loses all of these, and a checkpoint puts it to the first. */
    @Test
    void aRowIsFoundOnceThoughACheckpointHasPutBlocksOfItsIndexTogether() throws Exception {
        sql("CREATE TABLE queue (k int primary key, s string)");
        sql("CREATE INDEX by_s ON queue(s)");
        for (int k = 0; k < ROWS; k++) {
            sql("INSERT INTO queue(k,s) VALUES(?,?)", k, VALUE);
        }
        sql("INSERT INTO queue(k,s) VALUES(?,?)", ROWS, NEXT);
        sql("DELETE FROM queue WHERE k>=" + LEFT + " AND k<" + ROWS);
        node.manager("herd").checkpoint(false, false, false);
        assertEquals(IntStream.range(0, LEFT).boxed().toList(), keys("SELECT k FROM queue WHERE s='" + VALUE + "'"));
        assertEquals(LEFT, ((DMLStatementExecutionResult) Node.execute(node.server(), 0, "UPDATE queue SET s='x' WHERE s='" + VALUE + "'"))
                .getUpdateCount());
        assertEquals(List.of(), keys("SELECT k FROM queue WHERE s='" + VALUE + "'"));
    }

    @Test
    void aListOfRowsIsReadToItsEndThoughAnotherOneOfThemIsDeletedMeanwhile() throws Exception {
        sql("CREATE TABLE hashed (k int primary key, s int)");
        sql("CREATE HASH INDEX by_hash ON hashed(s)");
        for (int k = 0; k < ROWS; k++) {
            sql("INSERT INTO hashed(k,s) VALUES(?,1)", k);
        }
        TreeSet<Integer> found = new TreeSet<>();
        try (DataScanner rows = query("SELECT k FROM hashed WHERE s=1")) {
            found.add((Integer) rows.next().get(0));
            sql("DELETE FROM hashed WHERE k=" + (ROWS - 1));
            while (rows.hasNext()) {
                found.add((Integer) rows.next().get(0));
            }
        }
        assertEquals(IntStream.range(0, ROWS - 1).boxed().toList(), List.copyOf(found));
    }

    /** HerdDB's index has the rows as they are committed. */
    @ParameterizedTest
    @ValueSource(strings = {"HASH", "BRIN"})
    void aTransactionFindsByAnIndexWhatItHasChanged(String kind) throws Exception {
        String table = "changed_" + kind.toLowerCase(Locale.ROOT);
        sql("CREATE TABLE " + table + " (k int primary key, a int)");
        sql("CREATE " + kind + " INDEX " + table + "_a ON " + table + "(a)");
        sql("INSERT INTO " + table + " VALUES(1,10),(2,10),(3,20)");
        long own = Node.begin(node.server(), "herd");
        changed(own, "UPDATE " + table + " SET a=20 WHERE k=1");
        String twenty = "SELECT k FROM " + table + " WHERE a=20";
        assertEquals(List.of(1, 3), keys(twenty, own));
        assertEquals(List.of(3), keys(twenty, TransactionContext.NOTRANSACTION_ID));
        assertEquals(List.of(2), keys("SELECT k FROM " + table + " WHERE a=10", own));
        assertEquals(List.of(2), keys("SELECT k FROM " + table + " WHERE a<15", own));
        assertEquals(2, changed(own, "UPDATE " + table + " SET a=30 WHERE a=20"));
        assertEquals(List.of(1, 3), keys("SELECT x.k FROM " + table + " x JOIN " + table + " y ON x.k=y.k WHERE x.a=30", own));
        assertEquals(1, changed(own, "DELETE FROM " + table + " WHERE a=30 AND k=1"));
        sql("EXECUTE COMMITTRANSACTION 'herd'," + own);
        assertEquals(List.of(3), keys("SELECT k FROM " + table + " WHERE a=30", TransactionContext.NOTRANSACTION_ID));
    }

    @ParameterizedTest
    @ValueSource(strings = {"HASH", "BRIN"})
    void aPlanFindsItsRowsThoughItsIndexIsMadeAgainOverAnotherColumn(String kind) throws Exception {
        String table = "again_" + kind.toLowerCase(Locale.ROOT);
        sql("CREATE TABLE " + table + " (k int primary key, a int, b int)");
        String index = table + "_by";
        sql("CREATE " + kind + " INDEX " + index + " ON " + table + "(a)");
        sql("INSERT INTO " + table + " VALUES(1,10,5),(2,10,6)");
        TranslatedQuery planned = plan("SELECT k FROM " + table + " WHERE a=10");
        sql("DROP INDEX " + index);
        assertEquals(List.of(1, 2), keys(planned, TransactionContext.NOTRANSACTION_ID));
        sql("CREATE " + kind + " INDEX " + index + " ON " + table + "(b)");
        assertEquals(List.of(1, 2), keys(planned, TransactionContext.NOTRANSACTION_ID));
    }

    private static TranslatedQuery plan(String query) {
        return node.server().getManager().getPlanner().translate("herd", query, List.of(), true, true, false, -1);
    }

    private static DataScanner query(TranslatedQuery plan, long transaction) {
        return ((ScanResult) node.server().getManager().executePlan(plan.plan, plan.context, new TransactionContext(transaction))).dataScanner;
    }

    private static DataScanner query(String query) {
        return query(plan(query), TransactionContext.NOTRANSACTION_ID);
    }

    private static List<Integer> keys(String query) throws Exception {
        return keys(query, TransactionContext.NOTRANSACTION_ID);
    }

    private static List<Integer> keys(String query, long transaction) throws Exception {
        return keys(plan(query), transaction);
    }

    private static List<Integer> keys(TranslatedQuery plan, long transaction) throws Exception {
        List<Integer> keys = new ArrayList<>();
        try (DataScanner rows = query(plan, transaction)) {
            while (rows.hasNext()) {
                keys.add((Integer) rows.next().get(0));
            }
        }
        keys.sort(null);
        return keys;
    }

    private static int changed(long transaction, String statement) {
        return ((DMLStatementExecutionResult) Node.execute(node.server(), transaction, statement)).getUpdateCount();
    }

    private static void sql(String statement, Object... values) {
        Node.execute(node.server(), 0, statement, values);
    }
}
