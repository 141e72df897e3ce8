package io.herdkeeper.node.background;

import static org.junit.jupiter.api.Assertions.assertTrue;

import java.time.Duration;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;

class RepeatedTest {

    @Test
    void anErrorOfTheWorkDoesNotEndTheRepetition() throws Exception {
        CountDownLatch times = new CountDownLatch(3);
        Thread thread = Repeated.start("fails", Duration.ofMillis(1), () -> {
            times.countDown();
            throw new StackOverflowError();
        });
        assertTrue(times.await(30, TimeUnit.SECONDS));
        thread.interrupt();
    }
}
