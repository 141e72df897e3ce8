package io.herdkeeper.node.statement;

import static org.junit.jupiter.api.Assertions.assertEquals;

import herddb.core.AbstractIndexManager;
import herddb.model.Transaction;
import io.herdkeeper.node.internals.HerdInternals;
import io.herdkeeper.node.testing.BookKeeperForTests;
import io.herdkeeper.node.testing.Node;
import io.herdkeeper.node.testing.RunningNode;
import org.apache.commons.collections.map.HashedMap;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** The locks of a unique index that another transaction makes. */
class IndexLocksTest {

    private RunningNode leader;

    @BeforeEach
    void start() throws Exception {
        leader = RunningNode.start("n0", BookKeeperForTests.running().newRoot(), null);
        leader.server().waitForTableSpaceBoot("herd", 60_000, true);
        execute(0, "CREATE TABLE t (k int primary key, n int)");
    }

    /** A lock that was left behind keeps a node from stopping. */
    @AfterEach
    @Timeout(60)
    void stop() throws Exception {
        leader.stop();
    }

    @Test
    void theEndOfATransactionBesideAnIndexThatBecomesUsableMeanwhileLeavesNoLockAndDoesNotFail() throws Exception {
        long making = Node.begin(leader.server(), "herd");
        execute(making, "CREATE UNIQUE INDEX i ON t(n)");
        AbstractIndexManager index = leader.manager("herd").getIndexesOnTable("t").get("i");
        long open = Node.begin(leader.server(), "herd");
        execute(open, "INSERT INTO t(k,n) VALUES(5,5)");
        Transaction ending = leader.manager("herd").getTransaction(open);
        Runnable letGo = HerdInternals.lettingGoOfIndexes(leader.manager("herd"), ending);
        commit(making);
        // HerdDB has applied the end before the index was usable, and let go of nothing.
        HashedMap locks = ending.locks.get("i");
        assertEquals(1, index.getLockManager().getNumKeys());
        letGo.run();
        assertEquals(0, index.getLockManager().getNumKeys());
        // HerdDB has applied it after, and let go of all.
        ending.locks.put("i", locks);
        letGo.run();
        ending.locks.remove("i");
        commit(open);
        execute(0, "DELETE FROM t WHERE k=5");
    }

    private void commit(long transaction) {
        execute(0, "EXECUTE COMMITTRANSACTION 'herd'," + transaction);
    }

    private void execute(long transaction, String sql) {
        Node.execute(leader.server(), transaction, sql);
    }
}
