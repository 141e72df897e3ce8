package io.herdkeeper.node.log;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import herddb.cluster.BookkeeperCommitLog;
import herddb.log.CommitLogResult;
import herddb.log.FullRecoveryNeededException;
import herddb.log.LogEntry;
import herddb.log.LogEntryType;
import herddb.log.LogNotAvailableException;
import herddb.log.LogSequenceNumber;
import herddb.model.TableSpace;
import herddb.utils.Bytes;
import io.herdkeeper.node.log.LogBench.Follower;
import io.herdkeeper.node.log.LogBench.Program;
import io.herdkeeper.node.testing.Await;
import io.herdkeeper.node.testing.BookKeeperForTests;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;

/** A log that has failed, has lost its beginning, or of which an entry could not be written or applied. */
class FailedLogTest {

    private static final Duration LIMIT = Duration.ofSeconds(60);
    /** The methods in which a roll waits without a limit: HerdDB's, and this program's. */
    private static final Set<String> WAITS = Set.of("waitForAllPendingWrites", "awaitAllAnswers");

    @Test
    void whatComesBehindAnEntryThatMetAClosedLedgerIsRefused() throws Exception {
        try (LogBench bench = new LogBench(Program.OURS)) {
            NodeCommitLog leader = (NodeCommitLog) LogBench.lead(bench.open("leader"));
            SlowEntry entry = new SlowEntry();
            CompletableFuture<CommitLogResult> writing = CompletableFuture.supplyAsync(() -> leader.log(entry, false));
            entry.chosen.await();
            // As when another client closes the ledger while the ensemble is changed.
            leader.getWriter().getOut().close();
            entry.goOn.countDown();
            writing.get();
            assertThrows(LogNotAvailableException.class, () -> LogBench.write(leader, "commit"));
            assertTrue(leader.isFailed());
            assertEquals(List.of(), LogBench.fenceAndReplay(bench.open("next")));
        }
    }

    @Test
    void aRollBehindAnEntryThatMetAClosedLedgerListsNoLedger() throws Exception {
        try (LogBench bench = new LogBench(Program.OURS)) {
            NodeCommitLog leader = (NodeCommitLog) LogBench.lead(bench.open("leader"));
            SlowEntry entry = new SlowEntry();
            CompletableFuture<CommitLogResult> writing = CompletableFuture.supplyAsync(() -> leader.log(entry, false));
            entry.chosen.await();
            leader.getWriter().getOut().close();
            entry.goOn.countDown();
            writing.get();
            List<Long> listed = bench.listed();
            assertThrows(LogNotAvailableException.class, leader::rollNewLedger);
            assertEquals(listed, bench.listed());
            assertTrue(leader.isFailed());
        }
    }

    @Test
    void aRollThatWaitsForAnEntryWhichThenMeetsAClosedLedgerListsNoLedger() throws Exception {
        try (LogBench bench = new LogBench(Program.OURS)) {
            NodeCommitLog leader = (NodeCommitLog) LogBench.lead(bench.open("leader"));
            List<Long> listed = bench.listed();
            BookKeeperForTests.running().suspendBookie();
            CompletableFuture<Void> roll;
            try {
                leader.log(LogBench.insert("row"), false);
                Thread[] rolling = new Thread[1];
                roll = CompletableFuture.runAsync(() -> {
                    rolling[0] = Thread.currentThread();
                    leader.rollNewLedger();
                });
                Await.until("the roll waits for as long as it takes", LIMIT, () -> rolling[0] != null
                        && Stream.of(rolling[0].getStackTrace()).anyMatch(frame -> WAITS.contains(frame.getMethodName())));
                // As when another client closes the ledger while the ensemble is changed.
                leader.getWriter().getOut().closeAsync().get();
            } finally {
                BookKeeperForTests.running().resumeBookie();
            }
            assertThrows(CompletionException.class, roll::join);
            assertEquals(listed, bench.listed());
            assertTrue(leader.isFailed());
        }
    }

    @Test
    void anErrorWithinBookKeeperEndsTheLogAndLeavesOpenWhetherTheEntryWasWritten() throws Exception {
        try (LogBench bench = new LogBench(Program.OURS)) {
            NodeCommitLog leader = (NodeCommitLog) LogBench.lead(bench.open("leader"));
            CountDownLatch answered = bench.runOutOfMemoryAtTheNextEntry();
            LogNotAvailableException unknown = assertThrows(LogNotAvailableException.class, () -> LogBench.write(leader, "row"));
            assertTrue(unknown.getMessage().contains("it is unknown whether an entry"), unknown.getMessage());
            assertTrue(leader.isFailed());
            assertThrows(LogNotAvailableException.class, () -> LogBench.write(leader, "after"));
            Await.until("the bookie has the entry", LIMIT, () -> answered.getCount() == 0);
            assertEquals(List.of("row"), LogBench.fenceAndReplay(bench.open("next")));
        }
    }

