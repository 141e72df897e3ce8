package io.herdkeeper.node.tls;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.herdkeeper.node.testing.Certificates;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.security.KeyPairGenerator;
import java.util.Base64;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class NodeCertificateTest {

    @TempDir
    private Path folder;

    @ParameterizedTest
    @CsvSource({"node.crt,node-pkcs8.key", "node.crt,node-pkcs1.key", "curve.crt,curve-pkcs8.key", "curve.crt,curve-sec1.key"})
    void eachFormOfAKeyIsReadAndFoundToBelongToItsCertificate(String certificate, String key) throws Exception {
        NodeCertificate read = NodeCertificate.read(Certificates.put(folder, certificate, key));
        assertEquals("CN=a SQL node", read.chain()[0].getSubjectX500Principal().getName());
    }

    @Test
    void theSameKeyInAnotherFormIsTheSameCertificate() throws Exception {
        NodeCertificate one = NodeCertificate.read(Certificates.put(folder, "node.crt", "node-pkcs8.key"));
        assertTrue(one.isSameAs(NodeCertificate.read(Certificates.put(folder, "node.crt", "node-pkcs1.key"))));
        assertFalse(one.isSameAs(NodeCertificate.read(Certificates.put(folder, "expired.crt", "node-pkcs8.key"))));
    }

    @ParameterizedTest
    @CsvSource({
        "curve.crt,node-pkcs8.key,tls.key", "stranger.crt,node-pkcs8.key,is not the key of",
        "node.crt,authority.crt,holds no private key", "node-pkcs8.key,node-pkcs8.key,tls.crt"
    })
    void whatDoesNotBelongTogetherIsRefusedByTheFilesName(String certificate, String key, String expected) throws Exception {
        Certificates.put(folder, certificate, key);
        refused(expected);
    }

    @Test
    void aDamagedAndAnEncryptedKeyAreRefusedWithoutShowingThem() throws Exception {
        Certificates.put(folder, "node.crt", "node-pkcs1.key");
        String whole = Files.readString(folder.resolve("tls.key"));
        String content = whole.lines().skip(1).findFirst().orElseThrow();
        Files.writeString(folder.resolve("tls.key"), whole.replace(content, content.substring(0, 8)));
        assertFalse(refused("tls.key").contains(content.substring(0, 8)));
        Certificates.put(folder, "node.crt", "node-encrypted.key");
        refused("without a password");
    }

    @ParameterizedTest
    @CsvSource({"node.crt,RSA", "curve.crt,EC"})
    void aKeyInAnOlderFormThatIsEmptyIsDamaged(String certificate, String form) throws Exception {
        Certificates.put(folder, certificate, "node-pkcs1.key");
        Files.writeString(folder.resolve("tls.key"), "-----BEGIN %1$s PRIVATE KEY-----\nMAA=\n-----END %1$s PRIVATE KEY-----\n".formatted(form));
        refused("tls.key: its private key ");
    }

    @Test
    void aKeyInAnOlderFormThatIsEncryptedIsRefusedAsSuch() throws Exception {
        Certificates.put(folder, "node.crt", "node-pkcs1.key");
        Path file = folder.resolve("tls.key");
        String begin = "-----BEGIN RSA PRIVATE KEY-----\n";
        Files.writeString(file, Files.readString(file).replace(begin,
                begin + "Proc-Type: 4,ENCRYPTED\nDEK-Info: AES-256-CBC,3DA541559918A808C2402BBA5012F6C6\n\n"));
        refused("tls.key: its private key is encrypted: use one without a password");
    }

    @ParameterizedTest
    @CsvSource({"node.crt,RSA,3072", "curve.crt,EC,384"})
    void aKeyOfAnotherSizeOrCurveIsNotTheKeyOfTheCertificate(String certificate, String algorithm, int bits) throws Exception {
        Certificates.put(folder, certificate, "node-pkcs8.key");
        KeyPairGenerator generator = KeyPairGenerator.getInstance(algorithm);
        generator.initialize(bits);
        String content = Base64.getMimeEncoder().encodeToString(generator.generateKeyPair().getPrivate().getEncoded());
        Files.writeString(folder.resolve("tls.key"), "-----BEGIN PRIVATE KEY-----\n" + content + "\n-----END PRIVATE KEY-----\n");
        refused("tls.key is not the key of");
    }

    @Test
    void whatStandsAroundAKeyAndItsCertificateMayBeInAnyLanguage() throws Exception {
        Certificates.put(folder, "node.crt", "node-pkcs1.key");
        for (String name : List.of("tls.crt", "tls.key")) {
            Path file = folder.resolve(name);
            Files.writeString(file, "# f\u00fcr die Datenbank\n" + Files.readString(file) + "# \u7d42\u308f\u308a\n");
        }
        assertEquals("CN=a SQL node", NodeCertificate.read(folder).chain()[0].getSubjectX500Principal().getName());
    }

    private String refused(String expected) {
        String message = assertThrows(GeneralSecurityException.class, () -> NodeCertificate.read(folder)).getMessage();
        assertTrue(message.contains(expected), message);
        return message;
    }
}
