package io.herdkeeper.node.tls;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import herddb.server.ServerConfiguration;
import io.herdkeeper.node.refusals.ToldRefusals;
import io.herdkeeper.node.testing.Await;
import io.herdkeeper.node.testing.BookKeeperForTests;
import io.herdkeeper.node.testing.Certificates;
import io.herdkeeper.node.testing.Node;
import io.herdkeeper.node.testing.RunningNode;
import io.herdkeeper.node.testing.TlsClient;
import io.herdkeeper.node.tls.SqlPortTls.Plaintext;
import java.io.DataInputStream;
import java.io.IOException;
import java.net.Socket;
import java.net.SocketException;
import java.net.SocketTimeoutException;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.security.cert.X509Certificate;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.UUID;
import javax.net.ssl.SSLException;
import javax.net.ssl.SSLSocket;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** Real servers, and HerdDB's own client over the network. */
class SqlPortTlsTest {

    private static final Duration LIMIT = Duration.ofSeconds(60);
    private static final int ANSWER_MILLIS = 20_000;

    private final List<RunningNode> running = new ArrayList<>();
    private String root;
    private Path certificates;
    private ToldRefusals told;

    @BeforeEach
    void haveACertificate() throws Exception {
        told = new ToldRefusals();
        root = BookKeeperForTests.running().newRoot();
        certificates = Certificates.put(BookKeeperForTests.running().newFolder(), "node.crt", "node-pkcs1.key");
    }

    @AfterEach
    void stop() throws Exception {
        told.close();
        for (RunningNode node : running) {
            node.stop();
        }
    }

    @Test
    void clientsThatKnowTheAuthorityVerifyTheNodeAndOthersDoNotTakeIt() throws Exception {
        RunningNode node = leader(tls(Plaintext.REFUSED));
        assertEquals("CN=a SQL node", handshake(node, "authority.crt", "localhost").getSubjectX500Principal().getName());
        assertThrows(SSLException.class, () -> handshake(node, "stranger.crt", "localhost"));
        assertThrows(SSLException.class, () -> handshake(node, "authority.crt", "elsewhere"));
    }

    @Test
    void aRenewedCertificateIsServedWithoutARestartAndOneThatCannotBeServedIsNot() throws Exception {
        SqlPortTls tls = tls(Plaintext.REFUSED);
        RunningNode node = leader(tls);
        assertEquals("RSA", handshake(node, "authority.crt", "localhost").getPublicKey().getAlgorithm());
        try (Connection open = connect(); Statement statement = open.createStatement()) {
            statement.executeUpdate("CREATE TABLE t (k int primary key)");
            Certificates.put(certificates, "curve.crt", "node-pkcs1.key");
            assertThrows(GeneralSecurityException.class, tls::reload);
            assertEquals("RSA", handshake(node, "authority.crt", "localhost").getPublicKey().getAlgorithm());
            Certificates.put(certificates, "curve.crt", "curve-sec1.key");
            tls.reload();
            assertEquals("EC", handshake(node, "authority.crt", "localhost").getPublicKey().getAlgorithm());
            assertEquals(1, statement.executeUpdate("INSERT INTO t(k) VALUES(1)"), "an open connection goes on");
        }
    }

    @Test
    void driversFindInTheNodesRecordThatItSpeaksTlsAndThoseThatDoNotAreHungUpOn() throws Exception {
        RunningNode node = leader(tls(Plaintext.REFUSED));
        assertEquals(1, insertInto("encrypted"));
        assertEquals(1, rowsByUrl(node, true));
        long begin = System.nanoTime();
        assertThrows(SQLException.class, () -> rowsByUrl(node, false));
        told.until("plaintext", 1);
        assertTrue(Duration.ofNanos(System.nanoTime() - begin).toMillis() < ANSWER_MILLIS, "it was left waiting");
    }

    @Test
    void wherePlaintextIsAcceptedBothAreServedOnOnePort() throws Exception {
        RunningNode node = leader(tls(Plaintext.ACCEPTED));
        handshake(node, "authority.crt", "localhost");
        assertEquals(1, insertInto("encrypted"));
        assertEquals(1, rowsByUrl(node, true));
        assertEquals(1, rowsByUrl(node, false));
    }

