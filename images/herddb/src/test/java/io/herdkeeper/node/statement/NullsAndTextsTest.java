package io.herdkeeper.node.statement;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import herddb.model.DMLStatementExecutionResult;
import herddb.model.StatementExecutionException;
import io.herdkeeper.node.testing.BookKeeperForTests;
import io.herdkeeper.node.testing.Node;
import io.herdkeeper.node.testing.RunningNode;
import java.util.Arrays;
import java.util.List;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Conditions that are NULL, texts of several lengths, and parts of a plan that HerdDB would lose: the rows are those that SQL means. */
class NullsAndTextsTest {

    private static final String TWENTY = IntStream.rangeClosed(20, 40).mapToObj(Integer::toString).collect(Collectors.joining(","));

    private static RunningNode node;

    @BeforeAll
    static void start() throws Exception {
        node = RunningNode.start("n0", BookKeeperForTests.running().newRoot(), null);
        node.server().waitForTableSpaceBoot("herd", 60_000, true);
        execute("CREATE TABLE t (k int primary key, b int, s string)");
        execute("CREATE TABLE u (k int primary key, n int)");
        execute("CREATE TABLE e (k int primary key)");
        execute("CREATE INDEX ub ON u(n)");
        execute("INSERT INTO u(k,n) VALUES(1,1),(5,null)");
    }

    @AfterAll
    static void stop() throws Exception {
        node.stop();
    }

    @BeforeEach
    void fill() {
        execute("DELETE FROM t");
        execute("INSERT INTO t(k,b,s) VALUES(1,1,'a'),(2,2,'bb'),(3,null,null),(4,4,'a')");
    }

    @ParameterizedTest
    @CsvSource(delimiter = '|', quoteCharacter = '"', value = {
        "b NOT IN (SELECT k FROM u)|2 4",
        "b NOT IN (SELECT n FROM u WHERE n IS NOT NULL)|2 4",
        "b NOT IN (SELECT n FROM u)|",
        "b NOT IN (SELECT k FROM e)|1 2 3 4",
        "k NOT IN (SELECT k FROM u)|2 3 4",
        "k NOT IN (SELECT n FROM u)|",
        "b + 1 NOT IN (SELECT k + 1 FROM u)|2 4",
        "7 NOT IN (SELECT k FROM u)|1 2 3 4",
        "NOT b IN (SELECT k FROM u)|2 4",
        "NOT (b NOT IN (SELECT k FROM u))|1",
        "b NOT IN (SELECT k FROM u) AND k < 4|2",
        "b NOT IN (SELECT k FROM u) OR k = 3|2 3 4",
        "b IS NOT DISTINCT FROM b OR b NOT IN (SELECT n FROM u WHERE NULLIF(n, 1) > n)|1 2 3 4",
        "b NOT IN (SELECT k FROM u) AND EXISTS (SELECT 1 FROM u WHERE k + 1 = t.k)|2",
        "b NOT IN (SELECT y.k FROM u y WHERE EXISTS (SELECT 1 FROM t z WHERE z.k = y.k))|2 4",
        "EXISTS (SELECT 1 FROM u WHERE u.k = t.k AND u.n < t.b)|",
        "EXISTS (SELECT 1 FROM u WHERE u.k = t.k AND u.n <= t.b)|1",
        "NOT EXISTS (SELECT 1 FROM u WHERE u.k = t.k AND u.n < t.b)|1 2 3 4",
        "k IN (SELECT k FROM u WHERE u.n < t.b)|",
        "b IN (SELECT k FROM u) OR k = 4|1 4",
        "NOT (b IN (SELECT k FROM u) OR k = 4)|2",
        "CASE WHEN b NOT IN (SELECT k FROM u) THEN k < 3 ELSE k = 3 END|2 3",
        "b = (SELECT MAX(k) FROM u WHERE k NOT IN (SELECT n FROM u WHERE k = 1)) - 1|4",
        "b NOT IN (1)|2 4",
        "b NOT IN (1, 2)|4",
        "k NOT IN (2, 3)|1 4",
        "b NOT IN (1, NULL)|",
        "b NOT IN (1, k)|",
        "NOT (b = 1 OR b = 2)|4",
        "b NOT BETWEEN 1 AND 2|4",
        "b NOT BETWEEN 2 AND 3|1 4",
        "b BETWEEN 1 AND 2 OR b > 3|1 2 4",
        "b IN (1, 4, NULL)|1 4",
        "b IN (1, 4) OR b IS NULL|1 3 4",
        "b NOT IN (1, 4) OR b IS NULL|2 3",
        "s NOT IN ('a', 'ccc')|2",
        "s IN ('a', 'bb')|1 2 4",
        "s NOT IN ('bb')|1 4",
        "(b = 1) IS FALSE|2 4",
        "(b = 1) IS NOT FALSE|1 3",
        "(b = 1 AND k = 1) IS NOT TRUE|2 3 4",
        "(b = 1 OR k = 4) IS NULL|3",
        "NOT (b = 1) IS NOT FALSE|2 4",
        "(b = 1) = (k = 1)|1 2 4",
        "b IS DISTINCT FROM 1|2 3 4",
        "b IS NOT DISTINCT FROM NULL|3",
        "s = CASE WHEN k < 3 THEN 'bb' ELSE 'a' END|2 4"})
    void aConditionFindsAndChangesAndDeletesTheSameRows(String condition, String keys) throws Exception {
        List<Integer> found = keys == null ? List.of() : Arrays.stream(keys.split(" ")).map(Integer::valueOf).toList();
        assertEquals(found, read("SELECT k FROM t WHERE " + condition + " ORDER BY k").stream().map(row -> row.get(0)).toList());
        assertEquals(found.size(), execute("UPDATE t SET s = s WHERE " + condition));
        assertEquals(found.size(), execute("DELETE FROM t WHERE " + condition));
        assertEquals(IntStream.rangeClosed(1, 4).boxed().filter(key -> !found.contains(key)).toList(),
                read("SELECT k FROM t ORDER BY k").stream().map(row -> row.get(0)).toList());
    }

