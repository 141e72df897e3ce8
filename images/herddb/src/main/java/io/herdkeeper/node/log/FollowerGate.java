package io.herdkeeper.node.log;

import herddb.log.LogSequenceNumber;
import java.time.Duration;
import java.util.concurrent.TimeoutException;

/**
 * Holds a follower exactly after one entry of its log.
 *
 * <p>The follower reads in rounds. At the start of a round it tells its position here and takes the limit, which then holds
 * for the whole round: {@link LimitedReadHandle} shows it no entry above. Between rounds HerdDB releases the tablespace's
 * lock, so that a held follower still checkpoints, sends heartbeats and can be stopped or promoted; only its log stands.
 */
public final class FollowerGate {

    /** The follower is already beyond the entry at which it should be held. */
    public static final class AlreadyPassedException extends Exception {

        private static final long serialVersionUID = 1L;

        private final transient LogSequenceNumber position;

        AlreadyPassedException(LogSequenceNumber position) {
            super("already at " + position);
            this.position = position;
        }

        /** Where the follower is. */
        public LogSequenceNumber position() {
            return position;
        }
    }

    /** Somebody else holds this follower. */
    public static final class AlreadyHeldException extends Exception {

        private static final long serialVersionUID = 1L;

        AlreadyHeldException(LogSequenceNumber limit) {
            super("already held for a digest at " + limit);
        }
    }

    /** The follower is held until this is closed. */
    public interface Hold extends AutoCloseable {

        @Override
        void close();
    }

    private LogSequenceNumber wantedLimit;
    private LogSequenceNumber position = LogSequenceNumber.START_OF_TIME;
    /** Read by the follower's thread without the monitor, several times an entry. */
    private volatile LogSequenceNumber roundLimit;

    /** Starts a round: the follower has applied everything up to {@code applied} and nothing beyond. */
    synchronized void startRound(LogSequenceNumber applied) {
        position = applied;
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
     * @throws AlreadyPassedException it has applied more than that
     * @throws AlreadyHeldException   another hold is open
     * @throws TimeoutException       it did not get there in time; it runs on
     */
    public synchronized Hold holdAt(LogSequenceNumber target, Duration timeout)
            throws AlreadyPassedException, AlreadyHeldException, TimeoutException, InterruptedException {
        if (wantedLimit != null) {
            throw new AlreadyHeldException(wantedLimit);
        }
        wantedLimit = target;
        boolean held = false;
        try {
            waitFor(target, System.nanoTime() + timeout.toNanos());
            held = true;
            return this::release;
        } finally {
            if (!held) {
                release();
            }
        }
    }

    private synchronized void waitFor(LogSequenceNumber target, long deadline)
            throws AlreadyPassedException, TimeoutException, InterruptedException {
        // A round that began before the limit was set may still read beyond it: only a round under it can tell.
        while (roundLimit != target || !position.equals(target)) {
            if (roundLimit == target && position.after(target)) {
                throw new AlreadyPassedException(position);
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
    }
}
