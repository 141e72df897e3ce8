package io.herdkeeper.node;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import herddb.cluster.BookkeeperCommitLog;
import herddb.cluster.BookkeeperCommitLogManager;
import herddb.model.StatementExecutionException;
import herddb.server.Server;
import herddb.server.ServerConfiguration;
import io.herdkeeper.node.testing.BookKeeperForTests;
import io.herdkeeper.node.testing.Node;
import java.nio.file.Path;
import org.apache.bookkeeper.stats.NullStatsLogger;
import org.apache.bookkeeper.stats.NullStatsProvider;
import org.junit.jupiter.api.Test;

/** A client begins a transaction, its leader goes away, and it commits on the next one, where a stranger has begun. */
class TransactionIdsTest {

    private static final int TIMEOUT_MILLIS = 30_000;

    @FunctionalInterface
    private interface Program {
        Server create(ServerConfiguration configuration);
    }

    @Test
    void anIdOfAnEarlierLeaderIsUnknownAndCommitsNothing() throws Exception {
        String root = BookKeeperForTests.running().newRoot();
        Path folder = BookKeeperForTests.running().newFolder();
        long old;
        try (Server first = start(TransactionIdsTest::ours, root, folder)) {
            Node.execute(first, 0, "CREATE TABLE herd.t (k int primary key, n int)");
            old = Node.begin(first, "herd");
        }
        try (Server second = start(TransactionIdsTest::ours, root, folder)) {
            long strangers = Node.begin(second, "herd");
            Node.execute(second, strangers, "INSERT INTO herd.t(k,n) VALUES(1,1)");
            assertTrue(strangers > old, strangers + " must be above " + old);
            assertThrows(StatementExecutionException.class, () -> commit(second, old));
            assertThrows(StatementExecutionException.class,
                    () -> Node.execute(second, old, "INSERT INTO herd.t(k,n) VALUES(2,2)"));
            assertThrows(StatementExecutionException.class,
                    () -> Node.execute(second, 0, "EXECUTE ROLLBACKTRANSACTION 'herd'," + old));
            assertEquals(0, committedRows(second));
            commit(second, strangers);
            assertEquals(1, committedRows(second));
        }
    }

    @Test
    void withoutTheRaisedIdsTheSameStepsCommitTheStrangersTransaction() throws Exception {
        String root = BookKeeperForTests.running().newRoot();
        Path folder = BookKeeperForTests.running().newFolder();
        long old;
        try (Server first = start(TransactionIdsTest::plainHerdDb, root, folder)) {
            Node.execute(first, 0, "CREATE TABLE herd.t (k int primary key, n int)");
            old = Node.begin(first, "herd");
        }
        try (Server second = start(TransactionIdsTest::plainHerdDb, root, folder)) {
            long strangers = Node.begin(second, "herd");
            Node.execute(second, strangers, "INSERT INTO herd.t(k,n) VALUES(1,1)");
            assertEquals(old, strangers);
            commit(second, old);
            assertEquals(1, committedRows(second));
        }
    }

    @Test
    void idsRiseAtEachLedgerOfOneLeader() throws Exception {
        try (Server server = start(TransactionIdsTest::ours,
                BookKeeperForTests.running().newRoot(), BookKeeperForTests.running().newFolder())) {
            long before = Node.begin(server, "herd");
            BookkeeperCommitLog log =
                    (BookkeeperCommitLog) server.getManager().getTableSpaceManager("herd").getLog();
            log.rollNewLedger();
            // The first one in the new ledger still counts on; from then on the ledger's own range is used.
            assertEquals(before + 1, Node.begin(server, "herd"));
            assertEquals((log.getLastLedgerId() << 32) + 1, Node.begin(server, "herd"));
        }
    }

    private static void commit(Server server, long transaction) {
        Node.execute(server, 0, "EXECUTE COMMITTRANSACTION 'herd'," + transaction);
    }

    private static long committedRows(Server server) {
        return server.getManager().getTableSpaceManager("herd").getTableManager("t").getStats().getTablesize();
    }

    private static Server start(Program program, String root, Path folder) throws Exception {
        Server server = program.create(Node.configuration("n0", root, folder));
        server.start();
        server.waitForTableSpaceBoot("herd", TIMEOUT_MILLIS, true);
        return server;
    }

    private static Server ours(ServerConfiguration configuration) {
        return NodeServer.create(configuration, new NullStatsProvider());
    }

    private static Server plainHerdDb(ServerConfiguration configuration) {
        return NodeServer.create(configuration, new NullStatsProvider(),
                metadata -> {
                    BookkeeperCommitLogManager manager =
                            new BookkeeperCommitLogManager(metadata, configuration, NullStatsLogger.INSTANCE);
                    manager.setMaxLedgerSizeBytes(1 << 30);
                    return manager;
                });
    }
}
