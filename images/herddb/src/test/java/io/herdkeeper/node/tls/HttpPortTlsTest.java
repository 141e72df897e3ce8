package io.herdkeeper.node.tls;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.herdkeeper.node.http.HttpSettings;
import io.herdkeeper.node.refusals.ToldRefusals;
import io.herdkeeper.node.testing.Await;
import io.herdkeeper.node.testing.BookKeeperForTests;
import io.herdkeeper.node.testing.Certificates;
import io.herdkeeper.node.testing.Node;
import io.herdkeeper.node.testing.RunningNode;
import io.herdkeeper.node.testing.TlsClient;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.net.Socket;
import java.net.SocketException;
import java.net.SocketTimeoutException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import javax.net.ssl.SSLException;
import javax.net.ssl.SSLSocket;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** A real node whose HTTP port has a certificate. */
class HttpPortTlsTest {

    private static final Duration LIMIT = Duration.ofSeconds(60);
    private static final int SILENT_CLIENTS = 200;
    private static final String TOKEN = "a-token";
    private static final byte[] BEGIN_OF_A_HANDSHAKE = {22, 3, 1, 2, 0, 1};

    private static Path folder;
    private static RenewedCertificate certificate;
    private static RunningNode node;

    private ToldRefusals told;

    @BeforeAll
    static void start() throws Exception {
        folder = Certificates.put(BookKeeperForTests.running().newFolder(), "node.crt", "node-pkcs1.key");
        certificate = new RenewedCertificate(folder, "HTTP", "TLSv1.3");
        Path token = Files.writeString(BookKeeperForTests.running().newFolder().resolve("token"), TOKEN);
        node = RunningNode.start(
                Node.configuration("n0", BookKeeperForTests.running().newRoot(), BookKeeperForTests.running().newFolder()), null,
                new HttpSettings("127.0.0.1", 0, token, certificate));
        node.server().waitForTableSpaceBoot("herd", (int) LIMIT.toMillis(), true);
    }

    @AfterAll
    static void stop() throws Exception {
        node.stop();
    }

    @BeforeEach
    void beginToListen() {
        told = new ToldRefusals();
    }

    @AfterEach
    void endIt() {
        told.close();
    }

    @BeforeEach
    void haveTheFirstCertificate() throws Exception {
        Certificates.put(folder, "node.crt", "node-pkcs1.key");
        certificate.reload();
    }

    @Test
    void clientsThatKnowTheAuthorityVerifyTheNodeAndOthersSendItNothing() throws Exception {
        assertEquals("HTTP/1.1 200 OK", asked("GET", "/healthz", "").get(0));
        assertThrows(SSLException.class, () -> TlsClient.connect(node.http().port(), "stranger.crt", "localhost"));
        assertThrows(SSLException.class, () -> TlsClient.connect(node.http().port(), "authority.crt", "elsewhere"));
    }

    @Test
    void neitherPlainTextNorAnOlderTlsIsAnswered() throws Exception {
        try (Socket plain = new Socket("127.0.0.1", node.http().port())) {
            plain.getOutputStream().write("GET /healthz HTTP/1.1\r\nHost: node\r\n\r\n".getBytes(StandardCharsets.US_ASCII));
            assertEquals(-1, plain.getInputStream().read(), "it is answered");
        } catch (SocketException reset) {
            // hung up on, too
        }
        assertThrows(SSLException.class, () -> TlsClient.connect(node.http().port(), "authority.crt", "localhost", "TLSv1.2"));
        told.until("plaintext", 1);
        told.until("tls", 1);
        boolean hasItsAddress = told.lines().stream().anyMatch(line -> line.matches("refused 127.0.0.1:\\d+ \\(plaintext\\): .*"));
        assertTrue(hasItsAddress, told.lines().toString());
        assertFalse(told.lines().toString().contains("474554"), "what was sent is logged, a password perhaps");
    }

    @Test
    void aRenewedCertificateIsServedWithoutARestartAndOneThatCannotBeServedIsNot() throws Exception {
        assertEquals("RSA", algorithm());
        Certificates.put(folder, "curve.crt", "node-pkcs1.key");
        assertThrows(GeneralSecurityException.class, certificate::reload);
        assertEquals("RSA", algorithm());
        Certificates.put(folder, "curve.crt", "curve-sec1.key");
        certificate.reload();
        assertEquals("EC", algorithm());
    }

    @Test
    void requestsAnswersAndTheTokenPassAsInPlainText() throws Exception {
        assertEquals("HTTP/1.1 401 Unauthorized", asked("POST", "/activator/wake", "").get(0));
        assertEquals("HTTP/1.1 401 Unauthorized", asked("POST", "/activator/wake", "Authorization: Bearer guessed\r\n").get(0));
        try (SSLSocket socket = TlsClient.connect(node.http().port(), "authority.crt", "localhost")) {
            send(socket, "POST /activator/wake HTTP/1.1\r\nHost: node\r\nContent-Length: 0\r\n\r\n").readLine();
            String who = "refused 127.0.0.1:" + socket.getLocalPort() + " (token): POST /activator/wake: ";
            assertTrue(told.lines().stream().anyMatch(line -> line.startsWith(who)), told.lines().toString());
        }
        assertEquals(3, told.since("token"));
        assertFalse(told.lines().toString().contains("guessed"), told.lines().toString());
        assertEquals("HTTP/1.1 202 Accepted", asked("POST", "/activator/wake", "Authorization: Bearer " + TOKEN + "\r\n").get(0));
        List<String> metrics = asked("GET", "/metrics", "");
        assertEquals("HTTP/1.1 200 OK", metrics.get(0));
        assertTrue(metrics.stream().anyMatch(line -> line.startsWith("herdkeeper_node_volume_bytes")), "the page is not whole");
    }

