package io.herdkeeper.node;

import herddb.security.SimpleSingleUserManager;
import herddb.server.ServerConfiguration;
import io.herdkeeper.node.http.HttpSettings;
import io.herdkeeper.node.tls.RenewedCertificate;
import io.herdkeeper.node.tls.SqlPortTls;
import io.herdkeeper.node.tls.SqlPortTls.Plaintext;
import io.herdkeeper.node.users.MountedUsers;
import io.herdkeeper.node.users.OwnLogin;
import io.herdkeeper.node.users.UnusableUsersException;
import io.herdkeeper.node.users.UsersFile;
import java.io.IOException;
import java.io.Reader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.time.Duration;
import java.util.HashMap;
import java.util.Map;
import java.util.Properties;
import java.util.regex.Pattern;

/**
 * The node's settings: a properties file, arguments and the mounted passwords.
 *
 * @param server   HerdDB's configuration; it contains passwords and must not be logged
 * @param http     where the HTTP endpoints listen
 * @param tls      the certificate of the SQL port, or null if it is not encrypted
 * @param users    who may log in, if this can change while the node runs; null if it can't
 * @param handOver how long a stopping node waits for others to take its leaderships over
 */
public record NodeSettings(ServerConfiguration server, HttpSettings http, SqlPortTls tls, MountedUsers users, Duration handOver) {

    /** Port of the HTTP endpoints. */
    public static final String HTTP_PORT = "herdkeeper.http.port";
    /** Address of the HTTP endpoints; all of the machine's when absent. */
    public static final String HTTP_HOST = "herdkeeper.http.host";
    /** Seconds for {@link #handOver}; less than the pod's grace period. */
    public static final String HAND_OVER_SECONDS = "herdkeeper.hand-over.seconds";
    /**
     * A folder with the files {@code username} and {@code password}, and optionally {@code users} and {@code token}. With {@code users} all of
     * them may change while the node runs.
     */
    public static final String CREDENTIALS = "herdkeeper.credentials.dir";
    /** A folder with the files {@code tls.crt} and {@code tls.key}; the SQL port is not encrypted when absent. */
    public static final String TLS = "herdkeeper.tls.dir";
    /** {@code accepted} or {@code refused}: what becomes of connections without TLS when there is TLS. */
    public static final String PLAINTEXT = "herdkeeper.tls.plaintext";

    /**
     * An argument: a folder as of {@link #TLS}, with which the HTTP port speaks TLS. No property, since the file with those changes under a
     * running pod, and the pod's probes don't.
     */
    private static final String HTTP_CERTIFICATE = "--http-certificate";

    private static final int DEFAULT_HTTP_PORT = 9845;
    private static final int DEFAULT_HAND_OVER_SECONDS = 20;
    private static final int LONGEST_HAND_OVER_SECONDS = 3600;
    private static final int HIGHEST_PORT = 65535;
    private static final String USAGE =
            "usage: --config /config/server.properties --node-id ID --advertised-host HOST [--http-certificate FOLDER]";
    private static final Pattern NODE_ID = Pattern.compile("[a-z0-9]([a-z0-9-]*[a-z0-9])?");

    /** A setting that can't be used; the message names it, its value and the fix. */
    public static final class RefusedException extends Exception {

        private static final long serialVersionUID = 1L;

        RefusedException(String message) {
            super(message);
        }
    }

    /** Reads and checks everything that the server is started with. */
    public static NodeSettings read(String... arguments) throws RefusedException {
        Map<String, String> options = options(arguments);
        Properties properties = load(Path.of(required(options, "--config")));
        String nodeId = required(options, "--node-id");
        if (!NODE_ID.matcher(nodeId).matches()) {
            throw new RefusedException("--node-id " + nodeId + ": use lower case letters, digits and '-', no dots: "
                    + "HerdDB derives names from it");
        }
        properties.setProperty(ServerConfiguration.PROPERTY_NODEID, nodeId);
        properties.setProperty(ServerConfiguration.PROPERTY_ADVERTISED_HOST, required(options, "--advertised-host"));
        refuseWhatDestroysOrGuesses(properties);
        MountedUsers users = giveCredentials(properties);
        String credentials = properties.getProperty(CREDENTIALS, "");
        HttpSettings http = new HttpSettings(
                properties.getProperty(HTTP_HOST, ""), number(properties, HTTP_PORT, DEFAULT_HTTP_PORT, HIGHEST_PORT),
                credentials.isBlank() ? null : Path.of(credentials, "token"), httpCertificate(options));
        Duration handOver = Duration.ofSeconds(
                number(properties, HAND_OVER_SECONDS, DEFAULT_HAND_OVER_SECONDS, LONGEST_HAND_OVER_SECONDS));
        SqlPortTls tls = tls(properties);
        return new NodeSettings(new ServerConfiguration(properties), http, tls, users, handOver);
    }

