package io.herdkeeper.node.nemesis;

import io.herdkeeper.node.testing.BookKeeperForTests;
import io.herdkeeper.node.testing.BookieForTests;
import org.apache.bookkeeper.client.BookKeeper;
import org.apache.bookkeeper.conf.ClientConfiguration;

/** Two bookies of the nemesis's own, so that a ledger can go on beside one that does not answer, and a client that no nemesis troubles. */
final class Bookies {

    static final String LEDGERS_PATH = "/nemesis-ledgers";

    private static Bookies instance;

    private final BookKeeper client;

    private Bookies() throws Exception {
        BookKeeperForTests servers = BookKeeperForTests.running();
        BookieForTests.start(servers.zooKeeperAddress(), LEDGERS_PATH, servers.newFolder());
        BookieForTests.start(servers.zooKeeperAddress(), LEDGERS_PATH, servers.newFolder());
        ClientConfiguration configuration = new ClientConfiguration();
        configuration.setMetadataServiceUri("zk+hierarchical://" + servers.zooKeeperAddress() + LEDGERS_PATH);
        client = new BookKeeper(configuration);
    }

    /** They live as long as the JVM of the tests. */
    static synchronized Bookies running() throws Exception {
        if (instance == null) {
            instance = new Bookies();
        }
        return instance;
    }

    BookKeeper client() {
        return client;
    }
}
