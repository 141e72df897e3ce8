package io.herdkeeper.node.log;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTimeoutPreemptively;
import static org.junit.jupiter.api.Assertions.assertTrue;

import herddb.cluster.BookkeeperCommitLog;
import herddb.log.LogSequenceNumber;
import io.herdkeeper.node.log.LogBench.Follower;
import io.herdkeeper.node.log.LogBench.Program;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import org.junit.jupiter.api.Test;

class FollowerEndTest {

    private static final Duration LIMIT = Duration.ofSeconds(60);
    private static final long FOR_EVER_MILLIS = Duration.ofHours(1).toMillis();

    @Test
    void aFollowerThatRestsGoesOnOnceTheEndIsNear() {
        FollowerEnd end = new FollowerEnd();
        assertTimeoutPreemptively(LIMIT, () -> {
            Thread follower = Thread.currentThread();
            CompletableFuture<Void> naming = CompletableFuture.runAsync(() -> {
                while (follower.getState() != Thread.State.TIMED_WAITING) {
                    Thread.onSpinWait();
                }
                end.near(true, 1);
            });
            end.rest(FOR_EVER_MILLIS);
            naming.get();
            end.rest(FOR_EVER_MILLIS);
        });
    }

    @Test
    void anAnswerThatNeverComesIsWhatWasKnownOnceTheEndIsNear() throws Exception {
        FollowerEnd end = new FollowerEnd();
        CompletableFuture<Long> asked = end.orWhatIsKnown(new CompletableFuture<>(), 7);
        assertFalse(asked.isDone());
        end.near(true, 1);
        assertEquals(7, asked.get());
        assertEquals(8, end.orWhatIsKnown(new CompletableFuture<>(), 8).get());
    }

    @Test
    void whoReadAnOlderRecordAndTellsOfItLaterChangesNothing() {
        FollowerEnd end = new FollowerEnd();
        end.near(false, 5);
        end.near(true, 4);
        assertFalse(end.isNear());
        end.near(true, 6);
        end.near(false, 5);
        assertTrue(end.isNear());
    }

    @Test
    void anAnswerThatHasComeStays() throws Exception {
        FollowerEnd end = new FollowerEnd();
        CompletableFuture<Long> asked = end.orWhatIsKnown(new CompletableFuture<>(), 7);
        asked.complete(9L);
        end.near(true, 1);
        assertEquals(9, asked.get());
    }

    @Test
    void aFollowerReadsNothingWhileItsNodeIsNamedAndGoesOnWithoutAGapWhenAnotherOneIs() throws Exception {
        try (LogBench bench = new LogBench(Program.OURS)) {
            BookkeeperCommitLog leader = LogBench.lead(bench.open("leader"));
            NodeCommitLog log = (NodeCommitLog) bench.open("follower");
            try (Follower follower = new Follower(log)) {
                LogSequenceNumber first = LogBench.write(leader, "first");
                LogBench.write(leader, "shows the first");
                follower.followTo(first);
                LogSequenceNumber before = follower.position();
                log.namedLeader("follower", 1);
                LogBench.write(leader, "second");
                leader.rollNewLedger();
                LogBench.write(leader, "third");
                LogSequenceNumber last = LogBench.write(leader, "fourth");
                leader.rollNewLedger();
                follower.followTo(last);
                assertEquals(before, follower.position());
                log.namedLeader("leader", 2);
                follower.followTo(last);
                assertEquals(List.of("first", "shows the first", "second", "third", "fourth"), follower.rows());
            }
            leader.close();
        }
    }
}
