package io.herdkeeper.node.statement;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import herddb.cluster.BookkeeperCommitLog;
import herddb.core.TableManager;
import herddb.core.TableSpaceManager;
import herddb.log.LogSequenceNumber;
import herddb.model.ConstValueRecordFunction;
import herddb.model.GetResult;
import herddb.model.NotLeaderException;
import herddb.model.Record;
import herddb.model.RecordFunction;
import herddb.model.StatementEvaluationContext;
import herddb.model.StatementExecutionException;
import herddb.model.TableContext;
import herddb.model.TableDoesNotExistException;
import herddb.model.TransactionContext;
import herddb.model.UniqueIndexContraintViolationException;
import herddb.model.commands.DropTableStatement;
import herddb.model.commands.InsertStatement;
import herddb.server.ServerConfiguration;
import herddb.sql.TranslatedQuery;
import herddb.utils.Bytes;
import io.herdkeeper.node.internals.HerdInternals;
import io.herdkeeper.node.testing.Await;
import io.herdkeeper.node.testing.BookKeeperForTests;
import io.herdkeeper.node.testing.Node;
import io.herdkeeper.node.testing.RunningNode;
import java.nio.file.Files;
import java.nio.file.Path;
import java.sql.Timestamp;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** What the leader refuses, its followers never apply. */
class RefusedStatementsTest {

    private static final Duration LIMIT = Duration.ofSeconds(60);
    /** HerdDB's own half an hour is for no test. */
    private static final Duration LOCK_LIMIT = Duration.ofSeconds(10);

    private static RunningNode leader;
    private static RunningNode follower;
    private static int tables;
    private static String app;

    @BeforeAll
    static void startLeaderAndFollower() throws Exception {
        Path token = Files.writeString(BookKeeperForTests.running().newFolder().resolve("token"), "token");
        String root = BookKeeperForTests.running().newRoot();
        leader = RunningNode.start(Node.configuration("n0", root, BookKeeperForTests.running().newFolder())
                .set(ServerConfiguration.PROPERTY_WRITELOCK_TIMEOUT, (int) LOCK_LIMIT.toSeconds())
                .set(ServerConfiguration.PROPERTY_READLOCK_TIMEOUT, (int) LOCK_LIMIT.toSeconds()), token);
        leader.server().waitForTableSpaceBoot("herd", (int) LIMIT.toMillis(), true);
        follower = RunningNode.start("n1", root, token);
    }

    @BeforeEach
    void makeATablespaceThatIsNobodyElses() {
        app = "app" + tables++;
        execute(0, "CREATE TABLESPACE '" + app + "','leader:n0','replica:n0,n1','expectedreplicacount:1','wait:30000'");
    }

    /** A lock that was left behind keeps a node from stopping. */
    @AfterAll
    @Timeout(60)
    static void stop() throws Exception {
        follower.stop();
        leader.stop();
    }

    @ParameterizedTest
    @ValueSource(strings = {
        "INSERT INTO %s(k,n) VALUES(100,100)", "UPDATE %s SET n=99 WHERE k=3", "DELETE FROM %s WHERE k=3",
        "SELECT * FROM %s WHERE k=3 FOR UPDATE"})
    void aTruncateBesideATransactionChangesNothingAnywhere(String statement) throws Exception {
        String table = tableOfTen();
        long open = Node.begin(leader.server(), app);
        execute(open, statement.formatted(app + "." + table));
        StatementExecutionException refusal =
                assertThrows(StatementExecutionException.class, () -> execute(0, "TRUNCATE TABLE " + app + "." + table));
        assertTrue(refusal.getMessage().contains(app + "." + table) && refusal.getMessage().contains("transaction"), refusal.getMessage());
        execute(0, "EXECUTE COMMITTRANSACTION '" + app + "'," + open);
        assertTrue(rows(leader, table).size() >= 9);
        assertSameRows(table);
        execute(0, "TRUNCATE TABLE " + app + "." + table);
        assertEquals(List.of(), rows(leader, table));
        assertSameRows(table);
    }

    @ParameterizedTest
    @ValueSource(strings = {"tableconsistencycheck %s", "tablespaceconsistencycheck '%s'"})
    void herdDbsOwnCheckIsRefusedSinceItFailsEqualCopies(String statement) throws Exception {
        String table = tableOfTen();
        String checked = statement.contains("'") ? app : app + "." + table;
        StatementExecutionException refusal =
                assertThrows(StatementExecutionException.class, () -> execute(0, statement.formatted(checked)));
        assertTrue(refusal.getMessage().contains("herdkeeper.io/full-check"), refusal.getMessage());
        assertSameRows(table);
    }

    @ParameterizedTest
    @ValueSource(strings = {
        "DROP TABLE %s.systables", "DROP TABLE %s.SysTables", "DROP TABLE IF EXISTS %s.systablestats", "CREATE INDEX i ON %s.sysnodes(nodeid)",
        "CREATE UNIQUE INDEX i ON %s.systables(table_name)", "TRUNCATE TABLE %s.systables",
        "CREATE TABLE %1$s.child (a string primary key, CONSTRAINT f FOREIGN KEY (a) REFERENCES %1$s.systables(table_name))"})
    void aChangeOfASystemTableIsRefusedAndTheLeaderGoesOn(String statement) throws Exception {
        String table = tableOfTen();
        long open = Node.begin(leader.server(), app);
        for (long transaction : new long[] {0, open}) {
            StatementExecutionException refusal =
                    assertThrows(StatementExecutionException.class, () -> execute(transaction, statement.formatted(app)));
            assertTrue(refusal.getMessage().contains("system table"), refusal.getMessage());
            execute(transaction, "DELETE FROM " + app + "." + table + " WHERE k=" + (transaction == 0 ? 3 : 4));
        }
        end("COMMIT", open);
        assertEquals(8, rows(leader, table).size());
        assertSameRows(table);
    }

    @ParameterizedTest
    @ValueSource(strings = {"UPDATE %s SET n=99 WHERE k=3", "SELECT * FROM %s WHERE k=3 FOR UPDATE"})
    void anIndexBesideATransactionIsRefusedAndTheLeaderGoesOn(String statement) throws Exception {
        String table = tableOfTen();
        long open = Node.begin(leader.server(), app);
        execute(open, statement.formatted(app + "." + table));
        String index = "CREATE INDEX i" + table + " ON " + app + "." + table + "(n)";
        StatementExecutionException refusal = assertThrows(StatementExecutionException.class, () -> execute(0, index));
        assertTrue(refusal.getMessage().contains("a transaction is open on it"), refusal.getMessage());
        execute(0, "INSERT INTO " + app + "." + table + "(k,n) VALUES(200,200)");
        execute(0, "EXECUTE COMMITTRANSACTION '" + app + "'," + open);
        execute(0, index);
        assertSameRows(table);
    }

