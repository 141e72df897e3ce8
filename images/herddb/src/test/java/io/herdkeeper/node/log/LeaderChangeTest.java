package io.herdkeeper.node.log;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import herddb.cluster.BookkeeperCommitLog;
import herddb.log.LogNotAvailableException;
import io.herdkeeper.node.log.LogBench.Program;
import java.util.List;
import org.junit.jupiter.api.Test;

/** An old leader rolls to a new ledger after the new leader has fenced, and before that one lists its own ledger. */
class LeaderChangeTest {

    @Test
    void aLedgerThatTheOldLeaderRolledMeanwhileIsReplayedByTheRepeatedBoot() throws Exception {
        try (LogBench bench = new LogBench(Program.OURS)) {
            BookkeeperCommitLog oldLeader = LogBench.lead(bench.open("old"));
            BookkeeperCommitLog newLeader = bench.open("new");
            List<String> replayed = fenceWhileTheOldLeaderRolls(oldLeader, newLeader);
            assertFalse(replayed.contains("acknowledged"));
            LogNotAvailableException refusal =
                    assertThrows(LogNotAvailableException.class, () -> newLeader.startWriting(1));
            assertTrue(refusal.getMessage().contains("earlier leader"), refusal.getMessage());

            BookkeeperCommitLog repeated = bench.open("new");
            assertTrue(LogBench.boot(repeated).contains("acknowledged"));
            repeated.startWriting(1);
            LogBench.write(repeated, "after");
            assertThrows(LogNotAvailableException.class, () -> LogBench.write(oldLeader, "too late"));
            repeated.close();
        }
    }

    @Test
    void aRefusedBootLeavesNothingBehindWhichTheNextOneWouldStand() throws Exception {
        try (LogBench bench = new LogBench(Program.OURS)) {
            BookkeeperCommitLog oldLeader = LogBench.lead(bench.open("old"));
            BookkeeperCommitLog newLeader = bench.open("new");
            fenceWhileTheOldLeaderRolls(oldLeader, newLeader);
            assertThrows(LogNotAvailableException.class, () -> newLeader.startWriting(1));
            assertEquals(oldLeader.getActualLedgersList().getActiveLedgers(), bench.listed());
        }
    }

    @Test
    void withoutTheCheckTheNewLeaderWritesThoughItMissesAnAcknowledgedRow() throws Exception {
        try (LogBench bench = new LogBench(Program.PLAIN_HERDDB)) {
            BookkeeperCommitLog oldLeader = LogBench.lead(bench.open("old"));
            BookkeeperCommitLog newLeader = bench.open("new");
            List<String> replayed = fenceWhileTheOldLeaderRolls(oldLeader, newLeader);
            newLeader.startWriting(1);
            LogBench.write(newLeader, "after");
            assertFalse(replayed.contains("acknowledged"));
            // Nobody fenced the old leader either: two leaders write at the same time.
            LogBench.write(oldLeader, "too late");
            newLeader.close();
            oldLeader.close();
        }
    }

    @Test
    void aLogThatWasNotFencedIsNotWritten() throws Exception {
        try (LogBench bench = new LogBench(Program.OURS)) {
            BookkeeperCommitLog log = bench.open("new");
            assertThrows(LogNotAvailableException.class, () -> log.startWriting(1));
        }
    }

    private static List<String> fenceWhileTheOldLeaderRolls(BookkeeperCommitLog oldLeader, BookkeeperCommitLog newLeader) {
        LogBench.write(oldLeader, "before");
        List<String> replayed = LogBench.fenceAndReplay(newLeader);
        oldLeader.rollNewLedger();
        LogBench.write(oldLeader, "acknowledged");
        return replayed;
    }
}
