package io.herdkeeper.node.statement;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import herddb.core.TableManager;
import herddb.core.TableSpaceManager;
import herddb.model.DMLStatementExecutionResult;
import herddb.model.GetResult;
import herddb.model.RecordTooBigException;
import herddb.model.StatementExecutionException;
import herddb.model.TransactionContext;
import herddb.server.ServerConfiguration;
import herddb.sql.AbstractSQLPlanner;
import herddb.sql.TranslatedQuery;
import io.herdkeeper.node.internals.HerdInternals;
import io.herdkeeper.node.log.NodeCommitLog;
import io.herdkeeper.node.testing.Await;
import io.herdkeeper.node.testing.BookKeeperForTests;
import io.herdkeeper.node.testing.InterposedPlanner;
import io.herdkeeper.node.testing.Node;
import io.herdkeeper.node.testing.RunningNode;
import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.sql.Timestamp;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Function;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** UPDATEs of keys, and foreign keys, on a leader. */
class KeysAndReferencesTest {

    private static final Duration LIMIT = Duration.ofSeconds(60);
    /** HerdDB's own half an hour is for no test. */
    private static final Duration LOCK_LIMIT = Duration.ofSeconds(10);

    private static RunningNode leader;
    private static int tables;

    private String table;

    @BeforeAll
    static void start() throws Exception {
        leader = RunningNode.start(Node.configuration("n0", BookKeeperForTests.running().newRoot(), BookKeeperForTests.running().newFolder())
                .set(ServerConfiguration.PROPERTY_WRITELOCK_TIMEOUT, (int) LOCK_LIMIT.toSeconds())
                .set(ServerConfiguration.PROPERTY_READLOCK_TIMEOUT, (int) LOCK_LIMIT.toSeconds()), null);
        leader.server().waitForTableSpaceBoot("herd", (int) LIMIT.toMillis(), true);
    }

    /** A lock that was left behind keeps a node from stopping. */
    @AfterAll
    @Timeout(60)
    static void stop() throws Exception {
        leader.stop();
    }

    /** With rows (k, n) from (0, 0) to (4, 4). */
    @BeforeEach
    void makeATable() {
        table = "t" + tables++;
        execute(0, "CREATE TABLE " + table + " (k int primary key, n int)");
        for (int i = 0; i < 5; i++) {
            execute(0, "INSERT INTO " + table + "(k,n) VALUES(?,?)", i, i);
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"CREATE TABLE %2$s (k int primary key, p int, CONSTRAINT f FOREIGN KEY (p) REFERENCES %1$s(k))",
        "ALTER TABLE other%2$s ADD CONSTRAINT f FOREIGN KEY (n) REFERENCES %1$s(k)"})
    void aForeignKeyToATableThatATransactionDropsIsRefused(String statement) throws Exception {
        String child = "t" + tables++;
        execute(0, "CREATE TABLE other" + child + " (k int primary key, n int)");
        long dropping = Node.begin(leader.server(), "herd");
        execute(dropping, "DROP TABLE " + table);
        StatementExecutionException refusal = assertThrows(StatementExecutionException.class, () -> execute(0, statement.formatted(table, child)));
        assertTrue(refusal.getMessage().contains("that drops the table " + table), refusal.getMessage());
        rollBack(dropping);
        execute(0, statement.formatted(table, child));
        leader.manager("herd").checkpoint(true, false, false);
    }

    @Test
    void aForeignKeyToATableThatAnotherTransactionMakesIsRefused() throws Exception {
        String parent = "t" + tables++;
        long making = Node.begin(leader.server(), "herd");
        execute(making, "CREATE TABLE " + parent + " (k int primary key)");
        String key = "(k int primary key, p int, CONSTRAINT f FOREIGN KEY (p) REFERENCES " + parent + "(k))";
        StatementExecutionException refusal = assertThrows(StatementExecutionException.class, () -> execute(0, "CREATE TABLE c" + parent + key));
        assertTrue(refusal.getMessage().contains("that makes the table " + parent), refusal.getMessage());
        execute(making, "CREATE TABLE d" + parent + key);
        commit(making);
        execute(0, "CREATE TABLE c" + parent + key);
    }

    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void anUpdateOfAKeyToOneThatAnotherRowHasChangesNoRow(boolean inTransaction) throws Exception {
        long transaction = inTransaction ? Node.begin(leader.server(), "herd") : 0;
        assertThrows(StatementExecutionException.class, () -> execute(transaction, "UPDATE " + table + " SET k=2 WHERE k=1"));
        assertThrows(StatementExecutionException.class, () -> execute(transaction, "UPDATE " + table + " SET k=9 WHERE k>2"));
        execute(transaction, "UPDATE " + table + " SET k=9 WHERE k=1");
        execute(transaction, "UPDATE " + table + " SET k=2 WHERE k=2");
        assertThrows(StatementExecutionException.class, () -> execute(transaction, "UPDATE " + table + " SET k=9 WHERE k=3"));
        commit(transaction);
        assertEquals(List.of("0=0", "2=2", "3=3", "4=4", "9=1"), rows());
    }

    @Test
    void anUpdateOfTheKeyOfACommittedRowInATransactionOnAUniqueIndexLosesNoRow() throws Exception {
        execute(0, "CREATE UNIQUE INDEX i" + table + " ON " + table + "(n)");
        long transaction = Node.begin(leader.server(), "herd");
        StatementExecutionException refusal = assertThrows(StatementExecutionException.class,
                () -> execute(transaction, "UPDATE " + table + " SET k=9 WHERE k=1"));
        assertTrue(refusal.getMessage().contains("outside of a transaction"), refusal.getMessage());
        assertThrows(StatementExecutionException.class, () -> execute(transaction, "UPDATE " + table + " SET k=9,n=3 WHERE k=1"));
        execute(transaction, "UPDATE " + table + " SET k=8,n=8 WHERE k=2");
        execute(transaction, "INSERT INTO " + table + "(k,n) VALUES(10,10)");
        execute(transaction, "UPDATE " + table + " SET k=11,n=11 WHERE k=10");
        commit(transaction);
        execute(0, "UPDATE " + table + " SET k=9 WHERE k=1");
        assertThrows(StatementExecutionException.class, () -> execute(0, "UPDATE " + table + " SET k=12,n=3 WHERE k=4"));
        assertThrows(StatementExecutionException.class, () -> execute(0, "UPDATE " + table + " SET k=k+20,n=20 WHERE k<5"));
        assertEquals(List.of("0=0", "11=11", "3=3", "4=4", "8=8", "9=1"), rows());
    }

