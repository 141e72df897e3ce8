package io.herdkeeper.node.statement;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import herddb.core.AbstractIndexManager;
import herddb.core.PostCheckpointAction;
import herddb.core.TableSpaceManager;
import herddb.index.IndexOperation;
import herddb.index.KeyToPageIndex;
import herddb.log.CommitLogResult;
import herddb.log.LogEntryFactory;
import herddb.log.LogSequenceNumber;
import herddb.model.DMLStatement;
import herddb.model.StatementEvaluationContext;
import herddb.model.StatementExecutionResult;
import herddb.model.TableContext;
import herddb.model.TableDoesNotExistException;
import herddb.model.TransactionContext;
import herddb.model.commands.CommitTransactionStatement;
import herddb.model.commands.SQLPlannedOperationStatement;
import herddb.model.planner.SimpleUpdateOp;
import herddb.sql.TranslatedQuery;
import herddb.utils.Bytes;
import io.herdkeeper.node.log.NodeCommitLog;
import io.herdkeeper.node.testing.Await;
import io.herdkeeper.node.testing.BookKeeperForTests;
import io.herdkeeper.node.testing.Node;
import io.herdkeeper.node.testing.RunningNode;
import java.lang.reflect.Field;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** A transaction that drops a table or an index beside others that change its rows. */
class DroppedTablesTest {

    private static final Duration LIMIT = Duration.ofSeconds(60);

    private static RunningNode node;
    private static int tablespaces;

    private String app;
    private Callbacks callbacks;
    private HeldIndex index;

    @BeforeAll
    static void start() throws Exception {
        Path token = Files.writeString(BookKeeperForTests.running().newFolder().resolve("token"), "token");
        node = RunningNode.start("n0", BookKeeperForTests.running().newRoot(), token);
        node.server().waitForTableSpaceBoot("herd", (int) LIMIT.toMillis(), true);
    }

    @AfterAll
    static void stop() throws Exception {
        node.stop();
    }

    @BeforeEach
    void makeTwoTables() throws Exception {
        app = "app" + tablespaces++;
        execute(0, "CREATE TABLESPACE '" + app + "','leader:n0','wait:30000'");
        for (String table : List.of("dropped", "other")) {
            execute(0, "CREATE TABLE " + app + "." + table + "(k int primary key, n int)");
            execute(0, "INSERT INTO " + app + "." + table + "(k,n) VALUES(1,1),(2,2),(3,3)");
        }
        execute(0, "CREATE INDEX byn ON " + app + ".dropped(n)");
        index = new HeldIndex();
    }

    /** Whatever a test has found: the node could not stop. */
    @AfterEach
    void letGo() {
        index.goOn.countDown();
        callbacks.goOn();
        callbacks.shutdown();
    }

    @ParameterizedTest
    @ValueSource(strings = {
        "INSERT INTO %s.dropped(k,n) VALUES(100,100)", "UPDATE %s.dropped SET n=99 WHERE k=3", "UPDATE %s.dropped SET n=99",
        "DELETE FROM %s.dropped WHERE k=3", "DELETE FROM %s.dropped"})
    void aRowThatIsLoggedBeforeTheDropOfItsTableIsAppliedBeforeIt(String statement) throws Exception {
        index.goOn.countDown();
        long dropping = Node.begin(node.server(), app);
        execute(dropping, "DROP TABLE " + app + ".dropped");
        hold();
        CompletableFuture<?> row = executing(statement.formatted(app));
        CompletableFuture<?> commit = committing(dropping);
        answerAllThatIsLogged();
        callbacks.goOn();
        row.get(LIMIT.toSeconds(), TimeUnit.SECONDS);
        commit.get(LIMIT.toSeconds(), TimeUnit.SECONDS);
        assertGoesOn();
    }

    @ParameterizedTest
    @ValueSource(strings = {"DROP TABLE %s.dropped", "DROP INDEX %s.byn"})
    void aRowThatIsBeingAppliedHasItsIndexUntilItIs(String drop) throws Exception {
        long dropping = Node.begin(node.server(), app);
        execute(dropping, drop.formatted(app));
        hold();
        CompletableFuture<?> row = executing("INSERT INTO " + app + ".dropped(k,n) VALUES(100,100)");
        callbacks.goOn();
        assertTrue(index.met.await(LIMIT.toSeconds(), TimeUnit.SECONDS));
        CompletableFuture<?> commit = committing(dropping);
        answerAllThatIsLogged();
        index.goOn.countDown();
        row.get(LIMIT.toSeconds(), TimeUnit.SECONDS);
        commit.get(LIMIT.toSeconds(), TimeUnit.SECONDS);
        assertGoesOn();
    }

