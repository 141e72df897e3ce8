package io.herdkeeper.node.testing;

import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.UUID;
import org.apache.bookkeeper.client.BookKeeperAdmin;
import org.apache.bookkeeper.conf.ServerConfiguration;
import org.apache.bookkeeper.proto.BookieServer;
import org.apache.bookkeeper.server.EmbeddedServer;
import org.apache.bookkeeper.server.conf.BookieConfiguration;
import org.apache.zookeeper.server.NIOServerCnxnFactory;
import org.apache.zookeeper.server.ServerCnxnFactory;
import org.apache.zookeeper.server.ZooKeeperServer;

/**
 * A real ZooKeeper server and a real bookie in this process, started once for all tests.
 *
 * <p>Each test takes its own root from {@link #newRoot()}, so that none sees another's tablespaces.
 */
public final class BookKeeperForTests {

    public static final String LEDGERS_PATH = "/ledgers";

    private static BookKeeperForTests instance;

    private BookieServer bookie;

    private final Path folder;
    private final ServerCnxnFactory zooKeeperPort;

    private BookKeeperForTests() throws Exception {
        System.setProperty("zookeeper.admin.enableServer", "false");
        System.setProperty("zookeeper.forceSync", "no");
        folder = Files.createTempDirectory("herddb-node-test");
        ZooKeeperServer zooKeeper =
                new ZooKeeperServer(folder.resolve("zk-snap").toFile(), folder.resolve("zk-log").toFile(), 500);
        zooKeeperPort = new NIOServerCnxnFactory();
        zooKeeperPort.configure(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 100);
        zooKeeperPort.startup(zooKeeper);
        startBookie();
    }

    /** The servers, which live as long as the JVM of the tests. */
    public static synchronized BookKeeperForTests running() throws Exception {
        if (instance == null) {
            instance = new BookKeeperForTests();
        }
        return instance;
    }

    public String zooKeeperAddress() {
        return "127.0.0.1:" + zooKeeperPort.getLocalPort();
    }

    /** A path in ZooKeeper that no other test uses. */
    public String newRoot() {
        return "/herd-" + UUID.randomUUID();
    }

    /** An empty folder that no other test uses. */
    public Path newFolder() throws Exception {
        return Files.createTempDirectory(folder, "node");
    }

    /** Has the bookie take no more requests, and answer none, until {@link #resumeBookie()}. */
    public void suspendBookie() {
        bookie.suspendProcessing();
    }

    public void resumeBookie() {
        bookie.resumeProcessing();
    }

    public static int freePort() throws Exception {
        try (ServerSocket socket = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
            return socket.getLocalPort();
        }
    }

    private void startBookie() throws Exception {
        ServerConfiguration configuration = new ServerConfiguration();
        configuration.setMetadataServiceUri("zk+hierarchical://" + zooKeeperAddress() + LEDGERS_PATH);
        configuration.setBookiePort(freePort());
        configuration.setAdvertisedAddress("127.0.0.1");
        configuration.setAllowLoopback(true);
        configuration.setJournalDirName(folder.resolve("journal").toString());
        configuration.setLedgerDirNames(new String[]{folder.resolve("ledgers").toString()});
        configuration.setJournalSyncData(false);
        configuration.setProperty("journalMaxGroupWaitMSec", 1);
        configuration.setProperty("journalPreAllocSizeMB", 1);
        configuration.setEntryLogFilePreAllocationEnabled(false);
        configuration.setAutoRecoveryDaemonEnabled(false);
        BookKeeperAdmin.initNewCluster(configuration);
        EmbeddedServer server = EmbeddedServer.builder(new BookieConfiguration(configuration)).build();
        server.getLifecycleComponentStack().start();
        bookie = server.getBookieService().getServer();
    }
}
