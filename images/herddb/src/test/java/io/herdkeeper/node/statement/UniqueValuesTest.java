package io.herdkeeper.node.statement;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import herddb.cluster.BookkeeperCommitLog;
import herddb.core.TableManager;
import herddb.core.TableSpaceManager;
import herddb.model.Column;
import herddb.model.ColumnTypes;
import herddb.model.DMLStatementExecutionResult;
import herddb.model.DuplicatePrimaryKeyException;
import herddb.model.Index;
import herddb.model.RecordTooBigException;
import herddb.model.Statement;
import herddb.model.StatementEvaluationContext;
import herddb.model.StatementExecutionException;
import herddb.model.StatementExecutionResult;
import herddb.model.TransactionContext;
import herddb.model.UniqueIndexContraintViolationException;
import herddb.model.commands.CreateIndexStatement;
import herddb.model.commands.SQLPlannedOperationStatement;
import herddb.model.planner.PlannerOp;
import herddb.server.ServerConfiguration;
import herddb.utils.Bytes;
import herddb.utils.ILocalLockManager;
import io.herdkeeper.node.internals.HerdInternals;
import io.herdkeeper.node.testing.Await;
import io.herdkeeper.node.testing.BookKeeperForTests;
import io.herdkeeper.node.testing.Node;
import io.herdkeeper.node.testing.RunningNode;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Map;
import java.util.NavigableMap;
import java.util.Objects;
import java.util.Random;
import java.util.TreeMap;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.function.UnaryOperator;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** No two rows get one value of a unique index, be it by one transaction or by several. */
class UniqueValuesTest {

    private static final Duration LIMIT = Duration.ofSeconds(60);
    /** HerdDB's own half an hour is for no test. */
    private static final Duration LOCK_LIMIT = Duration.ofSeconds(10);
    /** Few, so that rows meet each other's. */
    private static final int KEYS = 12;
    private static final int VALUES = 14;
    private static final int NOBODY = -1;

    private static RunningNode leader;
    private static RunningNode follower;
    private static int names;

    private String app;
    private String table;

    /** The values of a row; {@code m} may be null. */
    private record Values(Integer n, Integer m) {
    }

    @BeforeAll
    static void startLeaderAndFollower() throws Exception {
        Path token = Files.writeString(BookKeeperForTests.running().newFolder().resolve("token"), "token");
        String root = BookKeeperForTests.running().newRoot();
        leader = RunningNode.start(Node.configuration("n0", root, BookKeeperForTests.running().newFolder())
                .set(ServerConfiguration.PROPERTY_WRITELOCK_TIMEOUT, (int) LOCK_LIMIT.toSeconds()), token);
        leader.server().waitForTableSpaceBoot("herd", (int) LIMIT.toMillis(), true);
        follower = RunningNode.start("n1", root, token);
    }

    /** A tablespace that is nobody else's, and its table with rows from (0, 0, 0) to (9, 9, 9). */
    @BeforeEach
    void makeATable() {
        app = "app" + names++;
        table = app + ".t";
        execute(0, "CREATE TABLESPACE '" + app + "','leader:n0','replica:n0,n1','expectedreplicacount:1','wait:30000'");
        execute(0, "CREATE TABLE " + table + " (k int primary key, n int, m int)");
        for (int i = 0; i < 10; i++) {
            execute(0, "INSERT INTO " + table + "(k,n,m) VALUES(?,?,?)", i, i, i);
        }
    }

    /** A lock that was left behind keeps a node from stopping. */
    @AfterAll
    @Timeout(60)
    static void stop() throws Exception {
        follower.stop();
        leader.stop();
    }

    @Test
    void aTransactionMakesNoUniqueIndexBehindItsRowsWhoseValuesAnotherOneCouldGet() throws Exception {
        long open = begin();
        insert(open, 100, 100, 100);
        StatementExecutionException refusal = assertThrows(StatementExecutionException.class, () -> makeIndex(open, "n"));
        assertTrue(refusal.getMessage().contains("commit it or roll it back first"), refusal.getMessage());
        insert(0, 101, 100, 101);
        end(open, true);
        assertEquals(12, rows(leader).size());
        assertSameRows();
    }

