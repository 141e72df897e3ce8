package io.herdkeeper.node.log;

import herddb.cluster.BookkeeperCommitLog;
import herddb.cluster.LedgersInfo;
import herddb.cluster.ZookeeperMetadataStorageManager;
import herddb.core.AbstractIndexManager;
import herddb.core.TableSpaceManager;
import herddb.log.CommitLogListener;
import herddb.log.CommitLogResult;
import herddb.log.FullRecoveryNeededException;
import herddb.log.LogEntry;
import herddb.log.LogEntryFactory;
import herddb.log.LogEntryType;
import herddb.log.LogNotAvailableException;
import herddb.log.LogSequenceNumber;
import herddb.model.RecordTooBigException;
import herddb.model.Table;
import herddb.model.Transaction;
import herddb.model.UniqueIndexContraintViolationException;
import herddb.storage.DataStorageManagerException;
import herddb.utils.Bytes;
import io.herdkeeper.node.internals.HerdInternals;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.Lock;
import java.util.concurrent.locks.LockSupport;
import java.util.concurrent.locks.ReentrantReadWriteLock;
import java.util.concurrent.locks.StampedLock;
import java.util.function.BiConsumer;
import java.util.function.BooleanSupplier;
import java.util.function.Supplier;
import java.util.logging.Level;
import java.util.logging.Logger;
import org.apache.bookkeeper.client.BKException.BKClientClosedException;
import org.apache.bookkeeper.client.BKException.BKNoSuchLedgerExistsOnMetadataServerException;
import org.apache.bookkeeper.client.BKException.BKNotEnoughBookiesException;
import org.apache.bookkeeper.client.BookKeeper;
import org.apache.bookkeeper.client.LedgerHandle;
import org.apache.bookkeeper.client.LedgersWithOwnPasswords;
import org.apache.bookkeeper.client.api.BKException;
import org.apache.bookkeeper.client.api.LedgerMetadata;

/**
 * HerdDB's log on BookKeeper, with the holes of its replication closed.
 *
 * <ul>
 * <li>A follower reads every ledger from its first entry ({@link FollowerReader}) and notices a gap
 *     ({@link LogContinuity}).
 * <li>A new leader writes only after exactly the ledgers that it has fenced and replayed ({@link #startWriting}), and asks for
 *     none that its local checkpoint replaces ({@link LedgerList}).
 * <li>A COMMIT that drops a table or an index is applied after all that the log has before it ({@link Unapplied}).
 * <li>A leader's transaction ids are above those of all earlier leaders ({@link TransactionIds}).
 * <li>A ledger is never closed between a write's choice of it and the write ({@link #rollNewLedger}), and can be closed on
 *     request ({@link #closeLedger}).
 * <li>Its oldest ledgers are dropped one by one, beside the statements ({@link #dropOldest}); HerdDB's own release is off.
 * <li>The ledgers of a database that this program has founded have passwords of their own, and a listed ledger that is another tablespace's
 *     is neither opened nor dropped ({@link LedgersWithOwnPasswords}).
 * <li>A node with a barred replica never promotes itself ({@link PromotionBars}).
 * <li>A follower can be held after one entry ({@link #gate()}), pauses for a moment when there is nothing to read, and waits for nothing
 *     once its node is the assigned leader ({@link FollowerEnd}).
 * </ul>
 */
public class NodeCommitLog extends BookkeeperCommitLog {

    private static final Logger LOGGER = Logger.getLogger(NodeCommitLog.class.getName());

    /** What HerdDB gives each ledger as its password. */
    private static final byte[] HERDDB_PASSWORD = "herddb".getBytes(StandardCharsets.UTF_8);

    /** HerdDB closes the tablespace right after it has read the record: the follower must not keep a core until then. */
    private static final long END_PAUSE_MILLIS = 1;

    /** How long a requested close, or a dump, waits for the bookies' answers; writes wait for it meanwhile. */
    private static final long ANSWERS_SECONDS = 2;
    private static final long POLL_NANOS = 200_000;
    private static final long METADATA_SECONDS = 10;
    /** While bookies lack, they are asked for again each time a full ledger has grown by this part of its limit. */
    private static final int PART_OF_A_FULL_LEDGER = 16;

    /** The entry that a thread is applying to the tables of a follower, or of a copy that boots. */
    private static final ThreadLocal<LogSequenceNumber> APPLYING = new ThreadLocal<>();
    private static final ThreadLocal<Sending> SENDING = new ThreadLocal<>();
    /** The log to which a thread writes the several rows of a statement. */
    private static final ThreadLocal<NodeCommitLog> WRITING_ROWS = new ThreadLocal<>();

    private final FollowerGate gate = new FollowerGate();
    private final FollowerEnd end = new FollowerEnd();
    private final FollowerReader reader;
    private final LogContinuity continuity;
    private final TransactionEnds ends = new TransactionEnds();
    private final Unapplied unapplied = new Unapplied();
    private final UniqueValues values = new UniqueValues();
    private final AtomicLong definitions = new AtomicLong();
    /** How many of HerdDB's entries were written that are neither in its last sequence number nor known to have failed. */
    private final AtomicLong unanswered = new AtomicLong();
    private final String tableSpaceName;
    private final NodeCommitLogManager manager;
    /** Shared by a statement from the first of its several rows to the last; exclusive for a COMMIT that drops something. */
    private final ReentrantReadWriteLock statements = new ReentrantReadWriteLock();
    /** Shared by writes; exclusive for closing the ledger that they go to. */
    private final ReentrantReadWriteLock rolls = new ReentrantReadWriteLock();
    private final LedgerList list;
    private final String tableSpaceUuid;
    private final String nodeId;

    private final IdlePause pause = new IdlePause();
    private volatile long rollAboveBytes = Long.MAX_VALUE;
    /** Of the ledger that is written, once it was full and bookies for the next one lacked; else 0. */
    private volatile long rollAgainAboveBytes;
    private volatile int replicas;
    /** As many expected replicas as bookies lacked for at last. */
    private int lackingReplicas;
    private volatile LogSequenceNumber applied = LogSequenceNumber.START_OF_TIME;
    /** The entry that a follower could not apply, or is applying; null else. */
    private volatile LogSequenceNumber refused;
    private volatile boolean writing;
    private volatile boolean failureTold;
    private volatile TableSpaceManager tablespace;
    private volatile RetainedLog retained;
    /** The ledgers that {@link #recovery} has fenced and replayed; null before. */
    private List<Long> fencedLedgers;

