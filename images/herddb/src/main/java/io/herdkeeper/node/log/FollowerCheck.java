package io.herdkeeper.node.log;

import herddb.core.TableSpaceManager;
import herddb.log.LogEntry;
import herddb.log.LogSequenceNumber;
import java.util.function.BooleanSupplier;

/** A follower's reaction to an entry that checks a table, with all earlier entries applied and no later one. */
@FunctionalInterface
public interface FollowerCheck {

    /**
     * Compares the follower's rows with what the leader wrote. It throws nothing: a check is no reason to stop following.
     *
     * @param position where the entry is
     * @param hurried  whether the follower is about to stop, and nobody should wait for it any more
     */
    void compare(TableSpaceManager copy, LogSequenceNumber position, LogEntry entry, BooleanSupplier hurried);
}
