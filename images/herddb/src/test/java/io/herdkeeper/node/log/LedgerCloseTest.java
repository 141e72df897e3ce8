package io.herdkeeper.node.log;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import herddb.cluster.BookkeeperCommitLog;
import herddb.log.CommitLogResult;
import herddb.log.LogNotAvailableException;
import herddb.log.LogSequenceNumber;
import io.herdkeeper.node.log.LogBench.Program;
import io.herdkeeper.node.log.NodeCommitLog.LedgerChange;
import io.herdkeeper.node.log.NodeCommitLog.NotNowException;
import io.herdkeeper.node.log.NodeCommitLog.NotWritingException;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import org.junit.jupiter.api.Test;

/** The ledger that is written is closed while others write. */
class LedgerCloseTest {

    private static final long NO_LIMIT = -1;

    @Test
    void anEntryOfATransactionThatMeetsARollIsInTheLog() throws Exception {
        assertTrue(rowsAfterARollMeetsAnEntry(Program.OURS).contains("slow"));
    }

    @Test
    void withoutTheLockTheSameStepsLoseTheEntryAndTheCommitSucceeds() throws Exception {
        assertFalse(rowsAfterARollMeetsAnEntry(Program.PLAIN_HERDDB).contains("slow"));
    }

    /** An unsynced entry, as of a transaction, then what its COMMIT would be: a synced entry, which is acknowledged. */
    private static List<String> rowsAfterARollMeetsAnEntry(Program program) throws Exception {
        try (LogBench bench = new LogBench(program)) {
            BookkeeperCommitLog leader = LogBench.lead(bench.open("leader"));
            SlowEntry entry = new SlowEntry();
            CompletableFuture<CommitLogResult> writing = CompletableFuture.supplyAsync(() -> leader.log(entry, false));
            entry.chosen.await();
            Thread rolling = new Thread(leader::rollNewLedger);
            rolling.start();
            // Here the roll waits for the entry; HerdDB's own one does not.
            while (rolling.isAlive() && rolling.getState() != (program == Program.OURS ? Thread.State.WAITING : null)) {
                Thread.onSpinWait();
            }
            entry.goOn.countDown();
            writing.get();
            rolling.join();
            assertTrue(LogBench.write(leader, "commit").offset > 0, "the commit is acknowledged");
            List<String> rows = LogBench.fenceAndReplay(bench.open("next"));
            assertTrue(rows.contains("commit"));
            return rows;
        }
    }

    @Test
    void aLedgerIsClosedOnceThoughItIsAskedForTwice() throws Exception {
        try (LogBench bench = new LogBench(Program.OURS)) {
            NodeCommitLog leader = (NodeCommitLog) LogBench.lead(bench.open("leader"));
            LogSequenceNumber last = LogBench.write(leader, "row");
            LedgerChange change = leader.closeLedger(last.ledgerId);
            assertEquals(last.ledgerId, change.closed());
            assertEquals(last.offset, change.lastEntry());
            assertEquals(new LedgerChange(-1, -1, change.open()), leader.closeLedger(last.ledgerId));
            assertEquals(change.open(), LogBench.write(leader, "next").ledgerId);
            assertEquals(List.of(last.ledgerId, change.open()), leader.getActualLedgersList().getActiveLedgers());
            leader.close();
        }
    }

    @Test
    void whoDoesNotWriteClosesNothingAndStaysWell() throws Exception {
        try (LogBench bench = new LogBench(Program.OURS)) {
            NodeCommitLog leader = (NodeCommitLog) LogBench.lead(bench.open("leader"));
            NodeCommitLog follower = (NodeCommitLog) bench.open("follower");
            assertThrows(NotWritingException.class, () -> follower.closeLedger(NO_LIMIT));
            assertFalse(follower.isFailed());
            leader.close();
            assertThrows(NotWritingException.class, () -> leader.closeLedger(NO_LIMIT));
        }
    }

    @Test
    void aLedgerThatALeaderOpenedAndNeverListedIsClosedByWhoIsAskedOnceALaterOneIsListed() throws Exception {
        try (LogBench bench = new LogBench(Program.OURS)) {
            BookkeeperCommitLog leader = LogBench.lead(bench.open("leader"));
            NodeCommitLog follower = (NodeCommitLog) bench.open("follower");
            long left = bench.openUnlisted();
            assertThrows(NotWritingException.class, () -> follower.closeLedger(left), "its leader may be about to list it");
            assertFalse(bench.isClosed(left));
            leader.rollNewLedger();
            List<Long> listed = bench.listed();
            assertEquals(new LedgerChange(left, 0, -1), follower.closeLedger(left));
            assertTrue(bench.isClosed(left));
            assertEquals(listed, bench.listed());
            assertEquals(listed.get(1), LogBench.write(leader, "row").ledgerId);
        }
    }

