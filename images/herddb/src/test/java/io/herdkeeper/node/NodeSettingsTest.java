package io.herdkeeper.node;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.herdkeeper.node.NodeSettings.RefusedException;
import io.herdkeeper.node.testing.Certificates;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class NodeSettingsTest {

    private static final String PASSWORD = "s3cret";

    @TempDir
    private Path folder;
    private String complete;

    @BeforeEach
    void writeCredentials() throws Exception {
        Files.writeString(folder.resolve("username"), "herdkeeper");
        Files.writeString(folder.resolve("password"), PASSWORD + "\n");
        Files.writeString(folder.resolve("users"), "herdkeeper," + PASSWORD + ",admin\n# more\n");
        complete = """
                server.mode=cluster
                server.zookeeper.address=zk:2181
                server.zookeeper.path=/ns/db/herd
                server.bookkeeper.ledgers.path=/ns/bk/ledgers
                server.base.dir=/data
                herdkeeper.credentials.dir=%s
                """.formatted(folder);
    }

    @Test
    void argumentsAndMountedPasswordsReachHerdDb() throws Exception {
        NodeSettings settings = read(complete);
        assertEquals("db-herddb-0", settings.server().getString("server.node.id", ""));
        assertEquals("db-herddb-0.nodes", settings.server().getString("server.advertised.host", ""));
        assertEquals("herdkeeper", settings.server().getString("server.username", ""));
        assertEquals(PASSWORD, settings.server().getString("server.password", ""));
        assertEquals(folder.resolve("users").toString(), settings.server().getString("server.users.file", ""));
        assertEquals(PASSWORD, settings.users().getExpectedPassword("herdkeeper"));
        assertFalse(settings.server().getBoolean("server.bookkeeper.start", true));
        assertEquals(9845, settings.http().port());
        assertEquals(folder.resolve("token"), settings.http().tokenFile());
        assertEquals(20, settings.handOver().toSeconds());
    }

    @Test
    void aSecretWithoutAUsersFileAllowsItsOwnUserOnly() throws Exception {
        Files.delete(folder.resolve("users"));
        NodeSettings settings = read(complete);
        assertEquals("", settings.server().getString("server.users.file", ""));
        assertNull(settings.users());
        assertEquals("herdkeeper", settings.server().getString("admin.username", ""));
        assertEquals(PASSWORD, settings.server().getString("admin.password", ""));
    }

    @Test
    void nobodyGetsTheDefaultPassword() {
        refused(complete.replaceAll("herdkeeper.credentials.dir=.*", ""), "no users");
    }

    @Test
    void usersWhomHerdDbWouldSkipAreRefusedWithoutTellingPasswords() throws Exception {
        Files.writeString(folder.resolve("users"), "herdkeeper," + PASSWORD + ",admin\nbob,with,comma,admin\n");
        String message = refused(complete, "user line 2");
        assertFalse(message.contains("comma,admin"), message);
        Files.writeString(folder.resolve("users"), "herdkeeper," + PASSWORD + ",admin\nbob,one,admin\nbob,two,admin\n");
        refused(complete, "user line 3");
        Files.writeString(folder.resolve("users"), "bob,other,admin\n");
        message = refused(complete, "server.username=herdkeeper");
        assertFalse(message.contains(PASSWORD), message);
    }

    @Test
    void whatWouldBeGuessedOrDestroyedIsRefusedByName() {
        refused(complete.replace("server.mode=cluster", ""), "server.mode");
        refused(complete + "server.clear.at.boot=true\n", "server.clear.at.boot=true");
        refused(complete + "server.bookkeeper.start=true\n", "server.bookkeeper.start=true");
        refused(complete.replace("server.zookeeper.path=/ns/db/herd", ""), "server.zookeeper.path");
        refused(complete + "herdkeeper.http.port=many\n", "herdkeeper.http.port=many");
        refused(complete + "herdkeeper.hand-over.seconds=-1\n", "herdkeeper.hand-over.seconds=-1");
    }

    @Test
    void aFolderWithACertificateEncryptsTheSqlPortAndTheNodesRecordSaysSo() throws Exception {
        assertNull(read(complete).tls());
        Certificates.put(folder, "node.crt", "node-pkcs8.key");
        NodeSettings settings = read(complete + "herdkeeper.tls.dir=" + folder + "\n");
        assertNotNull(settings.tls());
        assertTrue(settings.server().getBoolean("server.ssl", false));
    }

    @Test
    void aCertificateThatNobodyCouldVerifyAndOneThatCannotBeServedAreRefused() throws Exception {
        refused(complete + "server.ssl=true\n", "herdkeeper.tls.dir");
        String encrypted = complete + "herdkeeper.tls.dir=" + folder + "\n";
        refused(encrypted, "tls.crt");
        Certificates.put(folder, "curve.crt", "node-pkcs8.key");
        refused(encrypted, "tls.key");
        Certificates.put(folder, "node.crt", "node-pkcs8.key");
        refused(encrypted + "herdkeeper.tls.plaintext=sometimes\n", "herdkeeper.tls.plaintext=sometimes");
    }

    @Test
    void theArgumentsFolderEncryptsTheHttpPortAndThePropertiesFolderDoesNot() throws Exception {
        Certificates.put(folder, "node.crt", "node-pkcs8.key");
        String encrypted = complete + "herdkeeper.tls.dir=" + folder + "\n";
        assertNull(read(encrypted).http().certificate());
        assertNotNull(read(encrypted, "--http-certificate", folder.toString()).http().certificate());
        assertTrue(assertThrows(RefusedException.class, () -> read(complete, "--http-certificate", "/none"))
                .getMessage().startsWith("--http-certificate=/none can't be read"));
    }

    @Test
    void argumentsThatAreMissingOrUnknownAreRefused() {
        assertTrue(assertThrows(RefusedException.class, () -> NodeSettings.read("--config")).getMessage().contains("usage"));
        assertTrue(assertThrows(RefusedException.class, () -> NodeSettings.read("--config", "/none"))
                .getMessage().contains("/none"));
    }

    private String refused(String properties, String expected) {
        String message = assertThrows(RefusedException.class, () -> read(properties)).getMessage();
        assertTrue(message.contains(expected), message);
        return message;
    }

    private NodeSettings read(String properties, String... more) throws Exception {
        Path file = folder.resolve("server.properties");
        Files.writeString(file, properties);
        List<String> arguments = new ArrayList<>(List.of(
                "--config", file.toString(), "--node-id", "db-herddb-0", "--advertised-host", "db-herddb-0.nodes"));
        arguments.addAll(List.of(more));
        return NodeSettings.read(arguments.toArray(String[]::new));
    }
}