    NodeCommitLog(LogIdentity identity, ZookeeperMetadataStorageManager metadata, NodeCommitLogManager manager) {
        this(identity, new LedgerList(metadata, why -> manager.stuckReplays().lost(identity.tableSpaceUuid(), StuckReplays.ALL_LEDGERS, why)),
                manager);
    }

    private NodeCommitLog(LogIdentity identity, LedgerList list, NodeCommitLogManager manager) {
        this(identity, list, new LedgersWithOwnPasswords(manager.getBookKeeper(), identity.tableSpaceUuid(),
                (ledger, why) -> manager.stuckReplays().foreign(identity.tableSpaceUuid(), ledger, why), HERDDB_PASSWORD,
                () -> hasHerdDBsPassword(list, manager.getBookKeeper())), manager);
    }

    private NodeCommitLog(LogIdentity identity, LedgerList list, LedgersWithOwnPasswords own, NodeCommitLogManager manager) {
        super(identity.tableSpaceUuid(), identity.tableSpaceName(), identity.nodeId(), list, own, manager);
        this.tableSpaceName = identity.tableSpaceName();
        this.tableSpaceUuid = identity.tableSpaceUuid();
        this.nodeId = identity.nodeId();
        this.manager = manager;
        this.list = list;
        Supplier<List<Long>> ledgers = () -> list.asItIs(identity.tableSpaceUuid()).getActiveLedgers();
        this.reader = new FollowerReader(own, ledgers, gate, end);
        this.continuity = new LogContinuity(own, ledgers);
    }

    /**
     * Whether the newest ledger of the default tablespace that is not lost has HerdDB's password: an earlier version of this program has
     * founded the database. Where all are lost that version could not go on either.
     */
    private static boolean hasHerdDBsPassword(LedgerList list, BookKeeper client) {
        List<Long> newestFirst = list.ofDefaultTablespace().stream().sorted(Comparator.reverseOrder()).toList();
        if (!newestFirst.isEmpty() && LogContinuity.metadata(client, newestFirst.get(0)) == null) {
            LogContinuity.catchUp(client, newestFirst.get(0)); // the member of ZooKeeper that is asked may be behind
        }
        return newestFirst.stream().map(ledger -> LogContinuity.metadata(client, ledger)).filter(Objects::nonNull).findFirst()
                .map(newest -> Arrays.equals(newest.getPassword(), HERDDB_PASSWORD)).orElse(false);
    }

    /** Whose log this is. */
    record LogIdentity(String tableSpaceUuid, String tableSpaceName, String nodeId) {
    }

    /** Holds this log's follower; without effect on a leader. */
    public FollowerGate gate() {
        return gate;
    }

    /** Has the follower wait for nothing while the record names its node as the leader: HerdDB is about to stop it, and to boot. */
    void namedLeader(String leader, int recordVersion) {
        end.near(leader.equals(nodeId), recordVersion);
    }

    LogContinuity continuity() {
        return continuity;
    }

    /** The last entry whose effect is in the tables: for a leader, the last one that was acknowledged. */
    public LogSequenceNumber appliedPosition() {
        return writing ? super.getLastSequenceNumber() : applied;
    }

    /**
     * The same while nothing is being applied; else null. On a leader statements hold the tablespace's lock from before they are logged
     * until they are applied.
     */
    public LogSequenceNumber settledPosition() {
        TableSpaceManager led = tablespace;
        StampedLock statements = led == null ? null : HerdInternals.statementLock(led);
        boolean busy = writing ? statements == null || statements.isReadLocked() || statements.isWriteLocked() : refused != null;
        return busy ? null : appliedPosition();
    }

    /**
     * The same as {@link #appliedPosition}, which is where HerdDB writes a checkpoint. HerdDB's own log would tell of an entry that a
     * follower has read and not applied.
     *
     * <p>While nobody writes, this waits for the bookies: see {@link #requireAnswers}.
     *
     * @throws LogNotAvailableException when this follower could not apply an entry: what it has of that one may be half of it; or when this
     *                                  leader's log has failed: HerdDB forgets a transaction whose COMMIT it could not write, which the log
     *                                  may have all the same; or when this log is closed: so are the tables, and HerdDB would write a
     *                                  checkpoint of them without their indexes, from which nothing boots; or when the bookies don't answer
     */
    @Override
    public LogSequenceNumber getLastSequenceNumber() {
        LogSequenceNumber applying = APPLYING.get();
        if (applying != null) {
            return applying; // a table that this entry's transaction has made is written to the disk within the entry
        }
        if (isClosed()) {
            throw new LogNotAvailableException("tablespace " + tableSpaceName + " has stopped on this node: no checkpoint of it is written");
        }
        if (refused != null) {
            throw new LogNotAvailableException(
                    "tablespace " + tableSpaceName + " failed at " + refused + ": no checkpoint of it is written");
        }
        TableSpaceManager led = tablespace;
        if (writing && led != null && HerdInternals.statementLock(led).isWriteLocked()) {
            requireAnswers();
        }
        if (!writing) {
            return appliedPosition();
        }
        // A ledger that is being opened has HerdDB's position before it is listed. If it never is, nothing boots from a checkpoint there.
        rolls.readLock().lock();
        try {
            if (endsBehindALoss() || isFailed()) {
                throw new LogNotAvailableException("the log of tablespace " + tableSpaceName + " has failed: no checkpoint of it is written");
            }
            Sending sending = SENDING.get();
            if (sending != null && led != null && !HerdInternals.statementLock(led).isWriteLocked()) {
                sending.complete = true; // with this position HerdDB tells the receiver that it has sent all
            }
            return appliedPosition();
        } finally {
            rolls.readLock().unlock();
        }
    }

