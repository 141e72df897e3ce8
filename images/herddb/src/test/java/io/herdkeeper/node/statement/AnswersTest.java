package io.herdkeeper.node.statement;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import herddb.client.ClientConfiguration;
import herddb.client.DMLResult;
import herddb.client.HDBClient;
import herddb.client.HDBConnection;
import herddb.client.ScanResultSet;
import herddb.core.DBManager;
import herddb.model.DMLStatementExecutionResult;
import herddb.model.ExecutionPlan;
import herddb.model.NotLeaderException;
import herddb.model.StatementEvaluationContext;
import herddb.model.TransactionContext;
import herddb.model.commands.SQLPlannedOperationStatement;
import herddb.model.commands.UpdateStatement;
import herddb.model.planner.SimpleUpdateOp;
import herddb.server.ServerConfiguration;
import herddb.server.StaticClientSideMetadataProvider;
import herddb.sql.AbstractSQLPlanner;
import herddb.sql.TranslatedQuery;
import io.herdkeeper.node.internals.HerdInternals;
import io.herdkeeper.node.testing.Await;
import io.herdkeeper.node.testing.BookKeeperForTests;
import io.herdkeeper.node.testing.InterposedPlanner;
import io.herdkeeper.node.testing.Node;
import io.herdkeeper.node.testing.RunningNode;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Each statement that a client sends is answered, whatever other clients do. */
class AnswersTest {

    private static final Duration LIMIT = Duration.ofSeconds(60);
    /** HerdDB's own half an hour is for no test. */
    private static final Duration LOCK_LIMIT = LIMIT.multipliedBy(2);
    private static final int THREADS_OF_HERDDB = 64;
    private static final int ROWS = 30;
    private static final int FETCHED = 10;
    private static final int BATCH = 3_000;

    private static final ExecutorService CLIENTS = Executors.newCachedThreadPool();
    private static RunningNode node;

    @BeforeAll
    static void start() throws Exception {
        node = RunningNode.start(Node.configuration("n0", BookKeeperForTests.running().newRoot(), BookKeeperForTests.running().newFolder())
                .set(ServerConfiguration.PROPERTY_WRITELOCK_TIMEOUT, (int) LOCK_LIMIT.toSeconds()), null);
        node.server().waitForTableSpaceBoot("herd", (int) LIMIT.toMillis(), true);
        Node.execute(node.server(), 0, "CREATE TABLE t (k int primary key, n int)");
        for (int k = 0; k < ROWS; k++) {
            Node.execute(node.server(), 0, "INSERT INTO t(k,n) VALUES(?,0)", k);
        }
    }

    @AfterAll
    static void stop() throws Exception {
        CLIENTS.shutdownNow();
        node.stop();
    }

    @ParameterizedTest
    @ValueSource(longs = {TransactionContext.NOTRANSACTION_ID, TransactionContext.AUTOTRANSACTION_ID})
    void aCommitIsAnsweredWhileManyStatementsWaitForTheRowThatItReleases(long transaction) throws Exception {
        try (HDBClient client = client(); HDBConnection many = client.openConnection();
                HDBClient other = client(); HDBConnection one = other.openConnection()) {
            long holder = Node.begin(node.server(), "herd");
            Node.execute(node.server(), holder, "UPDATE t SET n=1 WHERE k=1");
            List<Future<Long>> waiting = IntStream.range(0, THREADS_OF_HERDDB + 6).mapToObj(any -> CLIENTS.submit(() -> {
                long own = many.executeUpdate("herd", "UPDATE t SET n=2 WHERE k=1", transaction, false, true, List.of()).transactionId;
                if (own > 0) {
                    many.commitTransaction("herd", own);
                }
                return own;
            })).toList();
            Await.until("all threads wait that HerdDB had", LIMIT,
                    () -> node.server().getManager().getRunningStatements().getRunningStatements().size() >= THREADS_OF_HERDDB);
            // which logs in first
            answer(CLIENTS.submit(() -> {
                one.commitTransaction("herd", holder);
                return null;
            }));
            for (Future<Long> each : waiting) {
                answer(each);
            }
        }
    }

