package io.herdkeeper.node.log;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import herddb.cluster.BookkeeperCommitLog;
import herddb.core.TableManager;
import herddb.core.TableSpaceManager;
import herddb.file.FileDataStorageManager;
import herddb.log.LogSequenceNumber;
import herddb.metadata.MetadataStorageManager;
import herddb.model.TableSpace;
import herddb.server.ServerConfiguration;
import herddb.utils.SystemInstrumentation;
import io.herdkeeper.node.internals.HerdInternals;
import io.herdkeeper.node.testing.Await;
import io.herdkeeper.node.testing.BookKeeperForTests;
import io.herdkeeper.node.testing.Node;
import io.herdkeeper.node.testing.RunningNode;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.StampedLock;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** A copy that comes from the leader, since the log no longer has all of it, beside transactions that are open there. */
class DownloadedCopyTest {

    private static final Duration LIMIT = Duration.ofSeconds(60);
    private static final int ROWS = 10;
    private static final int WIDE_ROWS = 60;
    private static final int WIDE_BYTES = 300_000;

    private static RunningNode leader;
    private static RunningNode copy;
    private static int tablespaces;
    private static String app;

    @BeforeAll
    static void startTwoNodes() throws Exception {
        String root = BookKeeperForTests.running().newRoot();
        leader = RunningNode.start(configuration("n0", root), null);
        leader.server().waitForTableSpaceBoot("herd", (int) LIMIT.toMillis(), true);
        copy = RunningNode.start(configuration("n1", root), null);
    }

    @AfterAll
    static void stop() throws Exception {
        copy.stop();
        leader.stop();
    }

    @BeforeEach
    void makeATableOfTenRows() {
        app = "app" + tablespaces++;
        sql(0, "CREATE TABLESPACE '" + app + "','leader:n0','replica:n0','expectedreplicacount:1','wait:60000'");
        sql(0, "CREATE TABLE " + app + ".t (k int primary key, n int)");
        sql(0, "CREATE INDEX by_n ON " + app + ".t(n)");
        for (int i = 0; i < ROWS; i++) {
            sql(0, "INSERT INTO " + app + ".t(k,n) VALUES(?,?)", i, i);
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"COMMIT", "ROLLBACK"})
    void hasWhatATransactionChangedBeforeAndAfterTheDownload(String end) throws Exception {
        long open = beginAndChange();
        download();
        sql(open, "UPDATE " + app + ".t SET n=1001 WHERE k=100");
        sql(open, "DELETE FROM " + app + ".t WHERE k=101");
        sql(open, "UPDATE " + app + ".t SET n=203 WHERE k=3");
        sql(open, "DELETE FROM " + app + ".t WHERE k=4");
        sql(open, "INSERT INTO " + app + ".t(k,n) VALUES(5,205)");
        sql(open, "INSERT INTO " + app + ".t(k,n) VALUES(104,104)");
        sql(0, "UPDATE " + app + ".t SET n=900 WHERE k=0");
        sql(0, "EXECUTE " + end + "TRANSACTION '" + app + "'," + open);
        assertEquals(end.equals("COMMIT")
                ? List.of("0=900", "100=1001", "104=104", "1=101", "3=203", "5=205", "7=7", "8=8", "9=9")
                : List.of("0=900", "1=1", "2=2", "3=3", "4=4", "5=5", "6=6", "7=7", "8=8", "9=9"), rows(leader, "t"));
        assertSameRows("t");
        leader.checked(app);
        Await.until("it has checked", LIMIT, () -> copy.tablespace(app).at("/checks/t/pass").asBoolean());
    }

