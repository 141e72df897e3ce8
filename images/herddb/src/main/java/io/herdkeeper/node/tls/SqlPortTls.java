package io.herdkeeper.node.tls;

import io.netty.channel.ChannelPipeline;
import java.io.IOException;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.time.Duration;

/**
 * TLS on the SQL port, with a certificate that was issued for this node.
 *
 * <p>HerdDB's own TLS makes a new certificate at each start, which no client can verify. Its acceptor accepts files, but reads them once,
 * and keys in one form only.
 */
public final class SqlPortTls {

    /** What becomes of a connection that does not begin with TLS. */
    public enum Plaintext { ACCEPTED, REFUSED }

    private final RenewedCertificate certificate;
    private final Plaintext plaintext;

    /**
     * Reads the files {@code tls.crt} and {@code tls.key}.
     *
     * @throws GeneralSecurityException they can't be used; the message names the file and what is wrong with it
     */
    public SqlPortTls(Path folder, Plaintext plaintext) throws IOException, GeneralSecurityException {
        this.certificate = new RenewedCertificate(folder, "SQL", "TLSv1.3", "TLSv1.2");
        this.plaintext = plaintext;
    }

    /** Has this end of a new connection speak TLS. To be called before anything else stands in its pipeline. */
    public void encrypt(ChannelPipeline pipeline) {
        pipeline.addFirst("first-byte", new FirstByte(certificate.context(), plaintext));
    }

    /** See {@link RenewedCertificate#follow}. */
    public void follow(Duration period) {
        certificate.follow(period);
    }

    void reload() throws IOException, GeneralSecurityException {
        certificate.reload();
    }
}
