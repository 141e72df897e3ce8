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
import java.util.function.Function;
import java.util.function.Supplier;

/**
 * The end of a statement that may be one of a batch. HerdDB begins the next one in its {@code whenComplete}.
 *
 * <p>Clients repeat the whole batch if one of its statements is told that another node leads. Outside of a transaction those before it are
 * durable.
 *
 * <p>A client learns of the transaction that its batch begins when the batch succeeds. If a later statement of it fails, the transaction is
 * rolled back: nobody else would do so.
 */
final class BatchedStatement extends CompletableFuture<StatementExecutionResult> {

    /** What the batch has done of which this thread begins the next statement. */
    private static final ThreadLocal<Done> BEFORE = ThreadLocal.withInitial(() -> new Done(false, 0));

    private final Done before = BEFORE.get();
    private final TransactionContext transaction;
    private final Executor threads;
    private final boolean endedAtOnce;

    /**
     * What a batch has done.
     *
     * @param changed whether it has changed something outside of transactions
     * @param begun   the transaction that it has begun, or 0
     */
    private record Done(boolean changed, long begun) {
    }

    private BatchedStatement(Supplier<CompletableFuture<StatementExecutionResult>> statement, TransactionContext transaction, Executor threads,
            Function<Throwable, CompletableFuture<StatementExecutionResult>> rollback) {
        this.transaction = transaction;
        this.threads = threads;
        boolean isInItsOwn = before.begun > 0 && before.begun == transaction.transactionId;
        CompletableFuture<StatementExecutionResult> result = isInItsOwn ? statement.get().exceptionallyCompose(rollback) : statement.get();
        endedAtOnce = result.isDone() && !result.isCompletedExceptionally() && !(result.join() instanceof ScanResult);
        result.whenComplete((done, error) -> {
            if (error == null) {
                complete(done);
            } else if (before.changed && transaction.transactionId <= 0 && LogFailures.rootOf(error) instanceof NotLeaderException) {
                completeExceptionally(new LogNotAvailableException("statements of the batch before this one are durable: " + error, error));
            } else {
                completeExceptionally(error);
            }
        });
    }

    /**
     * Begins a statement.
     *
     * @param threads  tell of a statement that ends at once: with many that have nothing to do, HerdDB would overflow the stack
     * @param rollback ends the statement's transaction after an error, and fails with that
     */
    static CompletableFuture<StatementExecutionResult> begin(Supplier<CompletableFuture<StatementExecutionResult>> statement,
            TransactionContext transaction, Executor threads, Function<Throwable, CompletableFuture<StatementExecutionResult>> rollback) {
        return new BatchedStatement(statement, transaction, threads, rollback);
    }

    @Override
    public CompletableFuture<StatementExecutionResult> whenComplete(BiConsumer<? super StatementExecutionResult, ? super Throwable> next) {
        BiConsumer<StatementExecutionResult, Throwable> noted = (done, error) -> {
            Done outer = BEFORE.get();
            BEFORE.set(new Done(before.changed || hasChanged(done), hasBegun(done) ? done.transactionId : before.begun));
            try {
                next.accept(done, error);
            } finally {
                BEFORE.set(outer);
            }
        };
        return endedAtOnce ? whenCompleteAsync(noted, threads) : super.whenComplete(noted);
    }

    private static boolean hasChanged(StatementExecutionResult done) {
        return done != null && done.transactionId <= 0 && !(done instanceof DMLStatementExecutionResult rows && rows.getUpdateCount() == 0);
    }

    private boolean hasBegun(StatementExecutionResult done) {
        return done != null && transaction.transactionId == TransactionContext.AUTOTRANSACTION_ID;
    }
}
