package io.herdkeeper.node.users;

import static org.junit.jupiter.api.Assertions.assertDoesNotThrow;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import herddb.core.DBManager;
import herddb.proto.PduCodec;
import herddb.security.SimpleSingleUserManager;
import herddb.security.UserManager;
import herddb.server.ServerConfiguration;
import herddb.server.ServerSideConnectionPeer;
import io.herdkeeper.node.internals.HerdInternals;
import io.herdkeeper.node.refusals.ToldRefusals;
import io.herdkeeper.node.testing.Await;
import io.herdkeeper.node.testing.BookKeeperForTests;
import io.herdkeeper.node.testing.Node;
import io.herdkeeper.node.testing.RunningNode;
import io.netty.buffer.ByteBuf;
import java.io.IOException;
import java.net.Socket;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.logging.Handler;
import java.util.logging.LogRecord;
import java.util.logging.Logger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** A real server, and HerdDB's own client over the network. */
class MountedUsersTest {

    private static final Duration LIMIT = Duration.ofSeconds(60);
    private static final int ANSWER_MILLIS = 20_000;
    private static final String FIRST = "# revision 1\nadmin,first,admin\n# secret app-login\napp,apple,admin\n";

    private MountedSecret secret;
    private MountedUsers users;
    private RunningNode node;

    @BeforeEach
    void startANode() throws Exception {
        secret = new MountedSecret(BookKeeperForTests.running().newFolder());
        secret.put("first", FIRST);
        users = new MountedUsers(secret.folder());
        BookKeeperForTests bookKeeper = BookKeeperForTests.running();
        node = RunningNode.start(Node.configuration("n0", bookKeeper.newRoot(), bookKeeper.newFolder())
                .set(ServerConfiguration.PROPERTY_SERVER_TO_SERVER_USERNAME, "admin")
                .set(ServerConfiguration.PROPERTY_SERVER_TO_SERVER_PASSWORD, "first")
                .set(SimpleSingleUserManager.PROPERTY_ADMIN_PASSWORD, "first"), null);
        node.server().setUserManager(users);
        node.server().waitForTableSpaceBoot("herd", (int) LIMIT.toMillis(), true);
    }

    @AfterEach
    void stop() throws Exception {
        node.stop();
    }

    @Test
    void aChangedPasswordAndANewUserAreLetInWithoutARestartAndOpenConnectionsGoOn() throws Exception {
        try (Connection open = connect("admin", "first"); Statement statement = open.createStatement()) {
            statement.executeUpdate("CREATE TABLE t (k int primary key)");
            assertFalse(isLetIn("bob", "bobby"));
            secret.put("second", "# revision 2\nadmin,second,admin\napp,apple,admin\nbob,bobby,admin\n");
            assertTrue(isLetIn("admin", "first"), "nothing has been looked at yet");
            users.look(node.server());
            assertEquals(1, statement.executeUpdate("INSERT INTO t(k) VALUES(1)"), "the open connection");
            assertTrue(isLetIn("admin", "second"));
            assertFalse(isLetIn("admin", "first"));
            assertTrue(isLetIn("bob", "bobby"));
            assertTrue(isLetIn("app", "apple"));
        }
        DBManager manager = node.server().getManager();
        assertEquals("second", manager.getServerToServerPassword(), "with which the node copies from a leader");
        assertEquals("2", node.report().at("/users/revision").asText());
    }

    @Test
    void aUserReadsNoPasswordInTheTableOfTheNodesSettings() throws Exception {
        Map<String, String> settings = new HashMap<>();
        try (Connection connection = connect("app", "apple"); Statement statement = connection.createStatement();
                ResultSet rows = statement.executeQuery("SELECT * FROM n0.sysconfig")) {
            while (rows.next()) {
                settings.put(rows.getString("name"), rows.getString("value"));
            }
        }
        assertEquals("n0", settings.get(ServerConfiguration.PROPERTY_NODEID));
        assertFalse(settings.containsValue("first"), settings.toString());
        assertEquals("first", node.server().getManager().getServerToServerPassword(), "with which the node copies from a leader");
    }

