package io.herdkeeper.node.testing;

import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;

/** The certificates and keys of {@code src/test/resources/tls}; {@code make.sh} there tells which is which. */
public final class Certificates {

    private Certificates() {
    }

    /** Puts a certificate and a key into a folder, as Kubernetes mounts a Secret of them. */
    public static Path put(Path folder, String certificate, String key) throws IOException {
        copy(certificate, folder.resolve("tls.crt"));
        copy(key, folder.resolve("tls.key"));
        return folder;
    }

    public static InputStream open(String name) {
        return Certificates.class.getResourceAsStream("/tls/" + name);
    }

    private static void copy(String name, Path target) throws IOException {
        try (InputStream content = open(name)) {
            Files.copy(content, target, StandardCopyOption.REPLACE_EXISTING);
        }
    }
}
