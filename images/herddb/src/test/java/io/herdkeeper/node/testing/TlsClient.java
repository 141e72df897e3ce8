package io.herdkeeper.node.testing;

import java.io.InputStream;
import java.net.Socket;
import java.security.KeyStore;
import java.security.cert.CertificateFactory;
import java.security.cert.X509Certificate;
import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLParameters;
import javax.net.ssl.SSLSocket;
import javax.net.ssl.TrustManagerFactory;

/** A client that verifies the server. */
public final class TlsClient {

    private static final int ANSWER_MILLIS = 5_000;

    private TlsClient() {
    }

    /** Connects and shakes hands. {@code authority}: a file of {@link Certificates}; {@code name}: what the server is to be. */
    public static SSLSocket connect(int port, String authority, String name, String... protocols) throws Exception {
        KeyStore trusted = KeyStore.getInstance(KeyStore.getDefaultType());
        trusted.load(null, null);
        try (InputStream content = Certificates.open(authority)) {
            trusted.setCertificateEntry("authority", CertificateFactory.getInstance("X.509").generateCertificate(content));
        }
        TrustManagerFactory trust = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
        trust.init(trusted);
        SSLContext context = SSLContext.getInstance("TLS");
        context.init(null, trust.getTrustManagers(), null);
        Socket plain = new Socket("127.0.0.1", port);
        SSLSocket socket = (SSLSocket) context.getSocketFactory().createSocket(plain, name, port, true);
        try {
            socket.setSoTimeout(ANSWER_MILLIS);
            SSLParameters parameters = socket.getSSLParameters();
            parameters.setEndpointIdentificationAlgorithm("HTTPS");
            if (protocols.length > 0) {
                parameters.setProtocols(protocols);
            }
            socket.setSSLParameters(parameters);
            socket.startHandshake();
            return socket;
        } catch (Exception | Error error) {
            socket.close();
            throw error;
        }
    }

    public static X509Certificate certificateOf(SSLSocket socket) throws Exception {
        return (X509Certificate) socket.getSession().getPeerCertificates()[0];
    }
}
