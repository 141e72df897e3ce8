package herddb.model.planner;

import herddb.codec.RecordSerializer;
import herddb.core.AbstractIndexManager;
import herddb.core.HerdDBInternalException;
import herddb.core.TableManager;
import herddb.core.TableSpaceManager;
import herddb.model.Column;
import herddb.model.DMLStatement;
import herddb.model.DMLStatementExecutionResult;
import herddb.model.DataScanner;
import herddb.model.DataScannerException;
import herddb.model.DuplicatePrimaryKeyException;
import herddb.model.GetResult;
import herddb.model.Predicate;
import herddb.model.Record;
import herddb.model.RecordFunction;
import herddb.model.ScanResult;
import herddb.model.StatementEvaluationContext;
import herddb.model.StatementExecutionException;
import herddb.model.StatementExecutionResult;
import herddb.model.Table;
import herddb.model.TableAwareStatement;
import herddb.model.TableContext;
import herddb.model.Transaction;
import herddb.model.TransactionContext;
import herddb.model.UniqueIndexContraintViolationException;
import herddb.model.commands.DeleteStatement;
import herddb.model.commands.GetStatement;
import herddb.model.commands.InsertStatement;
import herddb.model.commands.RollbackTransactionStatement;
import herddb.utils.Bytes;
import herddb.utils.DataAccessor;
import herddb.utils.IllegalDataAccessException;
import herddb.utils.Wrapper;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletableFuture;

/**
 * An UPDATE of a key, which deletes each row and inserts another one, instead of HerdDB's class of this name. That one met a key or a value
 * that another row has only when it inserted: the old row was deleted by then, and a COMMIT lost it. This one looks before it changes any.
 */
public final class ReplaceOp implements PlannerOp {

    private final String tablespace;
    private final String tableName;
    private final PlannerOp input;
    private final boolean returnValues;
    private final RecordFunction keyFunction;
    private final RecordFunction recordFunction;

    /** As HerdDB's planner makes it. */
    public ReplaceOp(String tablespace, String tableName, PlannerOp input, boolean returnValues, RecordFunction keyFunction,
            RecordFunction recordFunction) {
        this.tablespace = tablespace;
        this.tableName = tableName;
        this.input = input.optimize();
        this.returnValues = returnValues;
        this.keyFunction = keyFunction;
        this.recordFunction = recordFunction;
    }

    /** A row and what comes in its place. */
    private record Change(Record before, Record after) {
    }

    /** Still as it was read: another statement may have changed a row, and the insert would undo that. */
    private static final class Unchanged extends Predicate {

        private final Record before;
        private final Table table;

        Unchanged(Record before, Table table) {
            this.before = before;
            this.table = table;
        }

        /** Of the rows that its transaction has inserted, HerdDB asks for each. */
        @Override
        public boolean evaluate(Record row, StatementEvaluationContext context) {
            return row.key.equals(before.key) && value(row.getDataAccessor(table), table).equals(before.value);
        }
    }

    /** A value of a unique index. */
    private record Value(String index, Bytes value) {
    }

    @Override
    public String getTablespace() {
        return tablespace;
    }

    @Override
    public CompletableFuture<StatementExecutionResult> executeAsync(TableSpaceManager manager, TransactionContext transaction,
            StatementEvaluationContext context, boolean lockRequired, boolean forWrite) {
        ScanResult rows = (ScanResult) input.execute(manager, transaction, context, true, true);
        long reading = rows.dataScanner.getTransactionId();
        TransactionContext begun = reading > 0 ? new TransactionContext(reading) : transaction;
        CompletableFuture<StatementExecutionResult> result;
        try {
            result = replace(rows, manager, begun, context);
        } catch (RuntimeException error) {
            result = CompletableFuture.failedFuture(error instanceof HerdDBInternalException ? error
                    : new StatementExecutionException("the statement can't be computed: " + error, error));
        }
        if (transaction.transactionId != TransactionContext.AUTOTRANSACTION_ID || reading <= 0) {
            return result;
        }
        return result.exceptionallyCompose(error -> rolledBack(manager, reading, context)
                .handle((done, failed) -> error).thenCompose(CompletableFuture::failedFuture));
    }