    @Test
    void aLeaderWhoseLogHasFailedListsNoNewLedger() throws Exception {
        try (LogBench bench = new LogBench(Program.OURS)) {
            BookkeeperCommitLog old = LogBench.lead(bench.open("old"));
            LogBench.write(old, "row");
            BookkeeperCommitLog next = bench.open("next");
            LogBench.fenceAndReplay(next);
            List<Long> fenced = bench.listed();
            assertThrows(LogNotAvailableException.class, () -> LogBench.write(old, "fenced"));
            assertThrows(LogNotAvailableException.class, () -> LogBench.write(old, "again"));
            assertEquals(fenced, bench.listed());
            next.startWriting(1);
            LogBench.write(next, "after");
            next.close();
        }
    }

    @Test
    void aCopyWhoseCheckpointIsInADroppedLedgerNeedsAnotherNodesCopyAlsoIfThatWasLedgerZero() throws Exception {
        try (LogBench bench = new LogBench(Program.OURS)) {
            NodeCommitLog leader = (NodeCommitLog) LogBench.lead(bench.open("leader"));
            LogBench.write(leader, "dropped");
            leader.rollNewLedger();
            LogSequenceNumber kept = LogBench.write(leader, "kept");
            // Ledger ids begin with 0 in each cluster; in that of the tests it is long gone.
            leader.dropOldest(bench.listed().get(0));
            LogSequenceNumber checkpoint = new LogSequenceNumber(0, 1);
            NodeCommitLog back = (NodeCommitLog) bench.open("back");
            assertThrows(FullRecoveryNeededException.class, () -> LogBench.fenceAndReplay(back, checkpoint));
            assertNotEquals(0, kept.ledgerId);
        }
    }

    @Test
    void aFollowerThatCouldNotApplyAnEntryTellsOfNoPositionForACheckpoint() throws Exception {
        try (LogBench bench = new LogBench(Program.OURS)) {
            BookkeeperCommitLog leader = LogBench.lead(bench.open("leader"));
            LogSequenceNumber first = LogBench.write(leader, "first");
            LogBench.write(leader, "second");
            leader.rollNewLedger();
            NodeCommitLog follower = (NodeCommitLog) bench.open("follower");
            try (Follower until = new Follower(follower)) {
                until.followTo(first);
                assertThrows(LogNotAvailableException.class, () -> {
                    for (int round = 0; round < 100; round++) {
                        follower.followTheLeader(first, (position, entry) -> {
                            throw new IllegalStateException("can't be applied");
                        }, follower.startFollowing(first));
                    }
                });
            }
            assertEquals(first, follower.appliedPosition());
            assertThrows(LogNotAvailableException.class, follower::getLastSequenceNumber);
        }
    }

    @Test
    void aLeaderWhoseLogHasFailedTellsOfNoPositionForACheckpoint() throws Exception {
        try (LogBench bench = new LogBench(Program.OURS)) {
            NodeCommitLog old = (NodeCommitLog) LogBench.lead(bench.open("old"));
            LogSequenceNumber row = LogBench.write(old, "row");
            assertEquals(row, old.getLastSequenceNumber());
            LogBench.fenceAndReplay(bench.open("next"));
            assertThrows(LogNotAvailableException.class, () -> LogBench.write(old, "fenced"));
            assertThrows(LogNotAvailableException.class, old::getLastSequenceNumber);
            assertEquals(row, old.appliedPosition());
        }
    }

    @Test
    void aLogThatIsClosedTellsOfNoPositionForACheckpoint() throws Exception {
        try (LogBench bench = new LogBench(Program.OURS)) {
            LogSequenceNumber row = LogBench.write(LogBench.lead(bench.open("leader")), "row");
            NodeCommitLog follower = (NodeCommitLog) bench.open("follower");
            try (Follower following = new Follower(follower)) {
                following.followTo(row);
            }
            follower.close();
            assertThrows(LogNotAvailableException.class, follower::getLastSequenceNumber);
        }
    }

