package io.herdkeeper.node.statement;

import herddb.codec.RecordSerializer;
import herddb.core.AbstractIndexManager;
import herddb.core.AbstractTableManager;
import herddb.core.DBManager;
import herddb.core.MemoryManager;
import herddb.core.TableManager;
import herddb.core.TableSpaceManager;
import herddb.core.stats.TableSpaceManagerStats;
import herddb.file.FileDataStorageManager;
import herddb.log.CommitLogManager;
import herddb.log.LogNotAvailableException;
import herddb.metadata.MetadataStorageManager;
import herddb.model.Column;
import herddb.model.ColumnTypes;
import herddb.model.DDLStatementExecutionResult;
import herddb.model.DMLStatementExecutionResult;
import herddb.model.DataScanner;
import herddb.model.DataScannerException;
import herddb.model.ExecutionPlan;
import herddb.model.ForeignKeyDef;
import herddb.model.Index;
import herddb.model.NotLeaderException;
import herddb.model.Record;
import herddb.model.ScanResult;
import herddb.model.Statement;
import herddb.model.StatementEvaluationContext;
import herddb.model.StatementExecutionException;
import herddb.model.StatementExecutionResult;
import herddb.model.Table;
import herddb.model.TableDoesNotExistException;
import herddb.model.TableSpace;
import herddb.model.Transaction;
import herddb.model.TransactionContext;
import herddb.model.commands.AlterTableStatement;
import herddb.model.commands.BeginTransactionStatement;
import herddb.model.commands.CommitTransactionStatement;
import herddb.model.commands.CreateIndexStatement;
import herddb.model.commands.CreateTableStatement;
import herddb.model.commands.DropIndexStatement;
import herddb.model.commands.DropTableStatement;
import herddb.model.commands.GetStatement;
import herddb.model.commands.RollbackTransactionStatement;
import herddb.model.commands.SQLPlannedOperationStatement;
import herddb.model.commands.ScanStatement;
import herddb.model.commands.TableConsistencyCheckStatement;
import herddb.model.commands.TableSpaceConsistencyCheckStatement;
import herddb.model.commands.TruncateTableStatement;
import herddb.network.Channel;
import herddb.proto.Pdu;
import herddb.proto.PduCodec;
import herddb.server.Server;
import herddb.server.ServerConfiguration;
import herddb.sql.AbstractSQLPlanner;
import herddb.sql.SQLStatementEvaluationContext;
import herddb.sql.TranslatedQuery;
import herddb.storage.DataStorageManagerException;
import herddb.utils.Bytes;
import herddb.utils.LocalLockManager;
import io.herdkeeper.node.disk.CheckpointFiles;
import io.herdkeeper.node.internals.HerdInternals;
import io.herdkeeper.node.log.LogFailures;
import io.herdkeeper.node.log.NodeCommitLog;
import io.netty.util.concurrent.DefaultThreadFactory;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashSet;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import java.util.concurrent.locks.StampedLock;
import java.util.function.Consumer;
import java.util.function.Supplier;
import java.util.logging.Level;
import java.util.logging.Logger;
import org.apache.bookkeeper.stats.StatsLogger;

/**
 * HerdDB's database, which refuses a TRUNCATE or a change of definitions before it is logged. HerdDB refuses it afterwards.
 *
 * <p>HerdDB logs such a statement, then applies it, and may throw there. The followers apply the entry anyway, or fail at it forever. So
 * these statements run alone in their tablespace, from the check until they are applied. HerdDB runs a TRUNCATE, and a statement that
 * begins an implicit transaction, beside others. {@code docs/refused-statements.md} has every case.
 */
public final class StatementGuard extends DBManager {

    private static final Logger LOGGER = Logger.getLogger(StatementGuard.class.getName());
    /** A statement that waits for a row holds the tablespace, and everybody waits behind a TRUNCATE that waits for it. */
    private static final long TRUNCATE_WAITS_SECONDS = 5;
    private static final int DEFINITION_BYTES = 1 << 20;
    private static final int MOST_COLUMNS = 128;
    private static final long ROOM_FOR_A_BOOT = 64L << 20;
    /** For HerdDB any other number than 0 says that somebody holds the tablespace, and gives it back. */
    private static final long HELD = 1;

    /** The transactions for which a COMMIT or ROLLBACK runs, each as {@code tablespace/id}. */
    private final Set<String> ending = ConcurrentHashMap.newKeySet();
    private final Turns turns = new Turns();
    private final NodePlanner ownPlanner;

    /** In place of the database that a server has made for itself, with the same parts but {@link CheckpointFiles}; before it starts. */
    public static void install(Server server, MetadataStorageManager metadata, ServerConfiguration configuration, StatsLogger statistics) {
        HerdInternals.manager(server,
                new StatementGuard(server, metadata, HerdInternals.logs(server.getManager()), configuration, statistics));
    }

    private StatementGuard(Server server, MetadataStorageManager metadata, CommitLogManager logs, ServerConfiguration configuration,
            StatsLogger statistics) {
        super(server.getNodeId(), metadata, files(server, configuration, statistics), logs, temporaryFolder(configuration),
                server.getServerHostData(), configuration, statistics);
        // HerdDB has 64 of them. A statement waits for a row in one, and the COMMIT that releases the row needs one, too.
        HerdInternals.callbacks(this, Executors.newCachedThreadPool(new DefaultThreadFactory("db-dmlcall")));
        AbstractSQLPlanner planner = getPlanner();
        ownPlanner = new NodePlanner(this, planner, HerdInternals.syntax(), () -> HerdInternals.forgetSchema(planner));
        HerdInternals.planner(this, ownPlanner);
    }

    private static CheckpointFiles files(Server server, ServerConfiguration configuration, StatsLogger statistics) {
        Path folder = HerdInternals.dataFolder((FileDataStorageManager) server.getManager().getDataStorageManager());
        return new CheckpointFiles(folder, temporaryFolder(configuration), configuration, statistics);
    }

