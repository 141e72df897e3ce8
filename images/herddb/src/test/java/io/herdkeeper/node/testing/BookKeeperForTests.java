package io.herdkeeper.node.testing;

import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ThreadLocalRandom;
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

    private static final Set<Integer> GIVEN_PORTS = ConcurrentHashMap.newKeySet();

    private static BookKeeperForTests instance;

    private final BookieForTests bookie;
    private final Path folder;
    private final ZooKeeperServer zooKeeper;
    private final ServerCnxnFactory zooKeeperPort;

    private BookKeeperForTests() throws Exception {
        System.setProperty("zookeeper.admin.enableServer", "false");
        System.setProperty("zookeeper.forceSync", "no");
        folder = Files.createTempDirectory("herddb-node-test");
        zooKeeper = new ZooKeeperServer(folder.resolve("zk-snap").toFile(), folder.resolve("zk-log").toFile(), 500);
        zooKeeperPort = new NIOServerCnxnFactory();
        zooKeeperPort.configure(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 2_000);
        zooKeeperPort.startup(zooKeeper);
        bookie = BookieForTests.start(zooKeeperAddress(), LEDGERS_PATH, folder);
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

    /** The ids of all sessions that ZooKeeper has. */
    public Set<Long> sessions() {
        return Set.copyOf(zooKeeper.getZKDatabase().getSessionWithTimeOuts().keySet());
    }

    /** Has ZooKeeper end a session, as if its client had been silent for too long. */
    public void expire(long session) {
        zooKeeper.closeSession(session);
    }

    /** An empty folder that no other test uses. */
    public Path newFolder() throws Exception {
        return Files.createTempDirectory(folder, "node");
    }

    /** Has the bookie take no more requests, and answer none, until {@link #resumeBookie()}. */
    public void suspendBookie() {
        bookie.suspend();
    }

    public void resumeBookie() {
        bookie.resume();
    }

    /** A port that nobody listens on and nobody else here gets, below those that the kernel gives to clients before a server listens. */
    public static int freePort() {
        while (true) {
            int port = ThreadLocalRandom.current().nextInt(15_000, 32_000);
            try {
                new ServerSocket(port, 1, InetAddress.getLoopbackAddress()).close();
                if (GIVEN_PORTS.add(port)) {
                    return port;
                }
            } catch (IOException taken) {
                // the next one may be free
            }
        }
    }
}
