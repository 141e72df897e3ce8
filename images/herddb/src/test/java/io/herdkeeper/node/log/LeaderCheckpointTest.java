package io.herdkeeper.node.log;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import herddb.core.TableManager;
import herddb.core.TableSpaceManager;
import herddb.file.FileDataStorageManager;
import herddb.log.LogNotAvailableException;
import herddb.log.LogSequenceNumber;
import herddb.server.ServerConfiguration;
import herddb.storage.DataStorageManagerException;
import io.herdkeeper.node.internals.HerdInternals;
import io.herdkeeper.node.testing.Await;
import io.herdkeeper.node.testing.BookKeeperForTests;
import io.herdkeeper.node.testing.Node;
import io.herdkeeper.node.testing.RunningNode;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.TreeSet;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** A leader's local checkpoint beside a transaction. The leader has an entry of it in its tables before the bookies have the entry. */
class LeaderCheckpointTest {

    private static final Duration LIMIT = Duration.ofSeconds(60);

    private final Path disk;
    private final String root;
    private RunningNode node;
    private long pageBytes = ServerConfiguration.PROPERTY_MAX_LOGICAL_PAGE_SIZE_DEFAULT;
    private long idleMillis = 200;

    LeaderCheckpointTest() throws Exception {
        disk = BookKeeperForTests.running().newFolder();
        root = BookKeeperForTests.running().newRoot();
    }

    @ParameterizedTest
    @CsvSource(delimiter = '|', value = {
        "INSERT INTO app.t(k,n) VALUES(100,1) | DELETE FROM app.t WHERE k=100",
        "DELETE FROM app.t WHERE k=1 | INSERT INTO app.t(k,n) VALUES(1,100)",
        "UPDATE app.t SET n=7 WHERE k=1 | CREATE TABLE app.made (k int primary key, n int)"})
    void bootsWithTheSameRows(String answered, String unanswered) throws Exception {
        lead();
        long open = Node.begin(node.server(), "app");
        sql(open, answered);
        // Synced, so the bookies have all that came before it.
        sql(0, "INSERT INTO app.t(k,n) VALUES(200,200)");
        BookKeeperForTests.running().suspendBookie();
        try {
            sql(open, unanswered);
            assertThrows(LogNotAvailableException.class, () -> node.manager("app").checkpoint(false, false, false));
        } finally {
            BookKeeperForTests.running().resumeBookie();
        }
        node.manager("app").checkpoint(false, false, false);
        sql(0, "EXECUTE COMMITTRANSACTION 'app'," + open);
        List<String> rows = rows();
        node.stop();
        start();
        Await.until("it leads again", LIMIT, () -> node.tablespace("app").path("role").asText().equals("leader"));
        assertEquals(rows, rows());
        node.stop();
    }

    @ParameterizedTest
    @ValueSource(strings = {"app", "other"})
    void thatFailsKeepsNoOtherTablespaceFromItsOwn(String failing) throws Exception {
        lead();
        sql(0, "CREATE TABLESPACE 'other','leader:n0','replica:n0','expectedreplicacount:1','wait:60000'");
        sql(0, "CREATE TABLE other.t (k int primary key, n int)");
        String written = failing.equals("app") ? "other" : "app";
        long open = Node.begin(node.server(), failing);
        sql(0, "INSERT INTO " + written + ".t(k,n) VALUES(300,300)");
        LogSequenceNumber before = node.status().checkpoint(node.manager(written));
        BookKeeperForTests.running().suspendBookie();
        try {
            sql(open, "INSERT INTO " + failing + ".t(k,n) VALUES(400,400)");
            assertThrows(LogNotAvailableException.class, () -> node.server().getManager().checkpoint());
        } finally {
            BookKeeperForTests.running().resumeBookie();
        }
        assertTrue(node.status().checkpoint(node.manager(written)).after(before));
        node.stop();
    }

    @Test
    void isWrittenWhileManyTransactionsRun() throws Exception {
        lead();
        long open = Node.begin(node.server(), "app");
        for (int i = 0; i < 200; i++) {
            sql(open, "INSERT INTO app.t(k,n) VALUES(?,?)", 1_000 + i, i);
            sql(open, "DELETE FROM app.t WHERE k=?", 1_000 + i);
            if (i % 20 == 0) {
                node.manager("app").checkpoint(false, false, false);
            }
        }
        sql(0, "EXECUTE COMMITTRANSACTION 'app'," + open);
        node.stop();
        start();
        Await.until("it leads again", LIMIT, () -> node.tablespace("app").path("role").asText().equals("leader"));
        assertEquals(10, rows().size());
        node.stop();
    }

