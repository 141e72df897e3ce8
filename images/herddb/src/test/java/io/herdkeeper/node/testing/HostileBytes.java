package io.herdkeeper.node.testing;

import java.io.ByteArrayOutputStream;
import java.util.Arrays;
import java.util.Random;

/** Any bytes, and damaged valid ones. A test that fails names the seed, which {@code -Dherdkeeper.seed} repeats. */
public final class HostileBytes {

    private final long seed = Long.getLong("herdkeeper.seed", System.nanoTime());
    private final Random random = new Random(seed);

    public long seed() {
        return seed;
    }

    /** Some bytes flipped, cut, inserted or replaced by a length of gigabytes; now and then any bytes. */
    public byte[] damaged(byte[] valid) {
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
