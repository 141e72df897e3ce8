package io.herdkeeper.node.log;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import herddb.cluster.BookkeeperCommitLog;
import herddb.cluster.LedgersInfo;
import herddb.log.FullRecoveryNeededException;
import herddb.log.LogNotAvailableException;
import herddb.log.LogSequenceNumber;
import io.herdkeeper.node.log.LogBench.Program;
import java.util.List;
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