    @Test
    void aLongListFindsTheRowsThatAShortOneFinds() throws Exception {
        assertEquals("[[2], [4]]", read("SELECT k FROM t WHERE b NOT IN (1," + TWENTY + ") ORDER BY k").toString());
        assertEquals("[[1]]", read("SELECT k FROM t WHERE b IN (1," + TWENTY + ") ORDER BY k").toString());
        assertEquals("[[1]]", read("SELECT k FROM t WHERE NOT (b NOT IN (1," + TWENTY + ")) ORDER BY k").toString());
        assertEquals("[[false], [true], [null], [true]]", read("SELECT b NOT IN (1," + TWENTY + ") FROM t ORDER BY k").toString());
        assertEquals("[[false], [true], [null], [true]]", read("SELECT b NOT IN (1,?," + TWENTY + ") FROM t ORDER BY k", 1).toString());
        assertEquals(2, execute("DELETE FROM t WHERE b NOT IN (1," + TWENTY + ")"));
    }

    @ParameterizedTest
    @CsvSource(delimiter = '|', quoteCharacter = '"', value = {
        "b = 1|true false null false",
        "b <> 1|false true null true",
        "b = 1 OR k = 3|true false true false",
        "b = 1 AND k = 3|false false null false",
        "NOT (b = 1 AND k = 1)|false true true true",
        "b IN (1, 2)|true true null false",
        "b NOT IN (1, 2)|false false null true",
        "b BETWEEN 1 AND 2|true true null false",
        "b NOT IN (SELECT k FROM u)|false true null true",
        "b IN (SELECT n FROM u)|true null null null",
        "b NOT IN (SELECT k FROM e)|true true true true",
        "s LIKE 'b%'|false true null false",
        "(b = 1) IS NULL|false false true false",
        "b IS DISTINCT FROM 1|false true true true",
        "CASE WHEN k > 1 THEN b = 2 ELSE k = 1 END|true true null false",
        "CASE WHEN k = 1 THEN 'yes' ELSE 'no' END|yes no no no",
        "CASE k WHEN 1 THEN 'a' WHEN 2 THEN 'bbb' ELSE 'c' END|a bbb c c",
        "COALESCE(s, 'none')|a bb none a",
        "NULLIF(b, 2)|1 null null 4",
        "CAST(1.5 AS FLOAT)|1.5 1.5 1.5 1.5"})
    void aSelectedValueIsThatOfSql(String value, String values) throws Exception {
        assertEquals(values, read("SELECT " + value + " FROM t ORDER BY k").stream()
                .map(row -> String.valueOf(row.get(0))).collect(Collectors.joining(" ")));
    }

    @ParameterizedTest
    @CsvSource(delimiter = '|', quoteCharacter = '"', value = {
        "UPDATE t SET s = CASE WHEN k = 1 THEN 'yes' ELSE 'no' END|[[yes], [no], [no], [no]]",
        "UPDATE t SET s = CASE WHEN b NOT IN (1, 2) THEN 'long' WHEN b = 2 THEN 'b' END|[[null], [b], [null], [long]]",
        "UPSERT INTO t(k, b, s) SELECT k, b, CASE WHEN k = 1 THEN 'yes' ELSE 'no' END FROM t|[[yes], [no], [no], [no]]",
        "UPSERT INTO t(k, b, s) SELECT 1, 1, 'yes' FROM u WHERE k = 1 UNION ALL SELECT 2, 2, 'no' FROM u WHERE k = 1|[[yes], [no], [null], [a]]"})
    void aTextIsStoredWithoutSpacesAtItsEnd(String change, String texts) throws Exception {
        execute(change);
        assertEquals(texts, read("SELECT s FROM t ORDER BY k").toString());
    }