    private static Path temporaryFolder(ServerConfiguration configuration) {
        return Path.of(configuration.getString(ServerConfiguration.PROPERTY_BASEDIR, ServerConfiguration.PROPERTY_BASEDIR_DEFAULT))
                .resolve(configuration.getString(ServerConfiguration.PROPERTY_TMPDIR, ServerConfiguration.PROPERTY_TMPDIR_DEFAULT));
    }

    @Override
    public MemoryManager getMemoryManager() {
        MemoryManager memory = super.getMemoryManager();
        return memory == null ? null : HerdInternals.mend(memory);
    }

    /** False also where the disk does not tell: the pass of HerdDB's activator ends with what is thrown here, and no checkpoint is written. */
    @Override
    public boolean isTableSpaceLocallyRecoverable(TableSpace tablespace) {
        try {
            return super.isTableSpaceLocallyRecoverable(tablespace);
        } catch (DataStorageManagerException unknown) {
            LOGGER.log(Level.WARNING, "this node does not promote itself to leader of tablespace {0}: {1}", new Object[]{tablespace.name, unknown});
            return false;
        }
    }

    /** Of each tablespace. HerdDB leaves out those behind one whose checkpoint fails, in each period again. */
    @Override
    public void checkpoint() {
        RuntimeException failed = null;
        for (String name : getLocalTableSpaces()) {
            TableSpaceManager tablespace = getTableSpaceManager(name);
            try {
                if (tablespace != null) {
                    tablespace.checkpoint(false, false, false);
                }
            } catch (RuntimeException error) {
                bootAgainIfUnfit(tablespace, error);
                if (failed == null) {
                    failed = error;
                } else {
                    failed.addSuppressed(error);
                }
            }
        }
        if (failed != null) {
            throw failed;
        }
    }

    /** While the disk is full it goes on as it is, without a checkpoint: it could not boot again. */
    private void bootAgainIfUnfit(TableSpaceManager tablespace, RuntimeException error) {
        CheckpointFiles files = (CheckpointFiles) getDataStorageManager();
        String uuid = tablespace.getTableSpaceUUID();
        TableSpaceManagerStats sizes = tablespace.getStats();
        long written = sizes.getDirtyUsedMemory() + sizes.getDirtypages() * sizes.getMaxLogicalPageSize();
        if (files.isUnfit(uuid) && files.hasRoom(uuid, written + ROOM_FOR_A_BOOT) && tablespace.getLog() instanceof NodeCommitLog log) {
            log.bootAgain(error);
        }
    }

    @Override
    public CompletableFuture<StatementExecutionResult> executeStatementAsync(
            Statement statement, StatementEvaluationContext context, TransactionContext transaction) {
        if (statement instanceof TableConsistencyCheckStatement || statement instanceof TableSpaceConsistencyCheckStatement) {
            return CompletableFuture.failedFuture(new StatementExecutionException("HerdDB's consistency check of "
                    + statement.getTableSpace() + " is refused: its digest can differ between equal copies. Ask for a full check of the"
                    + " tablespace: kubectl annotate tablespace NAME herdkeeper.io/full-check=now"));
        }
        TableSpaceManager tablespace = statement.getTableSpace() == null ? null : getTableSpaceManager(statement.getTableSpace());
        boolean guarded = tablespace != null && tablespace.isLeader() && context.getTableSpaceLock() == 0 && needsTheTablespace(statement);
        if (!guarded) {
            Long ended = endedBy(statement);
            return ended == null ? beside(tablespace, statement, context, transaction) : once(ended, statement, context, transaction);
        }
        try {
            return alone(tablespace, statement, context, transaction);
        } catch (RuntimeException | Error error) {
            return CompletableFuture.failedFuture(error);
        } catch (InterruptedException error) {
            Thread.currentThread().interrupt();
            return CompletableFuture.failedFuture(new StatementExecutionException(error));
        }
    }

    /** HerdDB applies several rows one after the other, and tells only the client when it can't. A statement within this one counts its own. */
    private CompletableFuture<StatementExecutionResult> beside(
            TableSpaceManager tablespace, Statement statement, StatementEvaluationContext context, TransactionContext transaction) {
        int before = NodeCommitLog.rowsOfThisThread();
        NodeCommitLog log = tablespace != null && tablespace.getLog() instanceof NodeCommitLog own ? own : null;
        try {
            CompletableFuture<StatementExecutionResult> result = execute(statement, context, transaction);
            boolean rows = NodeCommitLog.rowsOfThisThread() != before;
            return log == null ? result
                    : result.exceptionallyCompose(error -> CompletableFuture.failedFuture(afterEntries(rows, log, error)));
        } catch (RuntimeException | Error error) {
            if (log != null && afterEntries(NodeCommitLog.rowsOfThisThread() != before, log, error) instanceof LogNotAvailableException unknown) {
                throw unknown;
            }
            throw error;
        } finally {
            NodeCommitLog.rowsOfThisThread(before);
        }
    }

    /** Ends the log where that lacks something, or has what this node has not. Returns what the client is told. */
    private static Throwable afterEntries(boolean logged, NodeCommitLog log, Throwable error) {
        if (logged || isUnexpected(error)) {
            log.end(error);
        }
        return logged ? LogFailures.outcomeUnknown(error) : inWords(error);
    }

    /** HerdDB locks each row's values of unique indexes, and can't lock NULL. It refuses such a row without a word. */
    private static Throwable inWords(Throwable error) {
        Throwable root = LogFailures.rootOf(error);
        boolean isOfALock = root instanceof NullPointerException && Arrays.stream(root.getStackTrace())
                .anyMatch(frame -> frame.getClassName().equals(LocalLockManager.class.getName()));
        return !isOfALock ? error : new StatementExecutionException("a row needs a value in the first column of each unique index: give it one."
                + " If it is to be deleted, give it one by an UPDATE first, or drop the index", error);
    }

    /** An Error, as without memory, comes from anywhere: nobody knows what HerdDB has done by then, and what it still holds. */
    private static boolean isUnexpected(Throwable error) {
        return LogFailures.rootOf(error) instanceof Error;
    }

