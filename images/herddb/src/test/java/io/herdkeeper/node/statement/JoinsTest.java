package io.herdkeeper.node.statement;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import herddb.model.StatementExecutionException;
import io.herdkeeper.node.testing.BookKeeperForTests;
import io.herdkeeper.node.testing.Node;
import io.herdkeeper.node.testing.RunningNode;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Joins that HerdDB's own classes can't do, and those that fail. */
class JoinsTest {

    private static RunningNode node;

    @BeforeAll
    static void start() throws Exception {
        node = RunningNode.start("n0", BookKeeperForTests.running().newRoot(), null);
        node.server().waitForTableSpaceBoot("herd", 60_000, true);
        for (String statement : new String[] {"CREATE TABLE t (k int primary key, b int)", "CREATE TABLE u (k int primary key, n int)",
            "CREATE TABLE huge (k int primary key, g int, l long)", "INSERT INTO t(k,b) VALUES(1,1),(2,2),(3,null)",
            "INSERT INTO u(k,n) VALUES(1,1),(5,null)",
            "INSERT INTO huge(k,g,l) VALUES(1,1,9223372036854775807),(2,1,9223372036854775807)"}) {
            Node.execute(node.server(), 0, statement);
        }
    }

    @AfterAll
    static void stop() throws Exception {
        node.stop();
    }

    @ParameterizedTest
    @CsvSource(delimiter = '|', quoteCharacter = '"', value = {
        "SELECT x.k, y.k FROM t x RIGHT JOIN u y ON x.b > y.n ORDER BY x.k, y.k|[[2, 1], [null, 5]]",
        "SELECT x.k, y.k FROM t x FULL JOIN u y ON x.b > y.n ORDER BY x.k, y.k|[[1, null], [2, 1], [3, null], [null, 5]]",
        "SELECT x.k, y.k FROM t x FULL JOIN u y ON x.b IS NOT DISTINCT FROM y.n ORDER BY x.k|[[1, 1], [2, null], [3, 5]]",
        "SELECT x.k, y.k FROM t x LEFT JOIN u y ON x.b > y.n ORDER BY x.k|[[1, null], [2, 1], [3, null]]",
        "SELECT x.k, y.k FROM t x FULL JOIN u y ON x.k = y.k ORDER BY x.k, y.k|[[1, 1], [2, null], [3, null], [null, 5]]"})
    void anyConditionJoins(String query, String rows) throws Exception {
        assertEquals(rows, Node.read(node.server(), query).toString());
    }

    @ParameterizedTest
    @Timeout(120)
    @ValueSource(strings = {
        "SELECT x.k FROM t x JOIN (SUMS) y ON x.k = y.g", "SELECT x.k FROM (SUMS) y JOIN t x ON x.k = y.g",
        "SELECT x.k FROM t x JOIN (SUMS) y ON x.k < y.g", "SELECT x.k FROM (SUMS) y JOIN t x ON x.k < y.g",
        "SELECT x.k FROM t x LEFT JOIN (SUMS) y ON x.k = y.g", "SELECT x.k FROM (SUMS) y FULL JOIN t x ON x.k < y.g",
        "SELECT x.k FROM t x WHERE x.k IN (SELECT g FROM (SUMS) y WHERE z > 0)"})
    void aTransactionEndsThoughAJoinInItHasFailed(String query) {
        long transaction = Node.begin(node.server(), "herd");
        String failing = query.replace("SUMS", "SELECT g, SUM(l) AS z FROM huge GROUP BY g") + " ORDER BY 1";
        Node.execute(node.server(), transaction, "UPDATE t SET b = b WHERE k = 1");
        assertThrows(StatementExecutionException.class, () -> Node.execute(node.server(), transaction, failing));
        Node.execute(node.server(), 0, "EXECUTE COMMITTRANSACTION 'herd'," + transaction);
    }
}