    @ParameterizedTest
    @ValueSource(strings = {
        "UPDATE %s SET n=99 WHERE k=3", "SELECT * FROM %s WHERE k=3 FOR UPDATE", "INSERT INTO %s(k,n) VALUES(3,99)",
        "INSERT INTO %s(k,n) VALUES(100,100)", "DELETE FROM %s WHERE k=3"})
    void anIndexOfATransactionThatHasLockedRowsIsRefusedAndTheLeaderGoesOn(String statement) throws Exception {
        String table = tableOfTen();
        long open = Node.begin(leader.server(), app);
        try {
            execute(open, statement.formatted(app + "." + table));
        } catch (RuntimeException met) {
            assertTrue(statement.startsWith("INSERT"), met.toString());
        }
        String index = "CREATE INDEX i" + table + " ON " + app + "." + table + "(n)";
        StatementExecutionException refusal = assertThrows(StatementExecutionException.class, () -> execute(open, index));
        assertTrue(refusal.getMessage().contains("this transaction has changed or locked rows of the table"), refusal.getMessage());
        execute(open, "INSERT INTO " + app + "." + table + "(k,n) VALUES(200,200)");
        execute(0, "EXECUTE COMMITTRANSACTION '" + app + "'," + open);
        execute(0, index);
        assertSameRows(table);
    }

    @Test
    void aStatementThatMeetsAnErrorHoldsUpNothingBehindIt() throws Exception {
        String table = tableOfTen();
        DropTableStatement statement = new DropTableStatement(app, "absent", false) {
            @Override
            public boolean isIfExists() {
                throw new OutOfMemoryError("Cannot reserve direct buffer memory");
            }
        };
        CompletableFuture<?> dropped = leader.server().getManager().executeStatementAsync(
                statement, StatementEvaluationContext.DEFAULT_EVALUATION_CONTEXT(), TransactionContext.AUTOTRANSACTION_TRANSACTION);
        ExecutionException failed = assertThrows(ExecutionException.class, () -> dropped.get(LIMIT.toSeconds(), TimeUnit.SECONDS));
        assertInstanceOf(OutOfMemoryError.class, failed.getCause());
        Await.until("the tablespace leads again", LIMIT, () -> {
            TableSpaceManager again = leader.manager(app);
            return again != null && again.isLeader() && !again.isFailed() && !again.isClosed() && again.getTransactions().isEmpty();
        });
        CompletableFuture<Void> next = CompletableFuture.runAsync(() -> execute(0, "INSERT INTO " + app + "." + table + "(k,n) VALUES(200,200)"));
        next.get(LIMIT.toSeconds(), TimeUnit.SECONDS);
        assertSameRows(table);
    }

    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void aStatementThatHerdDbThrowsAtLeavesNoTransactionThatNobodyCanEnd(boolean implicit) throws Exception {
        String table = tableOfTen();
        DropTableStatement statement = new DropTableStatement(app, "absent", false) {
            @Override
            public boolean isIfExists() {
                throw new IllegalStateException("nobody expects this");
            }
        };
        TransactionContext transaction = implicit
                ? TransactionContext.AUTOTRANSACTION_TRANSACTION : new TransactionContext(Node.begin(leader.server(), app));
        CompletableFuture<?> dropped = leader.server().getManager().executeStatementAsync(
                statement, StatementEvaluationContext.DEFAULT_EVALUATION_CONTEXT(), transaction);
        ExecutionException failed = assertThrows(ExecutionException.class, () -> dropped.get(LIMIT.toSeconds(), TimeUnit.SECONDS));
        assertInstanceOf(IllegalStateException.class, failed.getCause());
        Await.until("no transaction is open", LIMIT, () -> {
            TableSpaceManager again = leader.manager(app);
            return again != null && again.isLeader() && !again.isFailed() && !again.isClosed() && again.getTransactions().isEmpty();
        });
        CompletableFuture<Void> next = CompletableFuture.runAsync(() -> execute(0, "INSERT INTO " + app + "." + table + "(k,n) VALUES(200,200)"));
        next.get(LIMIT.toSeconds(), TimeUnit.SECONDS);
        assertSameRows(table);
    }

    @Test
    void aChangeAtWhichHerdDbThrowsOutsideOfATransactionHoldsUpNothing() throws Exception {
        String table = tableOfTen();
        TableSpaceManager before = leader.manager(app);
        InsertStatement statement = new InsertStatement(app, table, new ConstValueRecordFunction(Bytes.from_int(100)), new RecordFunction() {
            @Override
            public byte[] computeNewValue(Record row, StatementEvaluationContext context, TableContext definition) {
                return null; // nobody expects this
            }
        }, false);
        assertThrows(RuntimeException.class, () -> leader.server().getManager().executeStatement(
                statement, StatementEvaluationContext.DEFAULT_EVALUATION_CONTEXT(), TransactionContext.NO_TRANSACTION));
        Await.until("the tablespace leads again", LIMIT, () -> {
            TableSpaceManager again = leader.manager(app);
            return again != null && again != before && again.isLeader() && !again.isFailed() && !again.isClosed();
        });
        leader.manager(app).checkpoint(false, false, false);
        assertEquals(1, execute(0, "UPDATE " + app + "." + table + " SET n=50 WHERE k=3"));
        assertSameRows(table);
    }

    @ParameterizedTest
    @ValueSource(strings = {
        "UPDATE %s SET n=1 WHERE lower(s)='x'", "UPDATE %s SET n=-n WHERE k>=0", "UPDATE %s SET n=1 WHERE k=-?",
        "DELETE FROM %s WHERE lower(s)='x'", "UPDATE %s SET n=-n WHERE k IN (SELECT k FROM %s)"})
    void aChangeThatCanNotBeComputedIsRefusedAndHoldsUpNothing(String statement) throws Exception {
        assertRefusedAndHoldsUpNothing(statement);
    }

    @ParameterizedTest
    @ValueSource(strings = {"SELECT * FROM %s WHERE k=1 AND lower(s)='x'", "SELECT * FROM %s WHERE k=-?"})
    void aReadByKeyThatCanNotBeComputedIsRefusedAndHoldsUpNothing(String statement) throws Exception {
        assertRefusedAndHoldsUpNothing(statement);
    }