    @ParameterizedTest
    @ValueSource(strings = {"COMMIT", "ROLLBACK"})
    void hasTheTableThatATransactionMadeBeforeTheDownload(String end) throws Exception {
        dropTheLog(() -> { });
        long open = Node.begin(leader.server(), app);
        sql(open, "CREATE TABLE " + app + ".made (k int primary key, n int)");
        sql(open, "INSERT INTO " + app + ".made(k,n) VALUES(1,1)");
        sql(open, "DROP TABLE " + app + ".t");
        download();
        sql(open, "INSERT INTO " + app + ".made(k,n) VALUES(2,2)");
        sql(0, "EXECUTE " + end + "TRANSACTION '" + app + "'," + open);
        boolean committed = end.equals("COMMIT");
        assertSameRows(committed ? "made" : "t");
        assertEquals(committed ? List.of("1=1", "2=2") : IntStream.range(0, ROWS).mapToObj(k -> k + "=" + k).toList(),
                rows(copy, committed ? "made" : "t"));
        for (RunningNode node : List.of(leader, copy)) {
            assertEquals(committed, node.manager(app).getTableManager("made") != null);
            assertEquals(!committed, node.manager(app).getTableManager("t") != null);
        }
    }

    @Test
    void leadsThoughATransactionWasOpenAtItsDownload() throws Exception {
        long open = beginAndChange();
        download();
        sql(open, "INSERT INTO " + app + ".t(k,n) VALUES(104,104)");
        sql(0, "INSERT INTO " + app + ".t(k,n) VALUES(500,500)");
        name("n1");
        Await.until("it leads", LIMIT, () -> copy.tablespace(app).path("role").asText().equals("leader"));
        assertEquals(List.of("0=0", "1=1", "2=2", "3=3", "4=4", "500=500", "5=5", "6=6", "7=7", "8=8", "9=9"), rows(copy, "t"));
        assertTrue(copy.manager(app).getTransactions().isEmpty(), "a new leader rolls back what was open");
        Await.until("the other one follows", LIMIT, () -> leader.tablespace(app).path("role").asText().equals("follower")
                && leader.tablespace(app).path("ready").asBoolean());
        assertEquals(rows(copy, "t"), rows(leader, "t"));
    }

