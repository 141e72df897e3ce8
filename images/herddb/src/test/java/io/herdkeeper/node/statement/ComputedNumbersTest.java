package io.herdkeeper.node.statement;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import herddb.core.TableManager;
import herddb.core.TableSpaceManager;
import herddb.model.DMLStatementExecutionResult;
import herddb.model.DataScanner;
import herddb.model.ScanResult;
import herddb.model.StatementExecutionException;
import herddb.model.TransactionContext;
import herddb.sql.TranslatedQuery;
import io.herdkeeper.node.testing.BookKeeperForTests;
import io.herdkeeper.node.testing.Node;
import io.herdkeeper.node.testing.RunningNode;
import java.math.BigDecimal;
import java.math.BigInteger;
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

/** A number that a statement computes is stored as it is, or the statement is refused. */
class ComputedNumbersTest {

    private static final String FIRST = "{d=1.5, i=5, k=1, l=7}";
    private static final String LARGE = "{d=1.0E300, i=0, k=2, l=0}";

    private static RunningNode leader;

    @BeforeAll
    static void start() throws Exception {
        leader = RunningNode.start("n0", BookKeeperForTests.running().newRoot(), null);
        leader.server().waitForTableSpaceBoot("herd", 30_000, true);
        execute("CREATE TABLE t (k int primary key, i int, l long, d double)");
        execute("CREATE TABLE w (k long primary key, i int not null default 3, l long not null default 4, small smallint default 5, r real)");
    }

    @AfterAll
    static void stop() throws Exception {
        leader.stop();
    }

    @BeforeEach
    void fillTheTables() {
        execute("DELETE FROM t");
        execute("DELETE FROM w");
        execute("INSERT INTO t(k,i,l,d) VALUES(1,5,7,1.5)");
        execute("INSERT INTO t(k,i,l,d) VALUES(2,0,0,?)", 1e300);
        execute("INSERT INTO w(k,r) VALUES(1,1)");
    }

