package herddb.model.planner;

import herddb.core.MaterializedRecordSet;
import herddb.core.SimpleDataScanner;
import herddb.core.TableSpaceManager;
import herddb.model.Column;
import herddb.model.DataScanner;
import herddb.model.DataScannerException;
import herddb.model.ScanResult;
import herddb.model.StatementEvaluationContext;
import herddb.model.StatementExecutionException;
import herddb.model.StatementExecutionResult;
import herddb.model.TransactionContext;
import herddb.sql.expressions.CompiledSQLExpression;
import herddb.utils.DataAccessor;
import herddb.utils.SQLRecordPredicateFunctions;
import java.util.ArrayList;
import java.util.List;
import org.apache.calcite.linq4j.Enumerable;
import org.apache.calcite.linq4j.function.Function2;
import org.apache.calcite.linq4j.function.Predicate2;

/**
 * An operator on the rows of two others.
 *
 * <p>It closes both if either fails, or the join. HerdDB's classes leave them open: a transaction with open rows never ends, and keeps its locks.
 */
abstract class JoiningOp implements PlannerOp {

    final String[] fields;
    final Column[] columns;
    final PlannerOp left;
    final PlannerOp right;

    JoiningOp(String[] fields, Column[] columns, PlannerOp left, PlannerOp right) {
        this.fields = fields;
        this.columns = columns;
        this.left = left.optimize();
        this.right = right.optimize();
    }

    /** The joined rows. */
    abstract Enumerable<DataAccessor> join(DataScanner leftRows, DataScanner rightRows, StatementEvaluationContext context);

    /** Whether the rows of the left one are read more than once. */
    boolean rereadsLeft() {
        return true;
    }

    boolean rereadsRight() {
        return true;
    }

    @Override
    public final StatementExecutionResult execute(TableSpaceManager tablespace, TransactionContext transaction,
            StatementEvaluationContext context, boolean lockRequired, boolean forWrite) throws StatementExecutionException {
        List<DataScanner> open = new ArrayList<>();
        try {
            ScanResult first = (ScanResult) left.execute(tablespace, transaction, context, lockRequired, forWrite);
            open.add(first.dataScanner);
            TransactionContext same = new TransactionContext(first.transactionId);
            ScanResult second = (ScanResult) right.execute(tablespace, same, context, lockRequired, forWrite);
            open.add(second.dataScanner);
            if (rereadsLeft()) {
                open.set(0, rewindable(first.dataScanner, tablespace));
            }
            if (rereadsRight()) {
                open.set(1, rewindable(second.dataScanner, tablespace));
            }
            DataScanner leftRows = open.get(0);
            DataScanner rightRows = open.get(1);
            Enumerable<DataAccessor> joined = join(leftRows, rightRows, context);
            return new ScanResult(second.transactionId,
                    new EnumerableDataScanner(rightRows.getTransaction(), fields, columns, joined, leftRows, rightRows));
        } catch (DataScannerException error) {
            closeAll(open, error);
            throw new StatementExecutionException(error);
        } catch (RuntimeException | Error error) {
            closeAll(open, error);
            throw error;
        }
    }

    /** HerdDB keeps many rows on disk. */
    private static DataScanner rewindable(DataScanner rows, TableSpaceManager tablespace) throws DataScannerException {
        if (rows.isRewindSupported()) {
            return rows;
        }
        MaterializedRecordSet kept = tablespace.getDbmanager().getRecordSetFactory().createRecordSet(rows.getFieldNames(), rows.getSchema());
        try {
            rows.forEach(kept::add);
            kept.writeFinished();
        } catch (DataScannerException | RuntimeException error) {
            kept.close();
            throw error;
        }
        DataScanner rewindable = new SimpleDataScanner(rows.getTransaction(), kept);
        rows.close();
        return rewindable;
    }

    private static void closeAll(List<DataScanner> open, Throwable cause) {
        for (DataScanner rows : open) {
            try {
                rows.close();
            } catch (DataScannerException | RuntimeException error) {
                cause.addSuppressed(error);
            }
        }
    }

    /** Puts two rows together. Either may be null, for a row that the other table lacks. */
    final Function2<DataAccessor, DataAccessor, DataAccessor> both(DataScanner leftRows, DataScanner rightRows) {
        DataAccessor noLeft = DataAccessor.ALL_NULLS(leftRows.getFieldNames());
        DataAccessor noRight = DataAccessor.ALL_NULLS(rightRows.getFieldNames());
        return (one, other) -> new ConcatenatedDataAccessor(fields, one != null ? one : noLeft, other != null ? other : noRight);
    }

    static Predicate2<DataAccessor, DataAccessor> meeting(List<CompiledSQLExpression> conditions,
            Function2<DataAccessor, DataAccessor, DataAccessor> both, StatementEvaluationContext context) {
        return (one, other) -> {
            DataAccessor row = both.apply(one, other);
            return conditions.stream().allMatch(condition -> SQLRecordPredicateFunctions.toBoolean(condition.evaluate(row, context)));
        };
    }

    @Override
    public final String getTablespace() {
        return left.getTablespace();
    }

    @Override
    public final Column[] getOutputSchema() {
        return columns;
    }
}
