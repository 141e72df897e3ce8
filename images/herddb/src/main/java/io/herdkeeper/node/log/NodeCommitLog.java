package io.herdkeeper.node.log;

import herddb.cluster.BookkeeperCommitLog;
import herddb.cluster.ZookeeperMetadataStorageManager;
import herddb.log.CommitLogResult;
import herddb.log.LogEntry;
import herddb.log.LogEntryType;
import herddb.log.LogNotAvailableException;
import herddb.log.LogSequenceNumber;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.BiConsumer;
import java.util.function.Supplier;
import java.util.logging.Level;
import java.util.logging.Logger;
import org.apache.bookkeeper.client.BKException.BKClientClosedException;
import org.apache.bookkeeper.client.api.BKException;

/**
 * HerdDB's log on BookKeeper, with the holes of its replication closed.
 *
 * <ul>
 * <li>A follower reads every ledger from its first entry ({@link FollowerReader}) and notices a gap
 *     ({@link LogContinuity}).
 * <li>A new leader writes only after exactly the ledgers that it has fenced and replayed ({@link #startWriting}).
 * <li>A leader's transaction ids are above those of all earlier leaders ({@link TransactionIds}).
 * <li>A follower can be held after one entry ({@link #gate()}), and rests for a moment when there is nothing to read.
 * </ul>
 */
public class NodeCommitLog extends BookkeeperCommitLog {

    private static final Logger LOGGER = Logger.getLogger(NodeCommitLog.class.getName());

    /** HerdDB's followers poll without a pause: four idle ones took 43 % of a core, 7 % with this one. */
    private static final long IDLE_PAUSE_MILLIS = 20;

    private final FollowerGate gate = new FollowerGate();
    private final FollowerReader reader;
    private final LogContinuity continuity;
    private final String tableSpaceName;

    private volatile LogSequenceNumber applied = LogSequenceNumber.START_OF_TIME;
    private volatile boolean writing;
    private volatile AtomicLong lastTransactionId;
    /** The ledgers that {@link #recovery} has fenced and replayed; null before. */
    private List<Long> fencedLedgers;

    NodeCommitLog(LogIdentity identity, ZookeeperMetadataStorageManager metadata, NodeCommitLogManager manager) {
        super(identity.tableSpaceUuid(), identity.tableSpaceName(), identity.nodeId(), metadata, manager.getBookKeeper(),
                manager);
        this.tableSpaceName = identity.tableSpaceName();
        Supplier<List<Long>> ledgers =
                () -> metadata.getActualLedgersList(identity.tableSpaceUuid()).getActiveLedgers();
        this.reader = new FollowerReader(manager.getBookKeeper(), ledgers, gate);
        this.continuity = new LogContinuity(manager.getBookKeeper(), ledgers);
    }

    /** Whose log this is. */
    record LogIdentity(String tableSpaceUuid, String tableSpaceName, String nodeId) {
    }

    /** Holds this log's follower; without effect on a leader. */
    public FollowerGate gate() {
        return gate;
    }

    LogContinuity continuity() {
        return continuity;
    }

    /** The last entry whose effect is in the tables: for a leader, the last one that was acknowledged. */
    public LogSequenceNumber appliedPosition() {
        return writing ? getLastSequenceNumber() : applied;
    }

    @Override
    public void recovery(
            LogSequenceNumber snapshot, BiConsumer<LogSequenceNumber, LogEntry> consumer, boolean fencing) {
        applied = snapshot;
        super.recovery(snapshot, (position, entry) -> {
            consumer.accept(position, entry);
            applied = position;
        }, fencing);
        if (fencing) {
            fencedLedgers = getActualLedgersList().getActiveLedgers();
        }
        lastTransactionId = HerdInternals.lastTransactionId(consumer);
    }

    /**
     * Starts this leader's first ledger.
     *
     * <p>HerdDB reads the list of ledgers again here. The old leader may have closed the ledger in which it was about to be
     * fenced, may have listed a new one, and acknowledges writes in it: nobody has fenced or replayed that ledger, and its
     * rows would be lost. So the list must be the fenced one plus the ledger that was made now. If not, the boot fails;
     * the activator repeats it, and then fences and replays the stranger too.
     *
     * @throws LogNotAvailableException when another leader has listed a ledger since {@link #recovery}
     */
    @Override
    public void startWriting(int expectedReplicaCount) {
        if (fencedLedgers == null) {
            throw new LogNotAvailableException("tablespace " + tableSpaceName + " can't be written before it is fenced");
        }
        super.startWriting(expectedReplicaCount);
        long ownLedger = getWriter().getLedgerId();
        List<Long> expected = new ArrayList<>(fencedLedgers);
        expected.add(ownLedger);
        List<Long> listed = getActualLedgersList().getActiveLedgers();
        if (!listed.equals(expected)) {
            close();
            throw new LogNotAvailableException("tablespace " + tableSpaceName + ": ledgers " + fencedLedgers
                    + " were fenced, but the list is now " + listed + " with the own ledger " + ownLedger
                    + ": an earlier leader has written meanwhile; this boot fails, and the next one replays that");
        }
        raiseTransactionIds();
        writing = true;
    }

    @Override
    public CommitLogResult log(LogEntry edit, boolean sync) {
        CommitLogResult result = super.log(edit, sync);
        if (edit.type == LogEntryType.BEGINTRANSACTION) {
            raiseTransactionIds();
        }
        return result;
    }

    private void raiseTransactionIds() {
        AtomicLong counter = lastTransactionId;
        CommitFileWriter writer = getWriter();
        if (counter != null && writer != null) {
            TransactionIds.raise(counter, writer.getLedgerId());
        }
    }

    @Override
    public void followTheLeader(LogSequenceNumber position, EntryAcceptor consumer, FollowerContext context) {
        applied = position;
        gate.startRound(position);
        try {
            reader.open(context);
            super.followTheLeader(position, (next, entry) -> {
                continuity.check(applied, next);
                boolean goOn = consumer.accept(next, entry);
                applied = next;
                return goOn;
            }, context);
            reader.keep(context);
            if (applied.equals(position)) {
                Thread.sleep(IDLE_PAUSE_MILLIS);
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
}