    @ParameterizedTest
    @CsvSource(delimiter = '|', value = {
        "INSERT INTO t(k,i) VALUES(3, 1/0)|i (integer)|Infinity is too large for an int",
        "INSERT INTO t(k,i) VALUES(3, -1/0)|i (integer)|-Infinity is too large for an int",
        "INSERT INTO t(k,i) VALUES(3, 0/0)|i (integer)|NaN is no whole number",
        "INSERT INTO t(k,l) VALUES(3, 1/0)|l (long)|Infinity is too large for a long",
        "INSERT INTO t(k,i) VALUES(3, 2147483647+1)|i (integer)|2147483648 is too large for an int",
        "INSERT INTO t(k,i) VALUES(3, ?/0)|i (integer)|NaN is no whole number",
        "UPDATE t SET i = l+2147483648-? WHERE k=2|i (integer)|2147483648 is too large for an int",
        "INSERT INTO t(k,i) VALUES(1/0, 3)|k (integer)|Infinity is too large for an int",
        "INSERT INTO w(k) VALUES(1/0)|k (long)|Infinity is too large for a long",
        "UPSERT INTO t(k,i) VALUES(1, 1/0)|i (integer)|Infinity is too large for an int",
        "INSERT INTO t(k,i) SELECT k+10, d FROM t WHERE k=2|i (integer)|1.0E300 is too large for an int",
        "INSERT INTO t(k,l) SELECT k+10, -d FROM t WHERE k=2|l (long)|-1.0E300 is too large for a long",
        "INSERT INTO t(k,l) SELECT k+10, SUM(d) FROM t WHERE k=2 GROUP BY k|l (long)|1.0E300 is too large for a long",
        "INSERT INTO t(k,i) SELECT k+10, CAST(d AS int) FROM t WHERE k=2|i (integer)|1.0E300 is too large for an int",
        "INSERT INTO t(k,i) SELECT CAST(d AS int), i FROM t WHERE k=2|k (integer)|1.0E300 is too large for an int",
        "INSERT INTO t(k,i) SELECT d, i FROM t WHERE k=2|k (integer)|1.0E300 is too large for an int",
        "INSERT INTO w(k,i) VALUES(3, 1/0)|i (integer not null)|Infinity is too large for an int",
        "INSERT INTO w(k,l) VALUES(3, 1/0)|l (long not null)|Infinity is too large for a long",
        "INSERT INTO w(k,small) VALUES(3, 1/0)|small (integer)|Infinity is too large for an int",
        "UPDATE t SET i = 1/0|i (integer)|Infinity is too large for an int",
        "UPDATE t SET i = l/i WHERE k=2|i (integer)|NaN is no whole number",
        "UPDATE t SET i = d|i (integer)|1.0E300 is too large for an int",
        "UPDATE t SET l = d|l (long)|1.0E300 is too large for a long",
        "UPDATE t SET i = d WHERE k IN (SELECT k FROM t WHERE k=2)|i (integer)|1.0E300 is too large for an int",
        "UPDATE t SET i = i+2147483643|i (integer)|2147483648 is too large for an int",
        "UPDATE t SET i = -2147483648-k|i (integer)|-2147483649 is too large for an int",
        "UPDATE t SET i = 1e300|i (integer)|1.0E300 is too large for an int",
        "UPDATE t SET l = 1e300|l (long)|1.0E300 is too large for a long",
        "UPDATE t SET l = 9223372036854775807*1.0|l (long)|9.223372036854776E18 is too large for a long",
        "UPDATE t SET i = CAST(d AS int)|i (integer)|1.0E300 is too large for an int",
        "UPDATE t SET i = CAST(d AS bigint)|i (integer)|1.0E300 is too large for an int",
        "UPDATE t SET i = ROUND(d)|i (integer)|9.223372036854776E18 is too large for an int",
        "UPDATE t SET i = CASE WHEN k=2 THEN 1e300 ELSE 1 END|i (integer)|1.0E300 is too large for an int",
        "UPDATE t SET k = d WHERE k=2|k (integer)|1.0E300 is too large for an int",
        "UPDATE t SET k = 1e300 WHERE k=2|k (integer)|1.0E300 is too large for an int",
        "UPDATE t SET k = k/0 WHERE k=2|k (integer)|Infinity is too large for an int",
        "UPDATE t SET k = k+2147483647 WHERE k=2|k (integer)|2147483649 is too large for an int",
        "UPDATE t SET k = k+10, i = d|i (integer)|1.0E300 is too large for an int",
        "UPDATE w SET k = r/0|k (long)|Infinity is too large for a long",
        "UPDATE w SET i = r/0|i (integer not null)|Infinity is too large for an int",
        "UPDATE w SET l = r/0|l (long not null)|Infinity is too large for a long"})
    void aNumberThatItsColumnCanNotHoldIsRefusedAndChangesNothing(String statement, String column, String why) throws Exception {
        TableSpaceManager before = leader.manager("herd");
        Object[] zeros = statement.chars().filter(letter -> letter == '?').mapToObj(any -> 0).toArray();
        for (boolean inTransaction : new boolean[] {false, true}) {
            long transaction = inTransaction ? Node.begin(leader.server(), "herd") : 0;
            StatementExecutionException refusal = assertThrows(
                    StatementExecutionException.class, () -> Node.execute(leader.server(), transaction, statement, zeros));
            assertTrue(refusal.getMessage().contains("column " + column + ":" + why), refusal.getMessage());
            assertTrue(refusal.getMessage().contains("write NULL, or a number from -"), refusal.getMessage());
            if (inTransaction) {
                execute("EXECUTE COMMITTRANSACTION 'herd'," + transaction);
            }
        }
        assertEquals(List.of(LARGE, FIRST), rows("t"));
        assertEquals(List.of("{i=3, k=1, l=4, r=1.0, small=5}"), rows("w"));
        before.checkpoint(false, false, false);
        assertEquals(before, leader.manager("herd"), "which has not booted again");
    }

