package io.herdkeeper.node.log;

import herddb.cluster.LedgersInfo;
import herddb.cluster.ZookeeperMetadataStorageManager;
import herddb.log.LogNotAvailableException;
import herddb.log.LogSequenceNumber;
import java.util.List;

/**
 * The list of a tablespace's ledgers, as its log reads and writes it in ZooKeeper.
 *
 * <p>A log that begins to write is shown no other ledgers than those that it has fenced ({@link #whileOnly}).
 *
 * <p>A log that recovers is shown the ledgers from the position on that it recovers from. HerdDB 0.29
 * ({@code BookkeeperCommitLog.recovery}) skips the earlier ones, too, but first reads each one's metadata, one after the other, to
 * tell its console of them; and a node that becomes the leader recovers twice. With 80 ledgers that was 0.6 s of a boot of 0.98 s.
 */
final class LedgerList extends ZookeeperMetadataStorageManager {

    private final ZookeeperMetadataStorageManager lists;
    /** Null while the list is shown as it is. */
    private volatile LogSequenceNumber from;
    /** What was read first while {@link #from} is set. */
    private volatile List<Long> whole;
    /** Null while any list may be shown. */
    private volatile List<Long> only;

    /** What HerdDB's log asks of its metadata goes to {@code lists}; this one has no session of its own. */
    LedgerList(ZookeeperMetadataStorageManager lists) {
        super("", 0, "");
        this.lists = lists;
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
     * Does something that reads the list before it adds to it, and refuses to show any other list than the one that was fenced
     * meanwhile. What is added goes to the version that was read, so nobody can have come in between.
     *
     * <p>To look afterwards is not enough: with the own ledger listed behind one that nobody has fenced, the next boot, which reads without
     * fencing first, would stand in the own one and fence from there. Rows that were acknowledged in the other one would be lost.
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

    /** The list for anybody but HerdDB's log itself, always as it is. */
    LedgersInfo asItIs(String tableSpaceUuid) {
        return lists.getActualLedgersList(tableSpaceUuid);
    }

    @Override
    public LedgersInfo getActualLedgersList(String tableSpaceUuid) {
        LedgersInfo list = lists.getActualLedgersList(tableSpaceUuid);
        List<Long> fenced = only;
        if (fenced != null && !list.getActiveLedgers().equals(fenced)) {
            throw new LogNotAvailableException("tablespace " + tableSpaceUuid + ": ledgers " + fenced + " were fenced, but the list is now "
                    + list.getActiveLedgers() + ": an earlier leader has written meanwhile; this boot fails, and the next one replays that");
        }
        LogSequenceNumber checkpoint = from;
        if (checkpoint != null) {
            List<Long> read = list.getActiveLedgers();
            if (whole == null) {
                whole = read;
            }
            // A checkpoint in a ledger that is not listed has to stay visible as such: HerdDB then asks for a copy of another node.
            if (read.contains(checkpoint.ledgerId)) {
                read.stream().filter(ledger -> ledger < checkpoint.ledgerId).forEach(list::removeLedger);
            }
        }
        return list;
    }

    @Override
    public void saveActualLedgersList(String tableSpaceUuid, LedgersInfo list) {
        lists.saveActualLedgersList(tableSpaceUuid, list);
    }
}
