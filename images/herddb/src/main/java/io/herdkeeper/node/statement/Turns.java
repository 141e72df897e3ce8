package io.herdkeeper.node.statement;

import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Semaphore;
import java.util.function.Supplier;

/**
 * Runs the statements of one transaction one after the other.
 *
 * <p>HerdDB lets them run beside each other. Two of them may be applied in another order than they are logged, delete one row twice, or
 * wait for a lock that their own transaction has.
 */
final class Turns {

    /** Whose turn it is in this thread: a statement within another one, as a foreign key's, has that one's. */
    private static final ThreadLocal<String> OWN = new ThreadLocal<>();

    /** By transaction; those that somebody has, or waits for. */
    private final Map<String, Turn> turns = new ConcurrentHashMap<>();

    private static final class Turn {

        private final Semaphore free = new Semaphore(1);
        private int users;
    }

    /** Runs a statement once those of the same transaction that came before have ended. */
    <T> CompletableFuture<T> take(String transaction, Supplier<CompletableFuture<T>> statement) {
        if (transaction.equals(OWN.get())) {
            return statement.get();
        }
        Turn turn = turns.compute(transaction, (id, known) -> {
            Turn one = known == null ? new Turn() : known;
            one.users++;
            return one;
        });
        turn.free.acquireUninterruptibly();
        OWN.set(transaction);
        try {
            return statement.get().whenComplete((result, error) -> end(transaction, turn));
        } catch (RuntimeException error) {
            end(transaction, turn);
            throw error;
        } finally {
            OWN.remove();
        }
    }

    private void end(String transaction, Turn turn) {
        turn.free.release();
        turns.compute(transaction, (id, known) -> --turn.users == 0 ? null : known);
    }
}
