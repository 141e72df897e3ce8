package io.herdkeeper.node.tls;

import io.herdkeeper.node.background.Repeated;
import io.netty.channel.ChannelPipeline;
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

/**
 * TLS on the SQL port, with a certificate that was issued for this node.
 *
 * <p>HerdDB's own TLS makes a new certificate at each start, which no client can verify. Its acceptor accepts files, but reads them once,
 * and keys in one form only. Here each new connection gets the latest content of the files, so a renewed certificate needs no restart.
 */
public final class SqlPortTls {

    /** How often it is looked whether the files have changed. Kubernetes itself takes about a minute to bring them. */
    public static final Duration PERIOD = Duration.ofSeconds(10);

    private static final Logger LOGGER = Logger.getLogger(SqlPortTls.class.getName());

    /** What becomes of a connection that does not begin with TLS. */
    public enum Plaintext { ACCEPTED, REFUSED }

    private record Loaded(NodeCertificate certificate, SslContext context) {
    }

    private final Path folder;
    private final Plaintext plaintext;
    private volatile Loaded loaded;

    /**
     * Reads the files {@code tls.crt} and {@code tls.key}.
     *
     * @throws GeneralSecurityException they can't be used; the message names the file and what is wrong with it
     */
    public SqlPortTls(Path folder, Plaintext plaintext) throws IOException, GeneralSecurityException {
        this.folder = folder;
        this.plaintext = plaintext;
        this.loaded = load(NodeCertificate.read(folder));
    }

    /** Has this end of a new connection speak TLS. To be called before anything else stands in its pipeline. */
    public void encrypt(ChannelPipeline pipeline) {
        pipeline.addFirst("first-byte", new FirstByte(loaded.context(), plaintext));
    }

    /** Looks at the files again and again. What can't be used is told, and connections go on getting what could be. */
    public void follow(Duration period) {
        Repeated.start("tls", period, this::reload);
    }

    void reload() throws IOException, GeneralSecurityException {
        NodeCertificate found = NodeCertificate.read(folder);
        if (!found.isSameAs(loaded.certificate())) {
            loaded = load(found);
        }
    }

    private static Loaded load(NodeCertificate certificate) throws SSLException {
        // Java's own, since that of Netty unpacks a library, for which a pod's temporary folder may not be fit
        SslContext context = SslContextBuilder.forServer(certificate.key(), certificate.chain())
                .sslProvider(SslProvider.JDK).protocols("TLSv1.3", "TLSv1.2").build();
        LOGGER.log(Level.INFO, "new connections get the certificate of {0}, valid until {1}", new Object[]{
            certificate.chain()[0].getSubjectX500Principal(), certificate.chain()[0].getNotAfter().toInstant()});
        return new Loaded(certificate, context);
    }
}
