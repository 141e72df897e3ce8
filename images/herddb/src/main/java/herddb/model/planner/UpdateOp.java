package herddb.model.planner;

import herddb.core.TableSpaceManager;
import herddb.model.ConstValueRecordFunction;
import herddb.model.RecordFunction;
import herddb.model.StatementEvaluationContext;
import herddb.model.StatementExecutionResult;
import herddb.model.Table;
import herddb.model.TransactionContext;
import herddb.model.commands.UpdateStatement;
import java.util.concurrent.CompletableFuture;

/** An UPDATE of the rows of a query, instead of HerdDB's class of this name. */
public final class UpdateOp extends ChangeOp {

    private final boolean returnValues;
    private final RecordFunction values;

    /** As HerdDB's planner makes it. */
    public UpdateOp(String tablespace, String tableName, PlannerOp input, boolean returnValues, RecordFunction values) {
        super(tablespace, tableName, input);
        this.returnValues = returnValues;
        this.values = values;
    }

    @Override
    public CompletableFuture<StatementExecutionResult> executeAsync(TableSpaceManager manager, TransactionContext transaction,
            StatementEvaluationContext context, boolean lockRequired, boolean forWrite) {
        Table table = table(manager);
        return each(rows(manager, transaction, context, row -> new UpdateStatement(
                tablespace, tableName, new ConstValueRecordFunction(key(row, table)), values, null).setReturnValues(returnValues)),
                manager, transaction, context);
    }
}
