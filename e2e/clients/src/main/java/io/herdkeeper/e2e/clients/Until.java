package io.herdkeeper.e2e.clients;

import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;

/**
 * When something that goes on is over.
 */
final class Until {

    private final CountDownLatch told;
    private final BooleanSupplier enough;
    private final long patienceNanoseconds;
    private long toldAt = -1;

    /** Over once the latch is down, and {@code enough} is true or so many seconds have passed since. */
    Until(CountDownLatch told, BooleanSupplier enough, long patienceSeconds) {
        this.told = told;
        this.enough = enough;
        this.patienceNanoseconds = TimeUnit.SECONDS.toNanos(patienceSeconds);
    }

    /** Over as soon as the latch is down. */
    static Until told(CountDownLatch told) {
        return new Until(told, () -> true, 0);
    }

    /** Whether it is over. */
    boolean over() {
        if (told.getCount() > 0) {
            return false;
        }
        if (toldAt < 0) {
            toldAt = System.nanoTime();
        }
        return enough.getAsBoolean() || System.nanoTime() - toldAt > patienceNanoseconds;
    }

    /** Waits a little before something is tried or asked again; not at all once told, unless there is still something to wait for. */
    void pause(long milliseconds) throws InterruptedException {
        if (told.await(milliseconds, TimeUnit.MILLISECONDS) && !over()) {
            Thread.sleep(milliseconds);
        }
    }
}