    @ParameterizedTest
    @ValueSource(strings = {"PLAIN", "DIGEST-MD5"})
    void aLoginThatIsRefusedIsCountedAndLoggedWithItsAddressAndWithoutWhatWasTyped(String mechanism) throws Exception {
        try (ToldRefusals told = new ToldRefusals()) {
            assertTrue(isLetIn("app", "apple", mechanism));
            assertEquals(0, told.since("login"));
            assertFalse(isLetIn("apple", "mistyped", mechanism));
            told.until("login", 1); // the answer may come first
            String line = told.lines().get(0);
            assertTrue(line.matches("refused 127.0.0.1:\\d+ \\(login\\): .*"), line);
            assertFalse(told.lines().toString().contains("apple") || told.lines().toString().contains("mistyped"), line);
        }
    }

    @Test
    void aRefusedLoginIsCountedAlsoIfItsConnectionHasEndedByThen() throws Exception {
        node.server().setUserManager(new UserManager() {
            @Override
            public String getExpectedPassword(String username) {
                HerdInternals.connections(node.server()).values().forEach(connection -> HerdInternals.channel(connection).close());
                return null;
            }
        });
        try (ToldRefusals told = new ToldRefusals(); Socket stranger = new Socket("127.0.0.1", port())) {
            send(stranger, PduCodec.SaslTokenMessageRequest.write(1, "PLAIN", "\0app\0mistyped".getBytes(StandardCharsets.UTF_8)));
            told.until("login", 1);
            assertTrue(told.lines().get(0).matches("refused 127.0.0.1:\\d+ \\(login\\): .*"), told.lines().toString());
        }
    }

    @Test
    void aLoginThatIsNoneIsToldByTheLimitedLinesAlone() throws Exception {
        List<String> others = new CopyOnWriteArrayList<>();
        Handler handler = new Handler() {
            @Override
            public void publish(LogRecord event) {
                others.add(event.getMessage());
            }

            @Override
            public void flush() {
                // nothing is kept back
            }

            @Override
            public void close() {
                // nothing is open
            }
        };
        Logger connections = Logger.getLogger(ServerSideConnectionPeer.class.getName());
        connections.addHandler(handler);
        try (ToldRefusals told = new ToldRefusals(); Socket stranger = new Socket("127.0.0.1", port())) {
            send(stranger, PduCodec.SaslTokenMessageRequest.write(1, "DIGEST-MD5", new byte[0]));
            assertTrue(stranger.getInputStream().read() >= 0, "the challenge");
            send(stranger, PduCodec.SaslTokenMessageToken.write(2, null));
            told.until("login", 1);
        } finally {
            connections.removeHandler(handler);
        }
        assertEquals(List.of(), others.stream().filter(line -> line.contains("error")).toList());
    }

    @Test
    void aUserWhoIsTakenAwayIsHungUpOnAndNobodyElse() throws Exception {
        try (Connection kept = connect("admin", "first"); Statement statement = kept.createStatement();
                Connection lost = connect("app", "apple"); Statement refused = lost.createStatement()) {
            statement.executeUpdate("CREATE TABLE t (k int primary key)");
            assertEquals(1, refused.executeUpdate("INSERT INTO t(k) VALUES(1)"));
            secret.put("first", "# revision 2\nadmin,first,admin\n");
            users.look(node.server());
            // HerdDB's client throws a RuntimeException where it notices only as it sends
            assertThrows(Exception.class, () -> refused.executeUpdate("INSERT INTO t(k) VALUES(2)"));
            assertEquals(1, statement.executeUpdate("INSERT INTO t(k) VALUES(3)"));
            try (ResultSet rows = statement.executeQuery("SELECT COUNT(*) FROM t")) {
                assertTrue(rows.next());
                assertEquals(2, rows.getInt(1));
            }
        }
        assertFalse(isLetIn("app", "apple"));
    }