    @Test
    void anUpdateOfAKeyToAValueThatAnotherRowOfItsTransactionHasChangesNoRow() throws Exception {
        execute(0, "CREATE UNIQUE INDEX i" + table + " ON " + table + "(n)");
        long transaction = Node.begin(leader.server(), "herd");
        execute(transaction, "INSERT INTO " + table + "(k,n) VALUES(10,10),(11,11)");
        execute(transaction, "UPDATE " + table + " SET n=7 WHERE k=4");
        assertThrows(StatementExecutionException.class, () -> execute(transaction, "UPDATE " + table + " SET k=12,n=11 WHERE k=10"));
        assertThrows(StatementExecutionException.class, () -> execute(transaction, "UPDATE " + table + " SET k=12,n=7 WHERE k=10"));
        assertThrows(StatementExecutionException.class, () -> execute(transaction, "UPDATE " + table + " SET k=31-k,n=21-n WHERE k>9"));
        execute(transaction, "DELETE FROM " + table + " WHERE k=11");
        execute(transaction, "UPDATE " + table + " SET k=12,n=11 WHERE k=10");
        commit(transaction);
        assertEquals(List.of("0=0", "12=11", "1=1", "2=2", "3=3", "4=7"), rows());
    }

    @ParameterizedTest
    @ValueSource(strings = {"CASCADE", "SET NULL", "NO ACTION"})
    void aDeleteOfARowReachesOnlyTheRowsThatReferToItsTable(String action) throws Exception {
        String other = "t" + tables++;
        String child = "t" + tables++;
        execute(0, "CREATE TABLE " + other + " (k int primary key, n int)");
        execute(0, "INSERT INTO " + other + "(k,n) VALUES(1,1),(2,2)");
        execute(0, ("CREATE TABLE " + child + " (k int primary key, n int, o int, CONSTRAINT f" + child + " FOREIGN KEY (n) REFERENCES " + table
                + "(k) ON DELETE %1$s, CONSTRAINT g" + child + " FOREIGN KEY (o) REFERENCES " + other + "(k) ON DELETE %1$s)").formatted(action));
        execute(0, "INSERT INTO " + child + "(k,n,o) VALUES(10,2,1)");
        assertEquals(1, execute(0, "DELETE FROM " + table + " WHERE k=1"));
        bootAgain();
        assertEquals(1, execute(0, "DELETE FROM " + other + " WHERE k=2"));
        assertEquals(List.of("10=2"), rows(child));
    }

    @Test
    void aForeignKeyThatWasMadeAgainUnderItsNameLeadsWhereItSays() {
        String child = "t" + tables++;
        String other = "t" + tables++;
        String key = "ALTER TABLE " + child + " ADD CONSTRAINT f FOREIGN KEY (%s) REFERENCES %s(k) %s";
        execute(0, "CREATE TABLE " + child + " (k int primary key, n int, o int)");
        execute(0, "CREATE TABLE " + other + " (k int primary key, n int)");
        execute(0, "INSERT INTO " + other + "(k,n) VALUES(1,1),(2,2),(3,3),(77,77)");
        execute(0, key.formatted("n", table, "ON DELETE CASCADE"));
        execute(0, "INSERT INTO " + child + "(k,n,o) VALUES(10,1,2)");
        execute(0, "DELETE FROM " + table + " WHERE k=1");
        assertEquals(List.of(), rows(child));
        execute(0, "ALTER TABLE " + child + " DROP CONSTRAINT f");
        execute(0, key.formatted("o", table, "ON DELETE CASCADE"));
        execute(0, "INSERT INTO " + child + "(k,n,o) VALUES(11,2,3),(12,3,4)");
        execute(0, "DELETE FROM " + table + " WHERE k=3");
        assertEquals(List.of("12=3"), rows(child));
        execute(0, "ALTER TABLE " + child + " DROP CONSTRAINT f");
        execute(0, key.formatted("n", other, ""));
        execute(0, "INSERT INTO " + child + "(k,n,o) VALUES(13,77,0)");
        assertThrows(StatementExecutionException.class, () -> execute(0, "INSERT INTO " + child + "(k,n,o) VALUES(14,4,0)"));
        assertThrows(StatementExecutionException.class, () -> execute(0, "DELETE FROM " + other + " WHERE k=77"));
        assertEquals(List.of("12=3", "13=77"), rows(child));
    }

    @Test
    void aRowMayReferToARowOfARenamedTable() {
        String child = "t" + tables++;
        execute(0, "CREATE TABLE " + child + " (k int primary key, n int, CONSTRAINT f FOREIGN KEY (n) REFERENCES " + table + "(k))");
        execute(0, "INSERT INTO " + child + "(k,n) VALUES(10,1)");
        execute(0, "EXECUTE RENAMETABLE 'herd','" + table + "','new" + table + "'");
        execute(0, "INSERT INTO " + child + "(k,n) VALUES(11,2)");
        execute(0, "CREATE TABLE " + table + " (k int primary key, n int)");
        assertThrows(StatementExecutionException.class, () -> execute(0, "INSERT INTO " + child + "(k,n) VALUES(12,99)"));
        assertEquals(List.of("10=1", "11=2"), rows(child));
    }

    @Test
    void aTableWithAnIndexIsNotRenamedAndBootsAgain() throws Exception {
        execute(0, "CREATE UNIQUE INDEX i" + table + " ON " + table + "(n)");
        String rename = "EXECUTE RENAMETABLE 'herd','" + table + "','new" + table + "'";
        StatementExecutionException refusal = assertThrows(StatementExecutionException.class, () -> execute(0, rename));
        assertTrue(refusal.getMessage().contains("the index i" + table), refusal.getMessage());
        execute(0, "DROP INDEX i" + table);
        execute(0, rename);
        leader.manager("herd").checkpoint(true, false, false);
        bootAgain();
    }

    @ParameterizedTest
    @ValueSource(strings = {"INDEX i%1$s (n), INDEX i%1$s (m)", "UNIQUE KEY %1$s_unique_n (m)"})
    void aTableWithTwoIndexesOfOneNameIsRefused(String indexes) {
        String twice = "t" + tables++;
        StatementExecutionException refusal = assertThrows(StatementExecutionException.class, () -> execute(0,
                "CREATE TABLE " + twice + " (k int primary key, n int unique, m int, " + indexes.formatted(twice) + ")"));
        assertTrue(refusal.getMessage().contains("two indexes"), refusal.getMessage());
    }

