package io.herdkeeper.node.users;

import herddb.security.UserManager;
import herddb.server.Server;
import herddb.server.ServerSideConnectionPeer;
import io.herdkeeper.node.background.Repeated;
import io.herdkeeper.node.internals.HerdInternals;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.logging.Level;
import java.util.logging.Logger;

/**
 * The logins of a mounted Secret.
 *
 * <p>HerdDB reads its users file once, at start-up. It asks for a user's password at each login, so this class can use a new file without
 * a restart. An invalid file is reported, and the previous users stay: a half-written or empty file locks nobody out.
 */
public final class MountedUsers extends UserManager {

    /** How often it is looked whether the files have changed. Kubernetes itself takes about a minute to bring them. */
    public static final Duration PERIOD = Duration.ofSeconds(10);

    private static final String USERS = "users";
    private static final Logger LOGGER = Logger.getLogger(MountedUsers.class.getName());

    /**
     * What may be told to anybody.
     *
     * @param revision of the users file that is in force; null when it names none
     * @param refused  why what is mounted now is not in force; null when it is
     */
    public record Told(String revision, String refused) {
    }

    private record Loaded(OwnLogin login, UsersFile users) {

        boolean isSameAs(Loaded other) {
            return login.equals(other.login) && users.isSameAs(other.users);
        }
    }

    private final Path folder;
    private volatile Loaded loaded;
    private volatile String refused;

    /**
     * Reads the files {@code username} and {@code users}.
     *
     * @throws UnusableUsersException they can't be used; the message names the file and what is wrong with it
     */
    public MountedUsers(Path folder) throws IOException, UnusableUsersException {
        this.folder = folder;
        this.loaded = load(folder);
    }

    /** Whether a folder has what can be followed. */
    public static boolean areIn(Path folder) {
        return Files.exists(folder.resolve(USERS));
    }

    /** The file that HerdDB would read. */
    public Path file() {
        return folder.resolve(USERS);
    }

    /** The servers' own login. */
    public OwnLogin login() {
        return loaded.login();
    }

    @Override
    public String getExpectedPassword(String username) {
        return loaded.users().password(username);
    }

    /** What is in force. */
    public Told told() {
        return new Told(loaded.users().revision(), refused);
    }

    /** Looks at the files, on behalf of a server that asks here who may log in, until the thread that it returns is interrupted. */
    public Thread follow(Server server, Duration period) {
        return Repeated.start("users", period, () -> look(server));
    }

    void look(Server server) throws IOException, UnusableUsersException {
        try {
            reload(server);
        } finally {
            // each time, since one may have logged in while the users changed
            hangUpOnStrangers(server);
        }
    }

    private void reload(Server server) throws IOException, UnusableUsersException {
        Loaded found;
        try {
            found = load(folder);
        } catch (IOException | UnusableUsersException error) {
            refused = error.getMessage();
            throw error;
        }
        refused = null;
        if (!found.isSameAs(loaded)) {
            loaded = found;
            server.getManager().setServerToServerUsername(found.login().username());
            server.getManager().setServerToServerPassword(found.login().password());
            LOGGER.log(Level.INFO, "logins are now checked against {0} users, revision {1}",
                    new Object[]{found.users().size(), found.users().revision()});
        }
    }

    /** HerdDB asks at the login only: who is no user any more would stay connected for as long as he likes. */
    private void hangUpOnStrangers(Server server) {
        for (ServerSideConnectionPeer connection : HerdInternals.connections(server).values()) {
            String username = HerdInternals.username(connection);
            if (!username.isEmpty() && getExpectedPassword(username) == null) {
                LOGGER.log(Level.INFO, "the connection of {0} is closed, since the user was removed", username);
                HerdInternals.channel(connection).close();
            }
        }
    }

    private static Loaded load(Path folder) throws IOException, UnusableUsersException {
        // Kubernetes replaces a link to the folder of all files: what lies beside the users is then of the same moment as they are.
        Path moment = folder.resolve(USERS).toRealPath().getParent();
        UsersFile users = UsersFile.read(moment.resolve(USERS));
        // Not with the file `password`: who changes that one changes the users a while later, and until then they are what counts.
        return new Loaded(users.login(OwnLogin.username(moment)), users);
    }
}
