package io.herdkeeper.node.statement;

import herddb.log.LogNotAvailableException;
import herddb.model.DMLStatementExecutionResult;
import herddb.model.NotLeaderException;
import herddb.model.ScanResult;
import herddb.model.StatementExecutionResult;
import herddb.model.TransactionContext;
import io.herdkeeper.node.log.LogFailures;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executor;
import java.util.function.BiConsumer;
import java.util.function.Supplier;

/**
 * The end of a statement that may be one of a batch. HerdDB begins the next one in its {@code whenComplete}.
 *
 * <p>Clients repeat the whole batch if one of its statements is told that another node leads. Outside of a transaction those before it are
 * durable.
 */
final class BatchedStatement extends CompletableFuture<StatementExecutionResult> {

    /** Whether this thread begins a statement of a batch that has changed something outside of transactions. */
    private static final ThreadLocal<Boolean> HALF_DONE = ThreadLocal.withInitial(() -> false);

    private final boolean halfDone = HALF_DONE.get();
    private final Executor threads;
    private final boolean endedAtOnce;

    private BatchedStatement(Supplier<CompletableFuture<StatementExecutionResult>> statement, TransactionContext transaction, Executor threads) {
        this.threads = threads;
        CompletableFuture<StatementExecutionResult> result = statement.get();
        endedAtOnce = result.isDone() && !result.isCompletedExceptionally() && !(result.join() instanceof ScanResult);
        result.whenComplete((done, error) -> {
            if (error == null) {
                complete(done);
            } else if (halfDone && transaction.transactionId <= 0 && LogFailures.rootOf(error) instanceof NotLeaderException) {
                completeExceptionally(new LogNotAvailableException("statements of the batch before this one are durable: " + error, error));
            } else {
                completeExceptionally(error);
            }
        });
    }

    /** @param threads tell of a statement that ends at once: with many that have nothing to do, HerdDB would overflow the stack */
    static CompletableFuture<StatementExecutionResult> begin(
            Supplier<CompletableFuture<StatementExecutionResult>> statement, TransactionContext transaction, Executor threads) {
        return new BatchedStatement(statement, transaction, threads);
    }

    @Override
    public CompletableFuture<StatementExecutionResult> whenComplete(BiConsumer<? super StatementExecutionResult, ? super Throwable> next) {
        BiConsumer<StatementExecutionResult, Throwable> noted = (done, error) -> {
            boolean outer = HALF_DONE.get();
            HALF_DONE.set(halfDone || hasChanged(done));
            try {
                next.accept(done, error);
            } finally {
                HALF_DONE.set(outer);
            }
        };
        return endedAtOnce ? whenCompleteAsync(noted, threads) : super.whenComplete(noted);
    }

    private static boolean hasChanged(StatementExecutionResult done) {
        return done != null && done.transactionId <= 0 && !(done instanceof DMLStatementExecutionResult rows && rows.getUpdateCount() == 0);
    }
}