    @Test
    void aTransactionThatIsBeingAppliedHasItsTableUntilItIs() throws Exception {
        long writing = Node.begin(node.server(), app);
        execute(writing, "INSERT INTO " + app + ".dropped(k,n) VALUES(100,100),(101,101)");
        long dropping = Node.begin(node.server(), app);
        execute(dropping, "DROP TABLE " + app + ".dropped");
        hold();
        CompletableFuture<?> first = committing(writing);
        callbacks.goOn();
        assertTrue(index.met.await(LIMIT.toSeconds(), TimeUnit.SECONDS));
        CompletableFuture<?> commit = committing(dropping);
        answerAllThatIsLogged();
        index.goOn.countDown();
        first.get(LIMIT.toSeconds(), TimeUnit.SECONDS);
        commit.get(LIMIT.toSeconds(), TimeUnit.SECONDS);
        assertGoesOn();
    }

    @Test
    void aRowOrStatementBehindTheDropOfAnIndexDoesNotUseIt() throws Exception {
        index.goOn.countDown();
        String byIndex = "DELETE FROM " + app + ".dropped WHERE n=99";
        execute(0, byIndex);
        long dropping = Node.begin(node.server(), app);
        execute(dropping, "DROP INDEX " + app + ".byn");
        hold();
        CompletableFuture<?> commit = committing(dropping);
        executing("INSERT INTO " + app + ".dropped(k,n) VALUES(100,100)").get(LIMIT.toSeconds(), TimeUnit.SECONDS);
        executing(byIndex).get(LIMIT.toSeconds(), TimeUnit.SECONDS);
        assertEquals(0, index.rows.get());
        callbacks.goOn();
        commit.get(LIMIT.toSeconds(), TimeUnit.SECONDS);
        assertGoesOn();
    }

    @Test
    void aTransactionBehindTheDropOfATableIsAppliedBehindIt() throws Exception {
        index.goOn.countDown();
        long writing = Node.begin(node.server(), app);
        execute(writing, "INSERT INTO " + app + ".dropped(k,n) VALUES(100,100)");
        long dropping = Node.begin(node.server(), app);
        execute(dropping, "DROP TABLE " + app + ".dropped");
        hold();
        CompletableFuture<?> commit = committing(dropping);
        CompletableFuture<?> behind = committing(writing);
        answerAllThatIsLogged();
        assertFalse(behind.isDone());
        callbacks.goOn();
        commit.get(LIMIT.toSeconds(), TimeUnit.SECONDS);
        behind.get(LIMIT.toSeconds(), TimeUnit.SECONDS);
        assertGoesOn();
    }

    @Test
    void theRowsOfAStatementAreAllLoggedBeforeTheDropOfTheirTable() throws Exception {
        long dropping = Node.begin(node.server(), app);
        execute(dropping, "DROP TABLE " + app + ".dropped");
        hold();
        CommitLogResult[] written = new CommitLogResult[2];
        // As HerdDB does with an UPDATE that has accepted both of its rows.
        CompletableFuture<?>[] rows = new CompletableFuture<?>[2];
        for (int row = 0; row < 2; row++) {
            Bytes key = Bytes.from_int(row + 1);
            written[row] = tablespace().getLog().log(
                    LogEntryFactory.update(tablespace().getTableManager("dropped").getTable(), key, key, null), true);
            rows[row] = written[row].logSequenceNumber.thenApply(position -> key);
        }
        rows[0].join();
        CompletableFuture<CompletableFuture<?>> commit = new CompletableFuture<>();
        Thread other = new Thread(() -> commit.complete(committing(dropping)));
        other.start();
        Await.until("the COMMIT is logged, or waits", LIMIT, () -> commit.isDone() || other.getState() == Thread.State.WAITING);
        rows[1].join();
        NodeCommitLog.endRows();
        for (int row = 0; row < 2; row++) {
            written[row].logSequenceNumber.get(LIMIT.toSeconds(), TimeUnit.SECONDS);
            rows[row].getNow(null);
        }
        callbacks.goOn();
        commit.get(LIMIT.toSeconds(), TimeUnit.SECONDS).get(LIMIT.toSeconds(), TimeUnit.SECONDS);
        assertGoesOn();
    }