    @ParameterizedTest
    @ValueSource(strings = {"ALTER TABLE %1$s DROP COLUMN n", "ALTER TABLE %1$s CHANGE n q int"})
    void anIndexOnAColumnThatIsGoneMeanwhileIsRefusedAndItsRowsCanBeDeleted(String change) {
        TranslatedQuery planned = leader.server().getManager().getPlanner().translate(
                "herd", "CREATE INDEX i" + table + " ON " + table + "(n)", List.of(), false, true, false, -1);
        execute(0, change.formatted(table));
        StatementExecutionException refusal = assertThrows(StatementExecutionException.class,
                () -> leader.server().getManager().executePlan(planned.plan, planned.context, TransactionContext.NO_TRANSACTION));
        assertTrue(refusal.getMessage().contains("column n"), refusal.getMessage());
        assertEquals(1, execute(0, "DELETE FROM " + table + " WHERE k=1"));
    }

    @Test
    void aForeignKeyToAnotherTablespaceIsRefusedAndTheLeaderGoesOn() throws Exception {
        execute(0, "CREATE TABLESPACE 'other" + table + "','leader:n0','replica:n0','expectedreplicacount:1','wait:30000'");
        execute(0, "CREATE TABLE other" + table + ".p (k int primary key)");
        TableSpaceManager before = leader.manager("herd");
        long open = Node.begin(leader.server(), "herd");
        assertThrows(StatementExecutionException.class,
                () -> execute(open, "ALTER TABLE " + table + " ADD CONSTRAINT f FOREIGN KEY (n) REFERENCES other" + table + ".p(k)"));
        execute(open, "UPDATE " + table + " SET n=7 WHERE k=1");
        commit(open);
        assertEquals(before, leader.manager("herd"), "which has not booted again");
    }

    @ParameterizedTest
    @ValueSource(strings = {"CREATE TABLE %2$s (k int primary key)", "CREATE TABLE made%1$s (k int primary key, %2$s int)",
        "CREATE TABLE made%1$s (k int primary key, n int, INDEX %2$s (n))",
        "CREATE INDEX %2$s ON %1$s(n)", "ALTER TABLE %1$s ADD COLUMN %2$s int", "ALTER TABLE %1$s ADD COLUMN s string DEFAULT '%3$s'"})
    void aDefinitionThatCanNotBeWrittenIsRefusedAndTheLeaderGoesOn(String statement) {
        TableSpaceManager before = leader.manager("herd");
        long open = Node.begin(leader.server(), "herd");
        for (long transaction : new long[] {0, open}) {
            assertThrows(StatementExecutionException.class,
                    () -> execute(transaction, statement.formatted(table, "x".repeat(70_000), "x".repeat(6_000_000))));
        }
        execute(open, "UPDATE " + table + " SET n=7 WHERE k=1");
        commit(open);
        assertEquals(before, leader.manager("herd"), "which has not booted again");
    }

    @ParameterizedTest
    @ValueSource(strings = {"INDEX", "HASH INDEX", "UNIQUE INDEX"})
    void aColumnWithAnIndexIsNotDroppedAndItsRowsCanBeDeleted(String index) throws Exception {
        execute(0, "CREATE " + index + " i" + table + " ON " + table + "(n)");
        StatementExecutionException refusal =
                assertThrows(StatementExecutionException.class, () -> execute(0, "ALTER TABLE " + table + " DROP COLUMN n"));
        assertTrue(refusal.getMessage().contains("the index i" + table + " needs it"), refusal.getMessage());
        assertEquals(1, execute(0, "DELETE FROM " + table + " WHERE k=1"));
        long dropping = Node.begin(leader.server(), "herd");
        execute(dropping, "DROP INDEX i" + table);
        execute(dropping, "ALTER TABLE " + table + " DROP COLUMN n");
        assertEquals(1, execute(0, "DELETE FROM " + table + " WHERE k=2"));
    }

    @ParameterizedTest
    @ValueSource(strings = {"ALTER TABLE %2$s DROP COLUMN p", "ALTER TABLE %2$s CHANGE p q int", "ALTER TABLE %1$s CHANGE k kk int"})
    void aColumnOfAForeignKeyIsNeitherDroppedNorRenamed(String statement) {
        String child = "t" + tables++;
        execute(0, "CREATE TABLE " + child + " (k int primary key, p int, CONSTRAINT f FOREIGN KEY (p) REFERENCES " + table + "(k))");
        StatementExecutionException refusal =
                assertThrows(StatementExecutionException.class, () -> execute(0, statement.formatted(table, child)));
        assertTrue(refusal.getMessage().contains("the foreign key f of table " + child + " needs it"), refusal.getMessage());
        execute(0, "INSERT INTO " + child + "(k,p) VALUES(10,1)");
        assertEquals(1, execute(0, "DELETE FROM " + table + " WHERE k=2"));
        execute(0, "ALTER TABLE " + child + " DROP CONSTRAINT f");
        execute(0, statement.formatted(table, child));
    }

    @ParameterizedTest
    @ValueSource(strings = {"", "ON DELETE CASCADE"})
    void aTableWhoseChildrenAreDroppedIsWrittenAsBefore(String action) {
        String child = "t" + tables++;
        String key = "CREATE TABLE " + child + " (k int primary key, n int, CONSTRAINT f FOREIGN KEY (n) REFERENCES " + table + "(k) " + action + ")";
        execute(0, key);
        execute(0, "INSERT INTO " + child + "(k,n) VALUES(10,1)");
        execute(0, "DROP TABLE " + child);
        assertEquals(1, execute(0, "DELETE FROM " + table + " WHERE k=1"));
        execute(0, key);
        execute(0, "INSERT INTO " + child + "(k,n) VALUES(10,2)");
        long dropping = Node.begin(leader.server(), "herd");
        execute(dropping, "DROP TABLE " + child);
        commit(dropping);
        assertEquals(1, execute(0, "DELETE FROM " + table + " WHERE k=2"));
    }