    /**
     * Replays the log. Where that lacks entries, HerdDB's own download would leave out the open transactions: see {@link Download}.
     *
     * @throws LogNotAvailableException also where an entry can't be applied. HerdDB closes a copy whose boot ends so, or by a
     *                                  {@link DataStorageManagerException}, and no other: its pages would stay in memory. When another
     *                                  tablespace needs that memory, they would be written over the pages that the next boot has written
     */
    @Override
    public void recovery(
            LogSequenceNumber snapshot, BiConsumer<LogSequenceNumber, LogEntry> consumer, boolean fencing) {
        manager.stuckReplays().refuseTooSoon(tableSpaceUuid);
        try {
            replayOrDownload(snapshot, consumer, fencing);
        } catch (LogNotAvailableException | DataStorageManagerException closed) {
            throw closed;
        } catch (RuntimeException error) {
            throw new LogNotAvailableException("the log of tablespace " + tableSpaceName + " can't be replayed", error);
        }
    }

    private void replayOrDownload(LogSequenceNumber snapshot, BiConsumer<LogSequenceNumber, LogEntry> consumer, boolean fencing) {
        try {
            replay(snapshot, consumer, fencing);
            return;
        } catch (FullRecoveryNeededException perhaps) {
            // A member of ZooKeeper may be behind, and not show the newest ledgers: then a good copy would be erased.
            list.catchUp(tableSpaceUuid);
            LogContinuity.catchUp(manager.getBookKeeper(), Math.max(snapshot.ledgerId, 0));
        }
        try {
            replay(snapshot, consumer, fencing);
        } catch (FullRecoveryNeededException gap) {
            Download download = downloaded(HerdInternals.recovering(consumer), gap, snapshot);
            LogSequenceNumber position = download.getLogSequenceNumber();
            download.open().forEach(entry -> apply(position, entry, () -> consumer.accept(position, entry)));
            replay(position, consumer, fencing);
        }
    }

    /** @throws LogNotAvailableException as of {@link Download#into}; told, where a listed ledger is gone and nobody else leads */
    private Download downloaded(TableSpaceManager copy, FullRecoveryNeededException gap, LogSequenceNumber snapshot) {
        try {
            return Download.into(copy, gap);
        } catch (FullRecoveryNeededException nobodyElse) {
            for (long ledger : list.asItIs(tableSpaceUuid).getActiveLedgers()) {
                if (ledger >= snapshot.ledgerId && LogContinuity.metadata(manager.getBookKeeper(), ledger) == null) {
                    manager.stuckReplays().lost(tableSpaceUuid, ledger, "ledger " + ledger + " is listed, and gone from BookKeeper: the tablespace"
                            + " does not boot here, since acknowledged entries would be lost");
                    break;
                }
            }
            throw nobodyElse;
        }
    }

    private void replay(LogSequenceNumber snapshot, BiConsumer<LogSequenceNumber, LogEntry> consumer, boolean fencing) {
        if (fencing) {
            requireBookies();
        }
        applied = snapshot;
        TableSpaceManager copy = HerdInternals.recovering(consumer);
        List<Long> listed = list.whileShownFrom(snapshot, () -> super.recovery(snapshot, (position, entry) -> {
            if (fencing) {
                LogContinuity.checkReplay(applied, position);
            } else {
                // HerdDB reads an open ledger up to what its bookies know to be confirmed, and goes on with the next one. A ledger of before
                // looks open to a client whose ZooKeeper member is behind the one that shows the list.
                continuity.check(applied, position);
            }
            keepKey(copy, entry);
            apply(position, entry, () -> consumer.accept(position, entry));
        }, fencing));
        if (fencing) {
            fencedLedgers = listed;
        }
        tablespace = copy;
    }

    /** Has no later leader give the key again of a row that its own transaction deletes: HerdDB forgets such a row. */
    private static void keepKey(TableSpaceManager copy, LogEntry entry) {
        Transaction open = copy == null || entry.type != LogEntryType.DELETE ? null : copy.getTransaction(entry.transactionId);
        if (open != null && open.recordInserted(entry.tableName, entry.key) != null) {
            HerdInternals.keyWasGiven(copy, entry.tableName, entry.key);
        }
    }

    /**
     * Starts this leader's first ledger.
     *
     * <p>HerdDB reads the list of ledgers again here. The old leader may have closed the ledger in which it was about to be
     * fenced, may have listed a new one, and acknowledges writes in it: nobody has fenced or replayed that ledger, and its
     * rows would be lost. So the list must still be the fenced one. If not, the boot fails before anything is made; the activator
     * repeats it, and then fences and replays the stranger too.
     *
     * @throws LogNotAvailableException when another leader has listed a ledger since {@link #recovery}
     */
    @Override
    public void startWriting(int expectedReplicaCount) {
        if (fencedLedgers == null) {
            throw new LogNotAvailableException("tablespace " + tableSpaceName + " can't be written before it is fenced");
        }
        replicas = expectedReplicaCount;
        list.whileOnly(fencedLedgers, () -> super.startWriting(expectedReplicaCount));
        list.writtenIf(rolls::isWriteLockedByCurrentThread);
        raiseTransactionIds();
        if (tablespace != null) {
            HerdInternals.keepLists(tablespace);
            HerdInternals.renewReferences(tablespace, Set.of());
        }
        writing = true;
        booted();
    }

    private void booted() {
        manager.failures().over(tableSpaceUuid);
        manager.stuckReplays().opened(tableSpaceUuid);
        manager.lacksBookies(tableSpaceUuid, false);
    }

    /** Remembers the failure of a leader's log: the activator, which asks each second, takes this log away right after. */
    @Override
    public boolean isFailed() {
        boolean failed = super.isFailed();
        if (failed && writing && !failureTold) {
            failureTold = true;
            CommitFileWriter writer = getWriter();
            manager.failures().failed(tableSpaceUuid, tableSpaceName, writer == null ? null : HerdInternals.writeError(writer));
        }
        return failed;
    }

