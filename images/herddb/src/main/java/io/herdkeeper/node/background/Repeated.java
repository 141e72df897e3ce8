package io.herdkeeper.node.background;

import java.time.Duration;
import java.util.logging.Level;
import java.util.logging.Logger;

/** Something that a thread of its own does again and again for as long as the process lives. */
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
     */
    public static void start(String name, Duration pause, Work work) {
        Thread thread = new Thread(() -> run(name, pause, work), name);
        thread.setDaemon(true);
        thread.start();
    }

    private static void run(String name, Duration pause, Work work) {
        try {
            while (true) {
                try {
                    work.once();
                } catch (InterruptedException ended) {
                    throw ended;
                } catch (Exception error) {
                    LOGGER.log(Level.INFO, "{0} failed, and is tried again: {1}", new Object[]{name, error.toString()});
                }
                Thread.sleep(pause.toMillis());
            }
        } catch (InterruptedException ended) {
            Thread.currentThread().interrupt();
        }
    }
}