    private static SqlPortTls tls(Properties properties) throws RefusedException {
        String folder = properties.getProperty(TLS, "");
        if (folder.isBlank()) {
            demand(properties, ServerConfiguration.PROPERTY_SSL, "false",
                    "no client can verify HerdDB's own certificate; name a folder with a certificate in " + TLS);
            return null;
        }
        // by this the node's record says that it speaks TLS
        properties.setProperty(ServerConfiguration.PROPERTY_SSL, "true");
        Plaintext plaintext = plaintext(properties);
        return mounted(TLS, folder, path -> new SqlPortTls(path, plaintext));
    }

    private static RenewedCertificate httpCertificate(Map<String, String> options) throws RefusedException {
        String folder = options.get(HTTP_CERTIFICATE);
        return folder == null ? null : mounted(HTTP_CERTIFICATE, folder, path -> new RenewedCertificate(path, "HTTP", "TLSv1.3"));
    }

    @FunctionalInterface
    private interface Certificate<T> {

        T read(Path folder) throws IOException, GeneralSecurityException;
    }

    private static <T> T mounted(String setting, String folder, Certificate<T> certificate) throws RefusedException {
        try {
            return certificate.read(Path.of(folder));
        } catch (IOException error) {
            throw new RefusedException(setting + "=" + folder + " can't be read: " + error);
        } catch (GeneralSecurityException error) {
            throw new RefusedException(setting + ": " + error.getMessage());
        }
    }

    private static Plaintext plaintext(Properties properties) throws RefusedException {
        String value = properties.getProperty(PLAINTEXT, "refused");
        return switch (value) {
            case "accepted" -> Plaintext.ACCEPTED;
            case "refused" -> Plaintext.REFUSED;
            default -> throw new RefusedException(PLAINTEXT + "=" + value + " can't be used: use accepted or refused");
        };
    }

    private static Map<String, String> options(String... arguments) throws RefusedException {
        Map<String, String> options = new HashMap<>();
        for (int i = 0; i < arguments.length; i += 2) {
            if (!arguments[i].startsWith("--") || i + 1 == arguments.length) {
                throw new RefusedException("argument " + arguments[i] + " is not understood; " + USAGE);
            }
            options.put(arguments[i], arguments[i + 1]);
        }
        return options;
    }

    private static String required(Map<String, String> options, String name) throws RefusedException {
        String value = options.get(name);
        if (value == null || value.isBlank()) {
            throw new RefusedException(name + " is missing; " + USAGE);
        }
        return value;
    }

    private static Properties load(Path file) throws RefusedException {
        Properties properties = new Properties();
        try (Reader reader = Files.newBufferedReader(file, StandardCharsets.UTF_8)) {
            properties.load(reader);
        } catch (IOException | IllegalArgumentException error) {
            throw new RefusedException("--config " + file + " can't be read: " + error);
        }
        return properties;
    }

    private static int number(Properties properties, String key, int fallback, int highest) throws RefusedException {
        String value = properties.getProperty(key, String.valueOf(fallback));
        try {
            int number = Integer.parseInt(value);
            if (number >= 0 && number <= highest) {
                return number;
            }
        } catch (NumberFormatException error) {
            // told below
        }
        throw new RefusedException(key + "=" + value + " can't be used: use a whole number from 0 to " + highest);
    }

