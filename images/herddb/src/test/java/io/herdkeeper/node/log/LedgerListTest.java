package io.herdkeeper.node.log;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import herddb.cluster.BookkeeperCommitLog;
import herddb.cluster.LedgersInfo;
import herddb.cluster.ZookeeperMetadataStorageManager;
import herddb.log.FullRecoveryNeededException;
import herddb.log.LogNotAvailableException;
import herddb.log.LogSequenceNumber;
import io.herdkeeper.node.log.LogBench.Program;
import java.io.IOException;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.zookeeper.KeeperException;
import org.apache.zookeeper.KeeperException.ConnectionLossException;
import org.apache.zookeeper.ZooKeeper;
import org.apache.zookeeper.data.Stat;
import org.junit.jupiter.api.Test;

/** A boot asks for the ledgers from its checkpoint on; an unreadable one before it shows whether it was asked for. */
class LedgerListTest {

    @Test
    void aLeaderBootsWithoutALookAtTheLedgersBeforeItsCheckpoint() throws Exception {
        try (LogBench bench = new LogBench(Program.OURS)) {
            Written written = twoLedgersTheFirstSpoilt(bench);
            BookkeeperCommitLog next = bench.open("next");
            assertEquals(List.of("after"), LogBench.fenceAndReplay(next, written.checkpoint()));
            next.startWriting(1);
            LogBench.write(next, "of the next leader");
            List<Long> listed = next.getActualLedgersList().getActiveLedgers();
            assertEquals(written.ledgers(), listed.subList(0, 2));
            assertEquals(3, listed.size());
            next.close();
        }
    }

    @Test
    void plainHerdDbLooksAtEachLedgerBefore() throws Exception {
        try (LogBench bench = new LogBench(Program.PLAIN_HERDDB)) {
            Written written = twoLedgersTheFirstSpoilt(bench);
            BookkeeperCommitLog next = bench.open("next");
            assertThrows(LogNotAvailableException.class, () -> LogBench.fenceAndReplay(next, written.checkpoint()));
        }
    }

    @Test
    void aCheckpointInALedgerThatIsNotListedStillNeedsACopyOfAnotherNode() throws Exception {
        try (LogBench bench = new LogBench(Program.OURS)) {
            Written written = twoLedgersTheFirstSpoilt(bench);
            LogSequenceNumber stranger = new LogSequenceNumber(written.checkpoint().ledgerId + 1_000, 0);
            BookkeeperCommitLog next = bench.open("next");
            assertThrows(FullRecoveryNeededException.class, () -> LogBench.fenceAndReplay(next, stranger));
        }
    }

    @Test
    void eachLedgerIsOneWriteOfTheListFromTheFirstOn() throws Exception {
        try (LogBench bench = new LogBench(Program.OURS)) {
            BookkeeperCommitLog leader = LogBench.lead(bench.open("leader"));
            assertEquals(1, leader.getActualLedgersList().getZkVersion());
            leader.rollNewLedger();
            assertEquals(2, leader.getActualLedgersList().getZkVersion());
        }
    }

    @Test
    void ofTwoNodesInTheFirstBootOneLeads() throws Exception {
        try (LogBench bench = new LogBench(Program.OURS); WaitingMetadata way = new WaitingMetadata(bench.metadata())) {
            way.start(false);
            BookkeeperCommitLog late = bench.openThrough(way);
            LogBench.fenceAndReplay(late);
            way.waiting = true;
            CompletableFuture<Void> starting = CompletableFuture.runAsync(() -> late.startWriting(1));
            way.aboutToSave.await();
            BookkeeperCommitLog first = LogBench.lead(bench.open("first"));
            LogBench.write(first, "of the first");
            way.goOn.countDown();
            assertThrows(CompletionException.class, starting::join);
            LogBench.write(first, "of the first, later");
            assertEquals(List.of("of the first", "of the first, later"), LogBench.boot(bench.open("next")));
        }
    }

    /** A way to ZooKeeper that waits between a log's look at the list and its change. */
    private static final class WaitingMetadata extends ZookeeperMetadataStorageManager {

        private final CountDownLatch aboutToSave = new CountDownLatch(1);
        private final CountDownLatch goOn = new CountDownLatch(1);
        private final AtomicInteger asked = new AtomicInteger();
        private volatile boolean waiting;

        WaitingMetadata(ZookeeperMetadataStorageManager other) {
            super(other.getZkAddress(), other.getZkSessionTimeout(), other.getBasePath());
        }

        @Override
        public ZooKeeper ensureZooKeeper() throws KeeperException, InterruptedException, IOException {
            if (waiting && asked.incrementAndGet() == 2) {
                aboutToSave.countDown();
                goOn.await();
            }
            return super.ensureZooKeeper();
        }
    }

