package io.herdkeeper.node.background;

import java.time.Duration;
import java.util.logging.Level;
import java.util.logging.Logger;

/** A task that a thread of its own repeats until the process ends or the thread is interrupted. */
public final class Repeated {

    private static final Logger LOGGER = Logger.getLogger(Repeated.class.getName());

    private Repeated() {
    }

    /** What is repeated. What it throws is told, and does not end the repetition. */
    @FunctionalInterface
    public interface Work {

        void once() throws Exception;
    }

    /**
     * Begins at once.
     *
     * @param name  of the thread
     * @param pause between the end of one time and the beginning of the next
     * @return the thread
     */
    public static Thread start(String name, Duration pause, Work work) {
        return begin(name, pause, work, false);
    }

    /**
     * Begins at once, and ends with the first time that throws nothing.
     *
     * @param name  of the thread
     * @param pause between the end of one time and the beginning of the next
     */
    public static void untilItSucceeds(String name, Duration pause, Work work) {
        begin(name, pause, work, true);
    }

    private static Thread begin(String name, Duration pause, Work work, boolean once) {
        Thread thread = new Thread(() -> run(name, pause, work, once), name);
        thread.setDaemon(true);
        thread.start();
        return thread;
    }

    private static void run(String name, Duration pause, Work work, boolean once) {
        try {
            while (!succeeds(name, work) || !once) {
                Thread.sleep(pause.toMillis());
            }
        } catch (InterruptedException ended) {
            Thread.currentThread().interrupt();
        }
    }

    private static boolean succeeds(String name, Work work) throws InterruptedException {
        try {
            work.once();
            return true;
        } catch (InterruptedException ended) {
            throw ended;
        } catch (Exception | Error error) {
            LOGGER.log(Level.INFO, "{0} failed and will be retried: {1}", new Object[]{name, error.toString()});
            return false;
        }
    }
}
