package io.herdkeeper.node.tls;

import java.io.ByteArrayOutputStream;
import java.security.GeneralSecurityException;
import java.security.KeyFactory;
import java.security.PrivateKey;
import java.security.spec.PKCS8EncodedKeySpec;
import java.util.Arrays;
import java.util.Base64;
import java.util.HexFormat;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * Reads a private key from PEM text, in each of the three forms that cert-manager and openssl write.
 *
 * <p>Java reads only PKCS #8 (RFC 5208). The older forms, of RSA (RFC 8017, appendix A.1.2) and of elliptic curves (RFC 5915), are the
 * content of a PKCS #8 key, so they are wrapped in one.
 */
final class PrivateKeyPem {

    private static final Pattern BLOCK =
            Pattern.compile("-----BEGIN ((?:[A-Z]+ )?PRIVATE KEY)-----(.*?)-----END \\1-----", Pattern.DOTALL);
    /** Stands above the content of an older form when it is encrypted (RFC 1421, 4.6.1.1). */
    private static final String ENCRYPTION_HEADER = "Proc-Type:";
    private static final HexFormat HEX = HexFormat.of();
    private static final byte[] VERSION = HEX.parseHex("020100");
    /** AlgorithmIdentifier of rsaEncryption, whose parameters are NULL. */
    private static final byte[] RSA = HEX.parseHex("300d06092a864886f70d0101010500");
    private static final byte[] ELLIPTIC_CURVE = HEX.parseHex("06072a8648ce3d0201");
    private static final int SEQUENCE = 0x30;
    private static final int OCTETS = 0x04;
    private static final int CURVE = 0xA0;
    private static final int LONG_LENGTH = 0x80;
    private static final int BITS_OF_A_BYTE = 8;
    private static final int BYTE = 0xFF;

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
                case "RSA PRIVATE KEY" -> wrapped(RSA, content);
                case "EC PRIVATE KEY" -> wrapped(element(SEQUENCE, ELLIPTIC_CURVE, curveOf(content)), content);
                default -> throw new GeneralSecurityException(
                        block.group(1) + " is not a supported format: use PKCS #8, without a password");
            };
            return KeyFactory.getInstance(algorithm).generatePrivate(new PKCS8EncodedKeySpec(pkcs8));
        } catch (IllegalArgumentException | IndexOutOfBoundsException error) {
            throw new GeneralSecurityException("its private key is damaged", error);
        }
    }

    private static byte[] wrapped(byte[] algorithm, byte[] key) {
        return element(SEQUENCE, VERSION, algorithm, element(OCTETS, key));
    }

    /** The curve's object identifier, as it stands in an ECPrivateKey: behind the version and the key itself. */
    private static byte[] curveOf(byte[] ecPrivateKey) throws GeneralSecurityException {
        int at = contentBegin(ecPrivateKey, 0);
        while (at < ecPrivateKey.length) {
            int begin = contentBegin(ecPrivateKey, at);
            int end = begin + length(ecPrivateKey, at);
            if ((ecPrivateKey[at] & BYTE) == CURVE) {
                return Arrays.copyOfRange(ecPrivateKey, begin, end);
            }
            at = end;
        }
        throw new GeneralSecurityException("its private key does not name its curve: use PKCS #8");
    }

    private static int contentBegin(byte[] der, int at) {
        int first = der[at + 1] & BYTE;
        return at + 2 + (first < LONG_LENGTH ? 0 : first - LONG_LENGTH);
    }

    private static int length(byte[] der, int at) {
        int first = der[at + 1] & BYTE;
        if (first < LONG_LENGTH) {
            return first;
        }
        int length = 0;
        for (int i = at + 2; i < contentBegin(der, at); i++) {
            length = Math.addExact(Math.multiplyExact(length, BYTE + 1), der[i] & BYTE);
        }
        return length;
    }

    private static byte[] element(int tag, byte[]... parts) {
        ByteArrayOutputStream content = new ByteArrayOutputStream();
        for (byte[] part : parts) {
            content.writeBytes(part);
        }
        ByteArrayOutputStream element = new ByteArrayOutputStream();
        element.write(tag);
        int size = content.size();
        if (size < LONG_LENGTH) {
            element.write(size);
        } else {
            int bytes = (Integer.SIZE - Integer.numberOfLeadingZeros(size) + BITS_OF_A_BYTE - 1) / BITS_OF_A_BYTE;
            element.write(LONG_LENGTH | bytes);
            for (int i = bytes - 1; i >= 0; i--) {
                element.write(size >> (i * BITS_OF_A_BYTE));
            }
        }
        element.writeBytes(content.toByteArray());
        return element.toByteArray();
    }
}
