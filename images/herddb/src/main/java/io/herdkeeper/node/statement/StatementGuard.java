package io.herdkeeper.node.statement;

import herddb.core.DBManager;
import herddb.core.MemoryManager;
import herddb.core.TableManager;
import herddb.core.TableSpaceManager;
import herddb.core.stats.TableSpaceManagerStats;
import herddb.file.FileDataStorageManager;
import herddb.index.TableKeys;
import herddb.log.CommitLogManager;
import herddb.log.LogNotAvailableException;
import herddb.metadata.MetadataStorageManager;
import herddb.model.DDLStatementExecutionResult;
import herddb.model.DMLStatementExecutionResult;
import herddb.model.DataScanner;
import herddb.model.DataScannerException;
import herddb.model.ExecutionPlan;
import herddb.model.NotLeaderException;
import herddb.model.ScanResult;
import herddb.model.Statement;
import herddb.model.StatementEvaluationContext;
import herddb.model.StatementExecutionException;
import herddb.model.StatementExecutionResult;
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
import herddb.model.planner.PlannedRows;
import herddb.network.Channel;
import herddb.proto.Pdu;
import herddb.proto.PduCodec;
import herddb.server.Server;
import herddb.server.ServerConfiguration;
import herddb.sql.AbstractSQLPlanner;
import herddb.sql.TranslatedQuery;
import herddb.storage.DataStorageManagerException;
import herddb.utils.LocalLockManager;
import io.herdkeeper.node.disk.CheckpointFiles;
import io.herdkeeper.node.internals.HerdInternals;
import io.herdkeeper.node.log.LogFailures;
import io.herdkeeper.node.log.NodeCommitLog;
import io.netty.util.concurrent.DefaultThreadFactory;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Executors;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.StampedLock;
import java.util.logging.Level;
import java.util.logging.Logger;
import org.apache.bookkeeper.stats.StatsLogger;

/**
 * HerdDB's database, which refuses a TRUNCATE or a change of definitions before it is logged. HerdDB refuses it afterwards.
 *
 * <p>HerdDB logs such a statement, then applies it, and may throw there. The followers apply the entry anyway, or fail at it forever. So
 * these statements run alone in their tablespace, from the check until they are applied. HerdDB runs a TRUNCATE, and a statement that
 * begins an implicit transaction, beside others. {@link DefinitionRefusals} has what is refused, and {@code docs/refused-statements.md} every case.
 */
public final class StatementGuard extends DBManager {

    private static final Logger LOGGER = Logger.getLogger(StatementGuard.class.getName());
    /** A statement that waits for a row holds the tablespace, and everybody waits behind a TRUNCATE that waits for it. */
    private static final long TRUNCATE_WAITS_SECONDS = 5;
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
        // HerdDB begins at 1. A client that was paused over a restart may send the number of an earlier process, for which another statement has it.
        HerdInternals.numberStatementsFrom(this, ThreadLocalRandom.current().nextLong(Long.MAX_VALUE / 2));
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
            return TableKeys.within(open, () -> NodeCommitLog.rows(() -> super.executeStatementAsync(statement, context, transaction)));
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
        return BatchedStatement.begin(() -> inTurn(plan, context, transaction), transaction,
                getCallbacksExecutor(), error -> rolledBack(transaction, error, plan.mainStatement.getTableSpace(), context, 0));
    }

    @Override
    public DataScanner scan(ScanStatement query, StatementEvaluationContext context, TransactionContext transaction) {
        TableSpaceManager tablespace = getTableSpaceManager(query.getTableSpace());
        Transaction own = tablespace == null ? null : tablespace.getTransaction(transaction.transactionId);
        return PlannedRows.of(query, tablespace, () -> TableKeys.within(own, () -> super.scan(query, context, transaction)));
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
        ExecutionPlan own = statement.getTableSpace().equals(getVirtualTableSpaceId()) ? inItsTablespace(plan, transaction) : plan;
        return turns.take(turn(own.mainStatement.getTableSpace(), transaction), () -> within(own, context, transaction));
    }

    private ExecutionPlan inItsTablespace(ExecutionPlan plan, TransactionContext transaction) {
        String own = getLocalTableSpaces().stream().filter(name -> {
            TableSpaceManager tablespace = getTableSpaceManager(name);
            return tablespace != null && tablespace.getTransaction(transaction.transactionId) != null;
        }).findAny().orElse(null);
        return own != null && plan.mainStatement instanceof SQLPlannedOperationStatement values
                ? new WithoutTable(values.getRootOp(), own).plan() : plan;
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
            sent = ((CheckpointFiles) getDataStorageManager()).download(() -> NodeCommitLog.sendTables(!includeLog,
                    () -> super.dumpTableSpace(tablespace, dumpId, message, channel, fetchSize, true)));
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
            DefinitionRefusals.refuse(tablespace, statement, transaction);
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
        if (IndexRefusals.makesTheTable(own, statement.getIndexDefinition()) || own == null && transaction.transactionId > 0) {
            return execute(statement, context, transaction); // HerdDB says that there is no such transaction
        }
        CompletableFuture<StatementExecutionResult> made = execute(statement, context, TransactionContext.NO_TRANSACTION);
        return own == null ? made : made.thenApply(done -> {
            own.touch();
            return new DDLStatementExecutionResult(own.transactionId);
        });
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
}
