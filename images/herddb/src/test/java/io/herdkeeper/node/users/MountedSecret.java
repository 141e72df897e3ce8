package io.herdkeeper.node.users;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;

/** A folder as Kubernetes mounts a Secret: its files are links through one link, which is replaced to change them all at once. */
final class MountedSecret {

    private static final String LINK = "..data";

    private final Path folder;
    private int versions;

    MountedSecret(Path folder) throws IOException {
        this.folder = folder;
        for (String file : new String[]{"username", "password", "users"}) {
            Files.createSymbolicLink(folder.resolve(file), Path.of(LINK, file));
        }
    }

    Path folder() {
        return folder;
    }

    /** The administrator {@code admin} has this password; {@code users} is the whole users file. */
    void put(String password, String users) throws IOException {
        Path version = Files.createDirectory(folder.resolve("..version-" + versions++));
        Files.writeString(version.resolve("username"), "admin");
        Files.writeString(version.resolve("password"), password);
        Files.writeString(version.resolve("users"), users);
        Path link = Files.createSymbolicLink(folder.resolve("..data_tmp"), version.getFileName());
        Files.move(link, folder.resolve(LINK), StandardCopyOption.ATOMIC_MOVE);
    }
}
