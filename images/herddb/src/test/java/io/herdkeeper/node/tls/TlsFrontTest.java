package io.herdkeeper.node.tls;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import io.herdkeeper.node.testing.Certificates;
import io.herdkeeper.node.testing.TlsClient;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Random;
import javax.net.ssl.SSLSocket;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Real sockets; the server behind is the test itself. */
@Timeout(60)
class TlsFrontTest {

    private static final int MANY = 4 << 20;
    private static final InetSocketAddress ANY_PORT = new InetSocketAddress(InetAddress.getLoopbackAddress(), 0);

    @TempDir
    private Path folder;
    private ServerSocket behind;
    private TlsFront front;

    @BeforeEach
    void listen() throws Exception {
        Certificates.put(folder, "node.crt", "node-pkcs8.key");
        behind = new ServerSocket();
        behind.bind(ANY_PORT);
    }

    @AfterEach
    void stop() throws Exception {
        front.close();
        behind.close();
    }

    @Test
    void whatEachSideSendsReachesTheOtherWholeAndInOrderAndAnEndIsAnEnd() throws Exception {
        front = front(Duration.ofMinutes(1));
        byte[] sent = new byte[MANY];
        new Random(1).nextBytes(sent);
        try (SSLSocket client = connect(); Socket server = behind.accept()) {
            Thread sender = new Thread(() -> write(client, sent));
            sender.start();
            assertArrayEquals(sent, server.getInputStream().readNBytes(MANY));
            sender.join();
            Thread answering = new Thread(() -> write(server, sent));
            answering.start();
            assertArrayEquals(sent, client.getInputStream().readNBytes(MANY));
            answering.join();
            server.close();
            assertEquals(-1, client.getInputStream().read());
        }
    }

    @Test
    void aClientThatLeavesIsGoneForTheServerToo() throws Exception {
        front = front(Duration.ofMinutes(1));
        try (SSLSocket client = connect(); Socket server = behind.accept()) {
            client.close();
            assertEquals(-1, server.getInputStream().read());
        }
    }

    @Test
    void whoeverReadsNothingOfItsAnswerIsHungUpOn() throws Exception {
        front = front(Duration.ofMillis(300));
        try (SSLSocket client = connect(); Socket server = behind.accept()) {
            assertThrows(IOException.class, () -> {
                while (true) {
                    server.getOutputStream().write(new byte[MANY]);
                }
            });
        }
    }

    private TlsFront front(Duration longestUnread) throws Exception {
        InetSocketAddress server = (InetSocketAddress) behind.getLocalSocketAddress();
        return new TlsFront(new RenewedCertificate(folder, "test", "TLSv1.3"), ANY_PORT, server, longestUnread);
    }

    private SSLSocket connect() throws Exception {
        return TlsClient.connect(front.port(), "authority.crt", "localhost");
    }

    private static void write(Socket socket, byte[] sent) {
        try {
            socket.getOutputStream().write(sent);
        } catch (IOException error) {
            throw new AssertionError(error);
        }
    }
}