    @ParameterizedTest
    @CsvSource(delimiter = '|', quoteCharacter = '"', value = {
        "SELECT 'a' AS c FROM u UNION ALL SELECT 'bbb' FROM e|[[a], [a]]",
        "SELECT c FROM (VALUES ('a'), ('bbb')) AS v(c) ORDER BY c|[[a], [bbb]]",
        "SELECT SUM(CASE WHEN k > 1 THEN b END) FROM t|[[6]]",
        "SELECT SUM(CASE WHEN b > 1 THEN NULL ELSE k END) FROM t|[[4]]",
        "SELECT SUM(CASE WHEN b > 1 THEN 1 ELSE 0 END) FROM t|[[2]]",
        "SELECT COUNT(CASE WHEN k > 2 THEN 1 END), COUNT(*) FROM t|[[2, 4]]",
        "SELECT COUNT(DISTINCT CASE WHEN k <> 2 THEN s END) FROM t|[[1]]",
        "SELECT COUNT(DISTINCT b, s) FROM t|[[3]]",
        "SELECT COUNT(s), COUNT(DISTINCT b) FROM t WHERE k > 99|[[0, 0]]",
        "SELECT COUNT(*), SUM(k), COUNT(DISTINCT s) FROM t|[[4, 10, 2]]",
        "SELECT AVG(k), COUNT(DISTINCT b), COUNT(DISTINCT s) FROM t|[[2, 3, 2]]",
        "SELECT s, SUM(k), COUNT(DISTINCT b) FROM t GROUP BY s ORDER BY s|[[a, 5, 2], [bb, 2, 1], [null, 3, 0]]",
        "SELECT s FROM t UNION SELECT 'c' FROM u ORDER BY 1|[[a], [bb], [c], [null]]",
        "SELECT b, s FROM t WHERE NULLIF(s, 'a') < s UNION SELECT CASE WHEN k > 7 THEN k ELSE 0 END, 'a' FROM t|[[0, a]]",
        "SELECT b FROM t UNION SELECT n FROM u UNION ALL SELECT 7 FROM u ORDER BY 1|[[1], [2], [4], [7], [7], [null]]",
        "SELECT b FROM t INTERSECT SELECT n FROM u ORDER BY b|[[1], [null]]",
        "SELECT s, COUNT(*), COUNT(DISTINCT b), SUM(DISTINCT k) FROM t GROUP BY s ORDER BY s|[[a, 2, 2, 5], [bb, 1, 1, 2], [null, 1, 0, 3]]",
        "SELECT k, s FROM t WHERE k IN (SELECT k FROM u) UNION ALL SELECT k, 'c' FROM u ORDER BY 2 DESC, 1|[[1, c], [5, c], [1, a]]",
        "SELECT DISTINCT c FROM (SELECT k AS c FROM u UNION ALL SELECT CAST(k AS bigint) FROM u) v ORDER BY c|[[1], [5]]",
        "SELECT s, b, k FROM t WHERE b NOT IN (SELECT n FROM u WHERE n > 0) ORDER BY k LIMIT 5|[[bb, 2, 2], [a, 4, 4]]",
        "SELECT s, MAX(CASE WHEN k < 4 THEN b END) FROM t GROUP BY s ORDER BY s|[[a, 1], [bb, 2], [null, null]]",
        "SELECT s, COUNT(k), AVG(b), MAX(k + 1) FROM t GROUP BY s ORDER BY s|[[a, 2, 2, 5], [bb, 1, 2, 3], [null, 1, null, 4]]",
        "SELECT t.k FROM t, (SELECT COUNT(*) AS c FROM e) x ORDER BY t.k|[[1], [2], [3], [4]]",
        "SELECT k FROM t ORDER BY k + 0 DESC, k|[[4], [3], [2], [1]]",
        "SELECT COALESCE(k, 7) AS c FROM t ORDER BY c DESC, k|[[4], [3], [2], [1]]",
        "SELECT k, b, s FROM t ORDER BY k + 0 DESC|[[4, 4, a], [3, null, null], [2, 2, bb], [1, 1, a]]",
        "SELECT x.k FROM t x JOIN u y ON x.k = y.k WHERE x.b > y.n OR x.b IS NULL|[]",
        "SELECT x.k, y.k FROM t x JOIN u y ON x.b IS NOT DISTINCT FROM y.n ORDER BY x.k|[[1, 1], [3, 5]]",
        "SELECT x.k, y.k FROM t x JOIN u y ON x.b = y.n OR x.b IS NULL AND y.n IS NULL ORDER BY x.k|[[1, 1], [3, 5]]",
        "SELECT x.k, y.k FROM t x LEFT JOIN u y ON x.b IS NOT DISTINCT FROM y.n ORDER BY x.k|[[1, 1], [2, null], [3, 5], [4, null]]",
        "SELECT x.k, y.k FROM t x, u y WHERE x.b IS NOT DISTINCT FROM y.n ORDER BY x.k|[[1, 1], [3, 5]]",
        "SELECT x.k, y.k FROM t x JOIN u y ON NOT (x.b IS DISTINCT FROM y.n) ORDER BY x.k|[[1, 1], [3, 5]]",
        "SELECT x.k, y.k FROM t x, u y WHERE (x.b IS DISTINCT FROM y.n) IS FALSE ORDER BY x.k|[[1, 1], [3, 5]]",
        "SELECT x.k, y.k FROM t x, u y WHERE (x.b IS NOT DISTINCT FROM y.n) = TRUE ORDER BY x.k|[[1, 1], [3, 5]]",
        "SELECT x.k, y.k FROM t x, u y WHERE x.b IS NOT DISTINCT FROM y.n AND x.k > 0 OR x.b IS NOT DISTINCT FROM y.n AND x.k < 0 ORDER BY x.k|[[1, 1], [3, 5]]",
        "SELECT x.k, y.k FROM t x, u y WHERE CASE WHEN x.b IS DISTINCT FROM y.n THEN FALSE ELSE TRUE END ORDER BY x.k|[[1, 1], [3, 5]]",
        "SELECT x.k, y.k FROM t x, u y WHERE NOT (x.b IS DISTINCT FROM y.n OR x.k > 9) ORDER BY x.k|[[1, 1], [3, 5]]",
        "SELECT k FROM t x WHERE NOT EXISTS (SELECT 1 FROM u y WHERE y.n = x.b) ORDER BY k|[[2], [3], [4]]",
        "SELECT k FROM t x WHERE b IN (SELECT y.n FROM u y WHERE y.k = x.k)|[[1]]"})
    void noPartOfAQueryIsLost(String query, String rows) throws Exception {
        assertEquals(rows, read(query).toString());
    }