    /** As of a process that ended amid its transaction: HerdDB ends that by itself, after a quarter of an hour or when the tablespace boots. */
    @Test
    void aTableWhoseChildTableAnAbandonedTransactionMadeIsWrittenAsBefore() throws Exception {
        String child = "t" + tables++;
        long abandoned = Node.begin(leader.server(), "herd");
        execute(abandoned, "CREATE TABLE " + child + " (k int primary key, p int, CONSTRAINT f FOREIGN KEY (p) REFERENCES " + table + "(k))");
        Method end = TableSpaceManager.class.getDeclaredMethod("forceTransactionRollback", long.class);
        end.setAccessible(true);
        end.invoke(leader.manager("herd"), abandoned);
        assertEquals(1, execute(0, "DELETE FROM " + table + " WHERE k=1"));
        assertEquals(1, execute(0, "UPDATE " + table + " SET n=7 WHERE k=2"));
    }

    /** HerdDB's client repeats a statement for which it is told to ask another node. */
    @ParameterizedTest
    @ValueSource(strings = {"INSERT INTO %2$s(p) VALUES(1),(2)", "DELETE FROM %1$s WHERE k=1"})
    void aStatementWhoseLogFailsBehindItsFirstRowIsNotToldToAskTheNextLeader(String statement) throws Exception {
        List<String> children = List.of("t" + tables++, "t" + tables++);
        for (String child : children) {
            execute(0, "CREATE TABLE " + child + " (k int primary key auto_increment, p int, CONSTRAINT f FOREIGN KEY (p) REFERENCES "
                    + table + "(k) ON DELETE CASCADE)");
            execute(0, "INSERT INTO " + child + "(p) VALUES(1)");
        }
        AbstractSQLPlanner planner = leader.server().getManager().getPlanner();
        TableSpaceManager before = leader.manager("herd");
        AtomicInteger within = new AtomicInteger(-1); // the statement itself is planned first
        HerdInternals.planner(leader.server().getManager(), new InterposedPlanner(leader.server().getManager(), plan -> {
            if (within.incrementAndGet() == 2) {
                ((NodeCommitLog) before.getLog()).end(new IllegalStateException("for a test"));
            }
            return plan.get();
        }));
        StatementExecutionException told = assertThrows(StatementExecutionException.class,
                () -> execute(0, statement.formatted(table, children.get(0))));
        HerdInternals.planner(leader.server().getManager(), planner);
        assertTrue(told.toString().contains("LogNotAvailableException"), told.toString());
        awaitBootAfter(before);
        AtomicInteger rows = new AtomicInteger();
        for (String child : children) {
            ((TableManager) leader.manager("herd").getTableManager(child)).scanForIndexRebuild(row -> rows.incrementAndGet());
        }
        assertEquals(statement.startsWith("INSERT") ? 3 : 1, rows.get(), "the first row is durable");
    }

    @Test
    void aStatementThatThrowsWithinAChangeLetsThoseGoThatWaitForItsRow() throws Exception {
        String child = "t" + tables++;
        execute(0, "CREATE TABLE " + child + " (k int primary key, p int, CONSTRAINT f FOREIGN KEY (p) REFERENCES " + table + "(k))");
        AbstractSQLPlanner planner = leader.server().getManager().getPlanner();
        TableSpaceManager before = leader.manager("herd");
        AtomicInteger planned = new AtomicInteger();
        AtomicReference<CompletableFuture<Integer>> other = new AtomicReference<>();
        long others = Await.threadsThatWaitForRows(); // of tests before
        String update = "UPDATE " + table + " SET n=7 WHERE k=1";
        HerdInternals.planner(leader.server().getManager(), new InterposedPlanner(leader.server().getManager(), plan -> {
            if (planned.incrementAndGet() == 2) {
                other.set(CompletableFuture.supplyAsync(() -> execute(0, update)));
                awaitOneThatWaitsForARow(others);
                throw new IllegalStateException("for a test");
            }
            return plan.get();
        }));
        try {
            assertThrows(StatementExecutionException.class, () -> execute(0, update));
            ExecutionException told = assertThrows(ExecutionException.class, () -> other.get().get(LIMIT.toSeconds(), TimeUnit.SECONDS));
            assertFalse(told.toString().contains("timed out acquiring lock"), told.toString());
        } finally {
            HerdInternals.planner(leader.server().getManager(), planner);
            awaitBootAfter(before);
        }
        assertEquals(1, execute(0, update));
    }

    private static void awaitOneThatWaitsForARow(long others) {
        try {
            Await.until("another statement waits for the row", LIMIT, () -> Await.threadsThatWaitForRows() > others);
        } catch (Exception error) {
            throw new IllegalStateException(error);
        }
    }

    private static void bootAgain() throws Exception {
        TableSpaceManager before = leader.manager("herd");
        ((NodeCommitLog) before.getLog()).end(new IllegalStateException("for a test"));
        awaitBootAfter(before);
    }

    private static void awaitBootAfter(TableSpaceManager before) throws Exception {
        Await.until("another boot of the tablespace", LIMIT, () -> {
            TableSpaceManager again = leader.manager("herd");
            return again != null && again != before && again.isLeader();
        });
    }

    @Test
    void anUpdateOfAKeyInATransactionChangesOneOfTwoRowsThatDifferByTheirKeys() throws Exception {
        long transaction = Node.begin(leader.server(), "herd");
        execute(transaction, "INSERT INTO " + table + "(k,n) VALUES(10,7),(11,7)");
        assertEquals(1, execute(transaction, "UPDATE " + table + " SET k=12 WHERE k=10"));
        commit(transaction);
        assertEquals(List.of("0=0", "11=7", "12=7", "1=1", "2=2", "3=3", "4=4"), rows());
    }

    @Test
    void anUpdateOfAKeyUndoesNoChangeThatAnotherStatementMakesMeanwhile() throws Exception {
        int changed = besideAnUpdateOfAllKeys("UPDATE " + table + " SET n=100 WHERE k=?");
        assertEquals(changed, rows().stream().filter(row -> row.endsWith("=100")).count(), rows().toString());
    }

    @Test
    void anUpdateOfAKeyBringsNoRowBackThatAnotherStatementDeletesMeanwhile() throws Exception {
        int deleted = besideAnUpdateOfAllKeys("DELETE FROM " + table + " WHERE k=?");
        assertEquals(5 - deleted, rows().size(), rows().toString());
    }