    @Test
    void withTooFewBookiesForANewLedgerTheOldOneStaysOpenAndIsWritten() throws Exception {
        try (LogBench bench = new LogBench(Program.OURS)) {
            NodeCommitLog leader = (NodeCommitLog) LogBench.lead(bench.open("leader"));
            LogSequenceNumber before = LogBench.write(leader, "before");
            leader.setEnsemble(2);
            NotNowException refusal = assertThrows(NotNowException.class, () -> leader.closeLedger(NO_LIMIT));
            assertTrue(refusal.getMessage().contains("needs 2 writable bookies, and there are 1"), refusal.getMessage());
            assertEquals(before.ledgerId, LogBench.write(leader, "after").ledgerId);
            leader.close();
        }
    }

    @Test
    void moreExpectedReplicasThanThereAreBookiesLeaveTheLedgerAsItIs() throws Exception {
        try (LogBench bench = new LogBench(Program.OURS)) {
            BookkeeperCommitLog leader = LogBench.lead(bench.open("leader"));
            LogSequenceNumber before = LogBench.write(leader, "before");
            leader.metadataUpdated(2);
            assertFalse(leader.isFailed());
            assertEquals(before.ledgerId, LogBench.write(leader, "after").ledgerId);
            leader.metadataUpdated(1);
            assertEquals(before.ledgerId, LogBench.write(leader, "and then").ledgerId);
            leader.close();
        }
    }

    @Test
    void aFullLedgerIsWrittenOnWhileBookiesLackForTheNextOne() throws Exception {
        try (LogBench bench = new LogBench(Program.OURS)) {
            NodeCommitLog leader = (NodeCommitLog) LogBench.lead(bench.open("leader"));
            LogSequenceNumber before = LogBench.write(leader, "before");
            leader.setMaxLedgerSizeBytes(1);
            leader.setEnsemble(2);
            assertEquals(before.ledgerId, LogBench.write(leader, "full").ledgerId);
            assertEquals(before.ledgerId, LogBench.write(leader, "still full").ledgerId);
            assertFalse(leader.isFailed());
            leader.setEnsemble(1);
            assertTrue(LogBench.write(leader, "after").ledgerId > before.ledgerId);
            assertEquals(List.of("before", "full", "still full", "after"), LogBench.fenceAndReplay(bench.open("next")));
        }
    }

    @Test
    void aLedgerThatCouldNotBeFollowedIsFollowedOnceItHasGrownByASixteenthMore() throws Exception {
        try (LogBench bench = new LogBench(Program.OURS)) {
            NodeCommitLog leader = (NodeCommitLog) LogBench.lead(bench.open("leader"));
            String large = "r".repeat(10_000);
            LogSequenceNumber first = LogBench.write(leader, large);
            leader.setMaxLedgerSizeBytes(10_000);
            leader.setEnsemble(2);
            LogBench.write(leader, "refused");
            leader.setEnsemble(1);
            assertEquals(first.ledgerId, LogBench.write(leader, large).ledgerId, "nobody asked for bookies again so soon");
            long second = LogBench.write(leader, large).ledgerId;
            assertTrue(second > first.ledgerId);
            assertTrue(LogBench.write(leader, "third").ledgerId > second, "the next ledger has the limit again");
            leader.close();
        }
    }

    @Test
    void aFencedLeaderClosesNothingThatTheNextOneWrites() throws Exception {
        try (LogBench bench = new LogBench(Program.OURS)) {
            NodeCommitLog old = (NodeCommitLog) LogBench.lead(bench.open("old"));
            LogBench.write(old, "row");
            BookkeeperCommitLog next = LogBench.lead(bench.open("next"));
            assertThrows(LogNotAvailableException.class, () -> old.closeLedger(NO_LIMIT));
            assertTrue(old.isFailed());
            LogBench.write(next, "after");
            assertTrue(LogBench.fenceAndReplay(bench.open("third")).containsAll(List.of("row", "after")));
        }
    }

    @Test
    void aFullLedgerIsFollowedByTheNextOne() throws Exception {
        try (LogBench bench = new LogBench(Program.OURS)) {
            NodeCommitLog leader = (NodeCommitLog) LogBench.lead(bench.open("leader"));
            leader.setMaxLedgerSizeBytes(1);
            assertEquals(1, leader.getMaxLedgerSizeBytes());
            LogSequenceNumber first = LogBench.write(leader, "a");
            LogSequenceNumber second = LogBench.write(leader, "b");
            assertTrue(second.ledgerId > first.ledgerId);
            leader.setMaxLedgerSizeBytes(1 << 30);
            assertEquals(LogBench.write(leader, "c").ledgerId, LogBench.write(leader, "d").ledgerId);
            leader.close();
        }
    }
}