    /**
     * Executes a statement, in a transaction that is begun for it where that is asked for. It is rolled back if the statement fails: its client
     * would not learn which one it is, and its rows would stay locked.
     *
     * <p>HerdDB begins the transaction of a change with a query as it reads the rows, and leaves it open if it can't read or change one, or finds
     * none. After an Error nothing is rolled back here: HerdDB would wait for ever for the statement that met it, since nothing tells the
     * transaction that it has ended. The log that ends then rolls it back.
     */
    private CompletableFuture<StatementExecutionResult> execute(
            Statement statement, StatementEvaluationContext context, TransactionContext transaction) {
        boolean begins = statement.supportsTransactionAutoCreate() || statement instanceof SQLPlannedOperationStatement && !isQuery(statement);
        if (transaction.transactionId != TransactionContext.AUTOTRANSACTION_ID || !begins) {
            return answered(statement, context, transaction);
        }
        long held = context.getTableSpaceLock();
        // In another thread: this one releases HerdDB's lock of the tablespace only afterwards.
        return answered(new BeginTransactionStatement(statement.getTableSpace()), context, TransactionContext.NO_TRANSACTION)
                .thenComposeAsync(begun -> {
                    context.setTableSpaceLock(held); // HerdDB has noted its own here
                    TransactionContext own = new TransactionContext(begun.transactionId);
                    return answered(statement, context, own)
                            .exceptionallyCompose(error -> rolledBack(own, error, statement.getTableSpace(), context, held));
                }, getCallbacksExecutor());
    }

    private CompletableFuture<StatementExecutionResult> rolledBack(
            TransactionContext own, Throwable error, String name, StatementEvaluationContext context, long held) {
        TableSpaceManager tablespace = getTableSpaceManager(name);
        if (isUnexpected(error) || tablespace == null) {
            return CompletableFuture.failedFuture(error);
        }
        endRead(tablespace.getTransaction(own.transactionId), 0); // a ROLLBACK would wait for what has failed
        context.setTableSpaceLock(held);
        CompletableFuture<StatementExecutionResult> failed = answered(
                new RollbackTransactionStatement(name, own.transactionId), context, TransactionContext.NO_TRANSACTION)
                .handle((done, notRolledBack) -> error).thenCompose(CompletableFuture::failedFuture);
        return orNotLeader(failed, tablespace, "; transaction " + own.transactionId + " is rolled back");
    }

    /** Outside of a transaction a statement that fails keeps no lock. It has changed nothing by then, or the log has ended. */
    private CompletableFuture<StatementExecutionResult> answered(
            Statement statement, StatementEvaluationContext context, TransactionContext transaction) {
        return transaction.transactionId == TransactionContext.NOTRANSACTION_ID
                ? LocalLockManager.letGoOnFailure(() -> orEnded(statement, context, transaction)) : orEnded(statement, context, transaction);
    }

    /**
     * HerdDB answers what it expects; when it throws, it keeps the tablespace's lock, and the node could not stop leading. A transaction
     * counts the statement as under way for ever, and nobody can end it. Within a change a lock of the table is kept, for which the next
     * checkpoint would wait for ever. So the log ends, and the tablespace boots without it. What HerdDB throws, as while it stops, goes on: the
     * connection ends with it, and its client knows that the outcome is unknown. Where it throws as it reads the rows for a change, nothing is
     * changed.
     */
    private CompletableFuture<StatementExecutionResult> orEnded(
            Statement statement, StatementEvaluationContext context, TransactionContext transaction) {
        long held = context.getTableSpaceLock();
        // Asked for before: it may have stopped by the time at which HerdDB throws.
        TableSpaceManager tablespace = statement.getTableSpace() == null ? null : getTableSpaceManager(statement.getTableSpace());
        Transaction open = tablespace == null ? null : tablespace.getTransaction(transaction.transactionId);
        int before = open == null ? 0 : open.getRefCount();
        try {
            // Here, since a statement whose transaction is begun for it runs in another thread than the one that asked for it.
            return NodeCommitLog.rows(() -> super.executeStatementAsync(statement, context, transaction));
        } catch (RuntimeException | Error error) {
            if (held == 0 && context.getTableSpaceLock() != 0 && tablespace != null) {
                HerdInternals.statementLock(tablespace).unlockRead(context.getTableSpaceLock());
                context.setTableSpaceLock(0);
            }
            if (error instanceof RuntimeException && statement instanceof SQLPlannedOperationStatement && hasChangedNoTable(error)) {
                endRead(open, before);
                return CompletableFuture.failedFuture(new StatementExecutionException("the statement can't be computed: " + error, error));
            }
            boolean mayHaveChanged = transaction.transactionId > 0 || isUnexpected(error) || !hasChangedNoTable(error);
            if (mayHaveChanged && tablespace != null && tablespace.isLeader() && !tablespace.isClosed()
                    && tablespace.getLog() instanceof NodeCommitLog log) {
                log.end(error);
            }
            throw error;
        }
    }

    /** HerdDB reads all rows for such a statement before it changes one. If it throws within a change, it keeps a lock of the table. */
    private static boolean hasChangedNoTable(Throwable error) {
        StackTraceElement[] frames = error.getStackTrace();
        return frames.length > 0 && Arrays.stream(frames).noneMatch(frame -> frame.getClassName().equals(TableManager.class.getName())
                && frame.getMethodName().equals("executeStatementAsync"));
    }

    private static void endRead(Transaction open, int before) {
        while (open != null && open.getRefCount() > before) {
            open.decreaseRefCount();
        }
    }

    /** HerdDB undoes a transaction when its COMMIT can't be logged, also when another COMMIT of it has been. */
    private CompletableFuture<StatementExecutionResult> once(
            long ended, Statement statement, StatementEvaluationContext context, TransactionContext transaction) {
        String key = statement.getTableSpace() + "/" + ended;
        if (!ending.add(key)) {
            return CompletableFuture.failedFuture(
                    new StatementExecutionException("transaction " + ended + " is being ended by another statement: that one gets the result"));
        }
        try {
            return super.executeStatementAsync(statement, context, transaction).whenComplete((done, error) -> ending.remove(key));
        } catch (RuntimeException | Error error) {
            ending.remove(key);
            throw error;
        }
    }