    @Test
    void followersCopyFromALeaderThatSpeaksTlsWhetherTheySpeakItThemselvesOrNot() throws Exception {
        RunningNode leader = leader(tls(Plaintext.REFUSED));
        insertInto("copied");
        for (SqlPortTls own : new SqlPortTls[]{tls(Plaintext.REFUSED), null}) {
            String id = "n" + running.size();
            ServerConfiguration configuration = configuration(id, BookKeeperForTests.freePort(), own)
                    .set(ServerConfiguration.PROPERTY_BOOT_FORCE_DOWNLOAD_SNAPSHOT, true);
            RunningNode follower = start(configuration, own);
            Node.execute(leader.server(), 0,
                    "CREATE TABLESPACE 'of_" + id + "','leader:n0','replica:n0','expectedreplicacount:1','wait:30000'");
            Node.execute(leader.server(), 0, "CREATE TABLE of_" + id + ".t (k int primary key)");
            Node.execute(leader.server(), 0, "INSERT INTO of_" + id + ".t(k) VALUES(1)");
            Node.execute(leader.server(), 0, "ALTER TABLESPACE 'of_" + id + "','leader:n0','replica:n0," + id + "'");
            Await.until(id + " has the leader's rows", LIMIT,
                    () -> follower.tablespace("of_" + id).at("/rows/t").asInt() == 1);
        }
    }

    @Test
    void aDriverThatHasLearntThatANodeSpeaksNoTlsServesOnOnlyWherePlaintextIsAccepted() throws Exception {
        int port = BookKeeperForTests.freePort();
        Path disk = BookKeeperForTests.running().newFolder();
        start(configuration("n0", port, null, disk), null);
        try (Connection open = connect(); Statement statement = open.createStatement()) {
            statement.executeUpdate("CREATE TABLE t (k int primary key)");
            for (Plaintext plaintext : Plaintext.values()) {
                running.remove(0).stop();
                SqlPortTls own = tls(plaintext);
                start(configuration("n0", port, own, disk), own);
                String insert = "INSERT INTO t(k) VALUES(" + plaintext.ordinal() + ")";
                switch (plaintext) {
                    case ACCEPTED -> Await.until("the same connection writes", LIMIT, () -> isDone(statement, insert));
                    case REFUSED -> {
                        assertEquals(1, insertInto("by_a_driver_that_has_just_started"));
                        for (int again = 0; again < 3; again++) {
                            assertThrows(SQLException.class, () -> statement.executeUpdate(insert));
                        }
                    }
                    default -> throw new AssertionError(plaintext);
                }
            }
        }
    }

    @Test
    void whoeverHasNotLoggedInSendsNoMoreThanALogin() throws Exception {
        RunningNode node = leader(tls(Plaintext.ACCEPTED));
        byte[] announcedGigabyte = {0x40, 0, 0, 0};
        byte[] login = {0, 0, 0, 21, 3, 1, 100, 0, 0, 0, 0, 0, 0, 0, 1, 5, 'P', 'L', 'A', 'I', 'N', -1, -1, -1, 127};
        byte[] answer = {0, 0, 0, 11, 3, 2, 0, 0, 0, 0, 0, 0, 0, 0, 1};
        assertTrue(isHungUpOn(node, announcedGigabyte), "its message would be kept in memory");
        assertTrue(isHungUpOn(node, login), "room would be made for the password of 256 MB that it announces");
        assertTrue(isHungUpOn(node, answer), "it would never be freed");
        told.until("request", 3);
        try (Connection connection = connect(); Statement statement = connection.createStatement()) {
            statement.executeUpdate("CREATE TABLE wide (k int primary key, v string)");
            assertEquals(1, statement.executeUpdate("INSERT INTO wide(k, v) VALUES(1, '" + "v".repeat(1 << 19) + "')"));
        }
    }

    @Test
    void ofManyWhoNeverLogInTheFirstMakeRoomForTheNextAndClientsAreServed() throws Exception {
        RunningNode node = leader(tls(Plaintext.ACCEPTED));
        int port = node.server().getServerHostData().getPort();
        byte[] beginOfALogin = {0, 0, 0x3f, 0, 3, 1, 100};
        byte[] login = {0, 0, 0, 25, 3, 1, 100, 0, 0, 0, 0, 0, 0, 0, 1, 5, 'P', 'L', 'A', 'I', 'N', 7, 0, 's', 'a', 0, 'h', 'd', 'b'};
        List<Socket> strangers = new ArrayList<>();
        try (Socket idle = new Socket("127.0.0.1", port); Connection connection = connect();
                Statement statement = connection.createStatement()) {
            idle.setSoTimeout(ANSWER_MILLIS);
            idle.getOutputStream().write(login);
            int length = new DataInputStream(idle.getInputStream()).readInt();
            assertTrue(idle.getInputStream().readNBytes(length).length == length, "it is logged in, and asks for nothing more");
            for (int stranger = 0; stranger < 1100; stranger++) {
                Socket socket = new Socket("127.0.0.1", port);
                strangers.add(socket);
                socket.getOutputStream().write(stranger % 2 == 0 ? beginOfALogin : new byte[0]);
            }
            Await.until("100 of them have made room", Duration.ofSeconds(60), () -> ended(strangers) >= 100);
            told.until("too_many", 100);
            assertTrue(told.lines().size() <= 20, "a line for each: " + told.lines().size());
            statement.executeUpdate("CREATE TABLE served (k int primary key)");
            assertEquals(1, insertInto("logged_in_beside_them"));
            idle.setSoTimeout(500);
            assertFalse(isEnded(idle), "who has logged in is no stranger");
        } finally {
            for (Socket socket : strangers) {
                socket.close();
            }
        }
    }

