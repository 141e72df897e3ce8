package io.herdkeeper.node.log;

import herddb.log.LogSequenceNumber;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executor;
import java.util.function.BiConsumer;
import java.util.function.BiFunction;
import java.util.function.Consumer;
import java.util.function.Function;
import java.util.function.Supplier;

/**
 * The position of an entry that a leader writes, and what HerdDB does with it: apply the entry.
 *
 * <p>If the leader can't apply an entry of the log, it differs from its followers. HerdDB reports this only to the client, and as a refusal.
 * So {@code end} is called, too, and the client is told that the outcome is unknown.
 *
 * <p>An UPDATE or DELETE is {@link #held}: it is not written before HerdDB wants to apply it. HerdDB logs each row of a statement when it
 * comes to the row, and applies none of them when a later row is refused. It asks each future for its value once all of the statement's
 * rows were accepted, and only then.
 */
final class LoggedEntry extends CompletableFuture<LogSequenceNumber> {

    /** How many rows of statements with several this thread has written. */
    static final ThreadLocal<Integer> ROWS = ThreadLocal.withInitial(() -> 0);

    private final Supplier<CompletableFuture<LogSequenceNumber>> writing;
    private final Runnable several;
    private final Consumer<Throwable> end;
    private final Runnable over;
    private volatile boolean begun;

    private LoggedEntry(Supplier<CompletableFuture<LogSequenceNumber>> writing, Runnable several, Consumer<Throwable> end, Runnable over) {
        this.writing = writing;
        this.several = several;
        this.end = end;
        this.over = over;
    }

    /** @param over called once the entry is applied, or never will be */
    static LoggedEntry written(CompletableFuture<LogSequenceNumber> position, Consumer<Throwable> end, Runnable over) {
        LoggedEntry entry = new LoggedEntry(() -> position, () -> { }, end, over);
        entry.write();
        return entry;
    }

    /**
     * Written by whichever of {@link #thenApplyAsync}, and the row's {@code join} and {@code whenCompleteAsync}, comes first.
     *
     * @param several called before it is written as one of several rows of a statement
     */
    static LoggedEntry held(
            Supplier<CompletableFuture<LogSequenceNumber>> writing, Runnable several, Consumer<Throwable> end, Runnable over) {
        return new LoggedEntry(writing, several, end, over);
    }

    private synchronized LoggedEntry write() {
        if (!begun) {
            begun = true;
            writing.get().whenComplete((position, error) -> {
                if (error == null) {
                    complete(position);
                } else {
                    completeExceptionally(error);
                }
            });
        }
        return this;
    }

    /** What HerdDB makes of an entry that is not written yet does not need its position. */
    @Override
    public <U> CompletableFuture<U> thenApply(Function<? super LogSequenceNumber, ? extends U> make) {
        return begun ? super.thenApply(make) : new Row<>(make.apply(null));
    }

    @Override
    public <U> CompletableFuture<U> thenApplyAsync(Function<? super LogSequenceNumber, ? extends U> apply, Executor executor) {
        write();
        return applied(super.<U>thenApplyAsync(apply, executor));
    }

    @Override
    public <U> CompletableFuture<U> handleAsync(BiFunction<? super LogSequenceNumber, Throwable, ? extends U> apply, Executor executor) {
        write();
        return applied(super.<U>handleAsync(apply, executor));
    }

    private <U> CompletableFuture<U> applied(CompletableFuture<U> applying) {
        return applying.exceptionallyCompose(error -> {
            if (isCompletedExceptionally()) {
                return CompletableFuture.failedFuture(error);
            }
            end.accept(error);
            return CompletableFuture.failedFuture(LogFailures.outcomeUnknown(error));
        }).whenComplete((done, error) -> over.run());
    }

    /** What HerdDB keeps of one row of an UPDATE or DELETE until it has all of them: the row, and what it holds of it. */
    private final class Row<T> extends CompletableFuture<T> {

        Row(T row) {
            complete(row);
        }

        /** One of several rows, none of which was refused. */
        @Override
        public T join() {
            several.run();
            write();
            if (!LoggedEntry.this.isCompletedExceptionally()) {
                ROWS.set(ROWS.get() + 1);
            }
            return super.join();
        }

        /** HerdDB lets go of the rows of a statement once it has applied all of them, or none. */
        @Override
        public T getNow(T absent) {
            over.run();
            return super.getNow(absent);
        }

        /** The only row; it is applied when the bookies have it. */
        @Override
        public CompletableFuture<T> whenCompleteAsync(BiConsumer<? super T, ? super Throwable> apply, Executor executor) {
            return applied(LoggedEntry.this.write().handle((position, error) -> error)
                    .thenCompose(error -> error == null ? CompletableFuture.completedFuture(super.join())
                            : CompletableFuture.<T>failedFuture(error))
                    .whenCompleteAsync(apply, executor));
        }
    }
}
