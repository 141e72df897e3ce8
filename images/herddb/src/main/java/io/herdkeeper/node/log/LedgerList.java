package io.herdkeeper.node.log;

import herddb.cluster.LedgersInfo;
import herddb.cluster.ZookeeperMetadataStorageManager;
import herddb.log.LogSequenceNumber;
import java.util.List;

/**
 * The list of a tablespace's ledgers, as its log reads and writes it in ZooKeeper.
 *
 * <p>A log that recovers is shown the ledgers from the local checkpoint on. HerdDB 0.29 ({@code BookkeeperCommitLog.recovery}) skips
 * the earlier ones, too, but first reads each one's metadata, one after the other, to tell its console of them; and a node that
 * becomes the leader recovers twice. With 80 ledgers that was 0.6 s of a boot of 0.98 s.
 */
final class LedgerList extends ZookeeperMetadataStorageManager {

    private final ZookeeperMetadataStorageManager lists;
    /** Null while the list is shown as it is. */
    private volatile LogSequenceNumber from;
    private volatile List<Long> whole;

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
        from = checkpoint;
        try {
            reading.run();
            return whole;
        } finally {
            from = null;
        }
    }

    @Override
    public LedgersInfo getActualLedgersList(String tableSpaceUuid) {
        LedgersInfo list = lists.getActualLedgersList(tableSpaceUuid);
        LogSequenceNumber checkpoint = from;
        if (checkpoint != null) {
            whole = list.getActiveLedgers();
            // A checkpoint in a ledger that is not listed has to stay visible as such: HerdDB then asks for a copy of another node.
            if (whole.contains(checkpoint.ledgerId)) {
                whole.stream().filter(ledger -> ledger < checkpoint.ledgerId).forEach(list::removeLedger);
            }
        }
        return list;
    }

    @Override
    public void saveActualLedgersList(String tableSpaceUuid, LedgersInfo list) {
        lists.saveActualLedgersList(tableSpaceUuid, list);
    }
}
