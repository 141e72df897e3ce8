package io.herdkeeper.node.log;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;

import herddb.server.ServerConfiguration;
import io.herdkeeper.node.testing.Await;
import io.herdkeeper.node.testing.BookKeeperForTests;
import io.herdkeeper.node.testing.Cable;
import io.herdkeeper.node.testing.Node;
import io.herdkeeper.node.testing.RunningNode;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.apache.bookkeeper.client.BookKeeper;
import org.apache.bookkeeper.client.api.LedgerMetadata;
import org.apache.bookkeeper.versioning.Versioned;
import org.junit.jupiter.api.Test;

/** A member of ZooKeeper is gone with what a node's BookKeeper client has asked it. */
class PromptMetadataDriverTest {

    private static final Duration LIMIT = Duration.ofSeconds(60);
    /** BookKeeper's own driver would ask again after this. */
    private static final int SESSION_MILLIS = 300_000;

    @Test
    void whatALostConnectionCutsOffIsAskedAgainLongBeforeTheTimeOfASession() throws Exception {
        BookKeeperForTests servers = BookKeeperForTests.running();
        try (Cable cable = new Cable(servers.zooKeeperAddress())) {
            RunningNode node = RunningNode.start(Node.configuration("n0", servers.newRoot(), servers.newFolder())
                    .set(ServerConfiguration.PROPERTY_ZOOKEEPER_ADDRESS, cable.address())
                    .set("bookkeeper.zkTimeout", SESSION_MILLIS), null);
            Await.until("it leads", LIMIT, () -> node.tablespace("herd").path("role").asText().equals("leader"));
            long ledger = node.tablespace("herd").at("/log/ledgerId").asLong();
            BookKeeper client = NodeCommitLogManager.of(node.server().getManager()).getBookKeeper();

            cable.pull();
            CompletableFuture<Versioned<LedgerMetadata>> asked = client.getLedgerManager().readLedgerMetadata(ledger);
            assertFalse(asked.isDone());
            cable.cut();
            cable.plug();
            long plugged = System.nanoTime();
            assertEquals(ledger, asked.get(LIMIT.toSeconds(), TimeUnit.SECONDS).getValue().getLedgerId());
            System.out.printf("what was cut off was answered %.2f s after the connection was lost%n", (System.nanoTime() - plugged) / 1e9);
            node.stop();
        }
    }
}