    private static int ended(List<Socket> sockets) throws IOException {
        int ended = 0;
        for (Socket socket : sockets) {
            socket.setSoTimeout(1);
            ended += isEnded(socket) ? 1 : 0;
        }
        return ended;
    }

    private static boolean isEnded(Socket socket) throws IOException {
        try {
            return socket.getInputStream().read() == -1;
        } catch (SocketTimeoutException silence) {
            return false;
        } catch (SocketException closed) {
            return true;
        }
    }

    private static boolean isHungUpOn(RunningNode node, byte[] message) throws IOException {
        try (Socket stranger = new Socket("127.0.0.1", node.server().getServerHostData().getPort())) {
            stranger.setSoTimeout(ANSWER_MILLIS);
            stranger.getOutputStream().write(message);
            return isEnded(stranger);
        } catch (SocketException closed) {
            return true;
        }
    }

    private static boolean isDone(Statement statement, String sql) {
        try {
            return statement.executeUpdate(sql) == 1;
        } catch (SQLException stillStarting) {
            return false;
        }
    }

    private SqlPortTls tls(Plaintext plaintext) throws Exception {
        return new SqlPortTls(certificates, plaintext);
    }

    private RunningNode leader(SqlPortTls tls) throws Exception {
        return start(configuration("n0", BookKeeperForTests.freePort(), tls), tls);
    }

    private RunningNode start(ServerConfiguration configuration, SqlPortTls tls) throws Exception {
        RunningNode node = RunningNode.start(configuration, null, tls);
        running.add(node);
        if (running.size() == 1) {
            node.server().waitForTableSpaceBoot("herd", (int) LIMIT.toMillis(), true);
        }
        return node;
    }

    private ServerConfiguration configuration(String id, int port, SqlPortTls tls) throws Exception {
        return configuration(id, port, tls, BookKeeperForTests.running().newFolder());
    }

    private ServerConfiguration configuration(String id, int port, SqlPortTls tls, Path disk) throws Exception {
        return Node.configuration(id, root, disk)
                .set(ServerConfiguration.PROPERTY_PORT, port).set(ServerConfiguration.PROPERTY_SSL, tls != null);
    }

    /** HerdDB's driver, which finds the leader in ZooKeeper; over the network though the node is in this process. */
    private Connection connect() throws Exception {
        // A driver keeps what it knows for each URL, for as long as its process lives: another one is another process.
        return connect("zookeeper:" + BookKeeperForTests.running().zooKeeperAddress() + root
                + "?client.client.id=" + UUID.randomUUID() + "&");
    }

    private static Connection connect(String to) throws SQLException {
        return DriverManager.getConnection("jdbc:herddb:" + to + "client.network.connect.localvm=false&client.network.timeout="
                + ANSWER_MILLIS + "&client.timeout=" + ANSWER_MILLIS
                + "&client.operation.retry.delay=200&client.max.operation.retry.count=20", "sa", "hdb");
    }

    /** As who is told one address, and whether TLS is spoken there. */
    private static int rowsByUrl(RunningNode node, boolean tls) throws SQLException {
        String to = "server:127.0.0.1:" + node.server().getServerHostData().getPort() + "?client.server.ssl=" + tls + "&";
        try (Connection connection = connect(to); Statement statement = connection.createStatement();
                ResultSet rows = statement.executeQuery("SELECT COUNT(*) FROM encrypted")) {
            assertTrue(rows.next());
            return rows.getInt(1);
        }
    }

    private int insertInto(String table) throws Exception {
        try (Connection connection = connect(); Statement statement = connection.createStatement()) {
            statement.executeUpdate("CREATE TABLE " + table + " (k int primary key)");
            int inserted = statement.executeUpdate("INSERT INTO " + table + "(k) VALUES(1)");
            try (ResultSet rows = statement.executeQuery("SELECT k FROM " + table)) {
                assertTrue(rows.next());
            }
            return inserted;
        }
    }

    private static X509Certificate handshake(RunningNode node, String authority, String name) throws Exception {
        try (SSLSocket socket = TlsClient.connect(node.server().getServerHostData().getPort(), authority, name)) {
            return TlsClient.certificateOf(socket);
        }
    }
}
