package io.herdkeeper.node.log;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import herddb.cluster.BookkeeperCommitLog;
import herddb.log.LogSequenceNumber;
import io.herdkeeper.node.log.FollowerGate.Hold;
import io.herdkeeper.node.log.LogBench.Follower;
import io.herdkeeper.node.log.LogBench.Program;
import io.herdkeeper.node.refusals.OrderRefusedException;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicBoolean;
import org.junit.jupiter.api.Test;

class FollowerGateTest {

    private static final Duration LONG = Duration.ofSeconds(60);

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
                assertRefused("already held at ", log.gate(), end);
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
        assertRefused("already at " + position, gate, new LogSequenceNumber(3, 6));
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

    @Test
    void aFollowerStandsAtTheFirstPositionThatSuits() throws Exception {
        FollowerGate gate = new FollowerGate();
        AtomicBoolean suits = new AtomicBoolean();
        CompletableFuture<Hold> holding = new CompletableFuture<>();
        Thread waiting = new Thread(() -> {
            try {
                holding.complete(gate.holdWhen(suits::get, LONG));
            } catch (Exception error) {
                holding.completeExceptionally(error);
            }
        });
        waiting.start();
        while (waiting.getState() != Thread.State.TIMED_WAITING && waiting.isAlive()) {
            Thread.onSpinWait();
        }
        assertRefused("another request already waits", gate, new LogSequenceNumber(3, 9));
        gate.startRound(new LogSequenceNumber(3, 7));
        assertEquals(Long.MAX_VALUE, gate.lastReadableEntry(3), "it goes on while it does not suit");
        suits.set(true);
        gate.startRound(new LogSequenceNumber(3, 9));
        assertEquals(9, gate.lastReadableEntry(3), "nothing behind it is read in this very round");
        Hold hold = holding.get();
        assertEquals(new LogSequenceNumber(3, 9), hold.position());
        hold.close();
        gate.startRound(new LogSequenceNumber(3, 9));
        assertEquals(Long.MAX_VALUE, gate.lastReadableEntry(3));
    }

    @Test
    void aPositionThatNeverSuitsIsGivenUpAndSoIsOneBeforeTheFirstEntry() {
        FollowerGate gate = new FollowerGate();
        assertThrows(TimeoutException.class, () -> gate.holdWhen(() -> false, Duration.ofMillis(50)));
        Thread rounds = new Thread(() -> {
            while (!Thread.interrupted()) {
                gate.startRound(new LogSequenceNumber(3, -1));
            }
        });
        rounds.start();
        assertThrows(TimeoutException.class, () -> gate.holdWhen(() -> true, Duration.ofMillis(50)));
        rounds.interrupt();
    }

    @Test
    void aHoldThatIsClosedTwiceLetsNobodyElsesGo() throws Exception {
        FollowerGate gate = new FollowerGate();
        LogSequenceNumber position = new LogSequenceNumber(3, 7);
        Thread rounds = new Thread(() -> {
            while (!Thread.interrupted()) {
                gate.startRound(position);
            }
        });
        rounds.start();
        Hold first = gate.holdWhen(() -> true, LONG);
        first.close();
        Hold second = gate.holdAt(position, LONG);
        first.close();
        assertRefused("already held at " + position, gate, position);
        second.close();
        rounds.interrupt();
    }

    private static void assertRefused(String why, FollowerGate gate, LogSequenceNumber target) {
        String message = assertThrows(OrderRefusedException.class, () -> gate.holdAt(target, LONG)).getMessage();
        assertTrue(message.startsWith(why), message);
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