    /** The entry that the bookies have to acknowledge next; null when none waits for them, or on a follower. */
    public LogSequenceNumber awaited() {
        CommitFileWriter writer = getWriter();
        if (!writing || writer == null || HerdInternals.pendingAdds(writer) == 0) {
            return null;
        }
        return new LogSequenceNumber(writer.getLedgerId(), writer.getOut().getLastAddConfirmed() + 1);
    }

    /**
     * Whether this node can become the leader without anybody's help: everything after its local checkpoint is still listed.
     *
     * <p>The rule is that of HerdDB, which tells each answer to the console. Whether the copy is barred from leading by itself
     * ({@link #isRecoveryAvailable}) is another question: it can be named by somebody else.
     */
    public boolean recoverableFrom(LogSequenceNumber checkpoint) {
        LedgersInfo ledgers = list.asItIs(tableSpaceUuid);
        return ledgers.getActiveLedgers().isEmpty() ? checkpoint.isStartOfTime() : hasAllAfter(ledgers, checkpoint);
    }

    /** Asked by HerdDB's own failover before it makes this node the leader; the boot of a leader that somebody else named asks the log alone. */
    @Override
    public boolean isRecoveryAvailable(LogSequenceNumber snapshot) {
        if (manager.isBarred(tableSpaceUuid)) {
            LOGGER.log(Level.WARNING, "this node does not promote itself to leader of tablespace {0}: its replica is barred", tableSpaceName);
            return false;
        }
        return super.isRecoveryAvailable(snapshot) && recoverableFrom(snapshot);
    }

    /** Whether a log that has ledgers still lists everything after a checkpoint; an empty disk needs all from the first ledger of ever. */
    public static boolean hasAllAfter(LedgersInfo ledgers, LogSequenceNumber checkpoint) {
        long from = checkpoint.isStartOfTime() ? ledgers.getFirstLedger() : checkpoint.ledgerId;
        return ledgers.getActiveLedgers().contains(from);
    }

    /** HerdDB's own limit is switched off, since its way of closing a full ledger can lose an entry of a transaction. */
    @Override
    public void setMaxLedgerSizeBytes(long bytes) {
        super.setMaxLedgerSizeBytes(Long.MAX_VALUE);
        rollAboveBytes = bytes;
    }

    @Override
    public long getMaxLedgerSizeBytes() {
        return rollAboveBytes;
    }

    /**
     * Writes an entry, into a new ledger when the current one is full; an UPDATE or DELETE once its whole statement was accepted.
     *
     * <p>A refused entry is in no ledger. An entry that was written and that HerdDB can't apply ends the log ({@link #end}).
     */
    @Override
    public CommitLogResult log(LogEntry edit, boolean sync) {
        Runnable taken;
        try {
            refuseTooBig(edit);
            taken = values.take(edit, tablespace);
        } catch (RecordTooBigException | UniqueIndexContraintViolationException refusal) {
            return refused(refusal);
        }
        Transaction ending = ending(edit);
        Set<String> takenAway = TransactionEnds.takenAway(edit, ending);
        Runnable over = () -> {
            unapplied.over(edit);
            ends.over(edit);
            taken.run();
            if (ending != null) {
                values.forgetEnded(tablespace);
            }
            if (!takenAway.isEmpty()) {
                renewReferences(Set.of());
            }
        };
        if (edit.type == LogEntryType.UPDATE || edit.type == LogEntryType.DELETE) {
            Exception refusal = ends.refusal(edit, tablespace);
            return refusal == null
                    ? new CommitLogResult(LoggedEntry.held(() -> write(edit, sync).logSequenceNumber, this::beginRows, this::end, over,
                            row -> HerdInternals.letGo(tablespace.getTableManager(edit.tableName), row)), !sync, sync)
                    : refused(refusal);
        }
        CommitLogResult written = write(edit, sync);
        if (edit.type == LogEntryType.BEGINTRANSACTION) {
            raiseTransactionIds();
        }
        if (edit.type == LogEntryType.ROLLBACKTRANSACTION && !takenAway.isEmpty() && !written.logSequenceNumber.isCompletedExceptionally()) {
            renewReferences(takenAway); // HerdDB applies the ROLLBACK of an abandoned transaction, and those of a boot, without telling
        }
        return new CommitLogResult(LoggedEntry.written(written.logSequenceNumber, this::end, over), written.deferred, written.sync);
    }

    private void refuseTooBig(LogEntry edit) {
        if (tablespace != null && (edit.type == LogEntryType.INSERT || edit.type == LogEntryType.UPDATE)) {
            RowSizes.refuseTooBig(edit.key, edit.value.getLength(), tablespace.getDbmanager().getMaxLogicalPageSize());
        }
    }

    /** Whether a row that an open transaction has made or changed has a value of a unique index. */
    public boolean isTaken(Bytes value, AbstractIndexManager index, Table table, Transaction open) {
        return values.isTaken(value, index, table, open);
    }

    /** Throws nothing, since the end of the transaction counts. */
    private void renewReferences(Set<String> gone) {
        try {
            HerdInternals.renewReferences(tablespace, gone);
        } catch (RuntimeException error) {
            LOGGER.log(Level.WARNING, "tablespace " + tableSpaceName + ": a DELETE may look for rows of a dropped table, and fail", error);
        }
    }

    private Transaction ending(LogEntry edit) {
        boolean ends = edit.type == LogEntryType.COMMITTRANSACTION || edit.type == LogEntryType.ROLLBACKTRANSACTION;
        return ends && tablespace != null ? tablespace.getTransaction(edit.transactionId) : null;
    }

    /**
     * HerdDB chooses the ledger under its lock and writes after it: a roll in between closes that ledger, and the entry
     * fails. Of an entry within a transaction nobody hears that, and the COMMIT succeeds in the next ledger: the leader
     * shows the row, the log has it not, and the next leader does not either. So both happen under one lock here.
     */
    private CommitLogResult write(LogEntry edit, boolean sync) {
        rollWhenFull();
        Transaction open = tablespace == null ? null : tablespace.getTransaction(edit.transactionId);
        if (!TransactionEnds.drops(edit, open)) {
            return write(edit, sync, open, rolls.readLock());
        }
        statements.writeLock().lock();
        try {
            return write(edit, sync, open, rolls.writeLock());
        } finally {
            statements.writeLock().unlock();
        }
    }