    @Test
    void aCountHasNoRowWhereItsHavingIsFalse() throws Exception {
        assertEquals("[]", read("SELECT COUNT(*) FROM t HAVING ? = 1", 0).toString());
        assertEquals("[[4]]", read("SELECT COUNT(*) FROM t HAVING ? = 1", 1).toString());
    }

    @ParameterizedTest
    @ValueSource(strings = {"b NOT IN (SELECT y.n FROM u y WHERE y.k = t.k)", "b IN (SELECT y.n FROM u y WHERE y.k = t.k) OR k = 1",
        "(b, k) NOT IN (SELECT n, k FROM u)", "b NOT IN (SELECT k FROM u) AND k NOT IN (SELECT n FROM u)",
        "b IN (SELECT k FROM u) OR k NOT IN (SELECT n FROM u)"})
    void whatWouldFindOtherRowsIsRefused(String condition) {
        for (String statement : List.of("SELECT k FROM t WHERE ", "DELETE FROM t WHERE ", "UPDATE t SET s = 'x' WHERE ")) {
            StatementExecutionException refusal = assertThrows(StatementExecutionException.class, () -> read(statement + condition));
            assertTrue(refusal.getMessage().contains("Write [NOT] EXISTS"), refusal.getMessage());
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"k", "n"})
    void nothingEqualsNullInAnIndex(String column) throws Exception {
        for (long transaction : new long[] {0, Node.begin(node.server(), "herd")}) {
            assertEquals("[]", read("SELECT k FROM u WHERE " + column + " = ?", (Object) null).toString());
            for (String change : List.of("UPDATE u SET n = 7 WHERE ", "DELETE FROM u WHERE ", "UPDATE u SET k = 7 WHERE ")) {
                assertEquals(0, ((DMLStatementExecutionResult) Node.execute(
                        node.server(), transaction, change + column + " = ?", (Object) null)).getUpdateCount());
            }
            if (transaction != 0) {
                Node.execute(node.server(), 0, "EXECUTE ROLLBACKTRANSACTION 'herd'," + transaction);
            }
        }
    }

    private static int execute(String statement, Object... values) {
        return Node.execute(node.server(), 0, statement, values) instanceof DMLStatementExecutionResult changed ? changed.getUpdateCount() : -1;
    }

    private static List<List<Object>> read(String query, Object... values) throws Exception {
        return Node.read(node.server(), query, values);
    }
}
