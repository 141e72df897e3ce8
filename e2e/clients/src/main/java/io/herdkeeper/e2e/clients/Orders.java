package io.herdkeeper.e2e.clients;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.concurrent.CountDownLatch;

/**
 * The lines of standard input: {@code mark TEXT} tells of a fault, {@code stop} or the end of input ends the writer. Others are refused.
 */
final class Orders {

    private static final String MARK = "mark ";

    private Orders() {
    }

    /** Follows orders until {@code stop}, then counts the latch down. */
    static void follow(BufferedReader input, Written written, CountDownLatch stop) {
        try {
            for (String line = input.readLine(); line != null && !line.equals("stop"); line = input.readLine()) {
                if (!line.startsWith(MARK)) {
                    throw new IllegalArgumentException("no order: " + line + "; orders are `mark TEXT` and `stop`");
                }
                written.mark(line.substring(MARK.length()));
            }
        } catch (IOException inputIsGone) {
            throw new UncheckedIOException(inputIsGone);
        } finally {
            stop.countDown();
        }
    }
}