    /** The client does not learn of a transaction that was begun for a statement that fails, and its rows would stay locked. */
    private CompletableFuture<StatementExecutionResult> rolledBack(TableSpaceManager manager, long begun, StatementEvaluationContext context) {
        Transaction own = manager.getTransaction(begun);
        while (own != null && own.getRefCount() > 0) {
            own.decreaseRefCount(); // HerdDB forgets the scanners of a query that fails, and a ROLLBACK would wait for them for ever
        }
        return manager.executeStatementAsync(
                new RollbackTransactionStatement(tablespace, begun), context, TransactionContext.NO_TRANSACTION);
    }

    private CompletableFuture<StatementExecutionResult> replace(
            ScanResult rows, TableSpaceManager manager, TransactionContext transaction, StatementEvaluationContext context) {
        TableManager table = (TableManager) manager.getTableManager(tableName);
        List<Change> changes = new ArrayList<>();
        try (DataScanner scanner = rows.dataScanner) {
            while (scanner.hasNext()) {
                changes.add(change(scanner.next(), table.getTable(), table.buildTableContext(), context));
            }
        } catch (DataScannerException error) {
            throw new StatementExecutionException(error);
        }
        if (changes.isEmpty()) {
            return CompletableFuture.completedFuture(new DMLStatementExecutionResult(transaction.transactionId, 0, null, null));
        }
        refuseKeys(changes, manager, transaction, context);
        refuseValues(changes, manager, table.getTable(), transaction);
        return deleteAndInsert(changes, manager, transaction, context);
    }

    private Change change(DataAccessor row, Table table, TableContext tableContext, StatementEvaluationContext context) {
        Record before = new Record(RecordSerializer.serializeIndexKey(row, table, table.getPrimaryKey()), value(row, table));
        return new Change(before, new Record(Bytes.from_array(keyFunction.computeNewValue(before, context, tableContext)),
                Bytes.from_array(recordFunction.computeNewValue(before, context, tableContext))));
    }

    private static Bytes value(DataAccessor row, Table table) {
        return Bytes.from_array(RecordSerializer.serializeValueRaw(row.toMap(), table, -1));
    }

    private void refuseKeys(
            List<Change> changes, TableSpaceManager manager, TransactionContext transaction, StatementEvaluationContext context) {
        Set<Bytes> deleted = new HashSet<>();
        Set<Bytes> inserted = new HashSet<>();
        for (Change change : changes) {
            Bytes key = change.after.key;
            deleted.add(change.before.key);
            boolean isTaken = !inserted.add(key) || !deleted.contains(key) && exists(key, manager, transaction, context);
            if (isTaken) {
                throw new DuplicatePrimaryKeyException(key, "key " + key + ", decoded as "
                        + RecordSerializer.deserializePrimaryKey(key, manager.getTableManager(tableName).getTable())
                        + ", already exists in table " + tableName + ": nothing was changed");
            }
        }
    }

    /** Without a lock: HerdDB keeps one of the table when a read waits in vain. */
    private boolean exists(Bytes key, TableSpaceManager manager, TransactionContext transaction, StatementEvaluationContext context) {
        Transaction own = manager.getTransaction(transaction.transactionId);
        if (own != null && own.recordDeleted(tableName, key)) {
            return false;
        }
        GetStatement committed = new GetStatement(tablespace, tableName, key, null, false);
        return own != null && own.recordInserted(tableName, key) != null
                || ((GetResult) manager.executeStatementAsync(committed, context, TransactionContext.NO_TRANSACTION).join()).found();
    }

