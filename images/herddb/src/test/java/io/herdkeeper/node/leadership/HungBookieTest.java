package io.herdkeeper.node.leadership;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import herddb.metadata.MetadataStorageManager;
import herddb.model.TableSpace;
import herddb.server.ServerConfiguration;
import io.herdkeeper.node.log.NodeCommitLogManager;
import io.herdkeeper.node.testing.Await;
import io.herdkeeper.node.testing.BookKeeperForTests;
import io.herdkeeper.node.testing.BookieForTests;
import io.herdkeeper.node.testing.Cable;
import io.herdkeeper.node.testing.Node;
import io.herdkeeper.node.testing.RunningNode;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import org.apache.bookkeeper.net.BookieId;
import org.junit.jupiter.api.Test;

/**
 * A machine is gone, with a leader and with one of the bookies of its ledger: connections stay, answers don't come.
 *
 * <p>Reads and writes may take five minutes here, so that whoever waits for the last bookie is found out.
 */
class HungBookieTest {

    private static final Duration LIMIT = Duration.ofSeconds(60);
    private static final int FOR_EVER_SECONDS = 300;
    private static final int BOOKIES = 4;
    /** Two lots of a boot's reads. */
    private static final int ROWS = 1_500;

    @Test
    void aFollowerGoesOnAndAnotherLeaderBootsThoughABookieOfTheLogNeverAnswers() throws Exception {
        BookKeeperForTests servers = BookKeeperForTests.running();
        String root = servers.newRoot();
        List<BookieForTests> bookies = new ArrayList<>();
        try (Cable cable = new Cable(servers.zooKeeperAddress())) {
            for (int number = 0; number < BOOKIES; number++) {
                bookies.add(BookieForTests.start(servers.zooKeeperAddress(), ledgersPath(root), servers.newFolder()));
            }
            RunningNode first = RunningNode.start(configuration("n0", root)
                    .set(ServerConfiguration.PROPERTY_ZOOKEEPER_ADDRESS, cable.address()), null);
            first.server().waitForTableSpaceBoot("herd", (int) LIMIT.toMillis(), true);
            RunningNode second = RunningNode.start(configuration("n1", root), null);
            Node.execute(first.server(), 0, "CREATE TABLESPACE 'app','leader:n0','replica:n0,n1','expectedreplicacount:1','wait:60000'");
            Node.execute(first.server(), 0, "CREATE TABLE app.t (k int primary key)");
            for (int row = 0; row < ROWS; row++) {
                Node.execute(first.server(), 0, "INSERT INTO app.t(k) VALUES(?)", row);
            }
            Await.until("the follower has the rows", LIMIT, () -> second.tablespace("app").at("/rows/t").asInt() == ROWS);

            hung(bookies, first).suspend();
            Node.execute(first.server(), 0, "INSERT INTO app.t(k) VALUES(?)", ROWS);
            long written = System.nanoTime();
            Await.until("the follower has the next one", LIMIT, () -> second.tablespace("app").at("/rows/t").asInt() == ROWS + 1);
            print("the follower had a row of a ledger whose bookie hangs after", written);

            cable.pull();
            long moved = System.nanoTime();
            lead(second.server().getMetadataStorageManager(), "n1");
            Await.until("the other one leads", LIMIT, () -> second.tablespace("app").path("role").asText().equals("leader"));
            Node.executeIn("app", second.server(), 0, "INSERT INTO app.t(k) VALUES(?)", ROWS + 1);
            print("another leader wrote, with a bookie that hangs, after", moved);
            assertEquals(ROWS + 2, second.tablespace("app").at("/rows/t").asInt());
            bookies.forEach(BookieForTests::resume);
            second.stop();
            cable.plug();
            first.stop();
        } finally {
            bookies.forEach(BookieForTests::close);
        }
    }

    /** The bookie that the first entry, and each third one after it, is read from. */
    private static BookieForTests hung(List<BookieForTests> bookies, RunningNode leader) throws Exception {
        long ledger = leader.tablespace("app").at("/log/ledgerId").asLong();
        BookieId first = NodeCommitLogManager.of(leader.server().getManager()).getBookKeeper().getLedgerManager()
                .readLedgerMetadata(ledger).get().getValue().getEnsembleAt(0).get(0);
        for (BookieForTests bookie : bookies) {
            if (bookie.id().equals(first)) {
                return bookie;
            }
        }
        throw new AssertionError("ledger " + ledger + " is on " + first + ", which is none of the bookies");
    }

    private static void print(String what, long since) {
        System.out.printf("%s %.2f s%n", what, (System.nanoTime() - since) / 1e9);
    }

    private static void lead(MetadataStorageManager metadata, String node) throws Exception {
        TableSpace before = metadata.describeTableSpace("app");
        assertTrue(metadata.updateTableSpace(TableSpace.builder().cloning(before).leader(node).build(), before));
    }

    private static String ledgersPath(String root) {
        return root + "-ledgers";
    }

    private static ServerConfiguration configuration(String node, String root) throws Exception {
        return Node.configuration(node, root, BookKeeperForTests.running().newFolder())
                .set(ServerConfiguration.PROPERTY_BOOKKEEPER_LEDGERS_PATH, ledgersPath(root))
                .set(ServerConfiguration.PROPERTY_BOOKKEEPER_ENSEMBLE, 3)
                .set(ServerConfiguration.PROPERTY_BOOKKEEPER_WRITEQUORUMSIZE, 3)
                .set(ServerConfiguration.PROPERTY_BOOKKEEPER_ACKQUORUMSIZE, 2)
                .set("bookkeeper.addEntryTimeoutSec", FOR_EVER_SECONDS)
                .set("bookkeeper.readEntryTimeoutSec", FOR_EVER_SECONDS)
                // as the operator renders them
                .set("bookkeeper.speculativeReadTimeout", 250)
                .set("bookkeeper.firstSpeculativeReadLACTimeout", 250);
    }
}
