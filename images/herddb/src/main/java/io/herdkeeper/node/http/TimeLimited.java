package io.herdkeeper.node.http;

import io.netty.util.concurrent.DefaultThreadFactory;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

/** Ends a read of the metadata that takes too long: HerdDB's own reads wait for ZooKeeper as long as its session. */
final class TimeLimited {

    private static final long LIMIT_SECONDS = 3;

    private final ExecutorService readers = Executors.newCachedThreadPool(new DefaultThreadFactory("metadata-reader", true));

    /** Calls, and gives up after three seconds. */
    <T> T call(Callable<T> read) throws Exception {
        Future<T> future = readers.submit(read);
        try {
            return future.get(LIMIT_SECONDS, TimeUnit.SECONDS);
        } catch (TimeoutException error) {
            future.cancel(true);
            throw new TimeoutException("no answer within " + LIMIT_SECONDS + " s");
        } catch (ExecutionException error) {
            throw error.getCause() instanceof Exception cause ? cause : error;
        }
    }
}