    @ParameterizedTest
    @CsvSource(delimiter = '|', value = {
        "UPDATE t SET i = i+2147483642 WHERE k=1|{d=1.5, i=2147483647, k=1, l=7}",
        "UPDATE t SET i = 2147483646+1 WHERE k=1|{d=1.5, i=2147483647, k=1, l=7}",
        "UPDATE t SET i = 2147483647.9 WHERE k=1|{d=1.5, i=2147483647, k=1, l=7}",
        "UPDATE t SET i = -2147483647-1 WHERE k=1|{d=1.5, i=-2147483648, k=1, l=7}",
        "UPDATE t SET i = d-2147483650 WHERE k=1|{d=1.5, i=-2147483648, k=1, l=7}",
        "UPDATE t SET i = l/2 WHERE k=1|{d=1.5, i=3, k=1, l=7}",
        "UPDATE t SET i = -l/2 WHERE k=1|{d=1.5, i=-3, k=1, l=7}",
        "UPDATE t SET l = l+9223372036854775800 WHERE k=1|{d=1.5, i=5, k=1, l=9223372036854775807}",
        "UPDATE t SET l = -9223372036854775808 WHERE k=1|{d=1.5, i=5, k=1, l=-9223372036854775808}",
        "UPDATE t SET l = -9223372036854775807-1 WHERE k=1|{d=1.5, i=5, k=1, l=-9223372036854775808}",
        "UPDATE t SET l = -9.223372036854775808e18 WHERE k=1|{d=1.5, i=5, k=1, l=-9223372036854775808}",
        "UPDATE t SET l = 9.2233720368547748e18 WHERE k=1|{d=1.5, i=5, k=1, l=9223372036854774784}",
        "UPDATE t SET d = i/0 WHERE k=1|{d=Infinity, i=5, k=1, l=7}",
        "UPDATE t SET d = -d*10e200*10e200 WHERE k=1|{d=-Infinity, i=5, k=1, l=7}",
        "UPDATE t SET i = CASE WHEN k=2 THEN d ELSE 1 END WHERE k=1|{d=1.5, i=1, k=1, l=7}",
        "UPDATE t SET i = CASE WHEN d>10 THEN NULL ELSE d END|{d=1.5, i=1, k=1, l=7}",
        "UPDATE t SET i = 7/i WHERE i<>0|{d=1.5, i=1, k=1, l=7}",
        "UPDATE t SET k = k+2147483646 WHERE k=1|{d=1.5, i=5, k=2147483647, l=7}",
        "UPDATE t SET k = -2147483648 WHERE k=1|{d=1.5, i=5, k=-2147483648, l=7}",
        "UPDATE t SET k = k+2.9 WHERE k=1|{d=1.5, i=5, k=3, l=7}",
        "INSERT INTO t(k,i,l) VALUES(2147483646+1,-2147483648,9223372036854775807)|{i=-2147483648, k=2147483647, l=9223372036854775807}",
        "INSERT INTO t(k,i) SELECT k+10, d*10 FROM t WHERE k=1|{i=15, k=11}",
        "UPDATE t SET i = '12' WHERE k=1|{d=1.5, i=12, k=1, l=7}",
        "UPDATE t SET i = NULL WHERE k=1|{d=1.5, k=1, l=7}",
        "UPDATE t SET i = NULL/0 WHERE k=1|{d=1.5, k=1, l=7}"})
    void aNumberThatItsColumnCanHoldIsStoredAsBefore(String statement, String row) {
        execute(statement);
        assertTrue(rows("t").contains(row), rows("t").toString());
    }

