package io.herdkeeper.node.log;

import herddb.log.LogSequenceNumber;
import io.herdkeeper.node.refusals.OrderRefusedException;
import java.time.Duration;
import java.util.concurrent.TimeoutException;
import java.util.function.BooleanSupplier;

/**
 * Holds a follower exactly after one entry of its log: a given one, or the first one at which its tables meet a condition.
 *
 * <p>The follower reads in rounds. At the start of a round it reports its position here and takes the limit, which holds
 * for the whole round: {@link LimitedReadHandle} shows it no later entry. Between rounds HerdDB releases the tablespace's
 * lock. So a held follower still checkpoints, sends heartbeats and can be stopped or promoted; it only applies no entries.
 */
public final class FollowerGate {

    /** The follower is held until this is closed. */
    public interface Hold extends AutoCloseable {

        /** The last entry that the follower has applied. */
        LogSequenceNumber position();

        /** Lets it go on; without effect when that was done before. */
        @Override
        void close();
    }

    private LogSequenceNumber wantedLimit;
    /** Asked by the follower's thread before each round, while its tables stand still. */
    private BooleanSupplier wantedState;
    private LogSequenceNumber position = LogSequenceNumber.START_OF_TIME;
    /** Read by the follower's thread without the monitor, several times an entry. */
    private volatile LogSequenceNumber roundLimit;

    /** Starts a round: the follower has applied everything up to {@code applied} and nothing beyond. */
    synchronized void startRound(LogSequenceNumber applied) {
        position = applied;
        if (wantedState != null && applied.offset >= 0 && wantedState.getAsBoolean()) {
            wantedState = null;
            wantedLimit = applied;
        }
        roundLimit = wantedLimit;
        notifyAll();
    }

    /** The highest entry of a ledger that may be read in this round; -1 is none, {@link Long#MAX_VALUE} is no limit. */
    long lastReadableEntry(long ledgerId) {
        LogSequenceNumber limit = roundLimit;
        if (limit == null || ledgerId < limit.ledgerId) {
            return Long.MAX_VALUE;
        }
        return ledgerId == limit.ledgerId ? limit.offset : -1;
    }

    /**
     * Waits until the follower has applied everything up to {@code target}, and holds it there.
     *
     * @throws OrderRefusedException it has applied more than that, or another hold is open
     * @throws TimeoutException      it did not get there in time; it runs on
     */
    public synchronized Hold holdAt(LogSequenceNumber target, Duration timeout)
            throws OrderRefusedException, TimeoutException, InterruptedException {
        requireFree();
        wantedLimit = target;
        boolean held = false;
        try {
            waitFor(target, System.nanoTime() + timeout.toNanos());
            held = true;
            return new Held(target);
        } finally {
            if (!held) {
                release();
            }
        }
    }

    /**
     * Waits until the follower stands between two rounds and {@code suits} holds there, and holds it there. Rounds are short, so that this is
     * looked at often, but not after each entry.
     *
     * @param suits looks at the follower's tables, which nobody changes meanwhile; it is called by the follower's thread
     * @throws OrderRefusedException another hold is open
     * @throws TimeoutException      it did not hold in time, or no round began; the follower runs on
     */
    public synchronized Hold holdWhen(BooleanSupplier suits, Duration timeout)
            throws OrderRefusedException, TimeoutException, InterruptedException {
        requireFree();
        wantedState = suits;
        boolean held = false;
        try {
            long deadline = System.nanoTime() + timeout.toNanos();
            while (wantedState != null) {
                long millis = (deadline - System.nanoTime()) / 1_000_000;
                if (millis <= 0) {
                    throw new TimeoutException("not at any position up to " + position);
                }
                wait(millis);
            }
            held = true;
            return new Held(wantedLimit);
        } finally {
            if (!held) {
                release();
            }
        }
    }

    private void requireFree() throws OrderRefusedException {
        if (wantedLimit != null || wantedState != null) {
            throw new OrderRefusedException(
                    wantedLimit == null ? "another request already waits to hold it" : "already held at " + wantedLimit);
        }
    }

    private synchronized void waitFor(LogSequenceNumber target, long deadline)
            throws OrderRefusedException, TimeoutException, InterruptedException {
        // A round that began before the limit was set may still read beyond it: only a round under it can tell.
        while (roundLimit != target || !position.equals(target)) {
            if (roundLimit == target && position.after(target)) {
                throw new OrderRefusedException("already at " + position);
            }
            long millis = (deadline - System.nanoTime()) / 1_000_000;
            if (millis <= 0) {
                throw new TimeoutException("still at " + position);
            }
            wait(millis);
        }
    }

    private synchronized void release() {
        wantedLimit = null;
        wantedState = null;
    }

    /** Closed by whoever is done with it, or by a clock: the second time it must not let go of what somebody else holds. */
    private final class Held implements Hold {

        private final LogSequenceNumber at;
        private boolean open = true;

        Held(LogSequenceNumber at) {
            this.at = at;
        }

        @Override
        public LogSequenceNumber position() {
            return at;
        }

        @Override
        public void close() {
            synchronized (FollowerGate.this) {
                if (open) {
                    open = false;
                    release();
                }
            }
        }
    }
}
