package io.herdkeeper.node.users;

import static org.junit.jupiter.api.Assertions.assertTrue;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import io.netty.channel.embedded.EmbeddedChannel;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Any bytes, and damaged valid ones. A failure names the seed, which {@code -Dherdkeeper.seed} repeats. */
class BytesFromStrangersTest {

    private static final int LOGINS = 20_000;
    private static final int FILES = 2_000;
    private static final int MOST_PASSED = Integer.BYTES + (1 << 14);

    private final long seed = Long.getLong("herdkeeper.seed", System.nanoTime());
    private final Random random = new Random(seed);

    @TempDir
    private Path folder;

    @Test
    void whatComesBeforeALoginIsPassedOnWholeOrEndsTheConnectionOrIsWaitedFor() {
        Strangers strangers = new Strangers();
        for (int i = 0; i < LOGINS; i++) {
            byte[] sent = damaged(login());
            String told = "seed " + seed + ", sent " + HexFormat.of().formatHex(sent);
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
            byte[] written = damaged("# revision 12\nsa,secret,admin\nreader,other,admin\n".getBytes(StandardCharsets.UTF_8));
            Files.write(file, written);
            try {
                UsersFile.read(file);
            } catch (IOException | UnusableUsersException refused) {
                // as it declares
            } catch (RuntimeException error) {
                throw new AssertionError("seed " + seed + ", file " + HexFormat.of().formatHex(written), error);
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

    /** Some bytes flipped, cut, inserted or replaced by a length of gigabytes; now and then any bytes. */
    private byte[] damaged(byte[] valid) {
        if (random.nextInt(5) == 0) {
            byte[] any = new byte[random.nextInt(100)];
            random.nextBytes(any);
            return any;
        }
        byte[] found = valid.clone();
        for (int change = random.nextInt(4); change > 0 && found.length > 0; change--) {
            int at = random.nextInt(found.length);
            found = switch (random.nextInt(4)) {
                case 0 -> replaced(found, at, new byte[] {(byte) (found[at] ^ 1 << random.nextInt(8))}, 1);
                case 1 -> Arrays.copyOf(found, at);
                case 2 -> replaced(found, at, new byte[] {(byte) random.nextInt(256)}, 0);
                default -> replaced(found, at, new byte[] {127, -1, -1, -1, 127}, random.nextInt(5));
            };
        }
        return found;
    }

    private static byte[] replaced(byte[] whole, int at, byte[] part, int length) {
        ByteArrayOutputStream made = new ByteArrayOutputStream();
        made.write(whole, 0, at);
        made.writeBytes(part);
        int behind = Math.min(whole.length, at + length);
        made.write(whole, behind, whole.length - behind);
        return made.toByteArray();
    }
}
