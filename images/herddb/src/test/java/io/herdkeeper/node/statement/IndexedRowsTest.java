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
import java.util.TreeSet;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;

/** What an index finds is in the table, once. */
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

    private static DataScanner query(String query) {
        TranslatedQuery plan = node.server().getManager().getPlanner().translate("herd", query, List.of(), true, true, false, -1);
        return ((ScanResult) node.server().getManager().executePlan(plan.plan, plan.context, TransactionContext.NO_TRANSACTION)).dataScanner;
    }

    private static List<Integer> keys(String query) throws Exception {
        List<Integer> keys = new ArrayList<>();
        try (DataScanner rows = query(query)) {
            while (rows.hasNext()) {
                keys.add((Integer) rows.next().get(0));
            }
        }
        keys.sort(null);
        return keys;
    }

    private static void sql(String statement, Object... values) {
        Node.execute(node.server(), 0, statement, values);
    }
}
