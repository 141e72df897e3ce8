package io.herdkeeper.node.tls;

import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.security.PrivateKey;
import java.security.PublicKey;
import java.security.Signature;
import java.security.SignatureException;
import java.security.cert.CertificateFactory;
import java.security.cert.X509Certificate;
import java.util.Arrays;
import java.util.Map;

/**
 * A node's certificate, its chain, and the private key.
 *
 * @param chain the node's own certificate first
 */
record NodeCertificate(PrivateKey key, X509Certificate... chain) {

    /** As a Secret of type {@code kubernetes.io/tls} is mounted. */
    static final String CERTIFICATE_FILE = "tls.crt";
    static final String KEY_FILE = "tls.key";

    private static final Map<String, String> SIGNATURES =
            Map.of("RSA", "SHA256withRSA", "EC", "SHA256withECDSA", "EdDSA", "EdDSA");
    private static final byte[] SIGNED = "signed".getBytes(StandardCharsets.US_ASCII);

    /**
     * Reads both files and makes sure that they belong together.
     *
     * @throws GeneralSecurityException the message names the file and what is wrong with it
     */
    static NodeCertificate read(Path folder) throws IOException, GeneralSecurityException {
        Path certificateFile = folder.resolve(CERTIFICATE_FILE);
        Path keyFile = folder.resolve(KEY_FILE);
        X509Certificate[] chain = chain(certificateFile);
        PublicKey publicKey = chain[0].getPublicKey();
        if (!SIGNATURES.containsKey(publicKey.getAlgorithm())) {
            throw new GeneralSecurityException(
                    certificateFile + ": its key is of " + publicKey.getAlgorithm() + ": use RSA or an elliptic curve");
        }
        PrivateKey key;
        try {
            // whatever stands around the key may be in any language
            key = PrivateKeyPem.parse(Files.readString(keyFile, StandardCharsets.ISO_8859_1), publicKey.getAlgorithm());
        } catch (GeneralSecurityException error) {
            throw new GeneralSecurityException(keyFile + ": " + error.getMessage(), error);
        }
        if (!isPair(key, publicKey)) {
            throw new GeneralSecurityException(keyFile + " is not the key of " + certificateFile);
        }
        return new NodeCertificate(key, chain);
    }

    private static X509Certificate[] chain(Path file) throws IOException, GeneralSecurityException {
        X509Certificate[] chain;
        try {
            chain = CertificateFactory.getInstance("X.509").generateCertificates(new ByteArrayInputStream(Files.readAllBytes(file)))
                    .stream().map(X509Certificate.class::cast).toArray(X509Certificate[]::new);
        } catch (GeneralSecurityException error) {
            throw new GeneralSecurityException(file + " can't be read as certificates in PEM: " + error.getMessage(), error);
        }
        if (chain.length == 0) {
            throw new GeneralSecurityException(file + " holds no certificate in PEM");
        }
        return chain;
    }

    /** Netty and Java find out only when a client connects. */
    private static boolean isPair(PrivateKey key, PublicKey publicKey) throws GeneralSecurityException {
        Signature signature = Signature.getInstance(SIGNATURES.get(publicKey.getAlgorithm()));
        signature.initSign(key);
        signature.update(SIGNED);
        byte[] made = signature.sign();
        signature.initVerify(publicKey);
        signature.update(SIGNED);
        try {
            return signature.verify(made);
        } catch (SignatureException anotherSizeOrCurve) {
            return false;
        }
    }

    boolean isSameAs(NodeCertificate other) {
        return Arrays.equals(chain, other.chain) && Arrays.equals(key.getEncoded(), other.key.getEncoded());
    }
}