    /** HerdDB runs such a statement in another thread than the one that asked for it. */
    @Test
    void aDropGoesOnBehindRowsOfATransactionThatWasBegunForTheirStatement() throws Exception {
        index.goOn.countDown();
        hold();
        CompletableFuture<StatementExecutionResult> updating = CompletableFuture.supplyAsync(
                () -> Node.execute(node.server(), TransactionContext.AUTOTRANSACTION_ID, "UPDATE " + app + ".other SET n=99"));
        Await.until("its transaction is begun", LIMIT, callbacks.held::isDone);
        callbacks.goOn();
        execute(0, "EXECUTE COMMITTRANSACTION '" + app + "'," + updating.get(LIMIT.toSeconds(), TimeUnit.SECONDS).transactionId);
        long dropping = Node.begin(node.server(), app);
        execute(dropping, "DROP TABLE " + app + ".dropped");
        CompletableFuture.supplyAsync(() -> committing(dropping).join()).get(LIMIT.toSeconds(), TimeUnit.SECONDS);
        assertGoesOn();
    }

    /** Which has another log from one moment to the next. */
    @Test
    void aDropGoesOnBehindRowsOfATablespaceThatBootedWhileTheirStatementBegan() throws Exception {
        index.goOn.countDown();
        hold();
        callbacks.goOn();
        TranslatedQuery query = planned("UPDATE " + app + ".other SET n=99");
        SQLPlannedOperationStatement update = new SQLPlannedOperationStatement(new SimpleUpdateOp((DMLStatement) query.plan.mainStatement)) {
            @Override
            public String getTableSpace() {
                StackWalker callers = StackWalker.getInstance(StackWalker.Option.RETAIN_CLASS_REFERENCE);
                return callers.getCallerClass() == StatementGuard.class ? "herd" : super.getTableSpace();
            }
        };
        // in a thread that executes nothing else
        CompletableFuture.supplyAsync(
                () -> node.server().getManager().executeStatementAsync(update, query.context, TransactionContext.NO_TRANSACTION),
                task -> new Thread(task).start()).thenCompose(result -> result).get(LIMIT.toSeconds(), TimeUnit.SECONDS);
        long dropping = Node.begin(node.server(), app);
        execute(dropping, "DROP TABLE " + app + ".dropped");
        CompletableFuture.supplyAsync(() -> committing(dropping).join()).get(LIMIT.toSeconds(), TimeUnit.SECONDS);
        assertGoesOn();
    }

    /** A COMMIT whose row can't be applied any more must not wait for it: a node could not stop leading. */
    @Test
    void aDropWaitsForNothingOnceTheLogHasEnded() throws Exception {
        long dropping = Node.begin(node.server(), app);
        execute(dropping, "DROP TABLE " + app + ".dropped");
        hold();
        executing("INSERT INTO " + app + ".dropped(k,n) VALUES(100,100)");
        CompletableFuture<?> commit = committing(dropping);
        answerAllThatIsLogged();
        assertFalse(commit.isDone());
        ((NodeCommitLog) tablespace().getLog()).end(new IllegalStateException("the test ends it"));
        commit.handle((done, error) -> done).get(LIMIT.toSeconds(), TimeUnit.SECONDS);
    }

    /** It is written to the disk meanwhile, at a position at which a row of others may be committed that is not in it. */
    @Test
    void aTableThatATransactionMakesTakesNoRowOfOthersBeforeItsCommitIsApplied() throws Exception {
        index.goOn.countDown();
        long making = Node.begin(node.server(), app);
        execute(making, "CREATE TABLE " + app + ".made(k int primary key, n int)");
        hold();
        CompletableFuture<?> commit = committing(making);
        CommitLogResult early = tablespace().getLog().log(LogEntryFactory.insert(
                tablespace().getTableManager("made").getTable(), Bytes.from_int(1), Bytes.from_int(1), null), true);
        Throwable refused = assertThrows(ExecutionException.class, () -> early.logSequenceNumber.get(LIMIT.toSeconds(), TimeUnit.SECONDS));
        assertInstanceOf(TableDoesNotExistException.class, refused.getCause());
        callbacks.goOn();
        commit.get(LIMIT.toSeconds(), TimeUnit.SECONDS);
        execute(0, "INSERT INTO " + app + ".made(k,n) VALUES(1,1)");
        assertGoesOn();
    }

    private void assertGoesOn() throws Exception {
        assertFalse(tablespace().isFailed(), "the tablespace would boot again");
        execute(0, "INSERT INTO " + app + ".other(k,n) VALUES(200,200)");
    }

    /** Returns when the bookies have what is logged, and everything is applied that is not held and does not wait for what is. */
    private void answerAllThatIsLogged() throws Exception {
        executing("INSERT INTO " + app + ".other(k,n) VALUES(100,100)").get(LIMIT.toSeconds(), TimeUnit.SECONDS);
    }

