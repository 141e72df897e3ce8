package herddb.model.planner;

import herddb.codec.RecordSerializer;
import herddb.core.AbstractIndexManager;
import herddb.core.HerdDBInternalException;
import herddb.core.TableManager;
import herddb.core.TableSpaceManager;
import herddb.model.DMLStatement;
import herddb.model.DMLStatementExecutionResult;
import herddb.model.DuplicatePrimaryKeyException;
import herddb.model.GetResult;
import herddb.model.Predicate;
import herddb.model.Record;
import herddb.model.RecordFunction;
import herddb.model.StatementEvaluationContext;
import herddb.model.StatementExecutionException;
import herddb.model.StatementExecutionResult;
import herddb.model.Table;
import herddb.model.TableContext;
import herddb.model.Transaction;
import herddb.model.TransactionContext;
import herddb.model.UniqueIndexContraintViolationException;
import herddb.model.commands.BeginTransactionStatement;
import herddb.model.commands.CommitTransactionStatement;
import herddb.model.commands.DeleteStatement;
import herddb.model.commands.GetStatement;
import herddb.model.commands.InsertStatement;
import herddb.model.commands.RollbackTransactionStatement;
import herddb.model.commands.UpdateStatement;
import herddb.sql.SQLRecordKeyFunction;
import herddb.utils.Bytes;
import herddb.utils.DataAccessor;
import herddb.utils.IllegalDataAccessException;
import io.herdkeeper.node.log.LogFailures;
import io.herdkeeper.node.log.NodeCommitLog;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.function.Supplier;

/**
 * An UPDATE of a key, which deletes each row and inserts another one, instead of HerdDB's class of this name. That one met a key or a value
 * that another row has only when it inserted: the old row was deleted by then, and a COMMIT lost it. This one looks before it changes any.
 *
 * <p>Without its client's transaction the statement has its own, so that no row is lost if the leader ends between the two.
 */
public final class ReplaceOp extends ChangeOp {

    private final boolean returnValues;
    private final RecordFunction keyFunction;
    private final RecordFunction recordFunction;

    /** As HerdDB's planner makes it. */
    public ReplaceOp(String tablespace, String tableName, PlannerOp input, boolean returnValues, RecordFunction keyFunction,
            RecordFunction recordFunction) {
        super(tablespace, tableName, input);
        if (keyFunction instanceof SQLRecordKeyFunction part && !part.isFullPrimaryKey()) {
            throw new StatementExecutionException("an UPDATE of some columns of the key of table " + tableName + " is not supported: HerdDB would"
                    + " store a key without the others, and read no row any more. Set all of them, such as one to itself");
        }
        this.returnValues = returnValues;
        this.keyFunction = keyFunction;
        this.recordFunction = recordFunction;
    }

