package io.herdkeeper.node.logging;

import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.FutureTask;

/**
 * Threads whose records are not written, since they are of no use to readers.
 *
 * <p>They are recognised by their thread group, which includes the threads that they start.
 */
public final class MutedThreads {

    private static final ThreadGroup GROUP = new ThreadGroup("muted");

    private MutedThreads() {
    }

    /**
     * Does a piece of work in such a thread, and waits for it.
     *
     * @param name of the thread
     * @throws Exception what the work throws
     */
    public static <T> T call(String name, Callable<T> work) throws Exception {
        FutureTask<T> task = new FutureTask<>(work);
        Thread thread = new Thread(GROUP, task, name);
        thread.setDaemon(true);
        thread.start();
        try {
            return task.get();
        } catch (ExecutionException error) {
            throw error.getCause() instanceof Exception cause ? cause : error;
        }
    }

    /** Whether the thread that asks is one of them. */
    static boolean hasCurrent() {
        return GROUP.parentOf(Thread.currentThread().getThreadGroup());
    }
}