    @Test
    void aListWhoseAnswerWasLostIsFoundWrittenAndTheLeaderGoesOn() throws Exception {
        try (LogBench bench = new LogBench(Program.OURS); LosingMetadata way = new LosingMetadata(bench.metadata())) {
            way.start(false);
            BookkeeperCommitLog leader = LogBench.lead(bench.openThrough(way));
            LogBench.write(leader, "before");
            way.loseNextAnswer();
            long start = System.nanoTime();
            leader.rollNewLedger();
            LogBench.write(leader, "after");
            assertTrue(way.lost());
            assertTrue(System.nanoTime() - start < 9_000_000_000L, "HerdDB sleeps for ten seconds");
            leader.rollNewLedger();
            assertEquals(List.of("before", "after"), LogBench.boot(bench.open("next")));
        }
    }

    /** A way to ZooKeeper whose session does what it is asked for once, and says that the connection was lost. */
    private static final class LosingMetadata extends ZookeeperMetadataStorageManager {

        private boolean next;
        private boolean lost;

        LosingMetadata(ZookeeperMetadataStorageManager other) {
            super(other.getZkAddress(), other.getZkSessionTimeout(), other.getBasePath());
        }

        void loseNextAnswer() {
            next = true;
        }

        boolean lost() {
            return lost;
        }

        @Override
        public synchronized ZooKeeper ensureZooKeeper() throws KeeperException, InterruptedException, IOException {
            ZooKeeper session = super.ensureZooKeeper();
            return !next ? session : new ZooKeeper(getZkAddress(), getZkSessionTimeout(), event -> { }) {
                @Override
                public Stat setData(String path, byte[] data, int version) throws KeeperException, InterruptedException {
                    next = false;
                    lost = true;
                    session.setData(path, data, version);
                    close();
                    throw new ConnectionLossException();
                }

                @Override
                public byte[] getData(String path, boolean watch, Stat stat) throws KeeperException, InterruptedException {
                    return session.getData(path, watch, stat);
                }
            };
        }
    }

    @Test
    void aListThatDoesNotShowTheNewestLedgerYetIsNoReasonToGiveUpACopy() throws Exception {
        try (LogBench bench = new LogBench(Program.OURS); LateMetadata way = new LateMetadata(bench.metadata())) {
            way.start(false);
            BookkeeperCommitLog leader = LogBench.lead(bench.open("leader"));
            way.shown = bench.metadata().getActualLedgersList(bench.uuid());
            leader.rollNewLedger();
            LogSequenceNumber checkpoint = LogBench.write(leader, "on the disk");
            LogBench.write(leader, "behind that");
            leader.close();
            assertEquals(List.of("behind that"), LogBench.replay(bench.openThrough(way), checkpoint));
        }
    }

    @Test
    void aLedgerThatBookKeepersClientDoesNotSeeYetIsNoReasonToGiveUpACopy() throws Exception {
        try (LogBench bench = new LogBench(Program.OURS)) {
            BookkeeperCommitLog leader = LogBench.lead(bench.open("leader"));
            LogSequenceNumber checkpoint = LogBench.write(leader, "on the disk");
            leader.rollNewLedger();
            LogSequenceNumber next = LogBench.write(leader, "behind that");
            leader.close();
            bench.hideUntilAWrite(next.ledgerId);
            assertEquals(List.of("behind that"), LogBench.replay(bench.open("copy"), checkpoint));
        }
    }

    /** A way to ZooKeeper whose member shows an older list until something was written there. */
    private static final class LateMetadata extends ZookeeperMetadataStorageManager {

        private volatile LedgersInfo shown;

        LateMetadata(ZookeeperMetadataStorageManager other) {
            super(other.getZkAddress(), other.getZkSessionTimeout(), other.getBasePath());
        }

        @Override
        public LedgersInfo getActualLedgersList(String tableSpaceUuid) {
            return shown != null ? shown : super.getActualLedgersList(tableSpaceUuid);
        }

        /** Asked for by who writes the list. */
        @Override
        public synchronized ZooKeeper ensureZooKeeper() throws KeeperException, InterruptedException, IOException {
            shown = null;
            return super.ensureZooKeeper();
        }
    }

    private record Written(List<Long> ledgers, LogSequenceNumber checkpoint) {
    }

    /** The checkpoint is in the second ledger, between its two rows. */
    private static Written twoLedgersTheFirstSpoilt(LogBench bench) throws Exception {
        BookkeeperCommitLog leader = LogBench.lead(bench.open("old"));
        LogBench.write(leader, "long before");
        leader.rollNewLedger();
        LogSequenceNumber checkpoint = LogBench.write(leader, "before");
        LogBench.write(leader, "after");
        LedgersInfo list = leader.getActualLedgersList();
        leader.close();
        bench.spoilMetadata(list.getActiveLedgers().get(0));
        return new Written(list.getActiveLedgers(), checkpoint);
    }
}