    /** The least number of a type has no negative in it. */
    @ParameterizedTest
    @CsvSource(delimiter = '|', value = {
        "UPDATE t SET i = -i WHERE k=1|column i (integer):2147483648 is too large for an int",
        "INSERT INTO t(k,i) SELECT k+10, -i FROM t WHERE k=1|column i (integer):2147483648 is too large for an int",
        "INSERT INTO t(k,i) VALUES(3, -?)|column i (integer):2147483648 is too large for an int",
        "UPDATE t SET l = -l WHERE k=1|column l (long):can't compute with 0 and -9223372036854775808: long overflow",
        "UPDATE t SET l = -i WHERE k=1|{d=1.5, i=-2147483648, k=1, l=2147483648}",
        "UPDATE t SET d = -i WHERE k=1|{d=2.147483648E9, i=-2147483648, k=1, l=-9223372036854775808}",
        "UPDATE t SET d = -d WHERE k=1|{d=-1.5, i=-2147483648, k=1, l=-9223372036854775808}",
        "UPDATE t SET l = -(-2147483648) WHERE k=1|{d=1.5, i=-2147483648, k=1, l=2147483648}",
        "DELETE FROM t WHERE -i = 2147483648|{d=1.0E300, i=0, k=2, l=0}",
        "DELETE FROM t WHERE k <> 1 AND -k = -2|{d=1.5, i=-2147483648, k=1, l=-9223372036854775808}"})
    void theNegativeOfTheLeastNumberIsStoredAsItIsOrRefused(String statement, String told) {
        execute("UPDATE t SET i=-2147483648, l=-9223372036854775808 WHERE k=1");
        Object[] least = statement.contains("?") ? new Object[] {Integer.MIN_VALUE} : new Object[0];
        if (told.startsWith("{")) {
            execute(statement, least);
            assertTrue(rows("t").contains(told), rows("t").toString());
        } else {
            List<String> before = rows("t");
            StatementExecutionException refusal = assertThrows(StatementExecutionException.class, () -> execute(statement, least));
            assertTrue(refusal.getMessage().contains(told), refusal.getMessage());
            assertEquals(before, rows("t"));
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {
        "INSERT INTO w(k,i) SELECT k+10, NULL FROM t WHERE k=1", "INSERT INTO w(k,i) SELECT k+10, i FROM t WHERE k=1",
        "INSERT INTO w(k,i) SELECT k+10, 1/i FROM t WHERE k=1", "UPSERT INTO w(k,i) SELECT k, i FROM t WHERE k=1",
        "INSERT INTO w(k,i) VALUES(3,?)", "INSERT INTO w(k,i) VALUES(3,?),(4,?)"})
    void aNullForAColumnThatIsNotNullIsRefusedWhereverItComesFrom(String statement) {
        execute("UPDATE t SET i=NULL WHERE k=1");
        Object[] nulls = statement.chars().filter(letter -> letter == '?').mapToObj(any -> null).toArray();
        long open = Node.begin(leader.server(), "herd");
        for (long transaction : new long[] {0, open}) {
            StatementExecutionException refusal = assertThrows(
                    StatementExecutionException.class, () -> Node.execute(leader.server(), transaction, statement, nulls));
            assertTrue(refusal.getMessage().contains("column i (integer not null):Cannot have null value"), refusal.getMessage());
        }
        execute("EXECUTE COMMITTRANSACTION 'herd'," + open);
        assertEquals(List.of("{i=3, k=1, l=4, r=1.0, small=5}"), rows("w"));
    }

    @Test
    void aNullThatIsWrittenStaysNullAndAColumnThatIsNotNamedHasItsDefault() {
        execute("INSERT INTO w(k,small) VALUES(2,NULL)");
        execute("INSERT INTO w(k,small) VALUES(3,?)", (Object) null);
        execute("INSERT INTO w(k,small) VALUES(4,1/?)", (Object) null);
        execute("INSERT INTO w(k,small) VALUES(5,6),(6,NULL)");
        execute("INSERT INTO w(k) SELECT k+6 FROM t");
        execute("INSERT INTO w(k,small) SELECT k+8,NULL FROM t WHERE k=1");
        execute("UPDATE w SET small=NULL WHERE k=1");
        execute("UPDATE w SET i=i+1 WHERE k=5");
        assertThrows(StatementExecutionException.class, () -> execute("UPDATE w SET i=NULL"));
        assertEquals(List.of("{i=3, k=1, l=4, r=1.0}", "{i=3, k=2, l=4}", "{i=3, k=3, l=4}", "{i=3, k=4, l=4}", "{i=3, k=6, l=4}",
                "{i=3, k=7, l=4, small=5}", "{i=3, k=8, l=4, small=5}", "{i=3, k=9, l=4}", "{i=4, k=5, l=4, small=6}"), rows("w"));
    }

    @ParameterizedTest
    @CsvSource(delimiter = '|', value = {
        "k < 3000000000|1,2", "k > -3000000000|1,2", "k > 0 AND k < 3000000000|1,2", "k < 1e300|1,2", "k > 1 AND k < 1e300|2",
        "k > 3000000000|''", "k < -3000000000|''", "k > -3000000000 AND k < 2|1", "k < 2147483648|1,2", "k >= -2147483649|1,2", "k = 1e300|''"})
    void aRangeOfKeysUpToANumberThatNoKeyCanBeHasAllRows(String condition, String keys) throws Exception {
        TranslatedQuery query = leader.server().getManager().getPlanner().translate(
                "herd", "SELECT k FROM t WHERE " + condition + " ORDER BY k", List.of(), true, true, false, -1);
        TreeSet<String> found = new TreeSet<>();
        ScanResult result = (ScanResult) leader.server().getManager().executePlan(query.plan, query.context, TransactionContext.NO_TRANSACTION);
        try (DataScanner rows = result.dataScanner) {
            while (rows.hasNext()) {
                found.add(rows.next().get("k").toString());
            }
        }
        assertEquals(keys, String.join(",", found));
        int changed = ((DMLStatementExecutionResult) Node.execute(leader.server(), 0, "DELETE FROM t WHERE " + condition)).getUpdateCount();
        assertEquals(found.size(), changed);
    }

    @ParameterizedTest
    @CsvSource(delimiter = '|', value = {
        "-5 > l|l = -9223372036854775808", "-5 < l|l = 9223372036854775807", "? < l|l = 9223372036854775807", "-5 > l * 1|l = -9223372036854775808",
        "-l > 5|l = -9223372036854775807", "CASE WHEN k=2 THEN l ELSE 0 END < -5|l = -9223372036854775808"})
    void numbersAreComparedHoweverFarApartTheyAre(String condition, String extreme) {
        Object[] parameters = condition.contains("?") ? new Object[] {-5L} : new Object[0];
        execute("UPDATE t SET " + extreme + " WHERE k=2");
        execute("UPDATE t SET l = 0 WHERE k=1");
        boolean zeroMeetsIt = condition.contains("< l");
        DMLStatementExecutionResult deleted =
                (DMLStatementExecutionResult) Node.execute(leader.server(), 0, "DELETE FROM t WHERE " + condition, parameters);
        assertEquals(zeroMeetsIt ? 2 : 1, deleted.getUpdateCount());
        assertEquals(zeroMeetsIt ? List.of() : List.of("{d=1.5, i=5, k=1, l=0}"), rows("t"));
    }

    @ParameterizedTest
    @CsvSource(delimiter = '|', value = {
        "SELECT k FROM t WHERE i IN (0.5)|0.5|i", "DELETE FROM t WHERE i IN (0.5)|0.5|i", "DELETE FROM t WHERE l IN (0.5)|0.5|l",
        "UPDATE t SET d=1 WHERE k IN (7, 2.5)|2.5|k", "DELETE FROM t WHERE T.I in (-0.5)|-0.5|t.i", "DELETE FROM t WHERE i IN (5e-1)|5E-1|i",
        "DELETE FROM herd.t WHERE t.i IN (((0.5)), 7)|0.5|t.i", "DELETE FROM t WHERE i IN/* a list */(1, 2, 3, 4, 5, 6, 7, 8, 0.5)|0.5|i",
        "SELECT k FROM t WHERE i IN (0.5) FOR UPDATE|0.5|i", "DELETE FROM t WHERE i NOT IN (0.5)|0.5|i",
        "SELECT a.k FROM t a JOIN w b ON a.k=b.k WHERE a.i IN (0.5)|0.5|a.i", "DELETE FROM t WHERE i*1 IN (0.5)|0.5|i",
        "SELECT k FROM (SELECT i, k FROM t) a WHERE a.i IN (0.5)|0.5|a.i", "INSERT INTO w(k) SELECT k+10 FROM t WHERE i IN (0.5)|0.5|i",
        "DELETE FROM w WHERE k IN (SELECT k FROM t WHERE i IN (0.5, 5))|0.5|i", "SELECT i, count(*) FROM t GROUP BY i HAVING i IN (0.5)|0.5|i"})
    void aListWithDecimalsForAColumnOfWholeNumbersIsRefusedAndChangesNothing(String statement, String decimal, String column) {
        execute("UPDATE t SET i = 0 WHERE k=2");
        StatementExecutionException refusal = assertThrows(StatementExecutionException.class, () -> {
            if (statement.startsWith("SELECT")) {
                leader.server().getManager().getPlanner().translate("herd", statement, List.of(), true, true, false, -1);
            } else {
                execute(statement);
            }
        });
        assertTrue(refusal.getMessage().startsWith("a list with " + decimal + " for the whole number " + column + " is not supported"),
                refusal.getMessage());
        assertTrue(refusal.getMessage().endsWith("or write " + column + " = " + decimal + " OR " + column + " = …"), refusal.getMessage());
        assertEquals(List.of(LARGE, FIRST), rows("t"));
    }

    @ParameterizedTest
    @CsvSource(delimiter = '|', value = {
        "DELETE FROM t WHERE d IN (1.5, 7)|1", "DELETE FROM t WHERE i IN (5.0, 7e0)|1",
        "DELETE FROM t WHERE i = 0.5 OR i = 5|1", "DELETE FROM t WHERE i IN (5, 7) AND d = 1.5|1", "DELETE FROM w WHERE r IN (0.5, 1.0)|1",
        "DELETE FROM t WHERE d*2 IN (3.0, 0.5)|1", "DELETE FROM t WHERE i IN (SELECT i FROM t WHERE d > 0.5)|2",
        "DELETE FROM t WHERE k IN (SELECT a.k FROM t a JOIN w b ON a.k=b.k WHERE a.d IN (1.5))|1"})
    void aListOfDecimalsThatAColumnCanHaveFindsItsRows(String statement, int changed) {
        assertEquals(changed, ((DMLStatementExecutionResult) Node.execute(leader.server(), 0, statement)).getUpdateCount());
    }

    @ParameterizedTest
    @CsvSource({"1e300", "-1e300", "9223372036854775808", "-9223372036854775809", "18446744073709551616", "1e1000000000"})
    void aNumberOfAnySizeThatIsTooLargeForItsColumnIsRefused(BigDecimal number) {
        for (String column : List.of("i", "l")) {
            Number[] values = number.scale() == 0 ? new Number[] {number, number.toBigInteger()} : new Number[] {number};
            for (Number value : values) {
                StatementExecutionException refusal = assertThrows(
                        StatementExecutionException.class, () -> execute("UPDATE t SET " + column + " = ? WHERE k=1", value));
                assertTrue(refusal.getMessage().contains(value + " is too large for "), refusal.getMessage());
            }
        }
        assertEquals(List.of(LARGE, FIRST), rows("t"));
    }

    @Test
    void aNumberOfAnySizeThatItsColumnCanHoldIsStored() {
        execute("UPDATE t SET i = ?, l = ? WHERE k=1", new BigDecimal("2147483647"), new BigInteger("-9223372036854775808"));
        assertTrue(rows("t").contains("{d=1.5, i=2147483647, k=1, l=-9223372036854775808}"), rows("t").toString());
    }

    private static void execute(String sql, Object... values) {
        Node.execute(leader.server(), 0, sql, values);
    }

    private static List<String> rows(String table) {
        TreeSet<String> rows = new TreeSet<>();
        TableManager manager = (TableManager) leader.manager("herd").getTableManager(table);
        manager.scanForIndexRebuild(row -> rows.add(new TreeMap<>(row.toBean(manager.getTable())).toString()));
        return List.copyOf(rows);
    }
}