    private static void assertRefusedAndHoldsUpNothing(String statement) throws Exception {
        String table = app + ".computed";
        execute(0, "CREATE TABLE " + table + " (k int primary key, n int, s string)");
        execute(0, "INSERT INTO " + table + "(k,n,s) VALUES(0,1,'y')");
        execute(0, "INSERT INTO " + table + "(k) VALUES(1)");
        TableSpaceManager before = leader.manager(app);
        long open = Node.begin(leader.server(), app);
        execute(open, "INSERT INTO " + table + "(k) VALUES(2)");
        Object[] values = statement.contains("?") ? new Object[] {null} : new Object[0];
        for (long transaction : new long[] {0, open}) {
            CompletableFuture<Integer> change =
                    CompletableFuture.supplyAsync(() -> execute(transaction, statement.replace("%s", table), values));
            ExecutionException refused = assertThrows(ExecutionException.class, () -> change.get(LIMIT.toSeconds(), TimeUnit.SECONDS));
            assertInstanceOf(StatementExecutionException.class, refused.getCause());
        }
        end(open);
        CompletableFuture.runAsync(() -> before.checkpoint(false, false, false)).get(LIMIT.toSeconds() / 2, TimeUnit.SECONDS);
        assertEquals(before, leader.manager(app), "which has not booted again");
        assertEquals(3, execute(0, "UPDATE " + table + " SET n=1 WHERE k>=0"));
    }

    @ParameterizedTest
    @ValueSource(strings = {"SELECT * FROM %s WHERE k=3", "SELECT * FROM %s WHERE k=3 FOR UPDATE"})
    void aReadByKeyThatWaitsInVainHoldsUpNothing(String statement) throws Exception {
        String table = tableOfTen();
        TableSpaceManager before = leader.manager(app);
        long holding = Node.begin(leader.server(), app);
        execute(holding, "UPDATE " + app + "." + table + " SET n=50 WHERE k=3");
        long open = Node.begin(leader.server(), app);
        assertThrows(StatementExecutionException.class, () -> execute(open, statement.formatted(app + "." + table)));
        end(open);
        end(holding);
        CompletableFuture.runAsync(() -> before.checkpoint(false, false, false)).get(LIMIT.toSeconds() / 2, TimeUnit.SECONDS);
        assertEquals(before, leader.manager(app), "which has not booted again");
        assertEquals("3=50", byKey(0, table, "k=3"));
    }

    @Test
    void aReadByKeyForUpdateOutsideOfATransactionKeepsNoLock() throws Exception {
        String table = tableOfTen();
        assertEquals("3=3", byKey(0, table, "k=3 FOR UPDATE"));
        execute(0, "UPDATE " + app + "." + table + " SET n=50 WHERE k=3");
        assertSameRows(table);
    }

    @Test
    void aReadByKeySeesWhatItsTransactionHasDone() throws Exception {
        String table = tableOfTen();
        long open = Node.begin(leader.server(), app);
        execute(open, "UPDATE " + app + "." + table + " SET n=50 WHERE k=3");
        execute(open, "INSERT INTO " + app + "." + table + "(k) VALUES(10)");
        execute(open, "DELETE FROM " + app + "." + table + " WHERE k=4");
        assertEquals("3=50", byKey(open, table, "k=3"));
        assertEquals("10=null", byKey(open, table, "k=10"));
        assertEquals("none", byKey(open, table, "k=4"));
        assertEquals("none", byKey(open, table, "k=3 AND n=3"));
        assertEquals("none", byKey(0, table, "k=10"));
        assertEquals("4=4", byKey(0, table, "k=4"));
        end(open);
    }

    @ParameterizedTest
    @ValueSource(strings = {"INSERT INTO %s(k) SELECT -n FROM %s", "UPDATE %s SET n=1 WHERE k IN (SELECT k FROM %s WHERE lower(s)='x')"})
    void aQueryOfAChangeThatCanNotBeComputedEndsNobodysTransaction(String statement) throws Exception {
        String table = app + ".read";
        execute(0, "CREATE TABLE " + table + " (k int primary key, n int, s string)");
        execute(0, "INSERT INTO " + table + "(k) VALUES(1)");
        TableSpaceManager before = leader.manager(app);
        long other = Node.begin(leader.server(), app);
        execute(other, "INSERT INTO " + table + "(k) VALUES(2)");
        long open = Node.begin(leader.server(), app);
        execute(open, "INSERT INTO " + table + "(k) VALUES(3)");
        assertThrows(StatementExecutionException.class, () -> execute(open, statement.replace("%s", table)));
        CompletableFuture.runAsync(() -> end(open)).get(LIMIT.toSeconds(), TimeUnit.SECONDS);
        end(other);
        assertEquals(before, leader.manager(app), "which has not booted again");
        assertEquals(3, rows(leader, "read").size());
        assertSameRows("read");
    }

    @ParameterizedTest
    @ValueSource(strings = {
        "INSERT INTO %s(k) SELECT -n FROM %s", "INSERT INTO %s(k) SELECT k+1 FROM %s", "UPDATE %s SET n=1 WHERE lower(s)='x'",
        "UPDATE %s SET n=1 WHERE k IN (SELECT k FROM %s WHERE lower(s)='x')", "UPDATE %s SET n=-n WHERE k IN (SELECT k FROM %s)",
        "DELETE FROM %s WHERE k IN (SELECT k FROM %s WHERE lower(s)='x')", "SELECT * FROM %s WHERE lower(s)='x' FOR UPDATE"})
    void aFirstStatementThatFailsLeavesNoTransactionOpen(String statement) throws Exception {
        String table = app + ".first";
        execute(0, "CREATE TABLE " + table + " (k int primary key, n int, s string)");
        execute(0, "INSERT INTO " + table + "(k,n,s) VALUES(0,1,'y')");
        execute(0, "INSERT INTO " + table + "(k,n) VALUES(1,1)");
        execute(0, "INSERT INTO " + table + "(k) VALUES(2)");
        TableSpaceManager before = leader.manager(app);
        CompletableFuture<?> first = CompletableFuture.runAsync(
                () -> execute(TransactionContext.AUTOTRANSACTION_ID, statement.replace("%s", table)));
        ExecutionException refused = assertThrows(ExecutionException.class, () -> first.get(LIMIT.toSeconds(), TimeUnit.SECONDS));
        assertInstanceOf(StatementExecutionException.class, refused.getCause());
        assertTrue(before.getTransactions().isEmpty(), before.getTransactions().toString());
        assertEquals(before, leader.manager(app), "which has not booted again");
        assertEquals(3, execute(0, "UPDATE " + table + " SET n=1 WHERE k>=0"));
        assertSameRows("first");
    }

