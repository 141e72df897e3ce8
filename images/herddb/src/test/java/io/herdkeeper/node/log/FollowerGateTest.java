package io.herdkeeper.node.log;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import herddb.cluster.BookkeeperCommitLog;
import herddb.log.LogSequenceNumber;
import io.herdkeeper.node.log.FollowerGate.AlreadyHeldException;
import io.herdkeeper.node.log.FollowerGate.AlreadyPassedException;
import io.herdkeeper.node.log.FollowerGate.Hold;
import io.herdkeeper.node.log.LogBench.Follower;
import io.herdkeeper.node.log.LogBench.Program;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicBoolean;
import org.junit.jupiter.api.Test;

class FollowerGateTest {

    private static final Duration LONG = Duration.ofSeconds(20);

    @Test
    void aFollowerStandsAfterTheWantedEntryAndGoesOnWhenItIsLetGo() throws Exception {
        try (LogBench bench = new LogBench(Program.OURS)) {
            BookkeeperCommitLog leader = LogBench.lead(bench.open("leader"));
            LogBench.write(leader, "before");
            LogSequenceNumber wanted = LogBench.write(leader, "wanted");
            LogBench.write(leader, "after");
            leader.rollNewLedger();
            LogSequenceNumber end = LogBench.write(leader, "next ledger");
            leader.rollNewLedger();
            NodeCommitLog log = (NodeCommitLog) bench.open("follower");
            try (Follower follower = new Follower(log)) {
                AtomicBoolean goOn = new AtomicBoolean(true);
                CompletableFuture<Hold> holding = hold(log, wanted);
                CompletableFuture<Void> rounds = CompletableFuture.runAsync(() -> {
                    while (goOn.get()) {
                        follower.round();
                    }
                });
                Hold hold = holding.get();
                for (int i = 0; i < 5; i++) {
                    assertEquals(wanted, log.appliedPosition());
                    Thread.onSpinWait();
                }
                assertThrows(AlreadyHeldException.class, () -> log.gate().holdAt(end, LONG));
                goOn.set(false);
                rounds.get();
                assertEquals(wanted, follower.position());
                hold.close();
                follower.followTo(end);
                assertEquals(end, follower.position());
            }
            leader.close();
        }
    }

    @Test
    void aFollowerThatIsBeyondTheEntrySaysWhereItIs() {
        FollowerGate gate = new FollowerGate();
        LogSequenceNumber position = new LogSequenceNumber(3, 7);
        Thread rounds = new Thread(() -> {
            while (!Thread.interrupted()) {
                gate.startRound(position);
            }
        });
        rounds.start();
        AlreadyPassedException passed = assertThrows(
                AlreadyPassedException.class, () -> gate.holdAt(new LogSequenceNumber(3, 6), LONG));
        assertEquals(position, passed.position());
        rounds.interrupt();
    }

    @Test
    void aRoundThatBeganBeforeTheHoldDoesNotCount() {
        FollowerGate gate = new FollowerGate();
        LogSequenceNumber position = new LogSequenceNumber(3, 7);
        gate.startRound(position);
        assertThrows(TimeoutException.class, () -> gate.holdAt(position, Duration.ofMillis(50)));
        gate.startRound(position);
        assertEquals(Long.MAX_VALUE, gate.lastReadableEntry(3));
    }

    private static CompletableFuture<Hold> hold(NodeCommitLog log, LogSequenceNumber target) throws Exception {
        CompletableFuture<Hold> held = new CompletableFuture<>();
        Thread thread = new Thread(() -> {
            try {
                held.complete(log.gate().holdAt(target, LONG));
            } catch (Exception error) {
                held.completeExceptionally(error);
            }
        });
        thread.start();
        // The limit must be wanted before the first round: holdAt waits then.
        while (thread.getState() != Thread.State.TIMED_WAITING && thread.isAlive()) {
            Thread.onSpinWait();
        }
        return held;
    }
}
