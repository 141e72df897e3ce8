package io.herdkeeper.node.nemesis;

import herddb.codec.RecordSerializer;
import herddb.model.ColumnTypes;
import herddb.model.DuplicatePrimaryKeyException;
import herddb.model.ExecutionPlan;
import herddb.model.NotLeaderException;
import herddb.model.Record;
import herddb.model.Statement;
import herddb.model.StatementEvaluationContext;
import herddb.model.Table;
import herddb.model.TransactionContext;
import herddb.model.commands.CommitTransactionStatement;
import herddb.model.commands.CreateTableStatement;
import herddb.model.commands.DeleteStatement;
import herddb.model.commands.InsertStatement;
import herddb.model.commands.UpdateStatement;
import java.util.List;
import java.util.concurrent.CompletionException;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Executor;
import java.util.concurrent.atomic.AtomicInteger;

/** Who writes to the nodes of a run, and remembers what was promised. Each row has a value that tells which statement wrote it. */
final class Clients {

    private static final int FIRST_KEY = 1_000;

    private final Executor threads;
    private final List<Attempt> attempts = new CopyOnWriteArrayList<>();
    private final AtomicInteger nextKey = new AtomicInteger(FIRST_KEY);
    private final Table table = Table.builder().tablespace(NemesisNode.TABLESPACE).name("t").column("k", ColumnTypes.NOTNULL_INTEGER)
            .column("v", ColumnTypes.STRING).primaryKey("k").build();

    Clients(Executor threads) {
        this.threads = threads;
    }

    List<Attempt> attempts() {
        return attempts;
    }

    /** Makes the table of the stories. */
    Attempt createTable(NemesisNode node) {
        return run(node, "CREATE TABLE", 0, 0, new CreateTableStatement(table));
    }

    /** Writes a row of its own on a node, and returns at once. */
    Attempt insert(NemesisNode node) {
        return insert(node, nextKey.getAndIncrement(), "new", 0);
    }

    Attempt insert(NemesisNode node, int key, String value, long transaction) {
        return run(node, transaction == 0 ? "INSERT" : "INSERT in a transaction", key, transaction,
                new InsertStatement(NemesisNode.TABLESPACE, "t", row(key, value)));
    }

    Attempt update(NemesisNode node, int key, String value) {
        return run(node, "UPDATE", key, 0, new UpdateStatement(NemesisNode.TABLESPACE, "t", row(key, value), null));
    }

    Attempt delete(NemesisNode node, int key) {
        return run(node, "DELETE", key, 0, new DeleteStatement(NemesisNode.TABLESPACE, "t", row(key, "").key, null));
    }

    /** Commits the transaction whose only row has this key. */
    Attempt commit(NemesisNode node, int key, long transaction) {
        return run(node, "COMMIT", key, 0, new CommitTransactionStatement(NemesisNode.TABLESPACE, transaction));
    }

    private Record row(int key, String value) {
        return RecordSerializer.makeRecord(table, "k", key, "v", value);
    }

    private Attempt run(NemesisNode node, String what, int key, long transaction, Statement statement) {
        Attempt attempt = new Attempt(what, node.life().name(), key);
        attempts.add(attempt);
        threads.execute(() -> {
            try {
                node.server().getManager().executePlanAsync(ExecutionPlan.simple(statement),
                        StatementEvaluationContext.DEFAULT_EVALUATION_CONTEXT(), new TransactionContext(transaction))
                        .whenComplete((result, error) -> answered(node, attempt, error));
            } catch (Throwable error) {
                answered(node, attempt, error);
            }
        });
        return attempt;
    }

    /** A dead process answers nobody. */
    private static void answered(NemesisNode node, Attempt attempt, Throwable error) {
        if (node.life().isDead()) {
            attempt.failed(new PowerCut(), false);
        } else if (error == null) {
            attempt.acknowledged();
        } else {
            Throwable cause = error;
            while ((cause instanceof CompletionException || cause instanceof ExecutionException) && cause.getCause() != null) {
                cause = cause.getCause();
            }
            attempt.failed(cause, cause instanceof NotLeaderException || cause instanceof DuplicatePrimaryKeyException);
        }
    }
}