    /** Nothing of a transaction is written behind its end, nor into a table behind the end of the one that drops it. */
    private CommitLogResult write(LogEntry edit, boolean sync, Transaction open, Lock lock) {
        synchronized (open == null ? edit : open) {
            lock.lock();
            try {
                Exception refusal = ends.refusal(edit, tablespace);
                return refusal == null ? writeInOrder(edit, sync, open) : refused(refusal);
            } finally {
                lock.unlock();
            }
        }
    }

    /** The several rows of a statement are all written before a COMMIT that drops their table, or all refused. */
    private void beginRows() {
        if (WRITING_ROWS.get() == null) {
            statements.readLock().lock();
            WRITING_ROWS.set(this);
        }
    }

    /**
     * Executes a statement, whose rows HerdDB writes before this returns.
     *
     * <p>Each thread remembers the log that it writes to: a tablespace that boots has another one from one moment to the next.
     */
    public static <R> CompletableFuture<R> rows(Supplier<CompletableFuture<R>> statement) {
        try {
            return LoggedEntry.letGoOnFailure(statement);
        } finally {
            endRows();
        }
    }

    /** A statement of this thread has written all of its rows. */
    public static void endRows() {
        NodeCommitLog log = WRITING_ROWS.get();
        if (log != null) {
            WRITING_ROWS.remove();
            log.statements.readLock().unlock();
        }
    }

    private CommitLogResult writeInOrder(LogEntry edit, boolean sync, Transaction open) {
        if (isClosed() || isFailed() || getWriter() == null || endsBehindALoss()) {
            return refused("this node no longer writes tablespace " + tableSpaceName);
        }
        ends.note(edit, open, tablespace);
        if (TransactionEnds.isDefinition(edit)) {
            definitions.incrementAndGet();
        }
        CompletableFuture<Void> before = unapplied.add(edit, TransactionEnds.drops(edit, open));
        CommitLogResult written;
        try {
            written = super.log(edit, true);
        } catch (RuntimeException | Error error) {
            // BookKeeper may have queued the entry, and sent it to some bookies. Nothing behind it would ever be acknowledged.
            end(error);
            return refused("it is unknown whether an entry of tablespace " + tableSpaceName + " was written: " + error);
        }
        unanswered.incrementAndGet();
        written.logSequenceNumber.whenComplete((position, error) -> unanswered.decrementAndGet());
        return sync ? new CommitLogResult(written.logSequenceNumber.thenCompose(position -> before.thenApply(applied -> position)), false, true)
                : new CommitLogResult((LogSequenceNumber) null, true, false);
    }

    /**
     * Does what sends this node's tables to somebody. A follower reads the log itself: what is written meanwhile is not kept for it in this
     * node's memory.
     *
     * <p>HerdDB takes the tablespace for itself, makes a checkpoint, and keeps the tablespace for ever when that fails. Then it is let go of
     * here.
     *
     * @return whether all was sent
     */
    public static boolean sendTables(boolean toFollower, Runnable sending) {
        Sending state = new Sending(toFollower);
        SENDING.set(state);
        try {
            sending.run();
        } finally {
            SENDING.remove();
            if (state.held != null) {
                state.held.tryUnlockWrite();
            }
        }
        return state.complete;
    }

    /** What this thread sends. `held` is what HerdDB holds of the tablespace until it begins to send. */
    private static final class Sending {

        private final boolean toFollower;
        private StampedLock held;
        private boolean complete;

        Sending(boolean toFollower) {
            this.toFollower = toFollower;
        }
    }

    /**
     * Called while nobody writes, right before the checkpoint that is sent with the open transactions.
     *
     * @throws LogNotAvailableException as of {@link #requireAnswers}
     */
    @Override
    public void attachCommitLogListener(CommitLogListener listener) {
        Sending sending = SENDING.get();
        if (sending != null && tablespace != null) {
            sending.held = HerdInternals.statementLock(tablespace);
        }
        requireAnswers();
        if (sending == null || !sending.toFollower) {
            super.attachCommitLogListener(listener);
        } else if (tablespace != null) {
            Download.tellNextKeys(tablespace, appliedPosition(), listener);
        }
    }

    @Override
    public void removeCommitLogListener(CommitLogListener listener) {
        Sending sending = SENDING.get();
        if (sending != null) {
            sending.held = null;
        }
        if (sending == null || !sending.toFollower) {
            super.removeCommitLogListener(listener);
        }
    }

    /**
     * Waits for what the bookies have not answered for, while nobody writes.
     *
     * <p>A transaction has its rows before the bookies do. A copy of it at the last entry that was acknowledged would get these rows from the
     * log again, and can't apply a row that it has inserted and deleted, nor a table that it has made.
     *
     * @throws LogNotAvailableException when they don't answer in time
     */
    private void requireAnswers() {
        if (!awaitAnswers(() -> unanswered.get() > 0)) {
            throw new LogNotAvailableException("the bookies did not acknowledge all entries of tablespace " + tableSpaceName + " within "
                    + ANSWERS_SECONDS + " s: no checkpoint of it is written, and no copy is sent");
        }
    }

    /** HerdDB goes on in a new ledger when the old one was closed by somebody. Of a transaction's entry that was not written nobody hears. */
    private boolean endsBehindALoss() {
        CommitFileWriter writer = getWriter();
        Throwable error = writer == null ? null : HerdInternals.writeError(writer);
        if (error != null) {
            end(error);
        }
        return error != null;
    }

    /** Closes the ledger that is written, and opens the next one; under the lock, and with all answers. */
    private void roll() {
        awaitAllAnswers();
        if (endsBehindALoss()) {
            throw new LogNotAvailableException("an entry of tablespace " + tableSpaceName + " was not written: its log ends");
        }
        super.rollNewLedger();
        rollAgainAboveBytes = 0;
    }