    @ParameterizedTest
    @ValueSource(strings = {"INSERT INTO %s(k) SELECT k FROM %s WHERE k=77", "UPDATE %s SET n=1 WHERE k IN (SELECT k FROM %s WHERE k=77)",
        "DELETE FROM %s WHERE k IN (SELECT k FROM %s WHERE k=77)"})
    void whoSendsAFirstStatementThatFindsNoRowLearnsItsTransaction(String statement) throws Exception {
        String table = app + "." + tableOfTen();
        long begun = Node.execute(leader.server(), TransactionContext.AUTOTRANSACTION_ID, statement.replace("%s", table)).transactionId;
        CompletableFuture.runAsync(() -> end(begun)).get(LIMIT.toSeconds(), TimeUnit.SECONDS);
        assertTrue(leader.manager(app).getTransactions().isEmpty());
    }

    @Test
    void aTableIsTruncatedThoughHerdDbCanNotReadItsKeysForAnUpdate() throws Exception {
        String table = app + ".keys";
        Timestamp key = new Timestamp(1_000);
        execute(0, "CREATE TABLE " + table + " (k timestamp not null primary key, n int)");
        execute(0, "INSERT INTO " + table + "(k,n) VALUES(?,1)", key);
        assertThrows(StatementExecutionException.class, () -> execute(0, "UPDATE " + table + " SET n=2 WHERE k=?", key));
        CompletableFuture.runAsync(() -> execute(0, "TRUNCATE TABLE " + table)).get(LIMIT.toSeconds() / 2, TimeUnit.SECONDS);
    }

    @ParameterizedTest
    @CsvSource({"CREATE INDEX, COMMIT", "CREATE INDEX, ROLLBACK", "CREATE UNIQUE INDEX, COMMIT", "CREATE UNIQUE INDEX, ROLLBACK"})
    void anIndexThatATransactionMakesOnAnOlderTableIsUsableAtOnceAndStaysWhateverItsEnd(String create, String end) throws Exception {
        String table = tableOfTen();
        String changed = tableOfTen();
        long open = Node.begin(leader.server(), app);
        execute(open, "DELETE FROM " + app + "." + changed + " WHERE k=3");
        assertEquals("3=3", byKey(open, table, "k=3"));
        assertEquals(open, Node.execute(leader.server(), open, create + " i ON " + app + "." + table + "(n)").transactionId);
        assertTrue(leader.manager(app).getIndexesOnTable(table).get("i").isAvailable());
        execute(open, "DELETE FROM " + app + "." + changed + " WHERE k=4");
        end(end, open);
        assertEquals(end.equals("COMMIT") ? 8 : 10, rows(leader, changed).size());
        assertSameRows(changed);
        assertTrue(follower.manager(app).getIndexesOnTable(table).get("i").isAvailable());
        execute(0, "TRUNCATE TABLE " + app + "." + table);
        bootAgain();
        execute(0, "INSERT INTO " + app + "." + table + "(k,n) VALUES(1,1)");
        if (create.contains("UNIQUE")) {
            String twin = "INSERT INTO " + app + "." + table + "(k,n) VALUES(2,1)";
            assertThrows(UniqueIndexContraintViolationException.class, () -> execute(0, twin));
        }
        assertEquals(1, execute(0, "UPDATE " + app + "." + table + " SET n=5 WHERE n=1"));
        assertSameRows(table);
        execute(0, "TRUNCATE TABLE " + app + "." + table);
        assertSameRows(table);
        assertEquals(List.of(), rows(follower, table));
    }

    @ParameterizedTest
    @ValueSource(strings = {"COMMIT", "ROLLBACK"})
    void anIndexOnATableThatItsTransactionMakesHasTheEndOfTheTable(String end) throws Exception {
        long open = Node.begin(leader.server(), app);
        execute(open, "CREATE TABLE " + app + ".made (k int primary key, n int)");
        execute(open, "INSERT INTO " + app + ".made(k,n) VALUES(1,1),(2,2)");
        execute(open, "DELETE FROM " + app + ".made WHERE k=2");
        assertEquals(open, Node.execute(leader.server(), open, "CREATE INDEX i ON " + app + ".made(n)").transactionId);
        end(end, open);
        assertSameRows(tableOfTen());
        for (RunningNode node : List.of(leader, follower)) {
            assertEquals(end.equals("COMMIT"), node.manager(app).getTableManager("made") != null);
            assertEquals(end.equals("COMMIT"), node.manager(app).getIndexesOnTable("made") != null);
        }
        if (end.equals("ROLLBACK")) {
            execute(0, "CREATE TABLE " + app + ".made (k int primary key, n int)");
            execute(0, "CREATE INDEX i ON " + app + ".made(n)");
        }
        execute(0, "TRUNCATE TABLE " + app + ".made");
        assertSameRows("made");
    }

    @ParameterizedTest
    @ValueSource(strings = {"COMMIT", "ROLLBACK"})
    void anIndexThatItsTransactionDropsAgainIsThereUntilTheCommit(String end) throws Exception {
        String table = tableOfTen();
        String index = "CREATE INDEX i ON " + app + "." + table + "(n)";
        long open = Node.begin(leader.server(), app);
        execute(open, index);
        execute(open, "DROP INDEX " + app + ".i");
        StatementExecutionException refusal = assertThrows(StatementExecutionException.class, () -> execute(open, index));
        assertTrue(refusal.getMessage().contains("a transaction drops an index i"), refusal.getMessage());
        end(end, open);
        assertSameRows(table);
        for (RunningNode node : List.of(leader, follower)) {
            assertEquals(end.equals("ROLLBACK"), node.manager(app).getIndexesOnTable(table) != null);
        }
        execute(0, "TRUNCATE TABLE " + app + "." + table);
        assertSameRows(table);
    }

    /** Its log has the index inside of the transaction, as HerdDB alone writes it. */
    @Test
    void aTruncateIsRefusedBesideAnIndexThatARollbackOfAnEarlierVersionLeft() throws Exception {
        String table = app + "." + tableOfTen();
        long open = Node.begin(leader.server(), app);
        TranslatedQuery planned = leader.server().getManager().getPlanner()
                .translate("herd", "CREATE INDEX i ON " + table + "(n)", List.of(), false, true, false, -1);
        leader.manager(app).executeStatement(planned.plan.mainStatement, planned.context, new TransactionContext(open));
        end("ROLLBACK", open);
        StatementExecutionException refusal = assertThrows(StatementExecutionException.class, () -> execute(0, "TRUNCATE TABLE " + table));
        assertTrue(refusal.getMessage().contains("drop the index"), refusal.getMessage());
        execute(0, "DROP INDEX " + app + ".i");
        execute(0, "TRUNCATE TABLE " + table);
        assertSameRows(table.substring(app.length() + 1));
    }

