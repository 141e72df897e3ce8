package herddb.model.planner;

import herddb.core.TableSpaceManager;
import herddb.index.TableKeys;
import herddb.model.Column;
import herddb.model.DataScanner;
import herddb.model.ScanResult;
import herddb.model.StatementEvaluationContext;
import herddb.model.StatementExecutionException;
import herddb.model.StatementExecutionResult;
import herddb.model.TransactionContext;
import herddb.model.commands.ScanStatement;
import herddb.utils.Wrapper;

/**
 * Reads a table for another operator, such as a join, instead of HerdDB's class of this name. That one takes no notice of columns that are dropped
 * meanwhile ({@link PlannedRows}). And it reads a table of another tablespace in that of the whole statement, where one of the same name may be.
 */
public abstract class SimpleScanOp implements PlannerOp {

    final ScanStatement statement;

    SimpleScanOp(ScanStatement statement) {
        this.statement = statement;
    }

    public final ScanStatement getStatement() {
        return statement;
    }

    @Override
    public final String getTablespace() {
        return statement.getTableSpace();
    }

    @Override
    public final <T> T unwrap(Class<T> type) {
        T unwrapped = statement.unwrap(type);
        return unwrapped != null ? unwrapped : Wrapper.unwrap(this, type);
    }

    @Override
    public final boolean isSimpleStatementWrapper() {
        return true;
    }

    @Override
    public final StatementExecutionResult execute(TableSpaceManager tablespace, TransactionContext transaction,
            StatementEvaluationContext context, boolean lockRequired, boolean forWrite) throws StatementExecutionException {
        if (!statement.getTableSpace().equals(tablespace.getTableSpaceName())) {
            throw new StatementExecutionException("a statement reads and changes the tables of one tablespace, and nothing was changed: the table "
                    + statement.getTableSpace() + "." + statement.getTable() + " is not in " + tablespace.getTableSpaceName()
                    + ". Read the rows of one first, and use them in a second statement");
        }
        DataScanner rows = PlannedRows.of(statement, tablespace, () -> TableKeys.within(tablespace.getTransaction(transaction.transactionId),
                () -> tablespace.scan(statement, context, transaction, lockRequired, forWrite)));
        return new ScanResult(rows.getTransactionId(), rows);
    }

    @Override
    public final Column[] getOutputSchema() {
        return statement.getSchema();
    }
}
