package io.herdkeeper.node.http;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.herdkeeper.node.testing.BookKeeperForTests;
import io.herdkeeper.node.testing.HostileBytes;
import io.herdkeeper.node.testing.RunningNode;
import java.io.IOException;
import java.net.Socket;
import java.net.SocketException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.HexFormat;
import java.util.List;
import org.junit.jupiter.api.Test;

/** A real node's HTTP port, asked with damaged requests. */
class BytesAtTheHttpPortTest {

    private static final int REQUESTS = 1_500;
    private static final Duration LIMIT = Duration.ofSeconds(60);
    private static final List<String> ORDERS = List.of(
            "POST /activator/wake HTTP/1.1\r\nHost: node\r\nContent-Length: 0\r\nAuthorization: Bearer guessed\r\n\r\n",
            "POST /tablespaces/herd/digest?ledger=1&entry=%32&timeoutSeconds=1 HTTP/1.1\r\nHost: node\r\nContent-Length: 5\r\n\r\nhello",
            "POST /tablespaces/herd/bar?uuid=u&until=3,7 HTTP/1.1\r\nHost: node\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n");
    private static final List<String> QUESTIONS = List.of(
            "GET /healthz HTTP/1.1\r\nHost: node\r\n\r\n",
            "GET /tablespaces?a=b&c=%41 HTTP/1.1\r\nHost: node\r\nAuthorization: Bearer guessed\r\n\r\n");

    private final HostileBytes hostile = new HostileBytes();

    @Test
    void whateverComesIsAnsweredAsItsSendersMistakeOrHungUpOnAndNoOrderIsTakenWithoutTheToken() throws Exception {
        Path token = Files.writeString(BookKeeperForTests.running().newFolder().resolve("token"), "a-token");
        RunningNode node = RunningNode.start("n0", BookKeeperForTests.running().newRoot(), token);
        try {
            node.server().waitForTableSpaceBoot("herd", (int) LIMIT.toMillis(), true);
            for (int i = 0; i < REQUESTS; i++) {
                boolean order = i % 2 == 0;
                List<String> valid = order ? ORDERS : QUESTIONS;
                byte[] sent = hostile.damaged(valid.get(i / 2 % valid.size()).getBytes(StandardCharsets.US_ASCII));
                String answer = answer(node.http().port(), sent);
                String told = "seed " + hostile.seed() + ", sent " + HexFormat.of().formatHex(sent) + ", answer " + answer;
                assertTrue(answer.isEmpty() || answer.matches(order ? "HTTP/1.1 (4|501).*" : "HTTP/1.1 (2|4|501).*"), told);
            }
            assertEquals("HTTP/1.1 200 OK", answer(node.http().port(), QUESTIONS.get(0).getBytes(StandardCharsets.US_ASCII)));
        } finally {
            node.stop();
        }
    }

    /** The first line of it; empty if it is hung up on without one. */
    private static String answer(int port, byte[] sent) throws IOException {
        try (Socket socket = new Socket("127.0.0.1", port)) {
            socket.setSoTimeout((int) LIMIT.toMillis());
            socket.getOutputStream().write(sent);
            socket.shutdownOutput();
            return new String(socket.getInputStream().readAllBytes(), StandardCharsets.ISO_8859_1).lines().findFirst().orElse("");
        } catch (SocketException reset) {
            return "";
        }
    }
}
