package io.herdkeeper.node.log;

import herddb.cluster.LedgersInfo;
import herddb.cluster.ZookeeperMetadataStorageManager;
import herddb.log.FullRecoveryNeededException;
import herddb.log.LogNotAvailableException;
import herddb.log.LogSequenceNumber;
import herddb.metadata.MetadataStorageManagerException;
import herddb.model.TableSpace;
import herddb.model.TableSpaceReplicaState;
import java.io.IOException;
import java.util.Arrays;
import java.util.List;
import java.util.function.BooleanSupplier;
import java.util.function.Consumer;
import org.apache.zookeeper.CreateMode;
import org.apache.zookeeper.KeeperException;
import org.apache.zookeeper.KeeperException.BadVersionException;
import org.apache.zookeeper.KeeperException.ConnectionLossException;
import org.apache.zookeeper.KeeperException.NodeExistsException;
import org.apache.zookeeper.Op;
import org.apache.zookeeper.OpResult;
import org.apache.zookeeper.ZooDefs;
import org.apache.zookeeper.ZooKeeper;
import org.apache.zookeeper.data.Stat;

/**
 * The list of a tablespace's ledgers, as its log reads and writes it in ZooKeeper.
 *
 * <p>A log that begins to write sees only the ledgers that it has fenced ({@link #whileOnly}).
 *
 * <p>A log that recovers sees the ledgers from its position on. HerdDB 0.29 ({@code BookkeeperCommitLog.recovery}) skips the
 * earlier ones, too, but first reads the metadata of each, one by one, only to print it. A new leader recovers twice. With 80
 * ledgers this took 0.6 s of a boot of 0.98 s.
 */
final class LedgerList extends ZookeeperMetadataStorageManager {

    private static final long RETRY_MILLIS = 100;

    private final ZookeeperMetadataStorageManager lists;
    private final Consumer<String> lost;
    /** Null while the list is shown as it is. */
    private volatile LogSequenceNumber from;
    /** What was read first while {@link #from} is set. */
    private volatile List<Long> whole;
    /** Null while any list may be shown. */
    private volatile List<Long> only;
    private volatile BooleanSupplier written = () -> true;

    /**
     * What HerdDB's log asks of its metadata goes to {@code lists}; this one has no session of its own.
     *
     * @param lost is told why the list of a log that had begun is not there
     */
    LedgerList(ZookeeperMetadataStorageManager lists, Consumer<String> lost) {
        super("", 0, "");
        this.lists = lists;
        this.lost = lost;
    }

    /**
     * Does something that reads the list once, and shows it without the ledgers before a checkpoint meanwhile.
     *
     * @return all the ledgers of the list that was read
     */
    List<Long> whileShownFrom(LogSequenceNumber checkpoint, Runnable reading) {
        whole = null;
        from = checkpoint;
        try {
            reading.run();
            return whole;
        } finally {
            from = null;
        }
    }

    /**
     * Runs an operation that reads the list and then adds to it. Meanwhile it shows no other list than the fenced one. The addition is a
     * compare-and-set on the version that was read, so no other writer can come in between.
     *
     * <p>A check afterwards is not enough, since the next boot first reads without fencing. If the own ledger were listed behind an unfenced
     * one, that boot would be in the own ledger and fence from there. Rows that were acknowledged in the other ledger would be lost.
     *
     * @throws LogNotAvailableException when an earlier leader has listed a ledger since it was fenced; nothing was added
     */
    void whileOnly(List<Long> fenced, Runnable adding) {
        only = fenced;
        try {
            adding.run();
        } finally {
            only = null;
        }
    }

    /** Has the list written only by who may: HerdDB goes on in a new ledger by itself where entries of the old one were lost. */
    void writtenIf(BooleanSupplier allowed) {
        written = allowed;
    }

    /** The list for anybody but HerdDB's log itself, always as it is. */
    LedgersInfo asItIs(String tableSpaceUuid) {
        return lists.getActualLedgersList(tableSpaceUuid);
    }

    /**
     * Has the list show all that was written before this call ({@link Majority}).
     *
     * @throws LogNotAvailableException when ZooKeeper does not answer
     */
    void catchUp(String tableSpaceUuid) {
        try {
            Majority.catchUp(lists.ensureZooKeeper(), lists.getBasePath() + "/ledgers/" + tableSpaceUuid);
        } catch (KeeperException | IOException error) {
            throw new LogNotAvailableException("whether the list of ledgers of tablespace " + tableSpaceUuid + " is the newest is not known", error);
        } catch (InterruptedException error) {
            Thread.currentThread().interrupt();
            throw new LogNotAvailableException(error);
        }
    }

    /** The ledgers of the tablespace that each database has from its first moment on; none before that has led. */
    List<Long> ofDefaultTablespace() {
        try {
            TableSpace first = lists.describeTableSpace(TableSpace.DEFAULT);
            return first == null ? List.of() : asItIs(first.uuid).getActiveLedgers();
        } catch (MetadataStorageManagerException error) {
            throw new LogNotAvailableException("the tablespace " + TableSpace.DEFAULT + " can't be read", error);
        }
    }

