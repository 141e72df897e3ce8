package io.herdkeeper.node.log;

import herddb.log.LogSequenceNumber;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** An LSN as JSON. {@code -1, -1} is before the first entry of all. */
public record Position(long ledgerId, long entryId) {

    private static final Pattern TEXT = Pattern.compile("([0-9]{1,18}),([0-9]{1,18})");

    public static Position of(LogSequenceNumber position) {
        return new Position(position.ledgerId, position.offset);
    }

    /** Of its text {@code <ledger>,<entry>}; null if it is none. */
    public static Position parse(String text) {
        Matcher told = TEXT.matcher(text);
        return told.matches() ? new Position(Long.parseLong(told.group(1)), Long.parseLong(told.group(2))) : null;
    }

    /** What {@link #parse} reads. */
    public String text() {
        return ledgerId + "," + entryId;
    }

    /** As HerdDB's own type. */
    public LogSequenceNumber lsn() {
        return new LogSequenceNumber(ledgerId, entryId);
    }
}