    @Test
    void rowsThatWereEqualBeforeTheirIndexAreChangedByATransaction() throws Exception {
        execute(0, "UPDATE " + table + " SET n=0 WHERE k=1");
        makeIndexAsAnEarlierVersion("u" + names++, "n");
        long open = begin();
        execute(open, "UPDATE " + table + " SET m=m+1");
        execute(open, "UPDATE " + table + " SET n=100 WHERE k=1");
        assertThrows(UniqueIndexContraintViolationException.class, () -> execute(open, "UPDATE " + table + " SET n=100 WHERE k=0"));
        execute(open, "UPDATE " + table + " SET m=m+1");
        end(open, true);
        assertEquals(new Values(0, 2), rows(leader).get(0));
        assertEquals(new Values(100, 3), rows(leader).get(1));
        assertSameRows();
    }

    @Test
    void theKeysOfRowsThatATransactionHasMadeCanBeChanged() throws Exception {
        makeIndex(0, "n");
        long open = begin();
        execute(open, "INSERT INTO " + table + "(k,n) VALUES(100,100),(101,101)");
        execute(open, "UPDATE " + table + " SET k=k+100 WHERE k>=100");
        assertThrows(UniqueIndexContraintViolationException.class, () -> insert(open, 100, 100, 100));
        end(open, true);
        assertEquals(new Values(100, null), rows(leader).get(200));
        assertSameRows();
    }

    @Test
    void anIndexOfSeveralColumnsTakesNullForAValue() throws Exception {
        makeIndex(0, "n,m");
        long open = begin();
        insert(open, 100, 100, null);
        insert(open, 101, 100, 1);
        assertThrows(UniqueIndexContraintViolationException.class, () -> insert(open, 102, 100, null));
        assertThrows(UniqueIndexContraintViolationException.class, () -> execute(open, "UPDATE " + table + " SET m=null WHERE k=101"));
        end(open, true);
        assertThrows(UniqueIndexContraintViolationException.class, () -> insert(0, 102, 100, null));
        assertSameRows();
    }

    @Test
    void aUniqueIndexIsMadeOnceEachRowHasAValueInItsFirstColumn() throws Exception {
        execute(0, "INSERT INTO " + table + "(k,m) VALUES(100,100),(101,101)");
        StatementExecutionException refusal = assertThrows(StatementExecutionException.class, () -> makeIndex(0, "n"));
        assertTrue(refusal.getMessage().contains("the row with the key 10"), refusal.getMessage());
        assertTrue(refusal.getMessage().contains("no value in the column n: give it one, or delete it"), refusal.getMessage());
        execute(0, "UPDATE " + table + " SET n=100 WHERE k=100");
        execute(0, "DELETE FROM " + table + " WHERE k=101");
        execute(0, "UPDATE " + table + " SET m=null WHERE k=1");
        makeIndex(0, "n");
        makeIndex(0, "n,m");
        makeIndex(0, "k");
        assertSameRows();
    }

    @Test
    void aUniqueIndexIsMadeOnceNoTwoRowsHaveOneValue() throws Exception {
        execute(0, "UPDATE " + table + " SET n=0,m=null WHERE k<3");
        execute(0, "UPDATE " + table + " SET m=7 WHERE k=2");
        for (String columns : new String[] {"n", "n,m"}) {
            StatementExecutionException refusal = assertThrows(StatementExecutionException.class, () -> makeIndex(0, columns));
            assertTrue(refusal.getMessage().contains("have one value of " + columns.replace(",", ", ")), refusal.getMessage());
            assertTrue(refusal.getMessage().contains("change or delete one of them"), refusal.getMessage());
        }
        execute(0, "CREATE INDEX i" + names++ + " ON " + table + "(n)");
        execute(0, "UPDATE " + table + " SET m=6 WHERE k=1");
        makeIndex(0, "n,m");
        execute(0, "UPDATE " + table + " SET n=k");
        makeIndex(0, "n");
        assertSameRows();
    }