    @Test
    void aFollowerStandsWhereItHasApplied() throws Exception {
        try (LogBench bench = new LogBench(Program.OURS)) {
            BookkeeperCommitLog leader = LogBench.lead(bench.open("leader"));
            LogSequenceNumber first = LogBench.write(leader, "first");
            LogBench.write(leader, "second");
            leader.rollNewLedger();
            NodeCommitLog follower = (NodeCommitLog) bench.open("follower");
            List<LogSequenceNumber> told = new ArrayList<>();
            for (int round = 0; round < 100 && told.isEmpty(); round++) {
                follower.followTheLeader(first, (position, entry) -> {
                    told.add(follower.appliedPosition());
                    return true;
                }, follower.startFollowing(first));
            }
            assertEquals(first, told.get(0));
            assertTrue(follower.getLastSequenceNumber().after(first));
        }
    }

    @Test
    void aLogThatIsOpenedOnlyToAskItDoesNotMakeTheFollowersOneUnknown() throws Exception {
        try (LogBench bench = new LogBench(Program.OURS)) {
            LogSequenceNumber row = LogBench.write(LogBench.lead(bench.open("leader")), "row");
            NodeCommitLog follower = (NodeCommitLog) bench.open("follower");
            try (Follower following = new Follower(follower)) {
                following.followTo(row);
                bench.open("follower").close();
                following.round();
                assertSame(follower, bench.known());
            }
        }
    }

    /** HerdDB keeps the pages of a copy whose boot ends by another error, and writes them over those of the next boot. */
    @Test
    void aBootThatCanNotApplyAnEntryEndsByAnErrorAfterWhichHerdDbClosesTheCopy() throws Exception {
        try (LogBench bench = new LogBench(Program.OURS)) {
            LogBench.write(LogBench.lead(bench.open("leader")), "row");
            NodeCommitLog copy = (NodeCommitLog) bench.open("copy");
            IllegalStateException full = new IllegalStateException("the disk is full");
            LogNotAvailableException told = assertThrows(LogNotAvailableException.class,
                    () -> copy.recovery(LogSequenceNumber.START_OF_TIME, (position, entry) -> {
                        throw full;
                    }, true));
            assertSame(full, told.getCause());
        }
    }

    @Test
    void aBootThatLackedBookiesReadsNothingAgainUntilTheyAreThereOrAnotherNodeLeads() throws Exception {
        try (LogBench bench = new LogBench(Program.OURS)) {
            LogBench.write(LogBench.lead(bench.open("old")), "row");
            bench.metadata().registerTableSpace(TableSpace.builder().uuid(bench.uuid()).name("app").leader("next").replica("next").replica("old")
                    .expectedReplicaCount(2).build());
            BookkeeperCommitLog boot = bench.open("next");
            assertThrows(LogNotAvailableException.class, () -> LogBench.fenceAndReplay(boot));
            LogNotAvailableException again = assertThrows(LogNotAvailableException.class, () -> bench.open("next"));
            assertTrue(again.getMessage().contains("needs 2 writable bookies, and there are 1"), again.getMessage());
            bench.open("old").close();
            change(bench, "old", 2);
            bench.open("next").close();
            change(bench, "next", 1);
            assertEquals(List.of("row"), LogBench.fenceAndReplay(bench.open("next")));
            change(bench, "next", 2);
            bench.open("next").close();
        }
    }

    private static void change(LogBench bench, String leader, int replicas) throws Exception {
        TableSpace before = bench.metadata().describeTableSpace("app");
        bench.metadata().updateTableSpace(TableSpace.builder().cloning(before).leader(leader).expectedReplicaCount(replicas).build(), before);
    }

    @Test
    void anEntryThatIsWrittenAndCanNotBeAppliedEndsTheLeadersLog() throws Exception {
        try (LogBench bench = new LogBench(Program.OURS)) {
            NodeCommitLog leader = (NodeCommitLog) LogBench.lead(bench.open("leader"));
            LogEntry entry = new LogEntry(1, LogEntryType.INSERT, 0, "t", Bytes.from_string("k"), Bytes.from_string("v"));
            CommitLogResult written = leader.log(entry, true);
            CompletableFuture<Object> applied = written.logSequenceNumber.thenApplyAsync(position -> {
                throw new IllegalStateException("the disk is broken");
            }, Runnable::run);
            ExecutionException told = assertThrows(ExecutionException.class, applied::get);
            assertInstanceOf(LogNotAvailableException.class, told.getCause(), "a client takes any other error for a refusal, and it is durable");
            assertTrue(leader.isFailed());
            assertThrows(LogNotAvailableException.class, () -> LogBench.write(leader, "after"));
        }
    }
}