    private TableSpaceManager tablespace() {
        return node.manager(app);
    }

    private static void execute(long transaction, String sql) {
        Node.execute(node.server(), transaction, sql);
    }

    /** Returns once it is logged. */
    private CompletableFuture<StatementExecutionResult> executing(String sql) {
        TranslatedQuery query = planned(sql);
        return node.server().getManager().executePlanAsync(query.plan, query.context, TransactionContext.NO_TRANSACTION);
    }

    private static TranslatedQuery planned(String sql) {
        return node.server().getManager().getPlanner().translate("herd", sql, List.of(), false, true, false, -1);
    }

    /** Returns once it is logged. */
    private CompletableFuture<StatementExecutionResult> committing(long transaction) {
        return node.server().getManager().executeStatementAsync(new CommitTransactionStatement(app, transaction),
                StatementEvaluationContext.DEFAULT_EVALUATION_CONTEXT(), TransactionContext.NO_TRANSACTION);
    }

    private void hold() throws Exception {
        callbacks = new Callbacks();
        Field field = TableSpaceManager.class.getDeclaredField("callbacksExecutor");
        field.setAccessible(true);
        field.set(tablespace(), callbacks);
    }

    /** Holds what is applied next, and applies the rest in the order in which the bookies have it. */
    private static final class Callbacks extends ThreadPoolExecutor {

        private final CompletableFuture<Runnable> held = new CompletableFuture<>();
        private final CompletableFuture<Void> running = new CompletableFuture<>();

        Callbacks() {
            super(1, 1, 0, TimeUnit.SECONDS, new LinkedBlockingQueue<>());
            held.thenAcceptBothAsync(running, (task, now) -> task.run());
        }

        @Override
        public void execute(Runnable task) {
            if (!held.complete(task)) {
                super.execute(task);
            }
        }

        void goOn() {
            running.complete(null);
        }
    }

    /** In front of the table's index, where HerdDB's rows look for it; holds the first row. */
    private final class HeldIndex extends AbstractIndexManager {

        private final CountDownLatch met = new CountDownLatch(1);
        private final CountDownLatch goOn = new CountDownLatch(1);
        private final AtomicInteger rows = new AtomicInteger();
        private final AbstractIndexManager index;

        HeldIndex() {
            this(tablespace().getIndexesOnTable("dropped"));
        }

        private HeldIndex(Map<String, AbstractIndexManager> indexes) {
            super(indexes.get("byn").getIndex(), tablespace().getTableManager("dropped"), null, tablespace().getTableSpaceUUID(), null, 0, 0, 0);
            index = indexes.put("byn", this);
        }

        @Override
        public void recordInserted(Bytes key, Bytes indexKey) {
            rows.incrementAndGet();
            met.countDown();
            try {
                goOn.await();
            } catch (InterruptedException error) {
                throw new IllegalStateException(error);
            }
            index.recordInserted(key, indexKey);
        }

        @Override
        public void recordUpdated(Bytes key, Bytes indexKeyRemoved, Bytes indexKeyAdded) {
            index.recordUpdated(key, indexKeyRemoved, indexKeyAdded);
        }

        @Override
        public void recordDeleted(Bytes key, Bytes indexKey) {
            index.recordDeleted(key, indexKey);
        }

        @Override
        public void dropIndexData() {
            index.dropIndexData();
        }

        @Override
        protected boolean doStart(LogSequenceNumber position) {
            return true;
        }

        @Override
        public void rebuild() {
            index.rebuild();
        }

        @Override
        public List<PostCheckpointAction> checkpoint(LogSequenceNumber position, boolean pin) {
            return index.checkpoint(position, pin);
        }

        @Override
        public void unpinCheckpoint(LogSequenceNumber position) {
            index.unpinCheckpoint(position);
        }

        @Override
        public Stream<Map.Entry<Bytes, Long>> recordSetScanner(
                IndexOperation operation, StatementEvaluationContext context, TableContext table, KeyToPageIndex keys) {
            return index.recordSetScanner(operation, context, table, keys);
        }

        @Override
        protected Stream<Bytes> scanner(IndexOperation operation, StatementEvaluationContext context, TableContext table) {
            throw new UnsupportedOperationException();
        }

        @Override
        public void truncate() {
            index.truncate();
        }

        @Override
        public boolean valueAlreadyMapped(Bytes key, Bytes primaryKey) {
            return index.valueAlreadyMapped(key, primaryKey);
        }
    }
}