    @Test
    void anIndexBeginsNoTransactionAndNeedsOneThatExists() throws Exception {
        String table = app + "." + tableOfTen();
        assertThrows(StatementExecutionException.class, () -> execute(4711, "CREATE INDEX i ON " + table + "(n)"));
        assertEquals(TransactionContext.NOTRANSACTION_ID, Node.execute(
                leader.server(), TransactionContext.AUTOTRANSACTION_ID, "CREATE INDEX i ON " + table + "(n)").transactionId);
        assertEquals(List.of(), List.copyOf(leader.manager(app).getTransactions()));
    }

    @Test
    void aTruncateBesideOtherWritersLeavesTheSameRowsOnEveryNode() throws Exception {
        String table = tableOfTen();
        List<CompletableFuture<Void>> writers = IntStream.range(0, 4).mapToObj(writer -> CompletableFuture.runAsync(() -> {
            for (int i = 0; i < 100; i++) {
                execute(0, "INSERT INTO " + app + "." + table + "(k,n) VALUES(?,?)", 1_000 + writer * 1_000 + i, writer * 1_000 + i);
            }
        })).toList();
        while (!writers.stream().allMatch(CompletableFuture::isDone)) {
            execute(0, "TRUNCATE TABLE " + app + "." + table);
        }
        writers.forEach(CompletableFuture::join);
        assertSameRows(table);
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void anUpdateOfWhichAUniqueIndexRefusesSomeRowsChangesNoneAnywhere(boolean inTransaction) throws Exception {
        String table = tableOfTen();
        execute(0, "CREATE UNIQUE INDEX u" + table + " ON " + app + "." + table + "(n)");
        // To 2 for the first one, which is there, and to 18 for the last one.
        refused(inTransaction, "UPDATE " + app + "." + table + " SET n=n*2 WHERE k>=1");
        assertEquals(IntStream.range(0, 10).mapToObj(k -> k + "=" + k).sorted().toList(), rows(leader, table));
        assertSameRows(table);
    }

    @ParameterizedTest
    @ValueSource(strings = {
        "INSERT INTO %s(k,n) VALUES(200,200),(201,200)", "INSERT INTO %s(k,n) VALUES(101,100)", "UPSERT INTO %s(k,n) VALUES(3,100)",
        "UPDATE %s SET n=100 WHERE k=3", "UPDATE %s SET n=200 WHERE k>=3", "UPDATE %s SET n=99 WHERE k=100",
        "UPDATE %s SET k=101, n=99 WHERE k=100"})
    void aTransactionGivesNoValueOfAUniqueIndexToTwoRows(String statement) throws Exception {
        String table = tableOfTen();
        execute(0, "CREATE UNIQUE INDEX u" + table + " ON " + app + "." + table + "(n)");
        long open = Node.begin(leader.server(), app);
        execute(open, "INSERT INTO " + app + "." + table + "(k,n) VALUES(100,100)");
        execute(open, "UPDATE " + app + "." + table + " SET n=99 WHERE k=1");
        assertThrows(UniqueIndexContraintViolationException.class, () -> execute(open, statement.formatted(app + "." + table)));
        execute(open, "INSERT INTO " + app + "." + table + "(k,n) VALUES(300,300)");
        end(open);
        List<String> values = rows(leader, table).stream().map(row -> row.substring(row.indexOf('='))).toList();
        assertTrue(values.contains("=99") && values.contains("=300"), values.toString());
        assertEquals(values.stream().distinct().toList(), values);
        assertSameRows(table);
    }

    @Test
    void aTransactionGivesAValueOfAUniqueIndexToAnotherRowOnceItIsFree() throws Exception {
        String table = tableOfTen();
        String named = app + "." + table;
        execute(0, "CREATE UNIQUE INDEX u" + table + " ON " + named + "(n)");
        long open = Node.begin(leader.server(), app);
        execute(open, "INSERT INTO " + named + "(k,n) VALUES(100,100)");
        execute(open, "DELETE FROM " + named + " WHERE k=100");
        execute(open, "INSERT INTO " + named + "(k,n) VALUES(101,100)");
        execute(open, "UPDATE " + named + " SET n=101 WHERE k=101");
        execute(open, "UPDATE " + named + " SET n=100 WHERE k=1");
        execute(open, "UPDATE " + named + " SET n=100 WHERE k=1");
        execute(open, "UPDATE " + named + " SET k=102 WHERE k=101");
        assertThrows(UniqueIndexContraintViolationException.class, () -> execute(open, "UPDATE " + named + " SET n=200 WHERE k>=3"));
        execute(open, "UPDATE " + named + " SET n=200 WHERE k=9");
        long other = Node.begin(leader.server(), app);
        execute(other, "UPDATE " + named + " SET n=50 WHERE k=2");
        assertThrows(StatementExecutionException.class, () -> execute(open, "UPDATE " + named + " SET n=k+300 WHERE k<=2"));
        execute(open, "UPDATE " + named + " SET n=300 WHERE k=8");
        // HerdDB's own rule: the value of a committed row is free after the COMMIT.
        assertThrows(UniqueIndexContraintViolationException.class, () -> execute(open, "UPDATE " + named + " SET n=1 WHERE k=7"));
        end(other);
        end(open);
        assertEquals(List.of("0=0", "102=101", "1=100", "2=50", "3=3", "4=4", "5=5", "6=6", "7=7", "8=300", "9=200"), rows(leader, table));
        assertSameRows(table);
    }

    @Test
    void aRowThatAForeignKeyChangesIsComparedByAUniqueIndexThatItsTransactionMadeAfterIt() throws Exception {
        String parent = tableOfTen();
        String child = app + "." + parent + "c";
        long open = Node.begin(leader.server(), app);
        execute(open, "CREATE TABLE " + child + "(k int primary key, n int, p int, CONSTRAINT f FOREIGN KEY (p) REFERENCES "
                + app + "." + parent + "(k) ON DELETE SET NULL)");
        execute(open, "INSERT INTO " + child + "(k,n,p) VALUES(1,1,null),(2,1,2),(3,2,3)");
        execute(open, "CREATE UNIQUE INDEX u" + parent + " ON " + child + "(n,p)");
        assertThrows(UniqueIndexContraintViolationException.class, () -> execute(open, "INSERT INTO " + child + "(k,n) VALUES(4,1)"));
        assertThrows(StatementExecutionException.class, () -> execute(open, "DELETE FROM " + app + "." + parent + " WHERE k=2"));
        assertEquals(1, execute(open, "DELETE FROM " + app + "." + parent + " WHERE k=3"));
        end(open);
        assertEquals(List.of("1=1", "2=1", "3=2"), rows(leader, parent + "c"));
        assertSameRows(parent + "c");
        assertSameRows(parent);
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void aDeleteThatAForeignKeyRefusesHalfWayDeletesNoRowAnywhere(boolean inTransaction) throws Exception {
        String table = tableOfTen();
        execute(0, "CREATE TABLE " + app + ".c" + table + " (k int primary key, p int, CONSTRAINT fk" + table
                + " FOREIGN KEY (p) REFERENCES " + table + "(k))");
        execute(0, "INSERT INTO " + app + ".c" + table + "(k,p) VALUES(1,5)");
        refused(inTransaction, "DELETE FROM " + app + "." + table);
        assertEquals(10, rows(leader, table).size());
        assertSameRows(table);
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void anUpdateOfManyRowsIsTheSameOnEveryNode(boolean inTransaction) throws Exception {
        String table = tableOfTen();
        long transaction = inTransaction ? Node.begin(leader.server(), app) : 0;
        assertEquals(10, execute(transaction, "UPDATE " + app + "." + table + " SET n=n+1000 WHERE k>=0"));
        assertEquals(3, execute(transaction, "DELETE FROM " + app + "." + table + " WHERE k>=7"));
        end(transaction);
        assertEquals(IntStream.range(0, 7).mapToObj(k -> k + "=" + (k + 1_000)).sorted().toList(), rows(leader, table));
        assertSameRows(table);
    }

    @Test
    void anIndexOnATableThatIsGoneMeanwhileIsRefusedAndLeavesNothingInTheLog() throws Exception {
        String table = tableOfTen();
        TranslatedQuery planned = leader.server().getManager().getPlanner()
                .translate("herd", "CREATE INDEX i" + table + " ON " + app + "." + table + "(n)", List.of(), false, true, false, -1);
        execute(0, "DROP TABLE " + app + "." + table);
        LogSequenceNumber before = leader.manager(app).getLog().getLastSequenceNumber();
        StatementExecutionException refusal = assertThrows(StatementExecutionException.class,
                () -> leader.server().getManager().executePlan(planned.plan, planned.context, TransactionContext.NO_TRANSACTION));
        assertTrue(refusal.getMessage().contains(table), refusal.getMessage());
        assertEquals(before.ledgerId, leader.manager(app).getLog().getLastSequenceNumber().ledgerId);
        assertSameRows(tableOfTen());
    }

    @Test
    void anIndexOnATableThatItsTransactionHasDroppedIsRefusedAndTheNextTableOfThatNameIsUsable() throws Exception {
        String table = tableOfTen();
        String index = "CREATE INDEX i" + table + " ON " + app + "." + table + "(n)";
        long dropping = Node.begin(leader.server(), app);
        execute(dropping, "DROP TABLE " + app + "." + table);
        assertThrows(TableDoesNotExistException.class, () -> execute(dropping, index));
        end(dropping);
        long making = Node.begin(leader.server(), app);
        execute(making, "CREATE TABLE " + app + "." + table + " (k int primary key, n int)");
        end(making);
        execute(0, index);
        execute(0, "INSERT INTO " + app + "." + table + "(k,n) VALUES(1,1)");
        leader.manager(app).checkpoint(true, false, false);
        assertSameRows(table);
    }

    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void aTransactionBesideAUniqueIndexOfAnotherOneLeavesNoLockOfItsValues(boolean rolledBack) throws Exception {
        String table = tableOfTen();
        long making = Node.begin(leader.server(), app);
        execute(making, "CREATE UNIQUE INDEX i" + table + " ON " + app + "." + table + "(n)");
        if (rolledBack) {
            execute(0, "EXECUTE ROLLBACKTRANSACTION '" + app + "'," + making);
        }
        long open = Node.begin(leader.server(), app);
        execute(open, "INSERT INTO " + app + "." + table + "(k,n) VALUES(100,100)");
        end(open);
        assertEquals(1, execute(0, "DELETE FROM " + app + "." + table + " WHERE k=100"));
        end(rolledBack ? 0 : making);
        assertSameRows(table);
    }

    @Test
    void tablesThatTwoImplicitTransactionsMakeAtOnceAreOneTableEverywhere() throws Exception {
        for (int i = 0; i < 8; i++) {
            String table = "twice" + i;
            List<CompletableFuture<Boolean>> both = IntStream.range(0, 2).mapToObj(one -> CompletableFuture.supplyAsync(() -> {
                try {
                    long transaction = Node.execute(leader.server(), TransactionContext.AUTOTRANSACTION_ID,
                            "CREATE TABLE " + app + "." + table + " (k int primary key, n int)").transactionId;
                    execute(0, "EXECUTE COMMITTRANSACTION '" + app + "'," + transaction);
                    return true;
                } catch (StatementExecutionException refused) {
                    return false;
                }
            })).toList();
            assertEquals(1, both.stream().filter(CompletableFuture::join).count());
            execute(0, "INSERT INTO " + app + "." + table + "(k,n) VALUES(1,1)");
            assertSameRows(table);
        }
    }

    @Test
    void aTransactionEndsOnceThoughTwoConnectionsCommitItAtOnce() throws Exception {
        String table = tableOfTen();
        for (int i = 0; i < 20; i++) {
            long transaction = Node.begin(leader.server(), app);
            execute(transaction, "INSERT INTO " + app + "." + table + "(k,n) VALUES(?,?)", 100 + i, i);
            List<CompletableFuture<Boolean>> both = IntStream.range(0, 2).mapToObj(one -> CompletableFuture.supplyAsync(() -> {
                try {
                    end(transaction);
                    return true;
                } catch (StatementExecutionException refused) {
                    return false;
                }
            })).toList();
            assertEquals(1, both.stream().filter(CompletableFuture::join).count());
        }
        assertSameRows(table);
    }

    @Test
    void aRowThatMeetsTheCommitOfItsTransactionIsInItOrRefused() throws Exception {
        String table = tableOfTen();
        for (int i = 0; i < 10; i++) {
            long transaction = Node.begin(leader.server(), app);
            int key = 100 + i;
            CompletableFuture<Void> insert = CompletableFuture.runAsync(() ->
                    execute(transaction, "INSERT INTO " + app + "." + table + "(k,n) VALUES(?,?)", key, key));
            end(transaction);
            try {
                insert.join();
            } catch (CompletionException refused) {
                assertTrue(refused.getCause() instanceof StatementExecutionException, refused.toString());
            }
        }
        assertSameRows(table);
    }

    @Test
    void aTableThatATransactionDropsTakesNoRowBehindItsCommit() throws Exception {
        for (int i = 0; i < 5; i++) {
            String table = tableOfTen();
            CompletableFuture<Void> writer = CompletableFuture.runAsync(() -> {
                for (int key = 100;; key++) {
                    execute(0, "INSERT INTO " + app + "." + table + "(k,n) VALUES(?,?)", key, key);
                }
            });
            long transaction = Node.begin(leader.server(), app);
            execute(transaction, "DROP TABLE " + app + "." + table);
            end(transaction);
            assertThrows(CompletionException.class, writer::join);
            Await.until("the tablespace leads, also if an INSERT met the DROP", LIMIT, () -> {
                TableSpaceManager leading = leader.manager(app);
                return leading != null && leading.isLeader() && !leading.isFailed() && !leading.isClosed();
            });
        }
        assertSameRows(tableOfTen());
    }

    /** HerdDB leaves what a transaction has made and dropped: hidden from all, until a node boots from a later checkpoint. */
    @ParameterizedTest
    @ValueSource(strings = {
        "DROP TABLE %1$s", "DROP TABLE IF EXISTS %1$s", "DROP INDEX %3$s.i%2$s", "ALTER TABLE %1$s ADD COLUMN m int",
        "EXECUTE RENAMETABLE '%3$s','%2$s','new%2$s'", "CREATE TABLE IF NOT EXISTS %1$s (k int primary key)"})
    void whatAnOpenTransactionMakesIsNotDroppedNorChangedUntilItsEnd(String statement) throws Exception {
        String table = "t" + tables++;
        String change = statement.formatted(app + "." + table, table, app);
        for (boolean own : statement.startsWith("DROP") ? new boolean[] {true, false} : new boolean[] {false}) {
            long making = Node.begin(leader.server(), app);
            execute(making, "CREATE TABLE " + app + "." + table + " (k int primary key, n int)");
            execute(making, "CREATE INDEX i" + table + " ON " + app + "." + table + "(n)");
            long ledger = leader.manager(app).getLog().getLastSequenceNumber().ledgerId;
            StatementExecutionException refusal = assertThrows(StatementExecutionException.class, () -> execute(own ? making : 0, change));
            assertTrue(refusal.getMessage().contains("transaction " + making + " makes the table " + table), refusal.getMessage());
            assertEquals(ledger, leader.manager(app).getLog().getLastSequenceNumber().ledgerId);
            execute(0, "EXECUTE ROLLBACKTRANSACTION '" + app + "'," + making);
            assertNull(leader.manager(app).getTableManager(table), "nothing of it is left");
        }
        execute(0, "CREATE TABLE " + app + "." + table + " (k int primary key, n int)");
        execute(0, "CREATE INDEX i" + table + " ON " + app + "." + table + "(n)");
        assertSameRows(table);
    }

    @Test
    void aTableIsNotRenamedOverAnotherOneNorUnderATransaction() throws Exception {
        String one = tableOfTen();
        String other = tableOfTen();
        assertThrows(StatementExecutionException.class, () -> execute(0, rename(one, other)));
        long open = Node.begin(leader.server(), app);
        execute(open, "INSERT INTO " + app + "." + one + "(k,n) VALUES(100,100)");
        assertThrows(StatementExecutionException.class, () -> execute(0, rename(one, "new" + one)));
        end(open);
        assertEquals(11, rows(leader, one).size());
        assertSameRows(one);
        assertSameRows(other);
    }

    @ParameterizedTest
    @ValueSource(strings = {
        "UPDATE %s SET n=99 WHERE k=3", "DELETE FROM %s WHERE k=3", "INSERT INTO %s(k,n) VALUES(100,100)",
        "SELECT * FROM %s WHERE k=3 FOR UPDATE"})
    void aTableIsNotMadeAnewWhileATransactionIsOpenOnTheOneBefore(String statement) throws Exception {
        String table = tableOfTen();
        String other = tableOfTen();
        long open = Node.begin(leader.server(), app);
        execute(open, statement.formatted(app + "." + table));
        execute(0, "DROP TABLE " + app + "." + table);
        String again = "CREATE TABLE " + app + "." + table + " (k int primary key, n int)";
        for (long maker : new long[]{0, open}) {
            StatementExecutionException refusal = assertThrows(StatementExecutionException.class, () -> execute(maker, again));
            assertTrue(refusal.getMessage().contains("a transaction is open on an earlier table " + table), refusal.getMessage());
        }
        assertThrows(StatementExecutionException.class, () -> execute(0, rename(other, table)));
        end(open);
        execute(0, again);
        execute(0, "INSERT INTO " + app + "." + table + "(k,n) VALUES(1,1)");
        assertEquals(List.of("1=1"), rows(leader, table));
        assertSameRows(table);
    }

    @ParameterizedTest
    @ValueSource(strings = {
        "UPDATE %s SET n=%d WHERE k=3", "UPSERT INTO %s(k,n) VALUES(3,%d)", "DELETE FROM %s WHERE k=100 AND n<>%d",
        "UPDATE %s SET n=%d", "SELECT * FROM %s WHERE k=3 FOR UPDATE"})
    void statementsOfOneTransactionThatComeAtOnceRunOneAfterTheOther(String statement) throws Exception {
        String table = tableOfTen();
        for (int i = 0; i < 30; i++) {
            long transaction = Node.begin(leader.server(), app);
            execute(transaction, "INSERT INTO " + app + "." + table + "(k,n) VALUES(100,-1)");
            int first = i * 10;
            CompletableFuture.allOf(IntStream.range(first, first + 4).mapToObj(value -> CompletableFuture.runAsync(
                            () -> execute(transaction, statement.formatted(app + "." + table, value))))
                    .toArray(CompletableFuture[]::new)).get(LIMIT.toSeconds(), TimeUnit.SECONDS);
            end(transaction);
            if (i % 10 == 0) {
                assertSameRows(table);
            }
            execute(0, "DELETE FROM " + app + "." + table + " WHERE k>=100");
        }
        assertSameRows(table);
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void anInsertOfSeveralRowsKeepsThoseBeforeTheRefusedOneOnEveryNode(boolean inTransaction) throws Exception {
        String table = tableOfTen();
        refused(inTransaction, "INSERT INTO " + app + "." + table + "(k,n) VALUES(100,100),(3,3),(101,101)");
        assertEquals(11, rows(leader, table).size());
        assertTrue(rows(leader, table).contains("100=100"));
        assertSameRows(table);
    }

    /** HerdDB inserts the second row, and asks for its parent, in another thread than the first. */
    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void severalRowsOfAForeignKeyAreInsertedAndFollowTheirParents(boolean inTransaction) throws Exception {
        String parent = tableOfTen();
        String child = parent + "c";
        execute(0, "CREATE TABLE " + app + "." + child + "(k int primary key, n int, CONSTRAINT f FOREIGN KEY (n) REFERENCES "
                + app + "." + parent + "(k) ON DELETE CASCADE)");
        CompletableFuture.runAsync(() -> {
            long transaction = inTransaction ? Node.begin(leader.server(), app) : 0;
            execute(transaction, "INSERT INTO " + app + "." + child + "(k,n) VALUES(1,null),(2,2),(3,3),(4,4)");
            execute(transaction, "UPDATE " + app + "." + child + " SET n=5");
            execute(transaction, "DELETE FROM " + app + "." + parent + " WHERE k>=5");
            if (inTransaction) {
                end(transaction);
            }
        }).get(LIMIT.toSeconds(), TimeUnit.SECONDS);
        assertEquals(List.of(), rows(leader, child));
        assertSameRows(child);
        assertSameRows(parent);
    }

    @Test
    void aLiteralOfAnyScriptIsTaken() throws Exception {
        execute(0, "CREATE TABLE " + app + ".words (k int primary key, n string)");
        execute(0, "INSERT INTO " + app + ".words(k,n) VALUES(1,'caffè 日本 😀')");
        execute(0, "UPDATE " + app + ".words SET n='ещё' WHERE n='caffè 日本 😀'");
        assertEquals(List.of("1=ещё"), rows(leader, "words"));
        assertSameRows("words");
    }

    @Test
    void aStatementOfATransactionOnANodeThatStopsLeadingIsToldToAskTheLeader() throws Exception {
        String table = tableOfTen();
        execute(0, "CREATE INDEX i" + table + " ON " + app + "." + table + "(n)");
        long open = Node.begin(leader.server(), app);
        execute(open, "UPDATE " + app + "." + table + " SET n=100 WHERE k=1");
        TableSpaceManager tablespace = leader.manager(app);
        // Its parts are closed, and the activator has not taken it off the node's list yet.
        tablespace.close();
        assertThrows(NotLeaderException.class, () -> execute(open, "UPDATE " + app + "." + table + " SET n=101 WHERE n=2"));
        // Of a COMMIT nobody knows here what became of it.
        StatementExecutionException unknown = assertThrows(
                StatementExecutionException.class, () -> execute(open, "EXECUTE COMMITTRANSACTION '" + app + "'," + open));
        assertFalse(unknown.getMessage().contains("is rolled back"), unknown.getMessage());
    }

    @ParameterizedTest
    @ValueSource(strings = {"UPDATE %s SET n=99", "DELETE FROM %s"})
    void aStatementOfSeveralRowsThatWaitsInVainForOneKeepsNoLockOfTheOthers(String statement) throws Exception {
        String table = tableOfTen();
        long open = Node.begin(leader.server(), app);
        execute(open, "UPDATE " + app + "." + table + " SET n=50 WHERE k=5");
        assertThrows(RuntimeException.class, () -> execute(0, statement.formatted(app + "." + table)));
        for (int k : IntStream.range(0, 10).filter(k -> k != 5).toArray()) {
            execute(0, "UPDATE " + app + "." + table + " SET n=100 WHERE k=" + k);
        }
        execute(0, "EXECUTE COMMITTRANSACTION '" + app + "'," + open);
        assertSameRows(table);
    }

    private static String rename(String table, String name) {
        return "EXECUTE RENAMETABLE '" + app + "','" + table + "','" + name + "'";
    }

    private static void refused(boolean inTransaction, String sql) {
        long transaction = inTransaction ? Node.begin(leader.server(), app) : 0;
        assertThrows(StatementExecutionException.class, () -> execute(transaction, sql));
        end(transaction);
    }

    private static void end(long transaction) {
        if (transaction != 0) {
            end("COMMIT", transaction);
        }
    }

    private static void end(String end, long transaction) {
        execute(0, "EXECUTE " + end + "TRANSACTION '" + app + "'," + transaction);
    }

    /** From a local checkpoint, which does not say which of its indexes are usable. */
    private static void bootAgain() throws Exception {
        TableSpaceManager before = leader.manager(app);
        before.checkpoint(true, true, false);
        HerdInternals.fail((BookkeeperCommitLog) before.getLog());
        Await.until("the tablespace leads again", LIMIT, () -> {
            TableSpaceManager again = leader.manager(app);
            return again != null && again != before && again.isLeader() && !again.isFailed();
        });
    }

    /** As by a client that asks for one row, not for the rows of a query. */
    private static String byKey(long transaction, String table, String where) {
        GetResult found = (GetResult) Node.execute(leader.server(), transaction, "SELECT * FROM " + app + "." + table + " WHERE " + where);
        assertEquals(transaction, found.transactionId);
        if (!found.found()) {
            return "none";
        }
        Map<String, Object> values = found.getRecord().toBean(found.getTable());
        return values.get("k") + "=" + values.get("n");
    }

    private static int execute(long transaction, String sql, Object... values) {
        return Node.execute(leader.server(), transaction, sql, values) instanceof herddb.model.DMLStatementExecutionResult changed
                ? changed.getUpdateCount() : 0;
    }

    /** A new table with rows (k, n) from (0, 0) to (9, 9). */
    private static String tableOfTen() {
        String table = "t" + tables++;
        execute(0, "CREATE TABLE " + app + "." + table + " (k int primary key, n int)");
        for (int i = 0; i < 10; i++) {
            execute(0, "INSERT INTO " + app + "." + table + "(k,n) VALUES(?,?)", i, i);
        }
        return table;
    }

    /** The follower goes on to where the leader is, and has the rows that the leader has. */
    private static void assertSameRows(String table) throws Exception {
        execute(0, "CREATE TABLE " + app + ".mark" + tables + " (k int primary key)");
        String mark = "mark" + tables++;
        Await.until("the follower gets on", LIMIT, () -> {
            TableSpaceManager tablespace = follower.manager(app);
            assertTrue(tablespace == null || !tablespace.isFailed(), "the follower failed");
            return tablespace != null && tablespace.getTableManager(mark) != null;
        });
        assertEquals(rows(leader, table), rows(follower, table));
    }

    private static List<String> rows(RunningNode node, String table) {
        TreeSet<String> rows = new TreeSet<>();
        TableManager manager = (TableManager) node.manager(app).getTableManager(table);
        manager.scanForIndexRebuild(row -> {
            Map<String, Object> values = row.toBean(manager.getTable());
            rows.add(values.get("k") + "=" + values.get("n"));
        });
        return List.copyOf(rows);
    }
}