    @Test
    void aColumnThatHerdDbCouldNotReadIsRefused() throws Exception {
        String most = IntStream.range(1, 128).mapToObj(number -> ", c" + number + " int").collect(Collectors.joining());
        assertRefused("CREATE TABLE wide (k int primary key" + most + ", c128 int)");
        Node.execute(node.server(), 0, "CREATE TABLE wide (k int primary key" + most + ")");
        Node.execute(node.server(), 0, "CREATE TABLE IF NOT EXISTS wide (k int primary key" + most + ", c128 int)");
        Node.execute(node.server(), 0, "INSERT INTO wide(k,c1,c127) VALUES(1,2,3)");
        assertRefused("ALTER TABLE wide ADD COLUMN c128 int");
        Node.execute(node.server(), 0, "ALTER TABLE wide DROP COLUMN c1");
        assertRefused("ALTER TABLE wide ADD COLUMN c1 int");
        Node.execute(node.server(), 0, "UPDATE wide SET c2=4 WHERE k=1");
        try (HDBClient client = client(); HDBConnection connection = client.openConnection()) {
            assertEquals(List.of(Map.of("c2", 4, "c127", 3)),
                    connection.executeScan("herd", "SELECT c2,c127 FROM wide WHERE k=1", true, List.of(), 0, 0, FETCHED, true).consume());
        }
    }

    private static void assertRefused(String statement) {
        Exception refusal = assertThrows(Exception.class, () -> Node.execute(node.server(), 0, statement));
        assertTrue(refusal.getMessage().contains("HerdDB reads 128 columns of a table"), refusal.getMessage());
    }

    @ParameterizedTest
    @CsvSource(delimiter = ';', value = {"DELETE FROM t WHERE k=?;false", "DELETE FROM t WHERE k=?;true", "UPDATE t SET n=1 WHERE k=?;false",
        "INSERT INTO t(k,n) SELECT k,n FROM t WHERE k=?;false"})
    void aLongBatchOfStatementsThatFindNoRowIsAnswered(String statement, boolean inTransaction) throws Exception {
        try (HDBClient client = client(); HDBConnection connection = client.openConnection()) {
            long transaction = inTransaction ? connection.beginTransaction("herd") : 0;
            List<List<Object>> batch = IntStream.range(ROWS, ROWS + BATCH).mapToObj(absent -> List.<Object>of(absent)).toList();
            Future<List<DMLResult>> changed =
                    CLIENTS.submit(() -> connection.executeUpdates("herd", statement, transaction, false, true, batch));
            assertEquals(BATCH, answer(changed).size());
        }
    }

