package io.herdkeeper.node.statement;

import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Supplier;

/**
 * Runs the statements of one transaction one after the other.
 *
 * <p>HerdDB runs them concurrently. Two of them may be applied in another order than logged, delete one row twice, or wait for a lock of
 * their own transaction. No thread waits here: the thread that ends a statement starts the next one.
 */
final class Turns {

    /** The transaction of the statement within which this thread runs another one. */
    private static final ThreadLocal<String> WITHIN = new ThreadLocal<>();

    /** The newest statement of each transaction that has one under way. */
    private final Map<String, CompletableFuture<?>> newest = new ConcurrentHashMap<>();

    /** Runs a statement once those of the same transaction that came before have ended, and at once within {@link #within} of it. */
    <T> CompletableFuture<T> take(String transaction, Supplier<CompletableFuture<T>> statement) {
        if (transaction.equals(WITHIN.get())) {
            return statement.get();
        }
        CompletableFuture<T> ended = new CompletableFuture<>();
        CompletableFuture<?> before = newest.put(transaction, ended);
        if (before == null) {
            begin(transaction, statement, ended);
        } else {
            before.whenComplete((result, error) -> begin(transaction, statement, ended));
        }
        return ended;
    }

    /** Runs a part of a statement that is a statement itself, as a foreign key's: the whole one has the turn already, in another thread. */
    static <T> T within(String transaction, Supplier<T> part) {
        String outer = WITHIN.get();
        WITHIN.set(transaction);
        try {
            return part.get();
        } finally {
            WITHIN.set(outer);
        }
    }

    private <T> void begin(String transaction, Supplier<CompletableFuture<T>> statement, CompletableFuture<T> ended) {
        CompletableFuture<T> result;
        try {
            result = statement.get();
        } catch (RuntimeException | Error error) {
            result = CompletableFuture.failedFuture(error);
        }
        result.whenComplete((done, error) -> {
            newest.remove(transaction, ended);
            if (error == null) {
                ended.complete(done);
            } else {
                ended.completeExceptionally(error);
            }
        });
    }
}