    @Test
    void whatCannotBeUsedLocksNobodyOutAndIsTold() throws Exception {
        String[] halves = {"", "# revision 2\n", "# revision 2\nadmin,sec", "# revision 2\napp,apple,admin\n", FIRST + "bob,with,comma,admin\n",
            FIRST + "app,other,admin\n"};
        try (Connection open = connect("app", "apple"); Statement statement = open.createStatement()) {
            statement.executeUpdate("CREATE TABLE t (k int primary key)");
            for (String half : halves) {
                secret.put("first", half);
                assertThrows(UnusableUsersException.class, () -> users.look(node.server()), half);
                assertEquals("1", node.report().at("/users/revision").asText());
                String told = node.report().at("/users/refused").asText();
                assertTrue(told.contains("users"), told);
                assertFalse(told.contains("apple") || told.contains("comma,admin"), told);
                assertEquals(0, statement.executeUpdate("DELETE FROM t WHERE k=1"), "the open connection");
            }
            assertTrue(isLetIn("admin", "first"));
            secret.put("changed before the users are", FIRST);
            users.look(node.server());
            assertTrue(isLetIn("admin", "first"));
        }
        secret.put("first", FIRST.replace("revision 1", "revision 3"));
        assertDoesNotThrow(() -> users.look(node.server()));
        assertEquals(new MountedUsers.Told("3", null), users.told());
        assertTrue(node.report().at("/users/refused").isNull());
    }

    @Test
    void aSecretThatIsGoneForAMomentLocksNobodyOut() throws Exception {
        Files.delete(secret.folder().resolve("..data"));
        assertThrows(IOException.class, () -> users.look(node.server()));
        assertTrue(isLetIn("app", "apple"));
        secret.put("first", FIRST);
        users.look(node.server());
        assertNull(users.told().refused());
    }

    @Test
    void aChangeIsNoticedByItself() throws Exception {
        Thread following = users.follow(node.server(), Duration.ofMillis(20));
        secret.put("second", FIRST.replace("first", "second").replace("revision 1", "revision 2"));
        Await.until("the change is in force", LIMIT, () -> "2".equals(users.told().revision()));
        assertTrue(isLetIn("admin", "second"));
        following.interrupt();
    }

    private int port() {
        return node.server().getServerHostData().getPort();
    }

    private static void send(Socket stranger, ByteBuf message) throws IOException {
        ByteBuffer framed = ByteBuffer.allocate(Integer.BYTES + message.readableBytes()).putInt(message.readableBytes());
        framed.put(message.nioBuffer());
        message.release();
        stranger.getOutputStream().write(framed.array());
    }

    private boolean isLetIn(String username, String password) throws SQLException {
        return isLetIn(username, password, "DIGEST-MD5");
    }

    private boolean isLetIn(String username, String password, String mechanism) throws SQLException {
        try (Connection connection = connect(username, password, mechanism); Statement statement = connection.createStatement();
                ResultSet rows = statement.executeQuery("SELECT * FROM sysnodes")) {
            return rows.next();
        } catch (SQLException error) {
            if (!String.valueOf(error).contains("uthenticat")) {
                throw error;
            }
            return false;
        }
    }

    private Connection connect(String username, String password) throws SQLException {
        return connect(username, password, "DIGEST-MD5");
    }

    private Connection connect(String username, String password, String mechanism) throws SQLException {
        // A driver keeps what it knows for each URL, for as long as its process lives: another one is another process.
        // With one socket, since each statement goes over any of ten otherwise, and each of them logs in when it is first used.
        return DriverManager.getConnection("jdbc:herddb:server:127.0.0.1:" + port()
                + "?client.client.id=" + UUID.randomUUID() + "&client.network.connect.localvm=false&client.network.timeout=" + ANSWER_MILLIS
                + "&client.timeout=" + ANSWER_MILLIS + "&client.maxconnections.perserver=1&client.auth.mech=" + mechanism
                + "&client.operation.retry.delay=50&client.max.operation.retry.count=2", username, password);
    }
}
