package io.herdkeeper.node.statement;

import static org.junit.jupiter.api.Assertions.assertEquals;

import herddb.server.ServerConfiguration;
import io.herdkeeper.node.testing.BookKeeperForTests;
import io.herdkeeper.node.testing.Node;
import io.herdkeeper.node.testing.RunningNode;
import java.util.List;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Results of more rows than HerdDB keeps in memory: it writes them to disk. */
class SpilledRowsTest {

    private static RunningNode node;

    @BeforeAll
    static void start() throws Exception {
        node = RunningNode.start(Node.configuration("n0", BookKeeperForTests.running().newRoot(), BookKeeperForTests.running().newFolder())
                .set(ServerConfiguration.PROPERTY_DISK_SWAP_MAX_RECORDS, 2), null);
        node.server().waitForTableSpaceBoot("herd", 60_000, true);
        Node.execute(node.server(), 0, "CREATE TABLE t (k int primary key, a int, b int)");
        Node.execute(node.server(), 0, "INSERT INTO t VALUES(1,10,1),(2,20,2),(3,30,3),(4,40,null)");
    }

    @AfterAll
    static void stop() throws Exception {
        node.stop();
    }

    @ParameterizedTest
    @CsvSource(delimiter = '|', value = {
        "SELECT a AS b, b AS a FROM t ORDER BY k|[[10, 1], [20, 2], [30, 3], [40, null]]",
        "SELECT b AS x, k AS y FROM t ORDER BY k DESC|[[null, 4], [3, 3], [2, 2], [1, 1]]",
        "SELECT x.k, y.a FROM t x JOIN t y ON x.b=y.k ORDER BY x.k|[[1, 10], [2, 20], [3, 30]]",
        "SELECT x.a, y.a FROM t x JOIN t y ON x.k<y.k WHERE x.k=1 ORDER BY y.k|[[10, 20], [10, 30], [10, 40]]",
        "SELECT k FROM t WHERE k NOT IN (SELECT b FROM t WHERE b IS NOT NULL)|[[4]]",
        "SELECT k FROM t WHERE k IN (SELECT b FROM t) OR k=4|[[1], [2], [3], [4]]"})
    void eachValueIsThatOfItsColumn(String query, String rows) throws Exception {
        assertEquals(rows, read(query).toString());
    }

    private static List<List<Object>> read(String query) throws Exception {
        return Node.read(node.server(), query);
    }
}