    /** HerdDB waits in the same way, and misses an entry that fails meanwhile: it would go on in a new ledger. */
    private void awaitAllAnswers() {
        CommitFileWriter full = getWriter();
        while (full != null && HerdInternals.pendingAdds(full) > 0 && HerdInternals.writeError(full) == null && !isClosed()) {
            LockSupport.parkNanos(POLL_NANOS);
        }
    }

    private static CommitLogResult refused(String why) {
        return refused(new LogNotAvailableException(why));
    }

    private static CommitLogResult refused(Exception why) {
        return new CommitLogResult(CompletableFuture.failedFuture(why), false, true);
    }

    /** How many rows of statements with several this thread has written, as it counts them. */
    public static int rowsOfThisThread() {
        return LoggedEntry.ROWS.get();
    }

    public static void rowsOfThisThread(int rows) {
        LoggedEntry.ROWS.set(rows);
    }

    /** How many entries with changes of definitions and TRUNCATEs were written. */
    public long definitions() {
        return definitions.get();
    }

    /**
     * Ends this leader's log: an entry is in it that the leader could not apply, or one of a transaction is missing. The tablespace
     * boots again, as the log has it; silence would leave the leader different from its followers.
     */
    public void end(Throwable error) {
        LOGGER.log(Level.SEVERE, "tablespace " + tableSpaceName + ": an entry was written and not applied, or was not written;"
                + " this leader's log ends, and the tablespace boots again from the log", error);
        manager.failures().failed(tableSpaceUuid, tableSpaceName, error);
        HerdInternals.fail(this);
        unapplied.end();
    }

    /** Has the tablespace boot again from its last local checkpoint, also where it follows: its disk lacks what its memory takes for written. */
    public void bootAgain(RuntimeException checkpoint) {
        LOGGER.log(Level.SEVERE, "tablespace " + tableSpaceName + ": a checkpoint failed midway; it boots again from the one before", checkpoint);
        if (writing) {
            manager.failures().failed(tableSpaceUuid, tableSpaceName, checkpoint);
        }
        HerdInternals.fail(this);
        unapplied.end();
    }

    /**
     * Ends this log, since its tablespace was dropped and another one has its name. HerdDB's activator goes by the name: it would keep the
     * old tablespace in place of the new one. It stops one whose log has failed, and boots what the record names.
     */
    public void replaced(String by) {
        LOGGER.log(Level.WARNING, "tablespace {0} ({1}) was dropped, and another one has its name ({2}): this node stops it",
                new Object[]{tableSpaceName, tableSpaceUuid, by});
        failureTold = true; // it is none
        HerdInternals.fail(this);
        unapplied.end();
    }

    /** Goes on in the full ledger while bookies lack: HerdDB closes it, waits for them for a minute or more, and then gives up the log. */
    private void rollWhenFull() {
        long length = writtenBytes();
        if (length <= Math.max(rollAboveBytes, rollAgainAboveBytes)) {
            return;
        }
        rollAgainAboveBytes = length + rollAboveBytes / PART_OF_A_FULL_LEDGER; // meanwhile nobody else asks
        try {
            checkBookies();
        } catch (NotNowException lack) {
            LOGGER.log(Level.WARNING, "tablespace {0}, a full ledger: {1}", new Object[]{tableSpaceName, lack.getMessage()});
            return;
        }
        rolls.writeLock().lock();
        try {
            if (writtenBytes() > rollAboveBytes) {
                rollNewLedger();
            }
        } catch (LogNotAvailableException error) {
            // The log has failed now, and refuses the entry by itself.
            LOGGER.log(Level.SEVERE, "tablespace " + tableSpaceName + " can't open its next ledger", error);
        } finally {
            rolls.writeLock().unlock();
        }
    }

    private long writtenBytes() {
        CommitFileWriter writer = getWriter();
        return writer == null || isClosed() || isFailed() ? 0 : writer.getOut().getLength();
    }

    /** Closes the current ledger once it is answered for, and opens the next; writes wait meanwhile. */
    @Override
    public void rollNewLedger() {
        rolls.writeLock().lock();
        try {
            roll();
        } finally {
            rolls.writeLock().unlock();
        }
    }

    /**
     * HerdDB opens a ledger with as many copies as replicas are expected now, and closes the one before first. While bookies lack for that,
     * it would wait for them, and then give up the log: so that ledger is written on.
     */
    @Override
    public void metadataUpdated(int expectedReplicaCount) {
        if (expectedReplicaCount == replicas) {
            return;
        }
        try {
            checkBookies(expectedReplicaCount);
        } catch (NotNowException lack) {
            if (lackingReplicas != expectedReplicaCount) { // this comes each second
                LOGGER.log(Level.WARNING, "tablespace {0}, {1} expected replicas: {2}",
                        new Object[]{tableSpaceName, expectedReplicaCount, lack.getMessage()});
                lackingReplicas = expectedReplicaCount;
            }
            return;
        }
        replicas = expectedReplicaCount;
        super.metadataUpdated(expectedReplicaCount);
    }

    /**
     * What {@link #closeLedger} did.
     *
     * @param closed    the closed ledger, or -1 when nothing had to be done
     * @param lastEntry the last entry of the closed ledger
     * @param open      the ledger that is written now; -1 when the closed one was not listed
     */
    public record LedgerChange(long closed, long lastEntry, long open) {
    }

    /** This node does not write the log; another one may. */
    public static final class NotWritingException extends Exception {

        private static final long serialVersionUID = 1L;

        NotWritingException(String message) {
            super(message);
        }
    }

    /** The ledger stays open, since closing it now would stop the writes; the message says what is missing. */
    public static final class NotNowException extends Exception {

        private static final long serialVersionUID = 1L;

        NotNowException(String message) {
            super(message);
        }
    }

