package io.herdkeeper.node.log;

import herddb.log.LogSequenceNumber;
import java.util.ArrayList;
import java.util.List;
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

    /** The rows that the statement of this thread has; null where nobody would let go of them. */
    private static final ThreadLocal<List<LoggedEntry.Row<?>>> OF_STATEMENT = new ThreadLocal<>();

    private final Supplier<CompletableFuture<LogSequenceNumber>> writing;
    private final Runnable several;
    private final Consumer<Throwable> end;
    private final Runnable over;
    private final Consumer<Object> letGo;
    private volatile boolean begun;

    private LoggedEntry(Supplier<CompletableFuture<LogSequenceNumber>> writing, Runnable several, Consumer<Throwable> end, Runnable over,
            Consumer<Object> letGo) {
        this.writing = writing;
        this.several = several;
        this.end = end;
        this.over = over;
        this.letGo = letGo;
    }

    /** @param over called once the entry is applied, or never will be */
    static LoggedEntry written(CompletableFuture<LogSequenceNumber> position, Consumer<Throwable> end, Runnable over) {
        LoggedEntry entry = new LoggedEntry(() -> position, () -> { }, end, over, row -> { });
        entry.write();
        return entry;
    }

    /**
     * Written by whichever of {@link #thenApplyAsync}, and the row's {@code join} and {@code whenCompleteAsync}, comes first.
     *
     * @param several called before it is written as one of several rows of a statement
     * @param letGo   releases what HerdDB holds of a row, where HerdDB never will ({@link #letGoOnFailure})
     */
    static LoggedEntry held(Supplier<CompletableFuture<LogSequenceNumber>> writing, Runnable several, Consumer<Throwable> end, Runnable over,
            Consumer<Object> letGo) {
        return new LoggedEntry(writing, several, end, over, letGo);
    }

    /**
     * Executes a statement, and lets go of its rows if it has failed when this returns: HerdDB keeps the locks of the rows before one whose
     * lock it could not get.
     */
    static <R> CompletableFuture<R> letGoOnFailure(Supplier<CompletableFuture<R>> statement) {
        List<LoggedEntry.Row<?>> outer = OF_STATEMENT.get();
        List<LoggedEntry.Row<?>> own = new ArrayList<>();
        OF_STATEMENT.set(own);
        CompletableFuture<R> result = null;
        try {
            result = statement.get();
            return result;
        } finally {
            OF_STATEMENT.set(outer);
            if (result == null || result.isCompletedExceptionally()) {
                own.forEach(LoggedEntry.Row::letGo);
            }
        }
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
        if (begun) {
            return super.thenApply(make);
        }
        Row<U> row = new Row<>(make.apply(null));
        List<LoggedEntry.Row<?>> ofStatement = OF_STATEMENT.get();
        if (ofStatement != null) {
            ofStatement.add(row);
        }
        return row;
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

        /** Whether HerdDB applies it, and then lets go of it, or has let go of it already. */
        private volatile boolean taken;

        Row(T row) {
            complete(row);
        }

        private void letGo() {
            if (!taken) {
                taken = true;
                over.run();
                letGo.accept(super.join());
            }
        }

        /** One of several rows, none of which was refused. */
        @Override
        public T join() {
            taken = true;
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
            taken = true;
            over.run();
            return super.getNow(absent);
        }

        /** The only row; it is applied when the bookies have it. */
        @Override
        public CompletableFuture<T> whenCompleteAsync(BiConsumer<? super T, ? super Throwable> apply, Executor executor) {
            taken = true;
            return applied(LoggedEntry.this.write().handle((position, error) -> error)
                    .thenCompose(error -> error == null ? CompletableFuture.completedFuture(super.join())
                            : CompletableFuture.<T>failedFuture(error))
                    .whenCompleteAsync(apply, executor));
        }
    }
}