    /** An index tells of committed rows only, so that one which the transaction has deleted keeps its value until the COMMIT. */
    private void refuseValues(List<Change> changes, TableSpaceManager manager, Table table, TransactionContext transaction) {
        Map<String, AbstractIndexManager> indexes = manager.getIndexesOnTable(tableName);
        boolean inTransaction = transaction.transactionId != TransactionContext.NOTRANSACTION_ID;
        Set<Value> freed = new HashSet<>();
        Set<Value> taken = new HashSet<>();
        for (AbstractIndexManager index : indexes == null ? List.<AbstractIndexManager>of() : indexes.values()) {
            if (!index.isUnique()) {
                continue;
            }
            Map<Bytes, Bytes> open = keysOfOpenRows(manager.getTransaction(transaction.transactionId), index, table);
            for (Change change : changes) {
                Bytes before = value(change.before, index, table);
                Bytes after = value(change.after, index, table);
                open.remove(before, change.before.key);
                if (after == null) {
                    continue;
                }
                Value value = new Value(index.getIndexName(), after);
                freed.add(new Value(index.getIndexName(), before));
                boolean isFree = taken.add(value) && !open.containsKey(after) && (inTransaction ? !index.valueAlreadyMapped(after, null)
                        : freed.contains(value) || !index.valueAlreadyMapped(after, change.before.key));
                if (!isFree) {
                    throw new UniqueIndexContraintViolationException(index.getIndexName(), after,
                            refusal(index, after, change, inTransaction && !open.containsKey(after)));
                }
            }
        }
    }

    /** The keys of the rows that the transaction has made or changed, by their values of an index. */
    private static Map<Bytes, Bytes> keysOfOpenRows(Transaction open, AbstractIndexManager index, Table table) {
        Map<Bytes, Bytes> keys = new HashMap<>();
        if (open != null) {
            for (Map<String, Map<Bytes, Record>> rows : List.of(open.newRecords, open.changedRecords)) {
                rows.getOrDefault(table.name, Map.of()).values().forEach(row -> keys.put(value(row, index, table), row.key));
            }
        }
        return keys;
    }

    private String refusal(AbstractIndexManager index, Bytes value, Change change, boolean inTransaction) {
        String row = "key " + change.before.key + " of table " + tableName + " is not changed, and neither is another one: ";
        return inTransaction && !index.valueAlreadyMapped(value, change.before.key)
                ? row + "in a transaction a row can't keep its value in UNIQUE index " + index.getIndexName()
                        + " under another key; change the key outside of a transaction"
                : row + "its new value already exists in UNIQUE index " + index.getIndexName();
    }

    private static Bytes value(Record row, AbstractIndexManager index, Table table) {
        try {
            return RecordSerializer.serializeIndexKey(row.getDataAccessor(table), index.getIndex(), index.getColumnNames());
        } catch (IllegalArgumentException | IllegalDataAccessException error) {
            throw new StatementExecutionException(error.getMessage(), error);
        }
    }

    private CompletableFuture<StatementExecutionResult> deleteAndInsert(
            List<Change> changes, TableSpaceManager manager, TransactionContext transaction, StatementEvaluationContext context) {
        CompletableFuture<StatementExecutionResult> last = CompletableFuture.completedFuture(
                new DMLStatementExecutionResult(transaction.transactionId, 0, null, null));
        Table table = manager.getTableManager(tableName).getTable();
        for (Change change : changes) {
            DMLStatement delete = new DeleteStatement(tablespace, tableName, change.before.key, new Unchanged(change.before, table));
            DMLStatement insert = new InsertStatement(tablespace, tableName, change.after).setReturnValues(returnValues);
            for (DMLStatement step : List.of(delete, insert)) {
                last = last.thenCompose(before -> manager.executeStatementAsync(step, context, new TransactionContext(before.transactionId))
                        .thenApply(after -> added((DMLStatementExecutionResult) before, (DMLStatementExecutionResult) after)));
            }
        }
        return last;
    }

    private DMLStatementExecutionResult added(DMLStatementExecutionResult before, DMLStatementExecutionResult after) {
        if (after.getUpdateCount() == 0) {
            throw new StatementExecutionException("another statement has changed or deleted a row of table " + tableName
                    + " meanwhile: its key is not changed, and that of other rows may be");
        }
        return new DMLStatementExecutionResult(
                after.transactionId, before.getUpdateCount() + after.getUpdateCount(), after.getKey(), after.getNewvalue());
    }

    @Override
    public <T> T unwrap(Class<T> type) {
        return type.isAssignableFrom(TableAwareStatement.class)
                ? type.cast(new TableAwareStatement(tableName, tablespace) {
                }) : Wrapper.unwrap(this, type);
    }

    @Override
    public Column[] getOutputSchema() {
        return new Column[0];
    }
}
