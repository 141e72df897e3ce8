package io.herdkeeper.node.http;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.MessageDigest;

/** The token of the mounted Secret. It is read at each request, so an added or changed token needs no restart. */
final class BearerToken {

    private static final String SCHEME = "Bearer ";

    private final Path file;

    BearerToken(Path file) {
        this.file = file;
    }

    /**
     * Why a request is not let in, or null when it is.
     *
     * @param authorization the request's header {@code Authorization}, or null
     */
    String refusal(String authorization) {
        String token;
        try {
            token = file == null ? "" : Files.readString(file, StandardCharsets.UTF_8).strip();
        } catch (IOException error) {
            token = "";
        }
        if (token.isEmpty()) {
            return "this node has no token file " + (file == null ? "" : file + " ") + "yet: every request is refused";
        }
        if (authorization == null || !authorization.startsWith(SCHEME)) {
            return "send the token of the cluster's credentials Secret: Authorization: Bearer TOKEN";
        }
        byte[] shown = authorization.substring(SCHEME.length()).strip().getBytes(StandardCharsets.UTF_8);
        return MessageDigest.isEqual(shown, token.getBytes(StandardCharsets.UTF_8)) ? null : "the token is wrong";
    }
}