    @Override
    public CompletableFuture<StatementExecutionResult> executePlanAsync(
            ExecutionPlan plan, StatementEvaluationContext context, TransactionContext transaction) {
        CompletableFuture<StatementExecutionResult> result = BatchedStatement.begin(() -> inTurn(plan, context, transaction), transaction,
                getCallbacksExecutor(), error -> rolledBack(transaction, error, plan.mainStatement.getTableSpace(), context, 0));
        return plan.mainStatement instanceof ScanStatement query && context instanceof SQLStatementEvaluationContext sql
                && sql.constants.get(NodePlanner.PLANNED) instanceof Table table ? result.thenApply(done -> asPlanned(done, query, table)) : result;
    }

    private StatementExecutionResult asPlanned(StatementExecutionResult result, ScanStatement query, Table table) {
        return !(result instanceof ScanResult found) ? result : new ScanResult(result.transactionId, new PlannedRows(found.dataScanner, table, () -> {
            TableSpaceManager tablespace = getTableSpaceManager(query.getTableSpace());
            AbstractTableManager read = tablespace == null ? null : tablespace.getTableManager(query.getTable());
            return read == null ? null : read.getTable();
        }));
    }

    /** A statement of a transaction waits for those of the same transaction that came before. */
    private CompletableFuture<StatementExecutionResult> inTurn(
            ExecutionPlan plan, StatementEvaluationContext context, TransactionContext transaction) {
        Statement statement = plan.mainStatement;
        if (statement == null || statement.getTableSpace() == null) {
            return super.executePlanAsync(plan, context, transaction);
        }
        if (transaction.transactionId <= 0) {
            TableSpaceManager tablespace = getTableSpaceManager(statement.getTableSpace());
            CompletableFuture<StatementExecutionResult> result = super.executePlanAsync(plan, context, transaction);
            return isQuery(statement) ? orNotLeader(result, tablespace, "") : result;
        }
        return turns.take(turn(statement.getTableSpace(), transaction), () -> within(plan, context, transaction));
    }

    /**
     * HerdDB's way to check a foreign key and to follow it: a statement within the one that changes a row, and that holds the tablespace. HerdDB
     * would take it once more: behind a checkpoint that waits for the first statement, neither would ever end.
     */
    @Override
    public StatementExecutionResult executeSimpleStatement(String tablespace, String query, List<Object> parameters, int maxRows,
            boolean keepReadLocks, TransactionContext transaction, StatementEvaluationContext context) {
        Cascade cascade = Cascade.of(tablespace, query, parameters);
        if (cascade != null && transaction.transactionId <= 0 && cascade.comesBack(getTableSpaceManager(tablespace))) {
            try (DataScanner rows = executeSimpleQuery(tablespace, cascade.query(), parameters, 1, false, transaction, null)) {
                cascade.refuseWithoutTransaction(rows.hasNext());
            } catch (DataScannerException error) {
                throw new StatementExecutionException(error);
            }
            return new DMLStatementExecutionResult(transaction.transactionId, 0, null, null);
        }
        try {
            return Cascade.within(cascade, () -> Turns.within(turn(tablespace, transaction), () -> {
                TranslatedQuery translated = getPlanner().translate(tablespace, query, parameters, true, true, false, maxRows);
                StatementEvaluationContext own = context == null ? translated.context : context;
                translated.context.setForceRetainReadLock(keepReadLocks);
                translated.context.setTableSpaceLock(HELD);
                return executePlan(translated.plan, own, transaction);
            }));
        } catch (NotLeaderException error) {
            if (transaction.transactionId > 0) {
                throw error;
            }
            // Clients repeat the whole statement on the next leader. The log may have other rows of it.
            throw new StatementExecutionException(
                    new LogNotAvailableException("rows of the statement may be durable: " + error.getMessage(), error));
        }
    }

    private static String turn(String tablespace, TransactionContext transaction) {
        return tablespace + "/" + transaction.transactionId;
    }

    /**
     * Of a statement within a transaction that fails since this node stops leading, nothing is left: the next leader rolls the transaction
     * back. So the client is told to ask that one, and not which of HerdDB's parts was closed already. A COMMIT or an index may be in the
     * log, and an ALTER TABLE commits first.
     */
    private CompletableFuture<StatementExecutionResult> within(
            ExecutionPlan plan, StatementEvaluationContext context, TransactionContext transaction) {
        Statement statement = plan.mainStatement;
        TableSpaceManager tablespace = getTableSpaceManager(statement.getTableSpace());
        CompletableFuture<StatementExecutionResult> result = read(plan, context, transaction,
                tablespace == null ? null : tablespace.getTransaction(transaction.transactionId));
        if (tablespace == null || endedBy(statement) != null || statement instanceof AlterTableStatement
                || statement instanceof CreateIndexStatement) {
            return result;
        }
        return orNotLeader(result, tablespace, "; transaction " + transaction.transactionId + " is rolled back");
    }

    private static boolean isQuery(Statement statement) {
        return statement instanceof ScanStatement || statement instanceof GetStatement
                || statement instanceof SQLPlannedOperationStatement rows && rows.getRootOp().getOutputSchema().length > 0;
    }

    /** What fails since this node stops leading may be asked of the next leader. {@code consequence} ends the message. */
    private CompletableFuture<StatementExecutionResult> orNotLeader(
            CompletableFuture<StatementExecutionResult> result, TableSpaceManager tablespace, String consequence) {
        return tablespace == null ? result : result.exceptionallyCompose(error -> CompletableFuture.failedFuture(
                tablespace.isClosed() || tablespace.isFailed()
                        ? new NotLeaderException("node " + getNodeId() + " does not lead tablespace " + tablespace.getTableSpaceName()
                                + " any more" + consequence)
                        : error));
    }

    /** HerdDB forgets the scanners of a query that fails, and a COMMIT or ROLLBACK would wait for them for ever. */
    private CompletableFuture<StatementExecutionResult> read(
            ExecutionPlan plan, StatementEvaluationContext context, TransactionContext transaction, Transaction open) {
        int before = open == null ? 0 : open.getRefCount();
        CompletableFuture<StatementExecutionResult> result = super.executePlanAsync(plan, context, transaction);
        if (result.isCompletedExceptionally()) {
            endRead(open, before);
        }
        return result.thenApply(done -> done instanceof ScanResult scanned
                ? new ScanResult(scanned.transactionId, new TransactionScanner(scanned.dataScanner)) : done);
    }

