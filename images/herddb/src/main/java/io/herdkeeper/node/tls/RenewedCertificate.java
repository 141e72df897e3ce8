package io.herdkeeper.node.tls;

import io.herdkeeper.node.background.Repeated;
import io.netty.handler.ssl.OpenSsl;
import io.netty.handler.ssl.SslContext;
import io.netty.handler.ssl.SslContextBuilder;
import io.netty.handler.ssl.SslProvider;
import java.io.IOException;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.time.Duration;
import java.util.logging.Level;
import java.util.logging.Logger;
import javax.net.ssl.SSLException;

/** The certificate that a port serves with: the latest content of the mounted files, so a renewed one needs no restart. */
public final class RenewedCertificate {

    /** How often the files are compared with those in use. Kubernetes itself takes about a minute to bring them. */
    public static final Duration PERIOD = Duration.ofSeconds(10);

    private static final Logger LOGGER = Logger.getLogger(RenewedCertificate.class.getName());

    private record Loaded(NodeCertificate certificate, SslContext context) {
    }

    private final Path folder;
    private final String port;
    private final String[] protocols;
    private volatile Loaded loaded;

    /**
     * Reads the files {@code tls.crt} and {@code tls.key}.
     *
     * @param port      what the port is called in the log
     * @param protocols as Java calls them, such as {@code TLSv1.3}
     * @throws GeneralSecurityException they can't be used; the message names the file and what is wrong with it
     */
    public RenewedCertificate(Path folder, String port, String... protocols) throws IOException, GeneralSecurityException {
        this.folder = folder;
        this.port = port;
        this.protocols = protocols;
        this.loaded = load(NodeCertificate.read(folder));
    }

    /** Looks at the files again and again. What can't be used is told, and connections go on getting what could be. */
    public void follow(Duration period) {
        Repeated.start("tls", period, this::reload);
    }

    /** What a new connection speaks with. */
    SslContext context() {
        return loaded.context();
    }

    void reload() throws IOException, GeneralSecurityException {
        NodeCertificate found = NodeCertificate.read(folder);
        if (!found.isSameAs(loaded.certificate())) {
            loaded = load(found);
        }
    }

    private Loaded load(NodeCertificate certificate) throws SSLException {
        // BoringSSL costs a fraction of Java's TLS, but unpacks a library, for which a pod's temporary folder may not be fit
        SslProvider provider = OpenSsl.isAvailable() ? SslProvider.OPENSSL : SslProvider.JDK;
        SslContext context = SslContextBuilder.forServer(certificate.key(), certificate.chain())
                .sslProvider(provider).protocols(protocols).build();
        LOGGER.log(Level.INFO, "new connections to the {0} port get the certificate of {1}, valid until {2}", new Object[]{
            port, certificate.chain()[0].getSubjectX500Principal(), certificate.chain()[0].getNotAfter().toInstant()});
        return new Loaded(certificate, context);
    }
}
