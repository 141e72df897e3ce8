package io.herdkeeper.node.throwaway;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import herddb.server.Server;
import herddb.server.ServerConfiguration;
import io.herdkeeper.node.testing.BookKeeperForTests;
import java.net.InetAddress;
import java.net.NetworkInterface;
import java.net.ServerSocket;
import java.nio.file.Path;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** A real server, and HerdDB's own client over the network. */
class ThrowawayServerTest {

    private static final Map<String, String> LOGIN = Map.of("HERDDB_USERNAME", "drill", "HERDDB_PASSWORD", "of this pod");

    @TempDir
    private Path folder;

    @Test
    void whoHasThePasswordFindsItsRowsAgainAfterARestartAndNobodyElseGetsIn() throws Exception {
        int port = BookKeeperForTests.freePort();
        Server first = ThrowawayServer.start(configuration(port));
        try (Connection connection = connect(port, "drill", "of this pod"); Statement statement = connection.createStatement()) {
            statement.executeUpdate("CREATE TABLE t (k int primary key)");
            statement.executeUpdate("INSERT INTO t(k) VALUES(1)");
        } finally {
            first.close();
        }
        Server second = ThrowawayServer.start(configuration(port));
        try (Connection connection = connect(port, "drill", "of this pod"); Statement statement = connection.createStatement();
                ResultSet rows = statement.executeQuery("SELECT k FROM t")) {
            assertTrue(rows.next());
            assertThrows(SQLException.class, () -> query(port, "drill", "another"));
            assertThrows(SQLException.class, () -> query(port, "sa", "hdb"));
        } finally {
            second.close();
        }
    }

    @Test
    void itListensOnTheLoopbackAlone() throws Exception {
        int port = BookKeeperForTests.freePort();
        Server server = ThrowawayServer.start(configuration(port));
        try {
            assertThrows(java.net.BindException.class, () -> new ServerSocket(port, 1, InetAddress.getByName("127.0.0.1")));
            for (InetAddress address : NetworkInterface.networkInterfaces().flatMap(NetworkInterface::inetAddresses)
                    .filter(address -> !address.isLoopbackAddress() && !address.isLinkLocalAddress()).toList()) {
                new ServerSocket(port, 1, address).close();
            }
        } finally {
            server.close();
        }
    }

    @Test
    void whatIsMissingIsNamed() {
        String message = assertThrows(IllegalArgumentException.class,
                () -> ThrowawayServer.configuration(Map.of("HERDDB_USERNAME", "drill"), "--folder", "/f", "--port", "7000")).getMessage();
        assertEquals("the variable HERDDB_PASSWORD is not set: it says who may log in", message);
        message = assertThrows(IllegalArgumentException.class,
                () -> ThrowawayServer.configuration(LOGIN, "--folder", "/f", "--port", "0")).getMessage();
        assertEquals("--port 0 can't be used: use a whole number from 1 to 65535", message);
        message = assertThrows(IllegalArgumentException.class, () -> ThrowawayServer.configuration(LOGIN, "--port", "1")).getMessage();
        assertTrue(message.endsWith("usage: --folder FOLDER --port PORT"), message);
    }

    private ServerConfiguration configuration(int port) {
        return ThrowawayServer.configuration(LOGIN, "--folder", folder.toString(), "--port", String.valueOf(port));
    }

    private static Connection connect(int port, String user, String password) throws SQLException {
        return DriverManager.getConnection("jdbc:herddb:server:127.0.0.1:" + port, user, password);
    }

    private static void query(int port, String user, String password) throws SQLException {
        try (Connection connection = connect(port, user, password); Statement statement = connection.createStatement();
                ResultSet rows = statement.executeQuery("SELECT * FROM systables")) {
            rows.next();
        }
    }
}