    /**
     * Only a follower asks for a dump without the log. It reads that itself, and can't apply it without the transactions that are open.
     *
     * <p>HerdDB says nothing when it can't send all, as where a COMMIT drops a table meanwhile. Who asked for it would wait for an hour, and its
     * node would boot no other tablespace.
     */
    @Override
    public void dumpTableSpace(String tablespace, String dumpId, Pdu message, Channel channel, int fetchSize, boolean includeLog) {
        boolean sent = false;
        try {
            sent = NodeCommitLog.sendTables(!includeLog,
                    () -> super.dumpTableSpace(tablespace, dumpId, message, channel, fetchSize, true));
        } finally {
            if (!sent) {
                long id = channel.generateRequestId();
                channel.sendOneWayMessage(PduCodec.TablespaceDumpData.write(id, tablespace, dumpId, "error", null, 0, 0, 0, null, null),
                        error -> { });
            }
        }
    }

    private static Long endedBy(Statement statement) {
        if (statement instanceof CommitTransactionStatement commit) {
            return commit.getTransactionId();
        }
        return statement instanceof RollbackTransactionStatement rollback ? rollback.getTransactionId() : null;
    }

    private static boolean needsTheTablespace(Statement statement) {
        return statement instanceof TruncateTableStatement || statement instanceof AlterTableStatement
                || statement instanceof CreateTableStatement || statement instanceof DropTableStatement
                || statement instanceof CreateIndexStatement || statement instanceof DropIndexStatement;
    }

    private CompletableFuture<StatementExecutionResult> alone(TableSpaceManager tablespace, Statement statement,
            StatementEvaluationContext context, TransactionContext transaction) throws InterruptedException {
        StampedLock lock = HerdInternals.statementLock(tablespace);
        long stamp = lock(lock, statement);
        context.setTableSpaceLock(stamp);
        NodeCommitLog log = tablespace.getLog() instanceof NodeCommitLog own ? own : null;
        long before = log == null ? 0 : log.definitions();
        Runnable altered = statement instanceof AlterTableStatement ? ownPlanner.alters(tablespace.getTableSpaceName()) : () -> { };
        CompletableFuture<StatementExecutionResult> result;
        try {
            refuse(tablespace, statement, transaction);
            result = statement instanceof CreateIndexStatement index ? makeIndex(tablespace, index, context, transaction)
                    : execute(statement, context, transaction);
        } catch (RuntimeException | Error error) {
            result = CompletableFuture.failedFuture(error);
        }
        return result.exceptionallyCompose(error -> CompletableFuture.failedFuture(
                log == null ? error : afterEntries(log.definitions() != before, log, error))).whenComplete((done, error) -> {
            try {
                altered.run();
                HerdInternals.keepLists(tablespace);
                HerdInternals.renewReferences(tablespace, Set.of());
            } finally {
                context.setTableSpaceLock(0);
                lock.unlockWrite(stamp);
            }
        });
    }

    /**
     * Makes an index outside of transactions, unless its own one has made the table. HerdDB leaves an index of a ROLLBACK: no node can use it,
     * and none can apply a TRUNCATE of its table until it has booted from a later checkpoint. The transaction stays open.
     */
    private CompletableFuture<StatementExecutionResult> makeIndex(TableSpaceManager tablespace, CreateIndexStatement statement,
            StatementEvaluationContext context, TransactionContext transaction) {
        Transaction own = tablespace.getTransaction(transaction.transactionId);
        if (makesTheTable(own, statement.getIndexDefinition()) || own == null && transaction.transactionId > 0) {
            return execute(statement, context, transaction); // HerdDB says that there is no such transaction
        }
        CompletableFuture<StatementExecutionResult> made = execute(statement, context, TransactionContext.NO_TRANSACTION);
        return own == null ? made : made.thenApply(done -> {
            own.touch();
            return new DDLStatementExecutionResult(own.transactionId);
        });
    }

    private static boolean makesTheTable(Transaction own, Index index) {
        return own != null && own.isNewTable(index.table);
    }

    private static long lock(StampedLock lock, Statement statement) throws InterruptedException {
        if (!(statement instanceof TruncateTableStatement truncate)) {
            return lock.writeLock();
        }
        long stamp = lock.tryWriteLock(TRUNCATE_WAITS_SECONDS, TimeUnit.SECONDS);
        if (stamp == 0) {
            throw new StatementExecutionException("TRUNCATE TABLE " + truncate.getTableSpace() + "." + truncate.getTable()
                    + " needs the tablespace to itself, and other statements have not ended within " + TRUNCATE_WAITS_SECONDS
                    + " s: nothing was changed, try again");
        }
        return stamp;
    }

    private static void refuse(TableSpaceManager tablespace, Statement statement, TransactionContext transaction) {
        if (statement instanceof TruncateTableStatement truncate) {
            refuseTruncate(tablespace, truncate.getTable());
        } else if (statement instanceof DropTableStatement drop) {
            refuseSystemTable(tablespace, drop.getTable());
            refuseUncommitted(tablespace, drop.getTable(), null);
        } else if (statement instanceof DropIndexStatement drop) {
            for (Table table : tablespace.getAllTablesForPlanner()) {
                Map<String, AbstractIndexManager> indexes = tablespace.getIndexesOnTable(table.name);
                AbstractIndexManager index = indexes == null ? null : indexes.get(drop.getIndexName());
                if (index != null && index.getCreatedInTransaction() > 0) {
                    refuseUncommitted(tablespace, table.name, null);
                }
            }
        } else if (statement instanceof CreateIndexStatement index) {
            refuseSystemTable(tablespace, index.getIndexDefinition().table);
            refuseUnwritable(index.getIndexDefinition()::serialize);
            refuseIndex(tablespace, index.getIndexDefinition(), transaction);
        } else if (statement instanceof AlterTableStatement alter && alter.getNewTableName() != null) {
            refuseUncommitted(tablespace, alter.getTable(), transaction);
            refuseRename(tablespace, alter, transaction);
        } else if (statement instanceof AlterTableStatement alter) {
            refuseUncommitted(tablespace, alter.getTable(), transaction);
            AbstractTableManager altered = tablespace.getTableManager(alter.getTable());
            if (altered != null) {
                refuseUnwritable(() -> altered.getTable().applyAlterTable(alter).serialize());
                refuseUnreadColumns(altered.getTable(), alter);
            }
            refuseLostColumns(tablespace, alter, transaction);
            refuseParents(tablespace, alter.getAddForeignKeys(), transaction);
            refuseUncheckedRows(tablespace, alter, transaction);
        } else if (statement instanceof CreateTableStatement create) {
            Table table = create.getTableDefinition();
            refuseUnwritable(table::serialize);
            create.getAdditionalIndexes().forEach(index -> refuseUnwritable(index::serialize));
            refuseUncommitted(tablespace, table.name, transaction);
            refuseName(tablespace, table.name);
            refuseTwins(table, create.getAdditionalIndexes());
            if (tablespace.getTableManager(table.name) == null) {
                refuseUnreadColumns(table, Set.of());
                create.getAdditionalIndexes().forEach(index -> refuseNameOfATable(tablespace, index, table.name));
            }
            refuseParents(tablespace, table.foreignKeys == null ? List.of() : List.of(table.foreignKeys), transaction);
        }
    }