    /** HerdDB's client repeats the whole batch if it is told to ask another node. */
    @ParameterizedTest
    @CsvSource({"0,false", "-1,true"})
    void aBatchThatMeetsAChangeOfLeadersIsRepeatedUnlessItHasChangedARow(int first, boolean repeated) throws Exception {
        Node.execute(node.server(), 0, "CREATE TABLE counted (k int primary key, n int)");
        Node.execute(node.server(), 0, "INSERT INTO counted(k,n) VALUES(0,0),(1,0)");
        DBManager manager = node.server().getManager();
        AbstractSQLPlanner planner = manager.getPlanner();
        AtomicInteger planned = new AtomicInteger();
        try (HDBClient client = client(); HDBConnection connection = client.openConnection()) {
            HerdInternals.planner(manager, new InterposedPlanner(manager, plan -> {
                TranslatedQuery own = plan.get();
                return planned.incrementAndGet() != 3 ? own : new TranslatedQuery(ExecutionPlan.simple(new AtAnotherNode(own)), own.context);
            }));
            List<List<Object>> batch = List.of(List.of(first), List.of(-2), List.of(1));
            Future<List<DMLResult>> changed = CLIENTS.submit(
                    () -> connection.executeUpdates("herd", "UPDATE counted SET n=n+1 WHERE k=?", 0, false, true, batch));
            if (repeated) {
                assertEquals(batch.size(), answer(changed).size());
            } else {
                ExecutionException told = assertThrows(ExecutionException.class, () -> answer(changed));
                assertTrue(told.toString().contains("LogNotAvailableException"), told.toString());
            }
            assertEquals(first + 1, update("UPDATE counted SET n=2 WHERE n=1 AND k=0"), "0 was changed once");
            assertEquals(repeated ? 1 : 0, update("UPDATE counted SET n=2 WHERE n=1 AND k=1"), "1 was changed once");
        } finally {
            HerdInternals.planner(manager, planner);
            Node.execute(node.server(), 0, "DROP TABLE counted");
        }
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void aBatchThatFailsLeavesOnlyATransactionOpenThatItsClientKnows(boolean isKnown) throws Exception {
        Node.execute(node.server(), 0, "CREATE TABLE batch (k int primary key)");
        try (HDBClient client = client(); HDBConnection connection = client.openConnection()) {
            long transaction = isKnown ? connection.beginTransaction("herd") : TransactionContext.AUTOTRANSACTION_ID;
            List<List<Object>> batch = List.of(List.of(1), List.of(2), List.of(1), List.of(3));
            Future<List<DMLResult>> changed = CLIENTS.submit(
                    () -> connection.executeUpdates("herd", "INSERT INTO batch(k) VALUES(?)", transaction, false, true, batch));
            ExecutionException told = assertThrows(ExecutionException.class, () -> answer(changed));
            assertTrue(told.toString().contains("DuplicatePrimaryKeyException"), told.toString());
            assertEquals(isKnown ? List.of(transaction) : List.of(),
                    node.manager("herd").getTransactions().stream().map(open -> open.transactionId).toList());
            if (isKnown) {
                answer(CLIENTS.submit(() -> end("COMMIT", transaction)));
            }
            assertEquals(isKnown ? 2 : 0, update("DELETE FROM batch WHERE k>0"));
        } finally {
            Node.execute(node.server(), 0, "DROP TABLE batch");
        }
    }

    /** A statement that meets a node at which another one leads by now. */
    private static final class AtAnotherNode extends SQLPlannedOperationStatement {

        AtAnotherNode(TranslatedQuery plan) {
            super(new SimpleUpdateOp((UpdateStatement) plan.plan.mainStatement));
        }

        @Override
        public void validateContext(StatementEvaluationContext context) {
            throw new NotLeaderException("for a test");
        }
    }

    @Test
    void aTransactionCanBeEndedThoughItsConnectionEndedWhileAQueryOfItWaited() throws Exception {
        long holder = Node.begin(node.server(), "herd");
        Node.execute(node.server(), holder, "UPDATE t SET n=1 WHERE k>=0");
        long transaction;
        try (HDBClient client = client(); HDBConnection connection = client.openConnection()) {
            transaction = connection.beginTransaction("herd");
            CLIENTS.submit(() -> connection.executeScan("herd", "SELECT * FROM t FOR UPDATE", true, List.of(), transaction, 0, FETCHED, true));
            Await.until("the query waits", LIMIT, () -> node.manager("herd").getTransaction(transaction).hasPendingActivities());
        }
        Await.until("the node has noticed that the connection ended", LIMIT, () -> node.server().getConnectionCount() == 0);
        end("COMMIT", holder);
        answer(CLIENTS.submit(() -> end("ROLLBACK", transaction)));
    }

    @ParameterizedTest
    @CsvSource(delimiter = ';', value = {"SELECT 1;1", "SELECT * FROM t LIMIT 0;0", "SELECT k FROM t WHERE 1=0;0"})
    void aQueryThatReadsNoTableIsAnsweredInATransaction(String query, int rows) throws Exception {
        try (HDBClient client = client(); HDBConnection connection = client.openConnection()) {
            long transaction = connection.beginTransaction("herd");
            ScanResultSet found = connection.executeScan("herd", query, true, List.of(), transaction, 0, FETCHED, true);
            assertEquals(transaction, found.transactionId);
            assertEquals(rows, found.consume().size());
            answer(CLIENTS.submit(() -> end("COMMIT", transaction)));
        }
    }

    private static int update(String statement) {
        return ((DMLStatementExecutionResult) Node.execute(node.server(), 0, statement)).getUpdateCount();
    }

    private static Void end(String how, long transaction) {
        Node.execute(node.server(), 0, "EXECUTE " + how + "TRANSACTION 'herd'," + transaction);
        return null;
    }

    private static <T> T answer(Future<T> statement) throws Exception {
        return statement.get(LIMIT.toSeconds(), TimeUnit.SECONDS);
    }

    /** Over the network, as from another process, with one socket. */
    private static HDBClient client() {
        HDBClient client = new HDBClient(new ClientConfiguration().set("client.network.connect.localvm", false)
                .set("client.maxconnections.perserver", 1).set("client.username", "sa").set("client.password", "hdb"));
        client.setClientSideMetadataProvider(new StaticClientSideMetadataProvider(node.server()));
        return client;
    }
}
