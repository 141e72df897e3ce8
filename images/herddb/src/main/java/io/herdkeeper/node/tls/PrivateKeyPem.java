package io.herdkeeper.node.tls;

import java.io.IOException;
import java.security.GeneralSecurityException;
import java.security.KeyFactory;
import java.security.PrivateKey;
import java.security.spec.PKCS8EncodedKeySpec;
import java.util.Base64;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.bouncycastle.asn1.ASN1Encodable;
import org.bouncycastle.asn1.ASN1ObjectIdentifier;
import org.bouncycastle.asn1.DERNull;
import org.bouncycastle.asn1.pkcs.PKCSObjectIdentifiers;
import org.bouncycastle.asn1.pkcs.PrivateKeyInfo;
import org.bouncycastle.asn1.pkcs.RSAPrivateKey;
import org.bouncycastle.asn1.sec.ECPrivateKey;
import org.bouncycastle.asn1.x509.AlgorithmIdentifier;
import org.bouncycastle.asn1.x9.X9ObjectIdentifiers;

/**
 * Reads a private key from PEM text, in each of the three forms that cert-manager and openssl write.
 *
 * <p>Java reads only PKCS #8 (RFC 5208). The older forms, of RSA (RFC 8017, appendix A.1.2; cert-manager's default) and of elliptic curves
 * (RFC 5915), are the content of a PKCS #8 key, so they are wrapped in one.
 */
final class PrivateKeyPem {

    private static final Pattern BLOCK =
            Pattern.compile("-----BEGIN ((?:[A-Z]+ )?PRIVATE KEY)-----(.*?)-----END \\1-----", Pattern.DOTALL);
    /** Stands above the content of an older form when it is encrypted (RFC 1421, 4.6.1.1). */
    private static final String ENCRYPTION_HEADER = "Proc-Type:";

    private PrivateKeyPem() {
    }

    /**
     * The first private key in the text.
     *
     * @param algorithm of the certificate's public key: RSA, EC or EdDSA
     * @throws GeneralSecurityException there is none, it is encrypted, or it is of another algorithm; the message holds no part of it
     */
    static PrivateKey parse(String text, String algorithm) throws GeneralSecurityException {
        Matcher block = BLOCK.matcher(text);
        if (!block.find()) {
            throw new GeneralSecurityException("it holds no private key in PEM");
        }
        if (block.group(2).contains(ENCRYPTION_HEADER)) {
            throw new GeneralSecurityException("its private key is encrypted: use one without a password");
        }
        try {
            byte[] content = Base64.getMimeDecoder().decode(block.group(2));
            byte[] pkcs8 = switch (block.group(1)) {
                case "PRIVATE KEY" -> content;
                case "RSA PRIVATE KEY" -> wrapped(PKCSObjectIdentifiers.rsaEncryption, DERNull.INSTANCE, RSAPrivateKey.getInstance(content));
                case "EC PRIVATE KEY" -> ofCurve(ECPrivateKey.getInstance(content));
                default -> throw new GeneralSecurityException(
                        block.group(1) + " is not a supported format: use PKCS #8, without a password");
            };
            return KeyFactory.getInstance(algorithm).generatePrivate(new PKCS8EncodedKeySpec(pkcs8));
        } catch (RuntimeException | IOException error) {
            throw new GeneralSecurityException("its private key is damaged", error);
        }
    }

    private static byte[] ofCurve(ECPrivateKey key) throws GeneralSecurityException, IOException {
        if (key.getParameters() == null) {
            throw new GeneralSecurityException("its private key does not name its curve: use PKCS #8");
        }
        return wrapped(X9ObjectIdentifiers.id_ecPublicKey, key.getParameters(), key);
    }

    private static byte[] wrapped(ASN1ObjectIdentifier algorithm, ASN1Encodable parameters, ASN1Encodable key) throws IOException {
        return new PrivateKeyInfo(new AlgorithmIdentifier(algorithm, parameters), key).getEncoded();
    }
}