    /** The row under the new key has all values of the old one. */
    @Override
    boolean needsAllColumns() {
        return true;
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
    private record Value(AbstractIndexManager index, Bytes value) {
    }

    @Override
    public CompletableFuture<StatementExecutionResult> executeAsync(TableSpaceManager manager, TransactionContext transaction,
            StatementEvaluationContext context, boolean lockRequired, boolean forWrite) {
        if (transaction.transactionId > 0) {
            return replace(manager, transaction, context, false);
        }
        return manager.executeStatementAsync(new BeginTransactionStatement(tablespace), context, TransactionContext.NO_TRANSACTION)
                .thenCompose(begun -> replace(manager, new TransactionContext(begun.transactionId), context, true)
                        .exceptionallyCompose(error -> rolledBack(manager, begun.transactionId, context)
                                .handle((done, failed) -> error).thenCompose(CompletableFuture::failedFuture)))
                .thenCompose(changed -> committed((DMLStatementExecutionResult) changed, manager, context));
    }

    /** The client does not learn of the transaction. */
    private CompletableFuture<StatementExecutionResult> committed(
            DMLStatementExecutionResult changed, TableSpaceManager manager, StatementEvaluationContext context) {
        return manager.executeStatementAsync(
                new CommitTransactionStatement(tablespace, changed.transactionId), context, TransactionContext.NO_TRANSACTION)
                .thenApply(done -> new DMLStatementExecutionResult(
                        TransactionContext.NOTRANSACTION_ID, changed.getUpdateCount(), changed.getKey(), changed.getNewvalue()));
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

    /** @param own whether the transaction is this statement's alone */
    private CompletableFuture<StatementExecutionResult> replace(
            TableSpaceManager manager, TransactionContext transaction, StatementEvaluationContext context, boolean own) {
        try {
            List<Change> changes = changes(manager, transaction, context);
            refuseKeys(changes, manager, transaction, context);
            return deleteAndInsert(changes, refuseValues(changes, manager, transaction, own), manager, transaction, context);
        } catch (RuntimeException error) {
            return CompletableFuture.failedFuture(error instanceof HerdDBInternalException ? error
                    : new StatementExecutionException("the statement can't be computed: " + error, error));
        }
    }

    private List<Change> changes(TableSpaceManager manager, TransactionContext transaction, StatementEvaluationContext context) {
        TableManager table = (TableManager) manager.getTableManager(tableName);
        return rows(manager, transaction, context, row -> change(row, table.getTable(), table.buildTableContext(), context));
    }

    private Change change(DataAccessor row, Table table, TableContext tableContext, StatementEvaluationContext context) {
        Record before = new Record(key(row, table), value(row, table));
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
                        + RecordSerializer.deserializePrimaryKey(key, table(manager))
                        + ", already exists in table " + tableName + ": nothing was changed");
            }
        }
    }

    private boolean exists(Bytes key, TableSpaceManager manager, TransactionContext transaction, StatementEvaluationContext context) {
        Transaction own = manager.getTransaction(transaction.transactionId);
        if (own != null && own.recordDeleted(tableName, key)) {
            return false;
        }
        GetStatement committed = new GetStatement(tablespace, tableName, key, null, false);
        return own != null && own.recordInserted(tableName, key) != null
                || ((GetResult) manager.executeStatementAsync(committed, context, TransactionContext.NO_TRANSACTION).join()).found();
    }

    /**
     * An index tells of committed rows only. It has the value of one that the transaction has deleted until the COMMIT.
     *
     * @return by the new key of each row its values, with the key of the row of this statement that each is taken from, or null; empty where
     *         a row can't take any
     */
    private Map<Bytes, Map<Value, Bytes>> refuseValues(
            List<Change> changes, TableSpaceManager manager, TransactionContext transaction, boolean own) {
        Table table = table(manager);
        Map<String, AbstractIndexManager> indexes = manager.getIndexesOnTable(tableName);
        Map<Bytes, Map<Value, Bytes>> given = new HashMap<>();
        Map<Value, Bytes> freed = new HashMap<>();
        Set<Value> taken = new HashSet<>();
        for (AbstractIndexManager index : indexes == null ? List.<AbstractIndexManager>of() : indexes.values()) {
            if (!index.isUnique()) {
                continue;
            }
            for (Change change : changes) {
                Value before = new Value(index, value(change.before, index, table));
                Value after = new Value(index, value(change.after, index, table));
                freed.put(before, change.before.key);
                Bytes from = own ? freed.get(after) : null;
                boolean isOpen = !own && !freed.containsKey(after) && isOfOpenRow(after, table, manager, transaction);
                boolean isFree = after.value != null && taken.add(after) && !isOpen && !index.valueAlreadyMapped(after.value, from);
                if (!isFree) {
                    throw new UniqueIndexContraintViolationException(
                            index.getIndexName(), after.value, refusal(after, change, !own && !isOpen));
                }
                if (own) {
                    given.computeIfAbsent(change.after.key, first -> new HashMap<>()).put(after, from);
                }
            }
        }
        return given;
    }

    private static boolean isOfOpenRow(Value value, Table table, TableSpaceManager manager, TransactionContext transaction) {
        return value.value != null && manager.getLog() instanceof NodeCommitLog log
                && log.isTaken(value.value, value.index, table, manager.getTransaction(transaction.transactionId));
    }

    private String refusal(Value value, Change change, boolean isCommitted) {
        String row = "key " + change.before.key + " of table " + tableName + " is not changed, and neither is another one: ";
        String index = "UNIQUE index " + value.index.getIndexName();
        if (value.value == null) {
            return row + "a row can't be without a value in " + index;
        }
        return isCommitted && !value.index.valueAlreadyMapped(value.value, change.before.key)
                ? row + "in a transaction a row can't keep its value in " + index + " under another key; change the key outside of a transaction"
                : row + "its new value already exists in " + index;
    }

    private static Bytes value(Record row, AbstractIndexManager index, Table table) {
        try {
            return RecordSerializer.serializeIndexKey(row.getDataAccessor(table), index.getIndex(), index.getColumnNames());
        } catch (IllegalArgumentException | IllegalDataAccessException error) {
            throw new StatementExecutionException(error.getMessage(), error);
        }
    }

    private CompletableFuture<StatementExecutionResult> deleteAndInsert(List<Change> changes, Map<Bytes, Map<Value, Bytes>> given,
            TableSpaceManager manager, TransactionContext transaction, StatementEvaluationContext context) {
        CompletableFuture<DMLStatementExecutionResult> last = CompletableFuture.completedFuture(
                new DMLStatementExecutionResult(transaction.transactionId, 0, null, null));
        Table table = table(manager);
        for (Change change : manager.collectChildrenTables(table) == null ? List.<Change>of() : changes) {
            // HerdDB refuses it where other rows refer to the row. The DELETE would delete these, or change them.
            DMLStatement same = new UpdateStatement(tablespace, tableName, change.before, new Unchanged(change.before, table));
            last = last.thenCompose(before -> step(same, manager, transaction, context).thenApply(done -> before));
        }
        for (Change change : changes) {
            DMLStatement delete = new DeleteStatement(tablespace, tableName, change.before.key, new Unchanged(change.before, table));
            DMLStatement insert = new InsertStatement(tablespace, tableName, change.after).setReturnValues(returnValues);
            Map<Value, Bytes> values = given.getOrDefault(change.after.key, Map.of());
            last = last.thenCompose(before -> step(delete, manager, transaction, context).thenApply(done -> found(done, before)))
                    .thenCompose(before -> inserted(() -> step(insert, manager, transaction, context), values, manager, transaction)
                            .thenApply(done -> sum(before, done)));
        }
        return last.thenApply(done -> done);
    }

    /**
     * HerdDB refuses a value of a row that the transaction has deleted, as its index still has it. Then the index forgets such values for a
     * moment. Nobody else can get them: the transaction has locked them. It has locked by then whatever else HerdDB would wait for.
     */
    private static CompletableFuture<StatementExecutionResult> inserted(Supplier<CompletableFuture<StatementExecutionResult>> insert,
            Map<Value, Bytes> values, TableSpaceManager manager, TransactionContext transaction) {
        return insert.get().exceptionallyCompose(refusal -> {
            Map<Value, Bytes> hidden = new HashMap<>(values);
            hidden.values().removeIf(Objects::isNull);
            if (hidden.isEmpty() || !(LogFailures.rootOf(refusal) instanceof UniqueIndexContraintViolationException)) {
                return CompletableFuture.failedFuture(refusal);
            }
            Transaction own = manager.getTransaction(transaction.transactionId);
            own.increaseRefcount(); // HerdDB rolls a transaction back that does nothing for long
            try {
                values.keySet().forEach(value -> lock(value, own));
            } finally {
                own.decreaseRefCount();
            }
            try {
                hidden.forEach((value, key) -> value.index.recordDeleted(key, value.value));
                try {
                    return insert.get();
                } finally {
                    hidden.forEach((value, key) -> value.index.recordInserted(key, value.value));
                }
            } catch (RuntimeException error) {
                if (manager.getLog() instanceof NodeCommitLog log) {
                    log.end(error); // the index may lack a value
                }
                throw error;
            }
        });
    }

    private static void lock(Value value, Transaction own) {
        String index = value.index.getIndexName();
        if (own.lookupLock(index, value.value) == null) {
            own.registerLockOnTable(index, value.index.getLockManager().acquireWriteLockForKey(value.value));
        }
    }

    /** The row counts once, when it is inserted. */
    private DMLStatementExecutionResult found(StatementExecutionResult deleted, DMLStatementExecutionResult before) {
        if (((DMLStatementExecutionResult) deleted).getUpdateCount() == 0) {
            throw new StatementExecutionException("a row of table " + tableName + " was changed or deleted after this statement had read it:"
                    + " its key is not changed; in a transaction, that of other rows may be");
        }
        return before;
    }
}
