package io.herdkeeper.node.leadership;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;

import herddb.core.TableManager;
import io.herdkeeper.node.testing.Await;
import io.herdkeeper.node.testing.BookKeeperForTests;
import io.herdkeeper.node.testing.Node;
import io.herdkeeper.node.testing.RunningNode;
import java.time.Duration;
import java.util.List;
import org.junit.jupiter.api.Test;

/** A table of a tablespace that its node has stopped, as before it leads or follows. */
class ClosedTableTest {

    private static final Duration LIMIT = Duration.ofSeconds(60);

    /** Somebody may remember it: HerdDB does, by the pages that it had. */
    @Test
    void hasNoRowsInMemory() throws Exception {
        RunningNode node = RunningNode.start("n0", BookKeeperForTests.running().newRoot(), null);
        node.server().waitForTableSpaceBoot("herd", (int) LIMIT.toMillis(), true);
        Node.execute(node.server(), 0, "CREATE TABLESPACE 'app','leader:n0','replica:n0','expectedreplicacount:1','wait:60000'");
        Node.execute(node.server(), 0, "CREATE TABLE app.t (k int primary key, n int)");
        Node.execute(node.server(), 0, "INSERT INTO app.t(k,n) VALUES(1,1)");
        node.manager("app").checkpoint(false, false, false);
        TableManager table = (TableManager) node.manager("app").getTableManager("t");
        assertFalse(table.getLoadedPages().isEmpty());
        Node.execute(node.server(), 0, "DROP TABLESPACE 'app'");
        Await.until("it has stopped", LIMIT, () -> node.manager("app") == null);
        assertEquals(List.of(), List.copyOf(table.getLoadedPages()));
        node.stop();
    }
}