    @Test
    void aStreamIsHeardAsItIsToldAndAnEndedOneMakesRoom() throws Exception {
        for (int client = 0; client < 40; client++) {
            Await.until("there is room for a stream", LIMIT, () -> {
                try (SSLSocket socket = TlsClient.connect(node.http().port(), "authority.crt", "localhost")) {
                    BufferedReader lines = send(socket, "GET /alive HTTP/1.0\r\n\r\n");
                    if (!lines.readLine().equals("HTTP/1.1 200 OK")) {
                        return false;
                    }
                    while (!lines.readLine().isEmpty()) {
                        // the head
                    }
                    String line = lines.readLine();
                    assertTrue(line.startsWith("alive "), line + ": the operator asks in HTTP/1.0, so that it finds no chunks");
                    return true;
                }
            });
        }
    }

    @Test
    void whoeverNeverShakesHandsTakesNoThreadOfTheOthersAndIsHungUpOn() throws Exception {
        List<Socket> silent = new ArrayList<>();
        long before = threadsOfRequests();
        try {
            for (int client = 0; client < SILENT_CLIENTS; client++) {
                Socket socket = new Socket("127.0.0.1", node.http().port());
                silent.add(socket);
                if (client % 2 == 0) {
                    socket.getOutputStream().write(BEGIN_OF_A_HANDSHAKE);
                }
            }
            assertEquals("HTTP/1.1 200 OK", asked("GET", "/healthz", "").get(0), "a probe is not answered at once");
            long more = threadsOfRequests() - before;
            assertTrue(more < SILENT_CLIENTS / 4, more + " threads wait for them");
            for (Socket socket : silent) {
                assertTrue(isHungUpOn(socket), "it may stay for ever");
            }
        } finally {
            for (Socket socket : silent) {
                socket.close();
            }
        }
    }

    @Test
    void whoeverShakesHandsAndNeverEndsItsRequestTakesNoThreadOfTheOthers() throws Exception {
        List<SSLSocket> unended = new ArrayList<>();
        try {
            for (int client = 0; client < SILENT_CLIENTS; client++) {
                SSLSocket socket = TlsClient.connect(node.http().port(), "authority.crt", "localhost");
                unended.add(socket);
                socket.getOutputStream().write("GET /healthz HTTP/1.1\r\nHost: ".getBytes(StandardCharsets.US_ASCII));
            }
            Await.until("a probe is answered", LIMIT, () -> {
                try {
                    List<String> answer = asked("GET", "/healthz", "");
                    return !answer.isEmpty() && answer.get(0).equals("HTTP/1.1 200 OK");  // empty: hung up on, as the others are
                } catch (SocketTimeoutException waits) {
                    return false;
                }
            });
        } finally {
            for (SSLSocket socket : unended) {
                socket.close();
            }
        }
    }

    private static long threadsOfRequests() {
        return Thread.getAllStackTraces().keySet().stream().filter(thread -> thread.getName().equals("http")).count();
    }

    private static boolean isHungUpOn(Socket socket) throws IOException {
        socket.setSoTimeout((int) LIMIT.toMillis());
        try {
            while (socket.getInputStream().read() != -1) {
                // an alert, perhaps
            }
            return true;
        } catch (SocketTimeoutException silence) {
            return false;
        } catch (SocketException reset) {
            return true;
        }
    }

    private static String algorithm() throws Exception {
        try (SSLSocket socket = TlsClient.connect(node.http().port(), "authority.crt", "localhost")) {
            return TlsClient.certificateOf(socket).getPublicKey().getAlgorithm();
        }
    }

    /** The lines of the answer, until the node closes the connection. */
    private static List<String> asked(String method, String path, String header) throws Exception {
        try (SSLSocket socket = TlsClient.connect(node.http().port(), "authority.crt", "localhost")) {
            String request = method + " " + path + " HTTP/1.1\r\nHost: node\r\nContent-Length: 0\r\nConnection: close\r\n" + header + "\r\n";
            BufferedReader answer = send(socket, request);
            List<String> lines = new ArrayList<>();
            for (String line = answer.readLine(); line != null; line = answer.readLine()) {
                lines.add(line);
            }
            return lines;
        }
    }

    private static BufferedReader send(SSLSocket socket, String request) throws IOException {
        socket.getOutputStream().write(request.getBytes(StandardCharsets.US_ASCII));
        return new BufferedReader(new InputStreamReader(socket.getInputStream(), StandardCharsets.UTF_8));
    }
}
