package io.herdkeeper.node.throwaway;

import herddb.security.SimpleSingleUserManager;
import herddb.server.Server;
import herddb.server.ServerConfiguration;
import java.nio.file.Path;
import java.util.Map;
import java.util.logging.Level;
import java.util.logging.Logger;

/**
 * A temporary HerdDB server without ZooKeeper and bookies, for restore drills. It listens only on the loopback interface. Its only
 * tablespace {@code herd} is in one folder.
 *
 * <p>Usage: {@code --folder FOLDER --port PORT}; HERDDB_USERNAME and HERDDB_PASSWORD contain the login.
 */
public final class ThrowawayServer {

    private static final int EXIT_REFUSED = 64;
    private static final int EXIT_FAILED = 1;
    private static final int HIGHEST_PORT = 65535;
    private static final String USAGE = "usage: --folder FOLDER --port PORT";
    private static final Logger LOGGER = Logger.getLogger(ThrowawayServer.class.getName());

    private ThrowawayServer() {
    }

    public static void main(String[] arguments) {
        try {
            Server server = start(configuration(System.getenv(), arguments));
            LOGGER.log(Level.INFO, "the temporary server serves {0}", server.getJdbcUrl());
        } catch (IllegalArgumentException error) {
            LOGGER.log(Level.SEVERE, error.getMessage());
            exit(EXIT_REFUSED);
        } catch (Throwable error) {
            LOGGER.log(Level.SEVERE, "the temporary server can't start", error);
            exit(EXIT_FAILED);
        }
    }

    /** A server that serves its tablespace. */
    static Server start(ServerConfiguration configuration) throws Exception {
        Server server = new Server(configuration);
        server.start();
        server.waitForStandaloneBoot();
        return server;
    }

    /** Throws IllegalArgumentException, which names what is missing or can't be used. */
    static ServerConfiguration configuration(Map<String, String> environment, String... arguments) {
        if (arguments.length != 4 || !"--folder".equals(arguments[0]) || !"--port".equals(arguments[2])) {
            throw new IllegalArgumentException("arguments " + String.join(" ", arguments) + " are not understood; " + USAGE);
        }
        return new ServerConfiguration()
                .set(ServerConfiguration.PROPERTY_MODE, ServerConfiguration.PROPERTY_MODE_STANDALONE)
                .set(ServerConfiguration.PROPERTY_NODEID, "throwaway")
                .set(ServerConfiguration.PROPERTY_HOST, "127.0.0.1")
                .set(ServerConfiguration.PROPERTY_PORT, port(arguments[3]))
                .set(ServerConfiguration.PROPERTY_BASEDIR, Path.of(arguments[1]).resolve("herddb").toString())
                .set(ServerConfiguration.PROPERTY_JMX_ENABLE, false)
                // what a machine's crash could take is made again
                .set(ServerConfiguration.PROPERTY_REQUIRE_FSYNC, false)
                .set(SimpleSingleUserManager.PROPERTY_ADMIN_USERNAME, required(environment, "HERDDB_USERNAME"))
                .set(SimpleSingleUserManager.PROPERTY_ADMIN_PASSWORD, required(environment, "HERDDB_PASSWORD"));
    }

    private static int port(String text) {
        try {
            int port = Integer.parseInt(text);
            if (port > 0 && port <= HIGHEST_PORT) {
                return port;
            }
        } catch (NumberFormatException error) {
            // told below
        }
        throw new IllegalArgumentException("--port " + text + " can't be used: use a whole number from 1 to " + HIGHEST_PORT);
    }

    /** Without a user HerdDB would let {@code sa} in. */
    private static String required(Map<String, String> environment, String name) {
        String value = environment.get(name);
        if (value == null || value.isBlank()) {
            throw new IllegalArgumentException("the variable " + name + " is not set: it says who may log in");
        }
        return value;
    }

    private static void exit(int status) {
        System.out.flush();
        // halt, since HerdDB's half-started threads would keep exit's shutdown hooks waiting
        Runtime.getRuntime().halt(status);
    }
}