    @ParameterizedTest
    @ValueSource(strings = {"int", "long"})
    void givesNoKeyAgainThatItsLeaderHasGivenToARowThatIsGone(String type) throws Exception {
        sql(0, "CREATE TABLE " + app + ".given (k " + type + " auto_increment, n int, PRIMARY KEY (k))");
        sql(0, "INSERT INTO " + app + ".given(n) VALUES(1)");
        sql(0, "INSERT INTO " + app + ".given(n) VALUES(2)");
        sql(0, "DELETE FROM " + app + ".given WHERE n=2");
        dropTheLog(() -> { });
        download();
        name("n1");
        Await.until("it leads", LIMIT, () -> copy.tablespace(app).path("role").asText().equals("leader"));
        assertEquals(3, HerdInternals.nextKeys(copy.manager(app)).get("given").get(), "it boots from its disk to lead");
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void givesNoKeyAgainOfARowThatItsOwnTransactionDeleted(boolean checkpointed) throws Exception {
        sql(0, "CREATE TABLE " + app + ".given (k int auto_increment, n int, PRIMARY KEY (k))");
        download();
        long open = Node.begin(leader.server(), app);
        sql(open, "INSERT INTO " + app + ".given(n) VALUES(1)");
        sql(open, "DELETE FROM " + app + ".given WHERE n=1");
        sql(0, "EXECUTE COMMITTRANSACTION '" + app + "'," + open);
        assertSameRows("given");
        if (checkpointed) {
            copy.manager(app).checkpoint(false, false, false);
        }
        name("n1");
        Await.until("it leads", LIMIT, () -> copy.tablespace(app).path("role").asText().equals("leader"));
        assertEquals(2, HerdInternals.nextKeys(copy.manager(app)).get("given").get());
    }

    @Test
    void getsWideRowsInPiecesForWhichItsLeaderHasTheMemory() throws Exception {
        sql(0, "CREATE TABLE " + app + ".wide (k int primary key, s string)");
        for (int i = 0; i < WIDE_ROWS; i++) {
            sql(0, "INSERT INTO " + app + ".wide(k,s) VALUES(?,?)", i, "x".repeat(WIDE_BYTES));
        }
        dropTheLog(() -> { });
        AtomicInteger most = new AtomicInteger();
        SystemInstrumentation.addListener((point, parameters) -> {
            if (point.equals("receiveTableDataChunk")) {
                most.accumulateAndGet(((List<?>) parameters[2]).size(), Math::max);
            }
        });
        try {
            download();
        } finally {
            SystemInstrumentation.clear();
        }
        assertTrue(most.get() < WIDE_ROWS / 2, most + " rows came at once");
        assertEquals(WIDE_ROWS, copy.manager(app).getTableManager("wide").getStats().getTablesize());
    }

    @Test
    void isNotMadeWhileTheBookiesHaveNotAnsweredAndLetsTheLeaderGoOn() throws Exception {
        dropTheLog(() -> { });
        long open = Node.begin(leader.server(), app);
        sql(open, "INSERT INTO " + app + ".t(k,n) VALUES(100,100)");
        sql(0, "INSERT INTO " + app + ".t(k,n) VALUES(200,200)");
        BookKeeperForTests.running().suspendBookie();
        try {
            sql(open, "DELETE FROM " + app + ".t WHERE k=100");
            addReplica();
            Await.until("its leader has refused it", LIMIT,
                    () -> copy.tablespace(app).path("lastError").asText().contains("invalid dump command"));
        } finally {
            BookKeeperForTests.running().resumeBookie();
        }
        sql(0, "INSERT INTO " + app + ".t(k,n) VALUES(201,201)");
        awaitFollower();
        sql(0, "EXECUTE COMMITTRANSACTION '" + app + "'," + open);
        assertSameRows("t");
    }

    @Test
    void isGivenUpWhenAnotherNodeIsNamedAsTheLeader() throws Exception {
        whileItWaitsForItsLeader(() -> {
            assign("n9", "n0", "n1", "n9");
            Await.until("it gives up", LIMIT, () -> copy.tablespace(app).path("lastError").isTextual());
            assign("n0", "n0", "n1");
        });
        Await.until("the leader leads again", LIMIT, () -> leader.tablespace(app).path("role").asText().equals("leader"));
        awaitFollower();
        assertSameRows("t");
    }

    @Test
    void isMadeAgainWhenTheConnectionToItsLeaderHasEnded() throws Exception {
        whileItWaitsForItsLeader(() -> {
            HerdInternals.connections(leader.server()).values().forEach(client -> HerdInternals.channel(client).close());
            Await.until("it gives up", LIMIT, () -> copy.tablespace(app).path("lastError").asText().contains("connection has ended"));
        });
        awaitFollower();
        assertSameRows("t");
    }

    @Test
    void keepsWhatItHadUntilItsLeaderHasSentAll() throws Exception {
        download();
        String uuid = copy.manager(app).getTableSpaceUUID();
        assign("n0", "n0");
        Await.until("it has stopped", LIMIT, () -> copy.manager(app) == null);
        Set<LogSequenceNumber> before = checkpoints(uuid);
        assertFalse(before.isEmpty());
        whileItWaitsForItsLeader(() -> {
            HerdInternals.connections(leader.server()).values().forEach(client -> HerdInternals.channel(client).close());
            Await.until("it gives up", LIMIT, () -> copy.tablespace(app).path("lastError").asText().contains("connection has ended"));
            Await.until("what it had is there", LIMIT, () -> checkpoints(uuid).containsAll(before));
        });
        awaitFollower();
        assertSameRows("t");
        assertTrue(Collections.disjoint(checkpoints(uuid), before), "it goes with the first checkpoint of the new copy");
    }

    /** The names of all checkpoints that the disk of the copy's node has of it, also beside its folder. */
    private static Set<LogSequenceNumber> checkpoints(String uuid) throws IOException {
        Path data = HerdInternals.dataFolder((FileDataStorageManager) copy.server().getManager().getDataStorageManager());
        try (Stream<Path> files = Files.find(data, 2, (file, attributes) -> file.getParent().getFileName().toString().startsWith(uuid)
                && file.getFileName().toString().matches("checkpoint\\.\\d+\\.\\d+\\.checkpoint"))) {
            return files.map(file -> file.getFileName().toString().split("\\."))
                    .map(parts -> new LogSequenceNumber(Long.parseLong(parts[1]), Long.parseLong(parts[2]))).collect(Collectors.toSet());
        } catch (UncheckedIOException moved) {
            return Set.of(); // meanwhile
        }
    }

    /** Its leader can't send these tables any more. */
    @Test
    void isMadeAgainWhenTablesAreDroppedMeanwhile() throws Exception {
        List<String> dropped = List.of("s", "u", "v", "w", "x"); // HerdDB goes from s to x
        for (String table : dropped) {
            sql(0, "CREATE TABLE " + app + "." + table + " (k int primary key, n int)");
            sql(0, "INSERT INTO " + app + "." + table + "(k,n) VALUES(1,1)");
        }
        dropTheLog(() -> { });
        long open = Node.begin(leader.server(), app);
        dropped.forEach(table -> sql(open, "DROP TABLE " + app + "." + table));
        AtomicBoolean committed = new AtomicBoolean();
        SystemInstrumentation.addListener((point, parameters) -> {
            if (point.equals("receiveTableDataChunk") && committed.compareAndSet(false, true)) {
                sql(0, "EXECUTE COMMITTRANSACTION '" + app + "'," + open);
            }
        });
        try {
            download();
        } finally {
            SystemInstrumentation.clear();
        }
        assertTrue(committed.get());
        assertSameRows("t");
        sql(0, "UPDATE " + app + ".t SET n=n+1");
        leader.manager(app).checkpoint(true, false, false);
        assertEquals(pagesOfTheNewestCheckpoint("t"), pageFiles("t"), "the leader keeps none for the download that was given up");
    }

    private static Set<String> pagesOfTheNewestCheckpoint(String table) {
        return leader.server().getManager().getDataStorageManager()
                .getLatestTableStatus(leader.manager(app).getTableSpaceUUID(), leader.manager(app).getTableManager(table).getTable().uuid)
                .activePages.keySet().stream().map(page -> page + ".page").collect(Collectors.toSet());
    }

    private static Set<String> pageFiles(String table) throws IOException {
        Path folder = HerdInternals.dataFolder((FileDataStorageManager) leader.server().getManager().getDataStorageManager())
                .resolve(leader.manager(app).getTableSpaceUUID() + ".tablespace")
                .resolve(leader.manager(app).getTableManager(table).getTable().uuid + ".table");
        try (Stream<Path> files = Files.list(folder)) {
            return files.map(file -> file.getFileName().toString()).filter(name -> name.endsWith(".page")).collect(Collectors.toSet());
        }
    }

    /** What happens while the copy has asked its leader for a download, and the leader has sent nothing yet. */
    private static void whileItWaitsForItsLeader(Meanwhile meanwhile) throws Exception {
        dropTheLog(() -> { });
        StampedLock statements = HerdInternals.statementLock(leader.manager(app));
        long held = statements.readLock();
        try {
            addReplica();
            Await.until("its leader has been asked", LIMIT, () -> Thread.getAllStackTraces().values().stream().flatMap(Stream::of)
                    .anyMatch(frame -> frame.getMethodName().equals("dumpTableSpace")
                            && frame.getClassName().equals(TableSpaceManager.class.getName())));
            meanwhile.run();
        } finally {
            statements.unlockRead(held);
        }
    }

    @FunctionalInterface
    private interface Meanwhile {

        void run() throws Exception;
    }

    @Test
    void hasTheLeadersRowsThoughManyTransactionsRunMeanwhile() throws Exception {
        dropTheLog(() -> { });
        AtomicBoolean enough = new AtomicBoolean();
        List<CompletableFuture<Void>> writers = IntStream.range(1, 4).mapToObj(writer -> CompletableFuture.runAsync(() -> {
            for (int i = 0; !enough.get(); i++) {
                long open = Node.begin(leader.server(), app);
                int key = writer * 100_000 + i;
                sql(open, "INSERT INTO " + app + ".t(k,n) VALUES(?,?)", key, i);
                sql(open, "UPDATE " + app + ".t SET n=? WHERE k=?", i, writer);
                sql(open, "INSERT INTO " + app + ".t(k,n) VALUES(?,?)", -key, i);
                sql(open, "DELETE FROM " + app + ".t WHERE k=?", i % 2 == 0 ? key : -key);
                sql(0, "EXECUTE " + (i % 5 == 0 ? "ROLLBACK" : "COMMIT") + "TRANSACTION '" + app + "'," + open);
            }
        })).toList();
        try {
            download();
        } finally {
            enough.set(true);
        }
        writers.forEach(CompletableFuture::join);
        assertSameRows("t");
    }

    /** A transaction whose first entries are in no ledger any more. */
    private static long beginAndChange() throws Exception {
        long open = Node.begin(leader.server(), app);
        dropTheLog(() -> {
            sql(open, "INSERT INTO " + app + ".t(k,n) VALUES(100,100)");
            sql(open, "INSERT INTO " + app + ".t(k,n) VALUES(101,101)");
            sql(open, "INSERT INTO " + app + ".t(k,n) VALUES(102,102)");
            sql(open, "DELETE FROM " + app + ".t WHERE k=102");
        });
        sql(open, "UPDATE " + app + ".t SET n=101 WHERE k=1");
        sql(open, "DELETE FROM " + app + ".t WHERE k=2");
        sql(open, "UPDATE " + app + ".t SET n=104 WHERE k=4");
        sql(open, "DELETE FROM " + app + ".t WHERE k=5");
        sql(open, "DELETE FROM " + app + ".t WHERE k=6");
        return open;
    }

    private static void dropTheLog(Runnable writing) throws Exception {
        writing.run();
        log().rollNewLedger();
        leader.manager(app).checkpoint(true, false, false);
        Await.until("the first ledger is old enough, and dropped", LIMIT,
                () -> !log().isRecoveryAvailable(LogSequenceNumber.START_OF_TIME));
    }

    /** The other node, which has nothing of it, is put on the list. */
    private static void download() throws Exception {
        addReplica();
        awaitFollower();
    }

    private static void addReplica() throws Exception {
        assign("n0", "n0", "n1");
    }

    private static void assign(String leader, String... replicas) throws Exception {
        TableSpace before = metadata().describeTableSpace(app);
        assertTrue(metadata().updateTableSpace(
                TableSpace.builder().cloning(before).leader(leader).replicas(Set.of(replicas)).build(), before));
    }

    private static void awaitFollower() throws Exception {
        Await.until("it follows", LIMIT, () -> copy.tablespace(app).path("role").asText().equals("follower")
                && copy.tablespace(app).path("ready").asBoolean());
    }

    private static void name(String node) throws Exception {
        TableSpace before = metadata().describeTableSpace(app);
        assertTrue(metadata().updateTableSpace(TableSpace.builder().cloning(before).leader(node).build(), before));
    }

    private static void assertSameRows(String table) throws Exception {
        sql(0, "CREATE TABLE " + app + ".mark (k int primary key)");
        Await.until("the copy gets on", LIMIT, () -> {
            TableSpaceManager tablespace = copy.manager(app);
            assertTrue(tablespace == null || !tablespace.isFailed(), "the copy failed");
            return tablespace != null && tablespace.getTableManager("mark") != null;
        });
        assertEquals(rows(leader, table), rows(copy, table));
    }

    private static List<String> rows(RunningNode node, String table) {
        TreeSet<String> rows = new TreeSet<>();
        TableManager manager = (TableManager) node.manager(app).getTableManager(table);
        manager.scanForIndexRebuild(row -> {
            Map<String, Object> values = row.toBean(manager.getTable());
            assertTrue(rows.add(values.get("k") + "=" + values.get("n")), () -> values + " is there twice");
        });
        return List.copyOf(rows);
    }

    private static ServerConfiguration configuration(String id, String root) throws Exception {
        return Node.configuration(id, root, BookKeeperForTests.running().newFolder())
                .set(ServerConfiguration.PROPERTY_BOOKKEEPER_LEDGERS_RETENTION_PERIOD, 500)
                .set(ServerConfiguration.PROPERTY_CHECKPOINT_PERIOD, 0)
                .set("bookkeeper.addEntryTimeoutSec", 300);
    }

    private static void sql(long transaction, String statement, Object... values) {
        Node.execute(leader.server(), transaction, statement, values);
    }

    private static BookkeeperCommitLog log() {
        return (BookkeeperCommitLog) leader.manager(app).getLog();
    }

    private static MetadataStorageManager metadata() {
        return leader.server().getMetadataStorageManager();
    }
}