    /**
     * Closes the ledger that is written, and opens the next one. A tablespace that writes little would keep a ledger, and with
     * it its bookies, for ever: HerdDB changes ledgers by size only.
     *
     * <p>A leader that is killed between two writes leaves an open ledger that is not listed, and that nobody else would close. Any node
     * closes it.
     *
     * @param onlyLedger does nothing when another ledger is written already, so that a repeated request closes only one;
     *                   -1 for whichever is written
     * @throws NotWritingException      this node does not lead, or does not any more
     * @throws NotNowException          no new ledger can be opened, or the bookies don't answer: nothing was changed
     * @throws LogNotAvailableException the change failed half way; the log has failed, and the tablespace boots again
     */
    public LedgerChange closeLedger(long onlyLedger) throws NotWritingException, NotNowException {
        if (isLeftUnlisted(onlyLedger)) {
            return closeUnlisted(onlyLedger);
        }
        currentWriter();
        checkBookies();
        rolls.writeLock().lock();
        try {
            CommitFileWriter writer = currentWriter();
            if (onlyLedger >= 0 && onlyLedger != writer.getLedgerId()) {
                return new LedgerChange(-1, -1, writer.getLedgerId());
            }
            if (!awaitAnswers(() -> HerdInternals.pendingAdds(writer) > 0)) {
                throw new NotNowException("the bookies of ledger " + writer.getLedgerId() + " did not acknowledge all entries within "
                        + ANSWERS_SECONDS + " s: it stays open");
            }
            roll();
            // Asked for once it is closed: the NOOP of an idle log comes without the lock.
            return new LedgerChange(writer.getLedgerId(), writer.getOut().getLastAddConfirmed(), getWriter().getLedgerId());
        } finally {
            rolls.writeLock().unlock();
        }
    }

    /**
     * Whether nobody will list a ledger any more. A leader opens it, and lists it before its first row, by compare-and-set on what it read or
     * wrote before. So once a later ledger is listed, this one never is.
     */
    private boolean isLeftUnlisted(long ledger) throws NotNowException {
        if (ledger < 0) {
            return false;
        }
        try {
            List<Long> listed = list.asItIs(tableSpaceUuid).getActiveLedgers();
            return !listed.contains(ledger) && listed.stream().anyMatch(later -> later > ledger);
        } catch (LogNotAvailableException unread) {
            throw new NotNowException("whether ledger " + ledger + " is listed is not known: " + unread);
        }
    }

    private LedgerChange closeUnlisted(long ledger) throws NotNowException {
        try (LedgerHandle closed = new LedgersWithOwnPasswords(manager.getBookKeeper(), tableSpaceUuid)
                .fence(ledger).get(METADATA_SECONDS, TimeUnit.SECONDS)) {
            return new LedgerChange(ledger, closed.getLastAddConfirmed(), -1);
        } catch (InterruptedException error) {
            Thread.currentThread().interrupt();
            throw new NotNowException("interrupted");
        } catch (BKException | ExecutionException | TimeoutException error) {
            throw new NotNowException("ledger " + ledger + ", which is not listed, could not be closed: " + error);
        }
    }

    /**
     * Does nothing; {@code LogRelease} drops ledgers instead. HerdDB calls this with the tablespace locked, uses the time at which a
     * ledger was opened, drops ledgers from the middle of the log, too, and ignores who may need them.
     */
    @Override
    public void dropOldLedgers(LogSequenceNumber checkpoint) {
        // see above
    }

    /**
     * A copy of the list of ledgers as this leader has it: what it writes next time must follow from that one.
     *
     * @throws NotWritingException this node does not lead, or does not any more
     */
    public LedgersInfo writtenLedgers() throws NotWritingException {
        rolls.readLock().lock();
        try {
            currentWriter();
            LedgersInfo written = getActualLedgersList();
            return LedgersInfo.deserialize(written.serialize(), written.getZkVersion());
        } finally {
            rolls.readLock().unlock();
        }
    }

    /**
     * Drops the log's oldest ledger; writes wait only for the change of the list.
     *
     * <p>The list is written once for each ledger: a fold of the log sees by the number of writes that no ledger is missing. The ledger
     * itself is deleted after the compare-and-set of the list, so a replaced leader drops nothing.
     *
     * @param ledger which one that is, since the list may have changed
     * @throws NotWritingException      this node does not lead, or does not any more
     * @throws LogNotAvailableException the list could not be written, or the ledger is not the log's own, and the ledger stays; or it is off
     *                                  the list and BookKeeper could not delete it
     */
    public void dropOldest(long ledger) throws NotWritingException, InterruptedException {
        // Not told as a log that can't be replayed: this one was, and is written.
        LogContinuity.metadata(new LedgersWithOwnPasswords(manager.getBookKeeper(), tableSpaceUuid), ledger);
        rolls.writeLock().lock();
        try {
            LedgersInfo next = writtenLedgers();
            if (next.getActiveLedgers().size() < 2 || next.getActiveLedgers().get(0) != ledger) {
                throw new LogNotAvailableException("ledger " + ledger + " is not the oldest of several in " + next);
            }
            next.removeLedger(ledger);
            list.saveActualLedgersList(tableSpaceUuid, next);
            LedgersInfo current = getActualLedgersList();
            current.removeLedger(ledger);
            current.setZkVersion(next.getZkVersion());
        } finally {
            rolls.writeLock().unlock();
        }
        try {
            manager.getBookKeeper().deleteLedger(ledger);
            LOGGER.log(Level.INFO, "tablespace {0}: ledger {1} is dropped", new Object[]{tableSpaceName, String.valueOf(ledger)});
        } catch (BKNoSuchLedgerExistsOnMetadataServerException gone) {
            LOGGER.log(Level.INFO, "tablespace {0}: ledger {1} was already deleted", new Object[]{tableSpaceName, String.valueOf(ledger)});
        } catch (BKException error) {
            throw new LogNotAvailableException(
                    "ledger " + ledger + " no longer belongs to tablespace " + tableSpaceName + ", and BookKeeper still has it", error);
        }
    }

    /**
     * Lets the followers see that this leader's ledger has begun: they see an entry with the next one, and HerdDB writes none by
     * itself before the first statement. The followers of an idle tablespace would stay in the ledger of the leader before, and keep it,
     * for ever.
     *
     * @throws NotWritingException this node does not lead, or does not any more
     */
    public void showBegin() throws NotWritingException {
        rolls.readLock().lock();
        try {
            CommitFileWriter writer = currentWriter();
            if (writer.getOut().getLastAddPushed() == 0) {
                writer.writeEntry(LogEntryFactory.noop());
            }
        } catch (RuntimeException | Error error) {
            end(error); // as in writeInOrder
            throw error;
        } finally {
            rolls.readLock().unlock();
        }
    }

