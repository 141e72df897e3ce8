package io.herdkeeper.node.users;

import herddb.server.ServerConfiguration;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;

/**
 * HerdDB's users file, of which no line is skipped. HerdDB silently skips invalid lines, and without any file it accepts {@code sa} with
 * the password {@code hdb}.
 */
public final class UsersFile {

    private static final String COMMENT = "#";
    /** A comment for HerdDB: what this file is called by who wrote it. It can be told to anybody. */
    private static final String REVISION = "# revision ";
    private static final int PARTS = 3;

    private final Path file;
    private final String revision;
    private final Map<String, String> passwords;

    private UsersFile(Path file, String revision, Map<String, String> passwords) {
        this.file = file;
        this.revision = revision;
        this.passwords = passwords;
    }

    /**
     * Reads lines {@code user,password,admin}, comments and empty ones.
     *
     * @throws UnusableUsersException for a line that HerdDB would skip, and for a name that comes twice
     */
    public static UsersFile read(Path file) throws IOException, UnusableUsersException {
        List<String> lines = Files.readAllLines(file, StandardCharsets.UTF_8).stream().map(String::strip).toList();
        String revision = lines.stream().filter(line -> line.startsWith(REVISION)).findFirst()
                .map(line -> line.substring(REVISION.length()).strip()).orElse(null);
        Map<String, String> passwords = new HashMap<>();
        List<String> users = lines.stream().filter(line -> !line.isEmpty() && !line.startsWith(COMMENT)).toList();
        for (int i = 0; i < users.size(); i++) {
            String[] parts = users.get(i).split(",", -1);
            if (parts.length != PARTS || parts[0].isEmpty() || parts[1].isEmpty() || !parts[2].equalsIgnoreCase("admin")) {
                throw new UnusableUsersException(
                        file + ": user line " + (i + 1) + " must be user,password,admin with no comma in the password");
            }
            if (passwords.put(parts[0], parts[1]) != null) {
                throw new UnusableUsersException(
                        file + ": user line " + (i + 1) + " repeats a user of an earlier line: remove one of them");
            }
        }
        return new UsersFile(file, revision, passwords);
    }

    /** Refuses a server-to-server login that no line allows. Tells no password. */
    public void demand(OwnLogin login) throws UnusableUsersException {
        if (!login.password().equals(passwords.get(login.username()))) {
            throw lacks(login.username());
        }
    }

    /** The login of a user whom the servers need. */
    OwnLogin login(String username) throws UnusableUsersException {
        String password = passwords.get(username);
        if (password == null) {
            throw lacks(username);
        }
        return new OwnLogin(username, password);
    }

    private UnusableUsersException lacks(String username) {
        return new UnusableUsersException(file + " has no line for the servers' own login "
                + ServerConfiguration.PROPERTY_SERVER_TO_SERVER_USERNAME + "=" + username
                + " with its password: followers could not copy from the leader; add it as user,password,admin");
    }

    /** The password of a user; null when there is no such user. */
    String password(String username) {
        return passwords.get(username);
    }

    /** Null when the file does not name one. */
    String revision() {
        return revision;
    }

    int size() {
        return passwords.size();
    }

    boolean isSameAs(UsersFile other) {
        return passwords.equals(other.passwords) && Objects.equals(revision, other.revision);
    }
}