    @Test
    void aUniqueIndexIsNotMadeOverEqualRowsOfItsOwnTransaction() throws Exception {
        String made = app + ".made";
        long open = begin();
        execute(open, "CREATE TABLE " + made + " (k int primary key, n int)");
        execute(open, "INSERT INTO " + made + "(k,n) VALUES(1,1),(2,1)");
        StatementExecutionException refusal =
                assertThrows(StatementExecutionException.class, () -> execute(open, "CREATE UNIQUE INDEX umade ON " + made + "(n)"));
        assertTrue(refusal.getMessage().contains("have one value of n"), refusal.getMessage());
        execute(open, "UPDATE " + made + " SET n=k");
        execute(open, "CREATE UNIQUE INDEX umade ON " + made + "(n)");
        end(open, true);
        assertEquals(2, execute(0, "DELETE FROM " + made));
        assertSameRows();
    }

    @Test
    void aUniqueIndexIsNotMadeOverARowWithoutAValueOfItsOwnTransaction() throws Exception {
        String made = app + ".made";
        long open = begin();
        execute(open, "CREATE TABLE " + made + " (k int primary key, n int)");
        execute(open, "INSERT INTO " + made + "(k) VALUES(1)");
        assertThrows(StatementExecutionException.class, () -> execute(open, "CREATE UNIQUE INDEX umade ON " + made + "(n)"));
        execute(open, "UPDATE " + made + " SET n=1");
        execute(open, "CREATE UNIQUE INDEX umade ON " + made + "(n)");
        end(open, true);
        assertEquals(1, execute(0, "DELETE FROM " + made));
        assertSameRows();
    }