    private static void refuseWhatDestroysOrGuesses(Properties properties) throws RefusedException {
        demand(properties, ServerConfiguration.PROPERTY_MODE, ServerConfiguration.PROPERTY_MODE_CLUSTER,
                "this program repairs the replicated log, which exists only in cluster mode");
        demand(properties, ServerConfiguration.PROPERTY_CLEAR_AT_BOOT, "false",
                "it wipes the metadata of all nodes; remove it");
        demand(properties, ServerConfiguration.PROPERTY_BOOKKEEPER_START, "false",
                "bookies run in their own pods; remove it");
        properties.setProperty(ServerConfiguration.PROPERTY_BOOKKEEPER_START, "false");
        for (String key : new String[]{
            ServerConfiguration.PROPERTY_ZOOKEEPER_ADDRESS, ServerConfiguration.PROPERTY_ZOOKEEPER_PATH,
            ServerConfiguration.PROPERTY_BOOKKEEPER_LEDGERS_PATH, ServerConfiguration.PROPERTY_BASEDIR}) {
            if (properties.getProperty(key, "").isBlank()) {
                throw new RefusedException(key + " is missing: HerdDB would guess it, and might join another cluster");
            }
        }
    }

    /** Absent counts as wanted, except for the mode, whose default is another one. */
    private static void demand(Properties properties, String key, String wanted, String why) throws RefusedException {
        String value = properties.getProperty(key, key.equals(ServerConfiguration.PROPERTY_MODE) ? "" : wanted);
        if (!value.equals(wanted)) {
            throw new RefusedException(key + "=" + value + " is refused, use " + key + "=" + wanted + ": " + why);
        }
    }

    /**
     * Puts passwords where HerdDB looks for them: {@code server.username} and {@code server.password} are what a follower
     * shows to the leader when it downloads a dump, {@code server.users.file} is who may log in.
     *
     * @return the users that can change while the server runs; null when they can't
     */
    private static MountedUsers giveCredentials(Properties properties) throws RefusedException {
        String folder = properties.getProperty(CREDENTIALS, "");
        if (folder.isBlank()) {
            checkUsersFile(properties);
            return null;
        }
        Path path = Path.of(folder);
        try {
            if (MountedUsers.areIn(path)) {
                MountedUsers users = new MountedUsers(path);
                giveLogin(properties, users.login());
                properties.setProperty(ServerConfiguration.PROPERTY_USERS_FILE, users.file().toAbsolutePath().toString());
                return users;
            }
            OwnLogin login = OwnLogin.read(path);
            giveLogin(properties, login);
            properties.setProperty(SimpleSingleUserManager.PROPERTY_ADMIN_USERNAME, login.username());
            properties.setProperty(SimpleSingleUserManager.PROPERTY_ADMIN_PASSWORD, login.password());
            return null;
        } catch (IOException error) {
            throw new RefusedException(CREDENTIALS + "=" + folder + " can't be read: " + error);
        } catch (UnusableUsersException error) {
            throw new RefusedException(CREDENTIALS + ": " + error.getMessage());
        }
    }

    private static void giveLogin(Properties properties, OwnLogin login) {
        properties.setProperty(ServerConfiguration.PROPERTY_SERVER_TO_SERVER_USERNAME, login.username());
        properties.setProperty(ServerConfiguration.PROPERTY_SERVER_TO_SERVER_PASSWORD, login.password());
    }

    private static void checkUsersFile(Properties properties) throws RefusedException {
        String key = ServerConfiguration.PROPERTY_USERS_FILE;
        String file = properties.getProperty(key, "");
        if (file.isBlank()) {
            throw new RefusedException("no users: set " + CREDENTIALS + " to the folder of the mounted Secret, or "
                    + key + " to a file with lines user,password,admin");
        }
        try {
            UsersFile.read(Path.of(file)).demand(new OwnLogin(
                    properties.getProperty(ServerConfiguration.PROPERTY_SERVER_TO_SERVER_USERNAME, ""),
                    properties.getProperty(ServerConfiguration.PROPERTY_SERVER_TO_SERVER_PASSWORD, "")));
        } catch (IOException error) {
            throw new RefusedException(key + "=" + file + " can't be read: " + error);
        } catch (UnusableUsersException error) {
            throw new RefusedException(key + ": " + error.getMessage());
        }
    }
}