    /** Notes what is past the retention and kept all the same; null when nothing is. */
    public void retained(RetainedLog what) {
        retained = what;
    }

    /** What {@link #retained(RetainedLog)} noted last; null on a node that does not lead. */
    public RetainedLog retained() {
        return writing ? retained : null;
    }

    private CommitFileWriter currentWriter() throws NotWritingException {
        CommitFileWriter writer = getWriter();
        if (!writing || writer == null || isClosed() || isFailed()) {
            throw new NotWritingException("this node does not write tablespace " + tableSpaceName + ": ask its leader");
        }
        return writer;
    }

    /** HerdDB would wait for bookies with the old ledger closed already. */
    private void checkBookies() throws NotNowException {
        checkBookies(replicas);
    }

    private void checkBookies(int copies) throws NotNowException {
        int needed = Math.max(getEnsemble(), copies);
        int writable = writableBookies();
        if (writable < needed) {
            throw new NotNowException("a new ledger needs " + needed + " writable bookies, and there are " + writable
                    + ": the ledger stays open");
        }
    }

    /** HerdDB would wait for bookies behind the replay, for two minutes. Its node boots no other tablespace meanwhile, and seems to be dead. */
    void requireBookies() {
        int needed = Math.max(getEnsemble(), list.expectedReplicas(tableSpaceName));
        int writable;
        try {
            writable = writableBookies();
        } catch (NotNowException unknown) {
            LOGGER.log(Level.WARNING, "tablespace {0}: {1}", new Object[]{tableSpaceName, unknown.getMessage()});
            return;
        }
        manager.lacksBookies(tableSpaceUuid, writable < needed);
        if (writable < needed) {
            throw new LogNotAvailableException("a ledger of tablespace " + tableSpaceName + " needs " + needed + " writable bookies, and there are "
                    + writable, new BKNotEnoughBookiesException());
        }
    }

    private int writableBookies() throws NotNowException {
        try {
            return manager.getBookKeeper().getMetadataClientDriver().getRegistrationClient().getWritableBookies()
                    .get(METADATA_SECONDS, TimeUnit.SECONDS).getValue().size();
        } catch (ExecutionException | TimeoutException error) {
            throw new NotNowException("the writable bookies can't be listed: " + error);
        } catch (InterruptedException error) {
            Thread.currentThread().interrupt();
            throw new NotNowException("interrupted");
        }
    }

    private static boolean awaitAnswers(BooleanSupplier outstanding) {
        long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(ANSWERS_SECONDS);
        while (outstanding.getAsBoolean()) {
            if (System.nanoTime() - deadline > 0) {
                return false;
            }
            LockSupport.parkNanos(POLL_NANOS);
        }
        return true;
    }

    private void raiseTransactionIds() {
        CommitFileWriter writer = getWriter();
        if (tablespace != null && writer != null) {
            TransactionIds.raise(HerdInternals.lastTransactionId(tablespace), writer.getLedgerId());
        }
    }

    @SuppressWarnings("unchecked") // HerdDB's own override returns less than CommitLog promises, too
    @Override
    public FollowerContext startFollowing(LogSequenceNumber position) {
        booted();
        return super.startFollowing(position);
    }

    @Override
    public void followTheLeader(LogSequenceNumber position, EntryAcceptor consumer, FollowerContext context) {
        applied = position;
        // HerdDB asks another log of the tablespace whether this node could lead, and closing that one has the manager forget this one.
        HerdInternals.register(manager, tableSpaceUuid, this);
        gate.startRound(position);
        try {
            if (end.isNear()) {
                Thread.sleep(END_PAUSE_MILLIS);
                return;
            }
            reader.open(context);
            super.followTheLeader(position, (next, entry) -> {
                refused = next;
                continuity.check(applied, next);
                keepKey(tablespace, entry);
                AtomicBoolean goOn = new AtomicBoolean();
                apply(next, entry, () -> goOn.set(consumer.accept(next, compared(next, entry))));
                refused = null;
                return goOn.get();
            }, context);
            reader.keep(context);
            if (applied.equals(position)) {
                end.rest(pause.next());
            } else {
                pause.begin();
            }
        } catch (BKClientClosedException stopping) {
            LOGGER.log(Level.FINE, "the follower of {0} ends with its BookKeeper client", tableSpaceName);
        } catch (BKException error) {
            throw new LogNotAvailableException(
                    "the follower of " + tableSpaceName + " at " + position + " can't open the next ledger", error);
        } catch (InterruptedException error) {
            Thread.currentThread().interrupt();
            throw new LogNotAvailableException(error);
        }
    }

    /** The entry that HerdDB applies. An entry that checks a table has no effect once its rows were compared. */
    private LogEntry compared(LogSequenceNumber position, LogEntry entry) {
        FollowerCheck check = manager.followerCheck();
        TableSpaceManager copy = tablespace;
        if (entry.type != LogEntryType.TABLE_CONSISTENCY_CHECK || check == null || copy == null) {
            return entry;
        }
        check.compare(copy, position, entry, () -> end.isNear() || copy.isClosed());
        return LogEntryFactory.noop();
    }

    /** What applies an entry to a tablespace's tables. */
    @FunctionalInterface
    interface Applying<E extends Exception> {

        void run() throws E;
    }

    /** Applies an entry to the tables of a copy that boots, or of a follower. */
    <E extends Exception> void apply(LogSequenceNumber position, LogEntry entry, Applying<E> applying) throws E {
        APPLYING.set(position);
        try {
            applying.run();
        } catch (Exception error) {
            manager.stuckReplays().failed(tableSpaceUuid, position, entry, error);
            throw error;
        } finally {
            APPLYING.remove();
        }
        applied = position;
        manager.stuckReplays().applied(tableSpaceUuid, position);
    }
}
