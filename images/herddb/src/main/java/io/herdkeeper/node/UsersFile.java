package io.herdkeeper.node;

import herddb.server.ServerConfiguration;
import io.herdkeeper.node.NodeSettings.RefusedException;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;

/**
 * Checks HerdDB's users file before HerdDB reads it: that one skips silently what it doesn't understand, and without any
 * file it lets {@code sa} in with the password {@code hdb}.
 *
 * @param file  where it lies
 * @param lines its lines {@code user,password,admin}, without comments and empty ones
 */
record UsersFile(Path file, List<String> lines) {

    private static final String KEY = ServerConfiguration.PROPERTY_USERS_FILE;

    static UsersFile read(String file) throws RefusedException {
        if (file.isBlank()) {
            throw new RefusedException("no users: set " + NodeSettings.CREDENTIALS + " to the folder of the mounted Secret, or "
                    + KEY + " to a file with lines user,password,admin");
        }
        Path path = Path.of(file);
        try {
            List<String> lines = Files.readAllLines(path, StandardCharsets.UTF_8).stream()
                    .map(String::strip).filter(line -> !line.isEmpty() && !line.startsWith("#")).toList();
            return new UsersFile(path, lines);
        } catch (IOException error) {
            throw new RefusedException(KEY + "=" + file + " can't be read: " + error);
        }
    }

    /** Refuses lines that HerdDB would skip, and a server-to-server login that no line allows. Tells no password. */
    void check(String username, String password) throws RefusedException {
        boolean found = false;
        for (int i = 0; i < lines.size(); i++) {
            String[] parts = lines.get(i).split(",", -1);
            if (parts.length != 3 || parts[0].isEmpty() || parts[1].isEmpty() || !parts[2].equalsIgnoreCase("admin")) {
                throw new RefusedException(KEY + "=" + file + ": user line " + (i + 1)
                        + " must be user,password,admin with no comma in the password");
            }
            found |= parts[0].equals(username) && parts[1].equals(password);
        }
        if (!found) {
            throw new RefusedException(KEY + "=" + file + " has no line for the servers' own login "
                    + ServerConfiguration.PROPERTY_SERVER_TO_SERVER_USERNAME + "=" + username
                    + " with its password: followers could not copy from the leader; add it as user,password,admin");
        }
    }
}