    /** HerdDB logs a DROP of one and can't apply it, then or at any later boot. It compares names without regard to case. */
    private static void refuseSystemTable(TableSpaceManager tablespace, String table) {
        AbstractTableManager manager = tablespace.getTableManager(table.toLowerCase(Locale.ROOT));
        if (manager != null && manager.isSystemTable()) {
            throw new StatementExecutionException("nothing was changed: " + table + " is one of HerdDB's system tables, which it makes itself");
        }
    }

    /**
     * Refuses to drop or alter a table whose transaction is still open.
     *
     * <p>HerdDB allows it to any session. If that transaction is rolled back after the DROP, the table comes back on each node that boots from a
     * later local checkpoint, and on no other. Names are compared without regard to case, as by HerdDB.
     *
     * @param own the transaction that asks, which may go on with its own table; null where it may not
     */
    private static void refuseUncommitted(TableSpaceManager tablespace, String table, TransactionContext own) {
        for (Table other : tablespace.getAllTablesForPlanner()) {
            AbstractTableManager manager = other.name.equalsIgnoreCase(table) ? tablespace.getTableManager(other.name) : null;
            long maker = manager == null ? 0 : manager.getCreatedInTransaction();
            if (maker > 0 && (own == null || own.transactionId != maker)) {
                throw new StatementExecutionException("nothing was changed: transaction " + maker + " makes the table " + other.name
                        + " and has not been committed; commit it or roll it back first");
            }
        }
    }

    /**
     * HerdDB notes a transaction's locks by the names of tables and of unique indexes. What it locked by one name would be unlocked once by a
     * table and once by an index: the COMMIT would end the log.
     */
    private static void refuseNameOfATable(TableSpaceManager tablespace, Index index, String table) {
        if (!index.unique || uniqueIndex(tablespace, index.name) != null) {
            return; // HerdDB says so
        }
        if (index.name.equals(table) || tablespace.getTableManager(index.name) != null) {
            throw new StatementExecutionException("the unique index " + index.name + " of table " + table
                    + " can't have the name of a table in tablespace " + tablespace.getTableSpaceName()
                    + ", and nothing was changed: give it another name");
        }
        if (isInATransaction(tablespace, index.name, TransactionContext.NOTRANSACTION_ID)) {
            throw new StatementExecutionException("there can't be a unique index " + index.name + " in tablespace "
                    + tablespace.getTableSpaceName() + " yet, and nothing was changed: a transaction is open on an earlier table or index "
                    + index.name + ", which was dropped; commit it or roll it back first");
        }
    }

    private static AbstractIndexManager uniqueIndex(TableSpaceManager tablespace, String name) {
        return tablespace.getAllTablesForPlanner().stream().map(table -> tablespace.getIndexesOnTable(table.name)).filter(Objects::nonNull)
                .map(indexes -> indexes.get(name)).filter(index -> index != null && index.isUnique()).findAny().orElse(null);
    }

    /**
     * HerdDB applies a COMMIT by the names of tables: what the transaction did to a table that was dropped meanwhile would be done to this
     * one, which lacks the rows.
     */
    private static void refuseName(TableSpaceManager tablespace, String table) {
        if (tablespace.getTableManager(table) != null) {
            return;
        }
        if (isInATransaction(tablespace, table, TransactionContext.NOTRANSACTION_ID)) {
            throw new StatementExecutionException("there can't be a table " + tablespace.getTableSpaceName() + "." + table
                    + " yet, and nothing was changed: a transaction is open on an earlier table " + table
                    + ", which was dropped; commit it or roll it back first");
        }
        AbstractIndexManager index = uniqueIndex(tablespace, table);
        if (index != null) {
            throw new StatementExecutionException("a table in tablespace " + tablespace.getTableSpaceName() + " can't have the name " + table
                    + " of the unique index on table " + index.getIndex().table + ", and nothing was changed: give it another name");
        }
    }

    /** HerdDB throws at a name of more than 64 KiB, and BookKeeper takes no entry of some megabytes: both would end the log. */
    private static void refuseUnwritable(Supplier<byte[]> definition) {
        int size;
        try {
            size = definition.get().length;
        } catch (IllegalArgumentException expected) {
            return; // HerdDB says so
        } catch (RuntimeException error) {
            throw new StatementExecutionException("the definition can't be written, and nothing was changed: " + LogFailures.rootOf(error), error);
        }
        if (size > DEFINITION_BYTES) {
            throw new StatementExecutionException("the definition would have " + size + " bytes, and may have " + DEFINITION_BYTES
                    + ": nothing was changed");
        }
    }

    private static void refuseUnreadColumns(Table before, AlterTableStatement alter) {
        Set<Integer> known = new HashSet<>();
        for (Column column : before.columns) {
            known.add(column.serialPosition);
        }
        try {
            refuseUnreadColumns(before.applyAlterTable(alter), known);
        } catch (IllegalArgumentException expected) {
            // HerdDB says so
        }
    }

