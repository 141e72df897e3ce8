package herddb.model.planner;

import herddb.core.TableSpaceManager;
import herddb.model.StatementEvaluationContext;
import herddb.model.StatementExecutionResult;
import herddb.model.Table;
import herddb.model.TransactionContext;
import herddb.model.commands.DeleteStatement;
import herddb.model.predicates.RawKeyEquals;
import java.util.concurrent.CompletableFuture;

/** A DELETE of the rows of a query, instead of HerdDB's class of this name. */
public final class DeleteOp extends ChangeOp {

    /** As HerdDB's planner makes it. */
    public DeleteOp(String tablespace, String tableName, PlannerOp input) {
        super(tablespace, tableName, input);
    }

    @Override
    public CompletableFuture<StatementExecutionResult> executeAsync(TableSpaceManager manager, TransactionContext transaction,
            StatementEvaluationContext context, boolean lockRequired, boolean forWrite) {
        Table table = table(manager);
        return each(rows(manager, transaction, context,
                row -> new DeleteStatement(tablespace, tableName, null, new RawKeyEquals(key(row, table)))), manager, transaction, context);
    }
}
