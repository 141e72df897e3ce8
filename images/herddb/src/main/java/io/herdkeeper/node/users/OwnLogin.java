package io.herdkeeper.node.users;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;

/** The login of a follower that downloads a dump from the leader: the administrator's name and password. */
public record OwnLogin(String username, String password) {

    /** Reads the files {@code username} and {@code password}, of one line each. */
    public static OwnLogin read(Path folder) throws IOException, UnusableUsersException {
        return new OwnLogin(username(folder), line(folder.resolve("password")));
    }

    static String username(Path folder) throws IOException, UnusableUsersException {
        return line(folder.resolve("username"));
    }

    private static String line(Path file) throws IOException, UnusableUsersException {
        String content = Files.readString(file, StandardCharsets.UTF_8).strip();
        if (content.isEmpty() || content.lines().count() != 1) {
            throw new UnusableUsersException(file + " must hold exactly one line");
        }
        return content;
    }

    /** Without the password. */
    @Override
    public String toString() {
        return "OwnLogin[" + username + "]";
    }
}
