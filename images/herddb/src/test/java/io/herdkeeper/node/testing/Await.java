package io.herdkeeper.node.testing;

import java.time.Duration;
import java.util.List;
import java.util.concurrent.Callable;

/** Waits for a condition, never for a time. */
public final class Await {

    private static final long POLL_MILLIS = 20;

    private Await() {
    }

    /** Polls until {@code condition} holds; fails with {@code what} after the limit. */
    public static void until(String what, Duration limit, Callable<Boolean> condition) throws Exception {
        long deadline = System.nanoTime() + limit.toNanos();
        while (!condition.call()) {
            if (System.nanoTime() - deadline > 0) {
                throw new AssertionError("not within " + limit.toSeconds() + " s: " + what);
            }
            Thread.sleep(POLL_MILLIS);
        }
    }

    /** How many threads wait for a lock of a row, or of a value of an index; some may be of tests before. */
    public static long threadsThatWaitForRows() {
        return Thread.getAllStackTraces().values().stream()
                .filter(stack -> List.of(stack).stream().anyMatch(frame -> frame.getMethodName().matches("acquire(Read|Write)LockForKey")))
                .count();
    }
}
