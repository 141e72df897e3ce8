package io.herdkeeper.node.log;

import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;

/**
 * Ends the waits of a follower once its node is named as the leader.
 *
 * <p>HerdDB then discards the follower's tables, and boots from the local checkpoint as soon as the follower has stopped, so its
 * waits are useless. Until it has stopped, the end can be cancelled, and the follower goes on where it was.
 */
final class FollowerEnd {

    private boolean near;
    private int newestRecord = -1;
    /** The answer that the follower waits for, or had waited for; null before the first one. */
    private CompletableFuture<Long> awaited;
    private long known;

    /** Tells whether the record of this version names the node as the leader; threads that read it may tell of older ones later. */
    synchronized void near(boolean isNear, int recordVersion) {
        if (recordVersion < newestRecord) {
            return;
        }
        newestRecord = recordVersion;
        near = isNear;
        if (near) {
            notifyAll();
            if (awaited != null) {
                awaited.complete(known);
            }
        }
    }

    synchronized boolean isNear() {
        return near;
    }

    /** Waits for a while, or until the end is near. */
    synchronized void rest(long millis) throws InterruptedException {
        long deadline = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(millis);
        long left = millis;
        while (!near && left > 0) {
            wait(left);
            left = TimeUnit.NANOSECONDS.toMillis(deadline - System.nanoTime());
        }
    }

    /**
     * The answer, which becomes {@code whatIsKnown} if the end is near before it comes. One at a time: of an earlier one that
     * nobody waits for any more this knows nothing.
     */
    synchronized CompletableFuture<Long> orWhatIsKnown(CompletableFuture<Long> answer, long whatIsKnown) {
        awaited = answer;
        known = whatIsKnown;
        if (near) {
            answer.complete(whatIsKnown);
        }
        return answer;
    }
}