    /** Of the row that the UPDATE reads first; the last one is held up. */
    private int besideAnUpdateOfAllKeys(String statement) throws Exception {
        List<Integer> keys = keys();
        long holding = Node.begin(leader.server(), "herd");
        execute(holding, "UPDATE " + table + " SET n=n WHERE k=?", keys.get(4));
        CompletableFuture<Integer> moving = waiting("UPDATE " + table + " SET k=k+10");
        long before = Await.threadsThatWaitForRows();
        CompletableFuture<Integer> other = CompletableFuture.supplyAsync(() -> execute(0, statement, keys.get(0)));
        Await.until("it has ended, or waits as well", LIMIT, () -> other.isDone() || Await.threadsThatWaitForRows() > before);
        rollBack(holding);
        assertEquals(5, moving.join());
        return other.join();
    }

    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void anUpdateOfAKeyThatTheLeaderDoesNotEndLosesNoRow(boolean isUnique) throws Exception {
        if (isUnique) {
            execute(0, "CREATE UNIQUE INDEX i" + table + " ON " + table + "(n)");
        }
        execute(Node.begin(leader.server(), "herd"), "INSERT INTO " + table + "(k,n) VALUES(9,9)");
        CompletableFuture<Integer> moving = waiting("UPDATE " + table + " SET k=9 WHERE k=1");
        assertTrue(((GetResult) Node.execute(leader.server(), 0, "SELECT * FROM " + table + " WHERE k=1")).found());
        bootAgain();
        assertThrows(CompletionException.class, moving::join);
        assertEquals(List.of("0=0", "1=1", "2=2", "3=3", "4=4"), rows());
    }

    @Test
    void anUpdateOfAKeyThatATransactionGivesToAnotherRowLosesNoRow() throws Exception {
        execute(0, "CREATE UNIQUE INDEX i" + table + " ON " + table + "(n)");
        long holding = Node.begin(leader.server(), "herd");
        execute(holding, "INSERT INTO " + table + "(k,n) VALUES(9,9)");
        CompletableFuture<Integer> moving = waiting("UPDATE " + table + " SET k=9 WHERE k=1");
        commit(holding);
        assertThrows(CompletionException.class, moving::join);
        assertEquals(List.of("0=0", "1=1", "2=2", "3=3", "4=4", "9=9"), rows());
        assertThrows(StatementExecutionException.class, () -> execute(0, "INSERT INTO " + table + "(k,n) VALUES(10,1)"));
        execute(0, "DELETE FROM " + table + " WHERE k=1");
        execute(0, "INSERT INTO " + table + "(k,n) VALUES(10,1)");
    }

    @Test
    void anUpdateOfAKeyWhoseNewRowIsRefusedLosesNoRow() {
        String child = "t" + tables++;
        execute(0, "CREATE TABLE " + child + " (k int primary key, n int, s string, CONSTRAINT f FOREIGN KEY (n) REFERENCES " + table + "(k))");
        execute(0, "INSERT INTO " + child + "(k,n) VALUES(10,1)");
        assertThrows(StatementExecutionException.class, () -> execute(0, "UPDATE " + child + " SET k=11,n=77 WHERE k=10"));
        assertThrows(StatementExecutionException.class, () -> execute(0, "UPDATE " + child + " SET k=11,s=? WHERE k=10", "x".repeat(2 << 20)));
        assertEquals(List.of("10=1"), rows(child));
        execute(0, "CREATE UNIQUE INDEX i" + child + " ON " + child + "(n)");
        assertEquals(1, execute(0, "UPDATE " + child + " SET k=11 WHERE k=10"));
        assertEquals(List.of("11=1"), rows(child));
        assertEquals(List.of(), leader.manager("herd").getTransactions());
    }

