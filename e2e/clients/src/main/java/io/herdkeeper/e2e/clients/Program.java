package io.herdkeeper.e2e.clients;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;

/**
 * Writes a log and follows it until standard input says {@code stop}, reads it back and reports, as lines of JSON on standard output:
 * {@code {"acknowledged": 12}} a few times a second, {@code {"report": …}} at the end.
 */
final class Program {

    private static final long TOLD_EACH_MILLISECONDS = 250;
    /** Longer than a bookie that vanished keeps a read waiting. */
    private static final long PATIENCE_SECONDS = 120;

    private Program() {
    }

    /** Ends the process: with 0 once there is a report, whatever it says. */
    static void run(Opener opener) {
        int code = 0;
        try {
            // after the clients are closed, so that it is the last line
            System.out.println(report(opener).toLine());
        } catch (Exception e) {
            e.printStackTrace();
            System.out.println("the client failed: " + e);
            code = 1;
        }
        System.out.flush();
        // the clients keep threads of their own
        System.exit(code);
    }

    private static Report report(Opener opener) throws Exception {
        try (Log log = opener.open()) {
            Written written = new Written(() -> System.nanoTime() / 1e9);
            CountDownLatch stop = new CountDownLatch(1);
            BufferedReader input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
            Thread orders = new Thread(() -> Orders.follow(input, written, stop), "orders");
            orders.setDaemon(true);
            orders.start();
            return report(log, written, stop);
        }
    }

    private static Report report(Log log, Written written, CountDownLatch stop) throws Exception {
        Received tailed = new Received();
        Received readBack = new Received();
        CountDownLatch ended = new CountDownLatch(1);
        ExecutorService pool = Executors.newFixedThreadPool(2);
        Future<?> writer = pool.submit(() -> {
            try {
                log.write(written, Until.told(stop));
            } finally {
                ended.countDown();
            }
            return null;
        });
        Future<?> reader = pool.submit(() -> {
            log.tail(tailed, new Until(ended, () -> tailed.reaches(written), PATIENCE_SECONDS));
            return null;
        });
        pool.shutdown();
        do {
            System.out.println("{\"acknowledged\": " + written.acknowledged() + "}");
            for (Future<?> each : new Future<?>[] {writer, reader}) {
                if (each.isDone()) {
                    each.get();
                }
            }
        } while (!pool.awaitTermination(TOLD_EACH_MILLISECONDS, TimeUnit.MILLISECONDS));
        writer.get();
        reader.get();
        System.out.println("{\"acknowledged\": " + written.acknowledged() + "}");
        log.readBack(readBack, new Until(ended, () -> readBack.reaches(written), PATIENCE_SECONDS));
        return Report.of(written, tailed, readBack);
    }

    /** Connects. */
    interface Opener {
        Log open() throws Exception;
    }
}