    /** HerdDB deletes the files of a table with the DROP, though the checkpoint has the table. */
    @ParameterizedTest
    @ValueSource(strings = {"UPDATE app.t SET n=70 WHERE k=1", "DELETE FROM app.t WHERE k=1"})
    void isBootedFromThoughATableThatItHasIsChangedAndDroppedSince(String change) throws Exception {
        lead();
        sql(0, "CREATE UNIQUE INDEX byn ON app.t(n)");
        node.manager("app").checkpoint(false, false, false);
        Path table = folderOfTheTable();
        sql(0, change);
        sql(0, "DROP TABLE app.t");
        sql(0, "CREATE TABLE app.made (k int primary key, n int)");
        sql(0, "INSERT INTO app.made(k,n) VALUES(1,1)");
        List<String> rows = rows();
        node.stop();
        start();
        Await.until("it leads again", LIMIT, () -> node.tablespace("app").path("role").asText().equals("leader"));
        assertEquals(rows, rows());
        assertFalse(Files.exists(table), "the boot's own checkpoint does not have the table any more");
        node.stop();
    }

    /** HerdDB takes a page for written that could not be, and the next checkpoint names it. */
    @Test
    void thatFailsMidwayIsFollowedByABootFromTheOneBeforeAndLosesNoRow() throws Exception {
        pageBytes = 16 << 10;
        lead();
        for (int i = 10; i < 400; i++) {
            sql(0, "INSERT INTO app.t(k,n) VALUES(?,?)", i, i);
        }
        List<String> rows = rows();
        Path table = folderOfTheTable();
        for (int page = 1; page < 50; page++) {
            Files.createDirectory(table.resolve(page + ".page"));
        }
        assertThrows(DataStorageManagerException.class, () -> node.server().getManager().checkpoint());
        for (int page = 1; page < 50; page++) {
            Files.deleteIfExists(table.resolve(page + ".page"));
        }
        Await.until("it leads, and a checkpoint is written", LIMIT, () -> {
            try {
                boolean leads = node.tablespace("app").path("role").asText().equals("leader");
                node.server().getManager().checkpoint();
                return leads;
            } catch (DataStorageManagerException | LogNotAvailableException notYet) {
                return false;
            }
        });
        node.stop();
        start();
        Await.until("it leads again", LIMIT, () -> node.tablespace("app").path("role").asText().equals("leader"));
        assertEquals(rows, rows());
        node.stop();
    }

    /** A leader that ends before it has listed the ledger that it opens would have a checkpoint from which nothing boots. */
    @Test
    void isWrittenAtNoPositionInALedgerThatIsNotListedYet() throws Exception {
        idleMillis = LIMIT.toMillis(); // an entry of an idle log would wait for the bookie, and the change of ledgers for the entry
        lead();
        NodeCommitLog log = (NodeCommitLog) node.manager("app").getLog();
        long listed = log.appliedPosition().ledgerId;
        Thread change = new Thread(log::rollNewLedger);
        Thread checkpoint = new Thread(() -> node.manager("app").checkpoint(false, false, false));
        BookKeeperForTests.running().suspendBookie();
        try {
            change.start();
            Await.until("the next ledger is made", LIMIT, () -> log.appliedPosition().ledgerId != listed);
            checkpoint.start();
            Await.until("the checkpoint waits, or is written", LIMIT,
                    () -> checkpoint.getState() == Thread.State.WAITING || checkpoint.getState() == Thread.State.TERMINATED);
            assertTrue(node.status().checkpoint(node.manager("app")).ledgerId <= listed);
        } finally {
            BookKeeperForTests.running().resumeBookie();
        }
        change.join();
        checkpoint.join();
        assertTrue(node.status().checkpoint(node.manager("app")).ledgerId > listed);
        node.stop();
    }

    private Path folderOfTheTable() {
        TableSpaceManager app = node.manager("app");
        return HerdInternals.dataFolder((FileDataStorageManager) node.server().getManager().getDataStorageManager())
                .resolve(app.getTableSpaceUUID() + ".tablespace").resolve(app.getTableManager("t").getTable().uuid + ".table");
    }

    private void lead() throws Exception {
        start();
        node.server().waitForTableSpaceBoot("herd", (int) LIMIT.toMillis(), true);
        sql(0, "CREATE TABLESPACE 'app','leader:n0','replica:n0','expectedreplicacount:1','wait:60000'");
        sql(0, "CREATE TABLE app.t (k int primary key, n int)");
        for (int i = 0; i < 10; i++) {
            sql(0, "INSERT INTO app.t(k,n) VALUES(?,?)", i, i);
        }
    }

    private void start() throws Exception {
        node = RunningNode.start(Node.configuration("n0", root, disk)
                .set(ServerConfiguration.PROPERTY_CHECKPOINT_PERIOD, 0)
                .set(ServerConfiguration.PROPERTY_MAX_LOGICAL_PAGE_SIZE, pageBytes)
                .set(ServerConfiguration.PROPERTY_BOOKKEEPER_MAX_IDLE_TIME, idleMillis)
                .set("bookkeeper.addEntryTimeoutSec", 300), null);
    }

    private void sql(long transaction, String statement, Object... values) {
        Node.execute(node.server(), transaction, statement, values);
    }

    private List<String> rows() {
        TreeSet<String> rows = new TreeSet<>();
        for (String table : List.of("t", "made")) {
            if (node.manager("app").getTableManager(table) instanceof TableManager manager) {
                manager.scanForIndexRebuild(row -> rows.add(table + row.toBean(manager.getTable())));
            }
        }
        return List.copyOf(rows);
    }
}
