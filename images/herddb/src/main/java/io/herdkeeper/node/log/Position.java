package io.herdkeeper.node.log;

import herddb.log.LogSequenceNumber;

/** An LSN as JSON. {@code -1, -1} is before the first entry of all. */
public record Position(long ledgerId, long entryId) {

    public static Position of(LogSequenceNumber position) {
        return new Position(position.ledgerId, position.offset);
    }

    /** As HerdDB's own type. */
    public LogSequenceNumber lsn() {
        return new LogSequenceNumber(ledgerId, entryId);
    }
}