    /** What a transaction locks is noted by such a name, and its end would release it twice. */
    @ParameterizedTest
    @ValueSource(strings = {
        "CREATE UNIQUE INDEX t ON APP.t(n)", "CREATE UNIQUE INDEX other ON APP.t(n)",
        "CREATE TABLE APP.made (k int primary key, n int, UNIQUE KEY made (n))",
        "CREATE TABLE APP.made (k int primary key, n int, UNIQUE KEY other (n))",
        "CREATE TABLE APP.indexed (k int primary key)", "EXECUTE RENAMETABLE 'APP','other','indexed'"})
    void aTableAndAUniqueIndexGetNoNameOfEachOtherAndTransactionsGoOn(String statement) throws Exception {
        execute(0, "CREATE TABLE " + app + ".other (k int primary key, n int)");
        execute(0, "CREATE UNIQUE INDEX indexed ON " + table + "(m)");
        long open = begin();
        for (long transaction : new long[] {0, open}) {
            StatementExecutionException refusal =
                    assertThrows(StatementExecutionException.class, () -> execute(transaction, statement.replace("APP", app)));
            assertTrue(refusal.getMessage().contains("give it another name"), refusal.getMessage());
        }
        execute(open, "UPDATE " + table + " SET n=20 WHERE k=1");
        execute(0, "CREATE TABLE IF NOT EXISTS " + table + " (k int primary key, m int, UNIQUE KEY indexed (m))");
        end(open, true);
        assertSameRows();
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void aTransactionEndsThoughAnEarlierVersionMadeAUniqueIndexWithTheNameOfItsTable(boolean commits) throws Exception {
        makeIndexAsAnEarlierVersion("t", "n");
        TableSpaceManager before = leader.manager(app);
        long open = begin();
        execute(open, "UPDATE " + table + " SET n=20 WHERE k=1");
        insert(open, 100, 100, 100);
        end(open, commits);
        assertEquals(commits ? 11 : 10, rows(leader).size());
        insert(0, 101, 101, 101);
        assertSameRows();
        assertEquals(before, leader.manager(app), "which has not booted again");
    }

    @Test
    void anIndexThatIsNotUniqueHasTheNameOfItsTable() throws Exception {
        execute(0, "CREATE INDEX t ON " + table + "(n)");
        long open = begin();
        execute(open, "UPDATE " + table + " SET n=20 WHERE k=1");
        end(open, true);
        assertSameRows();
    }

    @ParameterizedTest
    @ValueSource(strings = {
        "DROP TABLE APP.other;CREATE UNIQUE INDEX other ON APP.t(n)", "DROP INDEX APP.former;CREATE UNIQUE INDEX former ON APP.t(n)",
        "DROP INDEX APP.former;CREATE TABLE APP.former (k int primary key)"})
    void aNameOfWhatWasDroppedIsFreeForAUniqueIndexOnceNoTransactionHasLockedByIt(String statements) throws Exception {
        String[] both = statements.replace("APP", app).split(";");
        execute(0, "CREATE TABLE " + app + ".other (k int primary key, n int)");
        execute(0, "CREATE UNIQUE INDEX former ON " + app + ".other(n)");
        long open = begin();
        execute(open, "INSERT INTO " + app + ".other(k,n) VALUES(1,1)");
        execute(0, both[0]);
        StatementExecutionException refusal = assertThrows(StatementExecutionException.class, () -> execute(0, both[1]));
        assertTrue(refusal.getMessage().contains("which was dropped; commit it or roll it back first"), refusal.getMessage());
        end(open, true);
        execute(0, both[1]);
        assertSameRows();
    }

    @ParameterizedTest
    @ValueSource(strings = {
        "INSERT INTO %s(k,m) VALUES(200,200)", "UPDATE %s SET n=null WHERE k=1", "UPDATE %s SET m=200 WHERE k=100", "DELETE FROM %s WHERE k=100"})
    void aRowWithoutAValueOfAUniqueIndexIsRefusedAndGetsOneByAnUpdate(String statement) throws Exception {
        insert(0, 100, null, 100);
        makeIndexAsAnEarlierVersion("u" + names++, "n");
        for (long transaction : new long[] {0, begin()}) {
            StatementExecutionException refusal =
                    assertThrows(StatementExecutionException.class, () -> execute(transaction, statement.formatted(table)));
            assertTrue(refusal.getMessage().contains("needs a value in the first column of each unique index"), refusal.getMessage());
            if (transaction != 0) {
                execute(transaction, "UPDATE " + table + " SET n=100 WHERE k=100");
                assertEquals(1, execute(transaction, "DELETE FROM " + table + " WHERE k=100"));
                end(transaction, true);
            }
        }
        assertEquals(10, rows(leader).size());
        assertSameRows();
    }

    /** Without the node program's refusal. */
    private void makeIndexAsAnEarlierVersion(String name, String column) {
        TableSpaceManager tablespace = leader.manager(app);
        Index index = Index.builder().onTable(tablespace.getTableManager("t").getTable()).name(name).type(Index.TYPE_BRIN)
                .column(column, ColumnTypes.INTEGER).unique(true).build();
        tablespace.executeStatementAsync(new CreateIndexStatement(index), StatementEvaluationContext.DEFAULT_EVALUATION_CONTEXT(),
                TransactionContext.NO_TRANSACTION).join();
    }

    @Test
    void aRowThatOneIndexRefusesGetsNoValueOfAnother() throws Exception {
        makeIndex(0, "n");
        makeIndex(0, "m");
        long open = begin();
        insert(open, 100, 100, 100);
        assertThrows(UniqueIndexContraintViolationException.class, () -> insert(open, 101, 101, 100));
        assertThrows(UniqueIndexContraintViolationException.class, () -> insert(open, 101, 100, 101));
        insert(open, 102, 101, 101);
        end(open, true);
        assertSameRows();
    }

    @ParameterizedTest
    @ValueSource(strings = {"n", "m"})
    void aDeleteThatOneUniqueIndexRefusesKeepsNoValueOfAnotherLocked(String absent) throws Exception {
        String other = absent.equals("n") ? "m" : "n";
        execute(0, "INSERT INTO " + table + "(k," + other + ") VALUES(100,100)");
        makeIndex(0, other);
        makeIndexAsAnEarlierVersion("u" + names++, absent);
        assertThrows(StatementExecutionException.class, () -> execute(0, "DELETE FROM " + table + " WHERE k=100"));
        assertThrows(UniqueIndexContraintViolationException.class, () -> insert(0, 101, 100, 100));
        execute(0, "UPDATE " + table + " SET " + absent + "=100 WHERE k=100");
        assertEquals(1, execute(0, "DELETE FROM " + table + " WHERE k=100"));
        assertSameRows();
    }

    @ParameterizedTest
    @ValueSource(strings = {
        "UPDATE %1$s SET n=100,m=100 WHERE k=1", "DELETE FROM %1$s WHERE k=1", "DELETE FROM %1$s WHERE k IN (SELECT k FROM %1$s WHERE k<2)",
        "UPDATE %1$s SET n=CASE WHEN k=1 THEN 100 ELSE n END,m=CASE WHEN k=1 THEN 100 ELSE m END WHERE k IN (SELECT k FROM %1$s WHERE k<2)"})
    void aChangeThatWaitsInVainForAValueKeepsNoLock(String statement) throws Exception {
        makeIndex(0, "n");
        makeIndex(0, "m");
        long open = begin();
        insert(open, 100, 100, 100);
        assertThrows(UniqueIndexContraintViolationException.class, () -> insert(open, 101, 1, 101));
        assertThrows(RuntimeException.class, () -> execute(0, statement.formatted(table)));
        end(open, false);
        insert(0, 102, 100, 100);
        assertEquals(1, execute(0, "DELETE FROM " + table + " WHERE k=1"));
        insert(0, 103, 1, 1);
        assertSameRows();
    }

    @Test
    void anUpdateOfSeveralRowsToOneValueIsRefusedAtOnceAndKeepsNoLock() throws Exception {
        makeIndex(0, "n");
        makeIndex(0, "m");
        StatementExecutionException refusal =
                assertThrows(StatementExecutionException.class, () -> execute(0, "UPDATE " + table + " SET n=100,m=m+100"));
        assertTrue(refusal.getMessage().contains("one value of a unique index to two rows"), refusal.getMessage());
        assertEquals(new Values(1, 1), rows(leader).get(1));
        assertEquals(10, execute(0, "UPDATE " + table + " SET n=n+100,m=m+100"));
        insert(0, 110, 110, 110);
        assertSameRows();
    }

    @Test
    void aStatementThatThrowsBeforeItChangesATableKeepsNoLock() throws Exception {
        makeIndex(0, "n");
        ILocalLockManager values = leader.manager(app).getIndexesOnTable("t").values().iterator().next().getLockManager();
        Statement thrower = new SQLPlannedOperationStatement(new PlannerOp() {
            @Override
            public String getTablespace() {
                return app;
            }

            @Override
            public CompletableFuture<StatementExecutionResult> executeAsync(TableSpaceManager manager, TransactionContext transaction,
                    StatementEvaluationContext context, boolean lockRequired, boolean forWrite) {
                values.acquireWriteLockForKey(Bytes.from_int(100));
                throw new IllegalStateException("for a test");
            }

            @Override
            public Column[] getOutputSchema() {
                return new Column[0];
            }
        });
        assertThrows(StatementExecutionException.class, () -> leader.server().getManager().executeStatement(
                thrower, StatementEvaluationContext.DEFAULT_EVALUATION_CONTEXT(), TransactionContext.NO_TRANSACTION));
        insert(0, 100, 100, 100);
        assertSameRows();
    }

    @Test
    void anUpdateToARowThatIsTooBigKeepsNoValueLocked() throws Exception {
        execute(0, "ALTER TABLE " + table + " ADD COLUMN s string");
        makeIndex(0, "n");
        String sql = "UPDATE " + table + " SET n=100,s=? WHERE k=1";
        assertThrows(RecordTooBigException.class, () -> execute(0, sql, "x".repeat(2 << 20)));
        insert(0, 100, 100, 100);
        assertSameRows();
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void anotherConnectionGetsAValueThatTheTransactionDoesNotHaveAtItsEnd(boolean commits) throws Exception {
        makeIndex(0, "n");
        long open = begin();
        insert(open, 100, 100, 100);
        execute(open, "UPDATE " + table + " SET n=101 WHERE k=100");
        long before = Await.threadsThatWaitForRows();
        CompletableFuture<Integer> given = CompletableFuture.supplyAsync(() -> insert(0, 200, 100, 0));
        CompletableFuture<Integer> kept = CompletableFuture.supplyAsync(() -> insert(0, 201, 101, 0));
        Await.until("both wait for the transaction", LIMIT, () -> Await.threadsThatWaitForRows() > before + 1);
        end(open, commits);
        assertEquals(1, given.get(LIMIT.toSeconds(), TimeUnit.SECONDS));
        assertEquals(commits, kept.handle((done, error) -> error != null).get(LIMIT.toSeconds(), TimeUnit.SECONDS));
        assertSameRows();
    }

    @Test
    void aValueIsTakenBeyondACheckpointAndFreeOnceTheNextLeaderHasRolledItsTransactionBack() throws Exception {
        makeIndex(0, "n");
        long open = begin();
        insert(open, 100, 100, 100);
        TableSpaceManager before = leader.manager(app);
        before.checkpoint(true, true, false);
        assertThrows(UniqueIndexContraintViolationException.class, () -> insert(open, 101, 100, 100));
        HerdInternals.fail((BookkeeperCommitLog) before.getLog());
        Await.until("the tablespace leads again", LIMIT, () -> {
            TableSpaceManager again = leader.manager(app);
            return again != null && again != before && again.isLeader() && !again.isFailed() && again.getTransactions().isEmpty();
        });
        long next = begin();
        insert(next, 102, 100, 100);
        assertThrows(UniqueIndexContraintViolationException.class, () -> insert(next, 103, 100, 100));
        end(next, true);
        assertEquals(11, rows(leader).size());
        assertSameRows();
    }

    /** Any other statement is accepted, and changes what it says; a refused one changes nothing. */
    @ParameterizedTest
    @ValueSource(longs = {5200, 5201, 5202, 5203, 5204, 5205})
    void aStatementIsRefusedExactlyWhereAnotherRowHasOrGetsItsValue(long seed) throws Exception {
        Random chance = new Random(seed);
        makeIndex(0, "n");
        makeIndex(0, "m");
        for (int transactions = 0; transactions < 30; transactions++) {
            Map<Integer, Values> committed = rows(leader);
            Model model = new Model(begin(), committed, new TreeMap<>(committed));
            for (int statements = chance.nextInt(12); statements >= 0; statements--) {
                tell(model, chance);
            }
            boolean commits = chance.nextInt(3) > 0;
            end(model.open, commits);
            assertEquals(commits ? model.own : committed, rows(leader));
        }
        assertSameRows();
    }

    private void tell(Model model, Random chance) {
        int first = chance.nextInt(KEYS);
        int last = first + chance.nextInt(3);
        Values drawn = new Values(chance.nextInt(VALUES), chance.nextInt(VALUES));
        String where = " WHERE k>=" + first + " AND k<=" + last;
        NavigableMap<Integer, Values> meant = model.own.subMap(first, true, last, true);
        switch (chance.nextInt(7)) {
            case 0, 1, 2 -> {
                boolean fits = !model.own.containsKey(first) && model.isFree(NOBODY, drawn);
                model.take(fits, "INSERT INTO " + table + "(k,n,m) VALUES(" + first + "," + drawn.n + "," + drawn.m + ")");
                if (fits) {
                    model.own.put(first, drawn);
                }
            }
            case 3 -> {
                model.take(true, "DELETE FROM " + table + where);
                meant.clear();
            }
            case 4 -> model.update(meant, "UPDATE " + table + " SET n=" + drawn.n + where, row -> new Values(drawn.n, row.m));
            case 5 -> model.update(meant, "UPDATE " + table + " SET n=n+1, m=m+1" + where, row -> new Values(row.n + 1, row.m + 1));
            default -> model.update(meant, "UPDATE " + table + " SET n=" + drawn.n + "-n" + where, row -> new Values(drawn.n - row.n, row.m));
        }
    }

    /** A transaction, and the rows as others see them and as it does. */
    private record Model(long open, Map<Integer, Values> committed, NavigableMap<Integer, Values> own) {

        /** HerdDB keeps the values of a committed row until the COMMIT, for an INSERT with the same key, too. */
        boolean isFree(int key, Values values) {
            return Stream.of(committed, own).flatMap(rows -> rows.entrySet().stream()).noneMatch(row -> row.getKey() != key
                    && (Objects.equals(row.getValue().n, values.n) || Objects.equals(row.getValue().m, values.m)));
        }

        void update(Map<Integer, Values> rows, String sql, UnaryOperator<Values> change) {
            Map<Integer, Values> changed = new TreeMap<>();
            rows.forEach((key, row) -> changed.put(key, change.apply(row)));
            boolean fits = changed.entrySet().stream().allMatch(row -> isFree(row.getKey(), row.getValue()))
                    && changed.values().stream().map(Values::n).distinct().count() == changed.size()
                    && changed.values().stream().map(Values::m).distinct().count() == changed.size();
            take(fits, sql);
            if (fits) {
                own.putAll(changed);
            }
        }

        void take(boolean fits, String sql) {
            boolean taken = true;
            try {
                execute(open, sql);
            } catch (UniqueIndexContraintViolationException | DuplicatePrimaryKeyException refusal) {
                taken = false;
            }
            assertEquals(fits, taken, () -> sql + " with " + own + " behind " + committed);
        }
    }

    private long begin() {
        return Node.begin(leader.server(), app);
    }

    private void end(long transaction, boolean commits) {
        execute(0, (commits ? "EXECUTE COMMITTRANSACTION '" : "EXECUTE ROLLBACKTRANSACTION '") + app + "'," + transaction);
    }

    private int insert(long transaction, int k, Integer n, Integer m) {
        return execute(transaction, "INSERT INTO " + table + "(k,n,m) VALUES(?,?,?)", k, n, m);
    }

    private void makeIndex(long transaction, String columns) {
        execute(transaction, "CREATE UNIQUE INDEX u" + names++ + " ON " + table + "(" + columns + ")");
    }

    private static int execute(long transaction, String sql, Object... values) {
        return Node.execute(leader.server(), transaction, sql, values) instanceof DMLStatementExecutionResult changed
                ? changed.getUpdateCount() : 0;
    }

    /** The follower goes on to where the leader is, and has the rows that the leader has. */
    private void assertSameRows() throws Exception {
        String mark = "mark" + names++;
        execute(0, "CREATE TABLE " + app + "." + mark + " (k int primary key)");
        Await.until("the follower gets on", LIMIT, () -> {
            TableSpaceManager tablespace = follower.manager(app);
            assertTrue(tablespace == null || !tablespace.isFailed(), "the follower failed");
            return tablespace != null && tablespace.getTableManager(mark) != null;
        });
        assertEquals(rows(leader), rows(follower));
    }

    private Map<Integer, Values> rows(RunningNode node) {
        Map<Integer, Values> rows = new TreeMap<>();
        TableManager manager = (TableManager) node.manager(app).getTableManager("t");
        manager.scanForIndexRebuild(row -> {
            Map<String, Object> values = row.toBean(manager.getTable());
            rows.put((Integer) values.get("k"), new Values((Integer) values.get("n"), (Integer) values.get("m")));
        });
        return rows;
    }
}