    /**
     * A row has its values by the numbers of their columns. HerdDB takes a number above 127 for the row's end
     * ({@code ByteArrayCursor.readVIntNoEOFException}): it returns NULL from there on, and an UPDATE loses the values.
     */
    private static void refuseUnreadColumns(Table table, Set<Integer> known) {
        for (Column column : table.columns) {
            if (column.serialPosition >= MOST_COLUMNS && !known.contains(column.serialPosition)) {
                throw new StatementExecutionException("nothing was changed: HerdDB reads " + MOST_COLUMNS
                        + " columns of a table, dropped ones included, and the column " + column.name + " of table " + table.tablespace + "."
                        + table.name + " would come after them. Divide the columns among several tables or, if columns were dropped, copy"
                        + " the rows to a new table");
            }
        }
    }

    /** HerdDB goes by names: the second index would replace the first, which no row is compared by. */
    private static void refuseTwins(Table table, List<Index> indexes) {
        Set<String> names = new HashSet<>();
        for (Index index : indexes) {
            if (!names.add(index.name)) {
                throw new StatementExecutionException("there can't be two indexes " + index.name + " of table " + table.name
                        + ", and nothing was changed: give one another name");
            }
        }
    }

    /**
     * HerdDB drops columns with an index, and drops and renames those of foreign keys. Then it logs a DELETE that no node can apply, and
     * refuses whatever looks for a parent or a child.
     */
    private static void refuseLostColumns(TableSpaceManager tablespace, AlterTableStatement alter, TransactionContext transaction) {
        AbstractTableManager manager = tablespace.getTableManager(alter.getTable());
        if (manager == null) {
            return; // HerdDB says so
        }
        Table table = manager.getTable();
        Set<String> lost = new HashSet<>();
        alter.getDropColumns().forEach(column -> lost.add(column.toLowerCase(Locale.ROOT)));
        for (Column changed : alter.getModifyColumns()) {
            Column before = table.getColumnBySerialPosition(changed.serialPosition);
            if (before != null && !before.name.equals(changed.name)) {
                lost.add(before.name);
            }
        }
        String refused = "column " + String.join(", ", lost) + " of table " + tablespace.getTableSpaceName() + "." + table.name
                + " stays as it is, since ";
        Transaction own = tablespace.getTransaction(transaction.transactionId);
        Map<String, AbstractIndexManager> indexes = tablespace.getIndexesOnTable(table.name);
        for (AbstractIndexManager index : indexes == null ? List.<AbstractIndexManager>of() : List.copyOf(indexes.values())) {
            boolean dropped = own != null && own.droppedIndexes != null && own.droppedIndexes.contains(index.getIndexName());
            if (!dropped && !Collections.disjoint(lost, List.of(index.getColumnNames()))) {
                throw new StatementExecutionException(refused + "the index " + index.getIndexName() + " needs it: drop that first");
            }
        }
        for (Table child : tablespace.getAllTablesForPlanner()) {
            for (ForeignKeyDef key : child.foreignKeys == null ? new ForeignKeyDef[0] : child.foreignKeys) {
                if (child.uuid.equals(table.uuid) && !Collections.disjoint(lost, List.of(key.columns))
                        || key.parentTableId.equals(table.uuid) && !Collections.disjoint(lost, List.of(key.parentTableColumns))) {
                    throw new StatementExecutionException(
                            refused + "the foreign key " + key.name + " of table " + child.name + " needs it: drop that first");
                }
            }
        }
    }

    /** HerdDB looks for a NULL, or for a row without its parent, among the rows that are committed. */
    private static void refuseUncheckedRows(TableSpaceManager tablespace, AlterTableStatement alter, TransactionContext transaction) {
        AbstractTableManager altered = tablespace.getTableManager(alter.getTable());
        if (altered == null) {
            return; // HerdDB says so
        }
        Set<String> checked = new HashSet<>();
        for (Column changed : alter.getModifyColumns()) {
            Column before = altered.getTable().getColumnBySerialPosition(changed.serialPosition);
            if (before != null && !ColumnTypes.isNotNullDataType(before.type) && ColumnTypes.isNotNullDataType(changed.type)) {
                checked.add(alter.getTable());
            }
        }
        for (ForeignKeyDef key : alter.getAddForeignKeys()) {
            checked.add(alter.getTable());
            tablespace.getAllTablesForPlanner().stream().filter(table -> table.uuid.equals(key.parentTableId))
                    .forEach(parent -> checked.add(parent.name));
        }
        for (String table : checked) {
            if (isInATransaction(tablespace, table, transaction.transactionId)) {
                throw new StatementExecutionException("ALTER TABLE " + tablespace.getTableSpaceName() + "." + alter.getTable()
                        + " is refused, and nothing was changed: a transaction is open on table " + table
                        + ", so its rows can't be checked; commit it or roll it back first");
            }
        }
    }

    /**
     * HerdDB takes a table for a parent that a transaction has dropped, or that another one has made. Once it is gone, each INSERT of a child
     * would fail and keep a lock of its table, of which no checkpoint could be written any more. At a parent in another tablespace it throws
     * what it does not expect itself.
     */
    private static void refuseParents(TableSpaceManager tablespace, List<ForeignKeyDef> keys, TransactionContext transaction) {
        Transaction own = tablespace.getTransaction(transaction.transactionId);
        for (ForeignKeyDef key : keys) {
            Table parent = tablespace.getAllTablesForPlanner().stream()
                    .filter(table -> table.uuid.equals(key.parentTableId)).findAny().orElse(null);
            if (parent == null) {
                throw new StatementExecutionException("the foreign key " + key.name + " is refused, and nothing was changed: there is no such"
                        + " parent table in tablespace " + tablespace.getTableSpaceName());
            }
            refuseSystemTable(tablespace, parent.name);
            String refused = "the foreign key " + key.name + " is refused, and nothing was changed: a transaction ";
            String open = " has not been committed; commit it or roll it back first";
            if (tablespace.getTransactions().stream().anyMatch(each -> each.isTableDropped(parent.name))) {
                throw new StatementExecutionException(refused + "that drops the table " + parent.name + open);
            }
            if (tablespace.getTableManager(parent.name).getCreatedInTransaction() > 0 && (own == null || !own.isNewTable(parent.name))) {
                throw new StatementExecutionException(refused + "that makes the table " + parent.name + open);
            }
        }
    }