    @Test
    void anUpdateOfAKeyAtWhichHerdDbThrowsHoldsUpNothing() throws Exception {
        String child = "t" + tables++;
        execute(0, "CREATE TABLE " + child + " (k int primary key, n int, CONSTRAINT f FOREIGN KEY (n) REFERENCES " + table + "(k))");
        execute(0, "INSERT INTO " + child + "(k,n) VALUES(10,1)");
        TableSpaceManager before = leader.manager("herd");
        Field known = TableSpaceManager.class.getDeclaredField("tables");
        known.setAccessible(true);
        ((Map<?, ?>) known.get(before)).remove(table); // nobody expects this
        HerdInternals.renewReferences(before, Set.of());
        assertThrows(RuntimeException.class, () -> execute(0, "UPDATE " + child + " SET k=11 WHERE k=10"));
        Await.until("the tablespace leads again", LIMIT, () -> {
            TableSpaceManager again = leader.manager("herd");
            return again != null && again != before && again.isLeader() && !again.isFailed() && !again.isClosed();
        });
        leader.manager("herd").checkpoint(false, false, false);
        assertEquals(1, execute(0, "UPDATE " + child + " SET k=11 WHERE k=10"));
        assertEquals(List.of("11=1"), rows(child));
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void anInsertAtWhoseSecondRowHerdDbThrowsIsAnsweredAndHoldsUpNothing(boolean inTransaction) throws Exception {
        String child = "t" + tables++;
        execute(0, "CREATE TABLE " + child + " (k int primary key, n int, CONSTRAINT f FOREIGN KEY (n) REFERENCES " + table + "(k))");
        TableSpaceManager before = leader.manager("herd");
        long transaction = inTransaction ? Node.begin(leader.server(), "herd") : 0;
        throwAtTheSecondRow(before, child, "childForeignKeyQueries");
        CompletableFuture<Integer> insert = CompletableFuture.supplyAsync(
                () -> execute(transaction, "INSERT INTO " + child + "(k,n) VALUES(10,1),(11,1),(12,1)"));
        assertThrows(ExecutionException.class, () -> insert.get(LIMIT.toSeconds(), TimeUnit.SECONDS));
        Await.until("the tablespace leads again", LIMIT, () -> {
            TableSpaceManager again = leader.manager("herd");
            return again != null && again != before && again.isLeader() && !again.isFailed() && !again.isClosed()
                    && again.getTransactions().isEmpty();
        });
        leader.manager("herd").checkpoint(false, false, false);
        assertEquals(1, execute(0, "INSERT INTO " + child + "(k,n) VALUES(11,1)"));
        assertEquals(inTransaction ? List.of("11=1") : List.of("10=1", "11=1"), rows(child));
    }

    @ParameterizedTest
    @CsvSource(delimiter = ';', value = {
        "childForeignKeyQueries;UPDATE %1$s SET n=1 WHERE k IN (SELECT k FROM %1$s);false;3",
        "childForeignKeyQueries;UPDATE %1$s SET n=1 WHERE k IN (SELECT k FROM %1$s);true;3",
        "parentForeignKeyQueries;DELETE FROM %1$s WHERE k IN (SELECT k FROM %1$s);false;2",
        "parentForeignKeyQueries;DELETE FROM %1$s WHERE k IN (SELECT k FROM %1$s);true;3"})
    void aChangeAtWhoseSecondRowHerdDbThrowsIsAnsweredAndHoldsUpNothing(String queries, String change, boolean inTransaction, int left)
            throws Exception {
        String middle = "t" + tables++;
        execute(0, "CREATE TABLE " + middle + " (k int primary key, n int, CONSTRAINT f FOREIGN KEY (n) REFERENCES " + table + "(k))");
        execute(0, "CREATE TABLE t" + tables++ + " (k int primary key, p int, CONSTRAINT f FOREIGN KEY (p) REFERENCES " + middle + "(k))");
        execute(0, "INSERT INTO " + middle + "(k,n) VALUES(10,1),(11,1),(12,1)");
        TableSpaceManager before = leader.manager("herd");
        long transaction = inTransaction ? Node.begin(leader.server(), "herd") : 0;
        throwAtTheSecondRow(before, middle, queries);
        CompletableFuture<Integer> changed = CompletableFuture.supplyAsync(() -> execute(transaction, change.formatted(middle)));
        assertThrows(ExecutionException.class, () -> changed.get(LIMIT.toSeconds(), TimeUnit.SECONDS));
        Await.until("the tablespace leads again", LIMIT, () -> {
            TableSpaceManager again = leader.manager("herd");
            return again != null && again != before && again.isLeader() && !again.isFailed() && !again.isClosed()
                    && again.getTransactions().isEmpty();
        });
        leader.manager("herd").checkpoint(false, false, false);
        assertEquals(left, execute(0, change.formatted(middle)));
    }

    private static void throwAtTheSecondRow(TableSpaceManager tablespace, String table, String name) throws ReflectiveOperationException {
        AtomicInteger rows = new AtomicInteger();
        Field queries = TableManager.class.getDeclaredField(name);
        queries.setAccessible(true);
        queries.set(tablespace.getTableManager(table), new ConcurrentHashMap<String, String>() {
            @Override
            public String computeIfAbsent(String key, Function<? super String, ? extends String> query) {
                if (rows.incrementAndGet() == 2) {
                    throw new IllegalStateException("nobody expects this");
                }
                return super.computeIfAbsent(key, query);
            }
        });
    }

    @ParameterizedTest
    @ValueSource(strings = {"CASCADE", "SET NULL", "NO ACTION"})
    void anUpdateOfAKeyToWhichRowsReferIsRefusedAndChangesNone(String action) throws Exception {
        String child = "t" + tables++;
        execute(0, "CREATE TABLE " + child + " (k int primary key, n int, CONSTRAINT f FOREIGN KEY (n) REFERENCES " + table + "(k) ON DELETE "
                + action + ")");
        execute(0, "INSERT INTO " + child + "(k,n) VALUES(10,1)");
        long open = Node.begin(leader.server(), "herd");
        for (long transaction : new long[] {0, open}) {
            assertThrows(StatementExecutionException.class, () -> execute(transaction, "UPDATE " + table + " SET k=9 WHERE k=1"));
            assertEquals(1, execute(transaction, "UPDATE " + table + " SET k=k+30 WHERE k=" + (transaction == 0 ? 2 : 3)));
        }
        commit(open);
        assertEquals(List.of("10=1"), rows(child));
        assertEquals(List.of("0=0", "1=1", "32=2", "33=3", "4=4"), rows());
    }

    @Test
    void anUpdateOfKeysIsCommittedAndItsClientLearnsOfNoTransaction() {
        execute(0, "CREATE UNIQUE INDEX i" + table + " ON " + table + "(n)");
        DMLStatementExecutionResult changed =
                (DMLStatementExecutionResult) Node.execute(leader.server(), 0, "UPDATE " + table + " SET k=k+20 WHERE k<3");
        assertEquals(3, changed.getUpdateCount());
        assertEquals(0, changed.transactionId);
        assertEquals(List.of(), leader.manager("herd").getTransactions());
        assertEquals(0, execute(0, "UPDATE " + table + " SET k=k+20 WHERE k=77"));
        assertEquals(List.of("20=0", "21=1", "22=2", "3=3", "4=4"), rows());
        assertThrows(StatementExecutionException.class, () -> execute(0, "INSERT INTO " + table + "(k,n) VALUES(10,1)"));
        assertEquals(1, execute(0, "UPDATE " + table + " SET n=10 WHERE n=1"));
    }

    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void anUpdateOfAKeyThatLeavesARowWithoutItsUniqueValueChangesNoRow(boolean inTransaction) throws Exception {
        execute(0, "CREATE UNIQUE INDEX i" + table + " ON " + table + "(n)");
        long transaction = inTransaction ? Node.begin(leader.server(), "herd") : 0;
        assertThrows(StatementExecutionException.class, () -> execute(transaction, "UPDATE " + table + " SET k=9,n=null WHERE k=1"));
        commit(transaction);
        assertEquals(List.of("0=0", "1=1", "2=2", "3=3", "4=4"), rows());
    }

    /** Once it waits for a row. */
    private static CompletableFuture<Integer> waiting(String statement) throws Exception {
        long before = Await.threadsThatWaitForRows();
        CompletableFuture<Integer> waiting = CompletableFuture.supplyAsync(() -> execute(0, statement));
        Await.until("it waits for a row", LIMIT, () -> Await.threadsThatWaitForRows() > before);
        return waiting;
    }

    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void anUpdateOfAKeyChangesRowsWithValuesOfEachType(boolean inTransaction) throws Exception {
        String wide = "t" + tables++;
        execute(0, "CREATE TABLE " + wide + " (k int, l string, s string, d double, l2 long, t timestamp, b boolean, y blob, e string not null,"
                + " f floata, primary key(k,l))");
        execute(0, "INSERT INTO " + wide + "(k,l,s,d,l2,t,b,y,e,f) VALUES(?,?,?,?,?,?,?,?,?,?)", 1, "a", "x", 1.5d, 5L,
                new Timestamp(1), true, new byte[]{1, 2}, "", new float[]{1f, 2f});
        execute(0, "INSERT INTO " + wide + "(k,l,s,d,l2,t,b,y,e) VALUES(?,?,?,?,?,?,?,?,?)", 2, "b", null, null, null, null, null, null, "e");
        execute(0, "ALTER TABLE " + wide + " ADD COLUMN z int");
        execute(0, "ALTER TABLE " + wide + " ADD COLUMN zz int not null default 5");
        execute(0, "INSERT INTO " + wide + "(k,l,e) VALUES(?,?,?)", 3, "c", "e");
        long transaction = inTransaction ? Node.begin(leader.server(), "herd") : 0;
        execute(transaction, "UPDATE " + wide + " SET s='new',d=d+1 WHERE k=1");
        execute(transaction, "INSERT INTO " + wide + "(k,l,e) VALUES(?,?,?)", 4, "d", "e");
        assertEquals(4, execute(transaction, "UPDATE " + wide + " SET k=k+10,l='q'"));
        assertEquals(4, execute(transaction, "UPDATE " + wide + " SET k=k+10,l='q',z=3 WHERE k > 5 and (s='new' or s is null)"));
        assertEquals(4, execute(transaction, "UPDATE " + wide + " SET k=k+10,l='q' WHERE k in (SELECT k FROM " + wide + ")"));
        commit(transaction);
    }

    @Test
    @Timeout(120)
    void aRowWithAKeyThatNoNodeCouldReplayIsRefused() throws Exception {
        String wide = "t" + tables++;
        execute(0, "CREATE TABLE " + wide + " (k string primary key, s string)");
        execute(0, "CREATE INDEX i" + wide + " ON " + wide + "(k,s)");
        for (int length : new int[] {900_000, 900_001, 600_000, 530_000}) {
            assertThrows(RecordTooBigException.class, () -> execute(0, "INSERT INTO " + wide + "(k,s) VALUES(?,'')", "x".repeat(length)));
        }
        for (int i = 0; i < 40; i++) {
            execute(0, "INSERT INTO " + wide + "(k,s) VALUES(?,'')", i + "x".repeat(new int[] {10, 125_000, 520_000}[i % 3]));
        }
        String half = "y".repeat(100_000);
        execute(0, "INSERT INTO " + wide + "(k,s) VALUES(?,?)", half, "y".repeat(800_000));
        assertThrows(RecordTooBigException.class, () -> execute(0, "UPDATE " + wide + " SET s=? WHERE k=?", "y".repeat(900_000), half));
        assertThrows(RecordTooBigException.class,
                () -> execute(0, "UPSERT INTO " + wide + "(k,s) VALUES(?,?)", half, "y".repeat(900_000)));
        bootAgain();
        assertEquals(41, execute(0, "DELETE FROM " + wide));
    }

    @ParameterizedTest
    @ValueSource(strings = {"INSERT INTO %s(k,s) VALUES(1,?)", "UPDATE %s SET s=? WHERE k=0", "UPSERT INTO %s(k,s) VALUES(0,?)"})
    void aRowWithAValueThatFillsAPageOfAnIndexIsRefusedAndTheLeaderGoesOn(String statement) {
        String wide = "t" + tables++;
        execute(0, "CREATE TABLE " + wide + " (k int primary key, s string)");
        execute(0, "CREATE INDEX i" + wide + " ON " + wide + "(s)");
        execute(0, "INSERT INTO " + wide + "(k,s) VALUES(0,'')");
        assertThrows(RecordTooBigException.class, () -> execute(0, statement.formatted(wide), "x".repeat((1 << 20) - 200)));
        assertEquals(1, execute(0, "DELETE FROM " + wide));
    }

    @Test
    void aTableWhoseChildTableIsRolledBackIsWrittenAsBefore() throws Exception {
        String child = "t" + tables++;
        long making = Node.begin(leader.server(), "herd");
        execute(making, "CREATE TABLE " + child + " (k int primary key, n int, CONSTRAINT f" + child + " FOREIGN KEY (n) REFERENCES " + table
                + "(k) ON DELETE CASCADE)");
        execute(making, "INSERT INTO " + child + "(k,n) VALUES(1,1)");
        rollBack(making);
        assertEquals(1, execute(0, "DELETE FROM " + table + " WHERE k=1"));
        assertEquals(1, execute(0, "UPDATE " + table + " SET n=7 WHERE k=2"));
    }
    /** In the order in which a scan comes to the rows. */
    private List<Integer> keys() {
        List<Integer> keys = new ArrayList<>();
        TableManager manager = (TableManager) leader.manager("herd").getTableManager(table);
        manager.scanForIndexRebuild(row -> keys.add((Integer) row.toBean(manager.getTable()).get("k")));
        return keys;
    }

    @ParameterizedTest
    @ValueSource(strings = {"SET k=2 WHERE k=1", "SET k=9 WHERE k>2", "SET k=9 WHERE k=77",
        "SET k=9 WHERE k IN (SELECT k FROM %s WHERE k>2)", "SET k=CASE WHEN k=3 THEN NULL ELSE k+20 END WHERE k IN (SELECT k FROM %s)"})
    void anUpdateOfAKeyThatBeginsATransactionLeavesNoneThatItsClientDoesNotKnow(String update) {
        long begun;
        try {
            begun = Node.execute(leader.server(), TransactionContext.AUTOTRANSACTION_ID,
                    "UPDATE " + table + " " + update.formatted(table)).transactionId;
        } catch (StatementExecutionException refusal) {
            begun = 0;
        }
        long known = begun;
        assertEquals(List.of(), leader.manager("herd").getTransactions().stream().filter(open -> open.transactionId != known).toList());
        commit(known);
        assertEquals(1, execute(0, "UPDATE " + table + " SET n=7 WHERE k=3"));
    }

    @ParameterizedTest
    @ValueSource(strings = {"CASCADE", "SET NULL"})
    void aRowWhoseChildrenAreInItsOwnTableIsDeletedInATransactionAndRefusedAtOnceOutside(String action) throws Exception {
        refersToItself("ON DELETE " + action);
        execute(0, "INSERT INTO " + table + "(k,n) VALUES(1,null),(2,1),(3,2)");
        StatementExecutionException refusal =
                assertThrows(StatementExecutionException.class, () -> execute(0, "DELETE FROM " + table + " WHERE k=2"));
        // One that had waited in vain would be told so.
        assertTrue(refusal.getMessage().contains("in a transaction"), refusal.getMessage());
        assertEquals(List.of("1=null", "2=1", "3=2"), rows());
        assertEquals(1, execute(0, "DELETE FROM " + table + " WHERE k=3"));
        execute(0, "INSERT INTO " + table + "(k,n) VALUES(3,2)");
        long transaction = Node.begin(leader.server(), "herd");
        execute(transaction, "DELETE FROM " + table + " WHERE k=2");
        commit(transaction);
        assertEquals(action.equals("CASCADE") ? List.of("1=null") : List.of("1=null", "3=null"), rows());
    }

    @Test
    void rowsThatReferToEachOtherInACircleAreRefusedAndTheLeaderGoesOn() throws Exception {
        refersToItself("ON DELETE CASCADE");
        execute(0, "INSERT INTO " + table + "(k,n) VALUES(1,null),(2,1),(3,2)");
        execute(0, "UPDATE " + table + " SET n=3 WHERE k=3");
        long transaction = Node.begin(leader.server(), "herd");
        StatementExecutionException refusal =
                assertThrows(StatementExecutionException.class, () -> execute(transaction, "DELETE FROM " + table + " WHERE k=3"));
        assertTrue(refusal.getMessage().contains("circle"), refusal.getMessage());
        execute(transaction, "INSERT INTO " + table + "(k,n) VALUES(4,2)");
        commit(transaction);
        execute(0, "ALTER TABLE " + table + " DROP CONSTRAINT f");
        execute(0, "DELETE FROM " + table + " WHERE k=3");
        assertEquals(List.of("1=null", "2=1", "4=2"), rows());
    }

    @Test
    void aRowBelowManyLevelsOfReferencesIsRefusedAndTheLeaderGoesOn() throws Exception {
        refersToItself("ON DELETE CASCADE");
        execute(0, "INSERT INTO " + table + "(k,n) VALUES(0,null)");
        for (int i = 1; i < 60; i++) {
            execute(0, "INSERT INTO " + table + "(k,n) VALUES(?,?)", i, i - 1);
        }
        long transaction = Node.begin(leader.server(), "herd");
        ExecutionException refusal =
                assertThrows(ExecutionException.class, () -> inAThreadOfTheImage("DELETE FROM " + table + " WHERE k=0", transaction));
        assertTrue(refusal.getMessage().contains("levels"), refusal.getMessage());
        for (int first = 40; first >= 0; first -= 20) {
            inAThreadOfTheImage("DELETE FROM " + table + " WHERE k=" + first, transaction);
        }
        commit(transaction);
        assertEquals(List.of(), rows());
    }

    /** No restore would load the rows that the transaction commits then. */
    @ParameterizedTest
    @CsvSource(delimiter = '|', value = {
        "INSERT INTO %1$s(k,n) VALUES(9,NULL)|ALTER TABLE %1$s MODIFY COLUMN n int NOT NULL",
        "INSERT INTO %1$s(k,n) VALUES(9,99)|ALTER TABLE %1$s ADD CONSTRAINT f FOREIGN KEY (n) REFERENCES %2$s(k)",
        "DELETE FROM %2$s WHERE k=1|ALTER TABLE %1$s ADD CONSTRAINT f FOREIGN KEY (n) REFERENCES %2$s(k)"})
    void whatAnAlterTableHasToCheckIsNotChangedByAnOpenTransaction(String change, String alter) throws Exception {
        String parent = "p" + table;
        execute(0, "CREATE TABLE " + parent + " (k int primary key)");
        execute(0, "INSERT INTO " + parent + "(k) VALUES(0),(1),(2),(3),(4)");
        long open = Node.begin(leader.server(), "herd");
        execute(open, change.formatted(table, parent));
        StatementExecutionException refusal =
                assertThrows(StatementExecutionException.class, () -> execute(0, alter.formatted(table, parent)));
        assertTrue(refusal.getMessage().contains("a transaction is open on table "), refusal.getMessage());
        rollBack(open);
        execute(0, alter.formatted(table, parent));
    }

    /** Behind a checkpoint that waits for the DELETE it would wait for ever. */
    @Test
    void theDeleteOfChildrenDoesNotTakeTheTablespaceOnceMore() throws Exception {
        String child = "t" + tables++;
        execute(0, "CREATE TABLE " + child + " (k int primary key, n int, CONSTRAINT f FOREIGN KEY (n) REFERENCES " + table
                + "(k) ON DELETE CASCADE)");
        execute(0, "INSERT INTO " + child + "(k,n) VALUES(7,1)");
        long locking = Node.begin(leader.server(), "herd");
        execute(locking, "DELETE FROM " + child + " WHERE k=7");
        FutureTask<Integer> deleting = new FutureTask<>(() -> execute(0, "DELETE FROM " + table + " WHERE k=1"));
        Thread thread = new Thread(deleting);
        thread.start();
        Await.until("it waits for the child", LIMIT, () -> {
            Set<String> methods = Stream.of(thread.getStackTrace()).map(StackTraceElement::getMethodName).collect(Collectors.toSet());
            return methods.contains("acquireWriteLockForKey") && methods.contains("executeForeignKeyConstraintsAsParentTable");
        });
        assertEquals(1, HerdInternals.statementLock(leader.manager("herd")).getReadLockCount());
        rollBack(locking);
        assertEquals(1, deleting.get());
        assertEquals(List.of(), rows(child));
    }

    /** With the stack that its entry point gives to a thread. */
    private static void inAThreadOfTheImage(String statement, long transaction) throws Exception {
        FutureTask<Integer> executed = new FutureTask<>(() -> execute(transaction, statement));
        new Thread(null, executed, "with 512 KiB of stack", 512 << 10).start();
        executed.get();
    }

    /** Instead of its rows it has none, and a reference to itself. */
    private void refersToItself(String action) {
        execute(0, "DELETE FROM " + table);
        execute(0, "ALTER TABLE " + table + " ADD CONSTRAINT f FOREIGN KEY (n) REFERENCES " + table + "(k) " + action);
    }

    private static void commit(long transaction) {
        if (transaction != 0) {
            execute(0, "EXECUTE COMMITTRANSACTION 'herd'," + transaction);
        }
    }

    private static void rollBack(long transaction) {
        execute(0, "EXECUTE ROLLBACKTRANSACTION 'herd'," + transaction);
    }

    private static int execute(long transaction, String sql, Object... values) {
        return Node.execute(leader.server(), transaction, sql, values) instanceof DMLStatementExecutionResult changed
                ? changed.getUpdateCount() : 0;
    }

    private List<String> rows() {
        return rows(table);
    }

    private static List<String> rows(String table) {
        TreeSet<String> rows = new TreeSet<>();
        TableManager manager = (TableManager) leader.manager("herd").getTableManager(table);
        manager.scanForIndexRebuild(row -> {
            Map<String, Object> values = row.toBean(manager.getTable());
            rows.add(values.get("k") + "=" + values.get("n"));
        });
        return List.copyOf(rows);
    }
}