    /** How many replicas a tablespace is to have; its ledgers have as many copies at least. */
    int expectedReplicas(String tablespace) {
        try {
            TableSpace record = lists.describeTableSpace(tablespace);
            return record == null ? 0 : record.expectedReplicaCount;
        } catch (MetadataStorageManagerException error) {
            throw new LogNotAvailableException("tablespace " + tablespace + " can't be read", error);
        }
    }

    /**
     * By what a log without a list is known to have begun; null if it begins now. A leader lists its first ledger before it leads, and its
     * replica's state tells that it does; a uuid is never given twice.
     */
    private String whyBegun(String tableSpaceUuid, LogSequenceNumber checkpoint) {
        if (!checkpoint.isStartOfTime()) {
            return "this node's disk has the tablespace up to " + checkpoint;
        }
        try {
            return lists.getTableSpaceReplicaState(tableSpaceUuid).stream().filter(state -> state.mode == TableSpaceReplicaState.MODE_LEADER)
                    .map(state -> state.nodeId + " has led the tablespace").findFirst().orElse(null);
        } catch (MetadataStorageManagerException error) {
            throw new LogNotAvailableException("tablespace " + tableSpaceUuid + ": who has led it can't be read", error);
        }
    }

    @Override
    public LedgersInfo getActualLedgersList(String tableSpaceUuid) {
        LedgersInfo list = lists.getActualLedgersList(tableSpaceUuid);
        List<Long> fenced = only;
        if (fenced != null && !list.getActiveLedgers().equals(fenced)) {
            throw new LogNotAvailableException("tablespace " + tableSpaceUuid + ": ledgers " + fenced + " were fenced, but the list is now "
                    + list.getActiveLedgers() + ": an earlier leader wrote meanwhile; this boot fails, and the next one replays those entries");
        }
        LogSequenceNumber checkpoint = from;
        if (checkpoint != null) {
            List<Long> read = list.getActiveLedgers();
            if (whole == null) {
                whole = read;
            }
            String begun = read.isEmpty() ? whyBegun(tableSpaceUuid, checkpoint) : null;
            if (begun != null) { // HerdDB would begin a new log, without what was acknowledged
                String why = "the list of its ledgers in ZooKeeper is empty or gone, though " + begun + ": it does not boot, since acknowledged"
                        + " entries would be lost. The list was " + lists.getBasePath() + "/ledgers/" + tableSpaceUuid;
                lost.accept(why);
                throw new LogNotAvailableException("tablespace " + tableSpaceUuid + ": " + why);
            }
            // HerdDB takes a checkpoint in ledger 0 for none, and would skip what a dropped ledger 0 had.
            if (!read.isEmpty() && !NodeCommitLog.hasAllAfter(list, checkpoint)) {
                throw new FullRecoveryNeededException("tablespace " + tableSpaceUuid + ": the log begins behind the checkpoint "
                        + checkpoint + ", its ledgers are " + read);
            }
            read.stream().filter(ledger -> ledger < checkpoint.ledgerId).forEach(list::removeLedger);
        }
        return list;
    }

    /**
     * Writes the list by compare-and-set, the first one of a tablespace too, and notes its new version. While ZooKeeper does not answer
     * it is asked again for as long as the session lives, since writes wait for this.
     *
     * @throws LogNotAvailableException when somebody else has written the list, or the session has ended
     */
    @Override
    public void saveActualLedgersList(String tableSpaceUuid, LedgersInfo list) {
        if (!written.getAsBoolean()) {
            throw new LogNotAvailableException("tablespace " + tableSpaceUuid + ": an entry was not written, so no ledger follows it");
        }
        String path = lists.getBasePath() + "/ledgers/" + tableSpaceUuid;
        byte[] content = list.serialize();
        try {
            boolean answerLost = false;
            while (true) {
                try {
                    list.setZkVersion(write(path, content, list.getZkVersion()));
                    return;
                } catch (ConnectionLossException error) {
                    answerLost = true;
                    Thread.sleep(RETRY_MILLIS);
                } catch (NodeExistsException | BadVersionException error) {
                    Stat stat = new Stat();
                    if (!answerLost || !Arrays.equals(content, lists.ensureZooKeeper().getData(path, false, stat))) {
                        throw new LogNotAvailableException("the list of ledgers of tablespace " + tableSpaceUuid
                                + " was changed by another process since version " + list.getZkVersion(), error);
                    }
                    list.setZkVersion(stat.getVersion());
                    return;
                }
            }
        } catch (KeeperException | IOException error) {
            throw new LogNotAvailableException("the list of ledgers of tablespace " + tableSpaceUuid + " can't be written", error);
        } catch (InterruptedException error) {
            Thread.currentThread().interrupt();
            throw new LogNotAvailableException(error);
        }
    }

    private int write(String path, byte[] content, int version) throws KeeperException, IOException, InterruptedException {
        ZooKeeper zooKeeper = lists.ensureZooKeeper();
        if (version >= 0) {
            return zooKeeper.setData(path, content, version).getVersion();
        }
        // Two writes in one, since HerdDB's first one leaves the list at version 1: readers tell by the version whether ledgers were dropped.
        List<OpResult> results = zooKeeper.multi(List.of(
                Op.create(path, new byte[0], ZooDefs.Ids.OPEN_ACL_UNSAFE, CreateMode.PERSISTENT), Op.setData(path, content, 0)));
        return ((OpResult.SetDataResult) results.get(1)).getStat().getVersion();
    }
}
