package io.herdkeeper.node.http;

import io.herdkeeper.node.tls.RenewedCertificate;
import java.nio.file.Path;

/**
 * Where the HTTP port listens, and what protects it.
 *
 * @param host        empty for all addresses of the machine
 * @param port        0 takes a free one
 * @param tokenFile   the token that requests which change something must show; null refuses them all
 * @param certificate what the port speaks TLS with; null for plain text
 */
public record HttpSettings(String host, int port, Path tokenFile, RenewedCertificate certificate) {
}
