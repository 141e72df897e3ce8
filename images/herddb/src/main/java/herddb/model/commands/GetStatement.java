package herddb.model.commands;

import herddb.codec.RecordSerializer;
import herddb.core.AbstractTableManager;
import herddb.core.TableSpaceManager;
import herddb.model.Column;
import herddb.model.ConstValueRecordFunction;
import herddb.model.DataScanner;
import herddb.model.DataScannerException;
import herddb.model.GetResult;
import herddb.model.Predicate;
import herddb.model.Record;
import herddb.model.RecordFunction;
import herddb.model.StatementEvaluationContext;
import herddb.model.StatementExecutionException;
import herddb.model.StatementExecutionResult;
import herddb.model.Table;
import herddb.model.TableDoesNotExistException;
import herddb.model.TransactionContext;
import herddb.model.planner.PlannerOp;
import herddb.utils.Bytes;

/**
 * A read of one row by its key, instead of HerdDB's class of this name. It is executed as any other query. HerdDB's own way keeps a lock of
 * the table, and one of the tablespace, if the read waits in vain for a row, or can't be computed. The next checkpoint would wait for these
 * for ever.
 */
public final class GetStatement extends SQLPlannedOperationStatement {

    private final Predicate condition;

    public GetStatement(String tablespace, String table, Bytes key, Predicate predicate, boolean requireLock) {
        this(tablespace, table, new ConstValueRecordFunction(key), predicate, requireLock);
    }

    /** @param requireLock without effect: outside of a transaction no query waits for a row */
    public GetStatement(String tablespace, String table, RecordFunction key, Predicate predicate, boolean requireLock) {
        this(tablespace, table, ChangeStatement.condition(key, predicate));
    }

    private GetStatement(String tablespace, String table, Predicate condition) {
        super(new Query(tablespace, table, condition));
        this.condition = condition;
    }

    /** As of HerdDB's class. */
    @Override
    public boolean supportsTransactionAutoCreate() {
        return true;
    }

    @Override
    public void validateContext(StatementEvaluationContext context) throws StatementExecutionException {
        condition.validateContext(context);
    }

    private record Query(String tablespace, String table, Predicate condition) implements PlannerOp {

        @Override
        public String getTablespace() {
            return tablespace;
        }

        @Override
        public StatementExecutionResult execute(TableSpaceManager manager, TransactionContext transaction,
                StatementEvaluationContext context, boolean lockRequired, boolean forWrite) {
            AbstractTableManager read = manager.getTableManager(table);
            if (read == null) {
                throw new TableDoesNotExistException("no table " + table + " in tablespace " + tablespace);
            }
            Table rows = read.getTable();
            ScanStatement scan = new ScanStatement(tablespace, rows, condition);
            try (DataScanner found = manager.scan(scan, context, transaction, lockRequired, forWrite)) {
                if (!found.hasNext()) {
                    return GetResult.NOT_FOUND(transaction.transactionId);
                }
                Record row = RecordSerializer.toRecord(found.next().toMap(), rows);
                return new GetResult(transaction.transactionId, new Record(row.key, row.value), rows);
            } catch (DataScannerException error) {
                throw new StatementExecutionException(error);
            }
        }

        @Override
        public Column[] getOutputSchema() {
            return new Column[0];
        }
    }
}
