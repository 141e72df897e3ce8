package io.herdkeeper.node.statement;

import herddb.core.TableSpaceManager;
import herddb.model.Column;
import herddb.model.ExecutionPlan;
import herddb.model.StatementEvaluationContext;
import herddb.model.StatementExecutionResult;
import herddb.model.TransactionContext;
import herddb.model.commands.SQLPlannedOperationStatement;
import herddb.model.planner.PlannerOp;
import herddb.utils.Wrapper;

/**
 * A query that reads no table, in the tablespace of its transaction. HerdDB asks the node's own tablespace, which has no transactions, and refuses
 * it: {@code SELECT 1}, or what LIMIT 0 leaves.
 */
record WithoutTable(PlannerOp values, String tablespace) implements PlannerOp {

    ExecutionPlan plan() {
        return ExecutionPlan.simple(new SQLPlannedOperationStatement(this), this);
    }

    @Override
    public String getTablespace() {
        return tablespace;
    }

    @Override
    public StatementExecutionResult execute(TableSpaceManager manager, TransactionContext transaction, StatementEvaluationContext context,
            boolean lockRequired, boolean forWrite) {
        return values.execute(manager, transaction, context, lockRequired, forWrite);
    }

    @Override
    public Column[] getOutputSchema() {
        return values.getOutputSchema();
    }

    @Override
    public <T> T unwrap(Class<T> type) {
        return Wrapper.unwrap(this, type);
    }
}
