package io.herdkeeper.node.users;

import static org.junit.jupiter.api.Assertions.assertTrue;

import io.herdkeeper.node.testing.HostileBytes;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import io.netty.channel.embedded.EmbeddedChannel;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HexFormat;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** What the node program reads before a login, and its users file. */
class BytesFromStrangersTest {

    private static final int LOGINS = 20_000;
    private static final int FILES = 2_000;
    private static final int MOST_PASSED = Integer.BYTES + (1 << 14);

    private final HostileBytes hostile = new HostileBytes();

    @TempDir
    private Path folder;

    @Test
    void whatComesBeforeALoginIsPassedOnWholeOrEndsTheConnectionOrIsWaitedFor() {
        Strangers strangers = new Strangers();
        for (int i = 0; i < LOGINS; i++) {
            byte[] sent = hostile.damaged(login());
            String told = "seed " + hostile.seed() + ", sent " + HexFormat.of().formatHex(sent);
            EmbeddedChannel connection = new EmbeddedChannel(new BeforeLogin(() -> false, strangers));
            try {
                connection.writeInbound(Unpooled.wrappedBuffer(sent));
                for (ByteBuf passed = connection.readInbound(); passed != null; passed = connection.readInbound()) {
                    assertTrue(passed.readableBytes() <= MOST_PASSED, told);
                    assertTrue(passed.readableBytes() == Integer.BYTES + passed.getInt(passed.readerIndex()), told);
                    passed.release();
                }
                connection.finishAndReleaseAll();
            } catch (RuntimeException error) {
                throw new AssertionError(told, error);
            }
        }
    }

    @Test
    void aUsersFileIsReadOrRefused() throws IOException {
        Path file = folder.resolve("users");
        for (int i = 0; i < FILES; i++) {
            byte[] written = hostile.damaged("# revision 12\nsa,secret,admin\nreader,other,admin\n".getBytes(StandardCharsets.UTF_8));
            Files.write(file, written);
            try {
                UsersFile.read(file);
            } catch (IOException | UnusableUsersException refused) {
                // as it declares
            } catch (RuntimeException error) {
                throw new AssertionError("seed " + hostile.seed() + ", file " + HexFormat.of().formatHex(written), error);
            }
        }
    }

    private static byte[] login() {
        byte[] body = "\5PLAIN\12\0user\0pass".getBytes(StandardCharsets.ISO_8859_1);
        int header = Byte.BYTES + Byte.BYTES + Byte.BYTES + Long.BYTES;
        ByteBuffer frame = ByteBuffer.allocate(Integer.BYTES + header + body.length);
        frame.putInt(header + body.length).put((byte) 3).put((byte) 1).put((byte) 100).putLong(7).put(body);
        return frame.array();
    }
}