    /**
     * HerdDB logs an index first and reads all rows for it then, which waits in vain for those that another transaction has locked.
     *
     * <p>Another statement may have changed the table since this one was planned. Over a column that is gone, no node could apply a change of a
     * row.
     *
     * <p>An index on a table that its own transaction has dropped would outlive it, without its files. The next table of that name would get
     * it, and no node could write a checkpoint of that table.
     */
    private static void refuseIndex(TableSpaceManager tablespace, Index index, TransactionContext transaction) {
        String table = index.table;
        Transaction own = tablespace.getTransaction(transaction.transactionId);
        if (tablespace.getTableManager(table) == null || own != null && own.isTableDropped(table)) {
            throw new TableDoesNotExistException("no table " + table + " in tablespace " + tablespace.getTableSpaceName()
                    + ": it was dropped or renamed");
        }
        String refused = "CREATE INDEX on " + tablespace.getTableSpaceName() + "." + table + " is refused, and nothing was changed: ";
        for (Column column : index.columns) {
            Column now = tablespace.getTableManager(table).getTable().getColumn(column.name);
            if (now == null || now.type != column.type) {
                throw new StatementExecutionException(refused + "the column " + column.name + " was changed or dropped meanwhile");
            }
        }
        if (isInATransaction(tablespace, table, transaction.transactionId)) {
            throw new StatementExecutionException(refused + "a transaction is open on it; commit it or roll it back first");
        }
        if (!makesTheTable(own, index) && locksRows(own, table)) {
            throw new StatementExecutionException(refused + "it is made outside of transactions, and this transaction has changed or locked"
                    + " rows of the table; commit it or roll it back first");
        }
        refuseNameOfATable(tablespace, index, table);
        if (tablespace.getTransactions().stream().anyMatch(each -> each.isIndexDropped(index.name))) {
            throw new StatementExecutionException(refused + "a transaction drops an index " + index.name
                    + ", and its COMMIT would drop this one; commit it or roll it back first");
        }
        if (index.unique && !ColumnTypes.isNotNullDataType(index.columns[0].type)) {
            refuseRowsWithoutValue((TableManager) tablespace.getTableManager(table), index, own, refused);
        }
    }

    /** HerdDB refuses such a row once the index is there: it could not be changed or deleted, and no restore could load it. */
    private static void refuseRowsWithoutValue(TableManager manager, Index index, Transaction own, String refused) {
        Table table = manager.getTable();
        String column = index.columnNames[0];
        AtomicReference<Bytes> found = new AtomicReference<>();
        Consumer<Record> look = row -> {
            if (row.getDataAccessor(table).get(column) == null) {
                found.set(row.key);
            }
        };
        manager.scanForIndexRebuild(look);
        if (own != null) {
            own.newRecords.getOrDefault(table.name, Map.of()).values().forEach(look);
        }
        if (found.get() != null) {
            throw new StatementExecutionException(refused + "the row with the key "
                    + RecordSerializer.deserializePrimaryKey(found.get(), table) + " has no value in the column " + column
                    + ": give it one, or delete it, and others like it");
        }
    }

    /** HerdDB reads for an index without the transaction, so it would wait for its own lock. Nobody would hold the values of its rows. */
    private static boolean locksRows(Transaction own, String table) {
        Map<?, ?> locked = own == null ? null : own.locks.get(table);
        return locked != null && !locked.isEmpty();
    }

    private static void refuseTruncate(TableSpaceManager tablespace, String table) {
        AbstractTableManager manager = tablespace.getTableManager(table);
        if (manager == null) {
            return; // HerdDB says so
        }
        String refused = "TRUNCATE TABLE " + tablespace.getTableSpaceName() + "." + table + " is refused, and nothing was changed: ";
        if (manager.getCreatedInTransaction() > 0) {
            throw new StatementExecutionException(refused + "the transaction that creates the table is open");
        }
        if (isInATransaction(tablespace, table, 0)) {
            throw new StatementExecutionException(refused + "a transaction is open on it; commit it or roll it back first");
        }
        Map<String, AbstractIndexManager> indexes = tablespace.getIndexesOnTable(table);
        if (indexes != null && !indexes.values().stream().allMatch(AbstractIndexManager::isAvailable)) {
            throw new StatementExecutionException(
                    refused + "an earlier version left an index of it unusable, since its transaction was rolled back; drop the index");
        }
    }

    /**
     * HerdDB would put the table in the other one's place, and lose what a transaction has changed under the old name. An index keeps the old
     * name: the next boot would leave it out, or take it for one of another table, and none would come to an end behind its DROP.
     */
    private static void refuseRename(TableSpaceManager tablespace, AlterTableStatement alter, TransactionContext transaction) {
        String refused = "table " + tablespace.getTableSpaceName() + "." + alter.getTable() + " is not renamed: ";
        boolean renames = !alter.getNewTableName().equalsIgnoreCase(alter.getTable());
        if (renames && tablespace.getTableManager(alter.getNewTableName()) != null) {
            throw new StatementExecutionException(refused + "there is a table " + alter.getNewTableName());
        }
        if (isInATransaction(tablespace, alter.getTable(), transaction.transactionId)) {
            throw new StatementExecutionException(refused + "a transaction is open on it; commit it or roll it back first");
        }
        Map<String, AbstractIndexManager> indexes = tablespace.getIndexesOnTable(alter.getTable());
        if (renames && indexes != null) {
            throw new StatementExecutionException(refused + "the index " + String.join(", ", indexes.keySet())
                    + " would be lost; drop it first, and create it again");
        }
        refuseName(tablespace, alter.getNewTableName());
    }

    private static boolean isInATransaction(TableSpaceManager tablespace, String table, long ownTransaction) {
        return tablespace.getTransactions().stream().anyMatch(open -> open.transactionId != ownTransaction
                && (open.isOnTable(table) || open.changedRecords.containsKey(table)));
    }
}
