package io.herdkeeper.node.release;

import herddb.log.LogSequenceNumber;
import java.time.Duration;

/**
 * What the pin of a stream of changes says: from where on it needs the log, and for how long that counts after it was written last. A
 * field that is missing is null.
 */
public record StreamPin(Long ledgerId, Long entryId, Long maxAgeSeconds) {

    private static final long LONGEST_SECONDS = Duration.ofDays(3650).toSeconds();

    /** Whether nothing is missing, and its age is one that can be reckoned with: of more than ten years nobody means it. */
    boolean isWhole() {
        return ledgerId != null && entryId != null && maxAgeSeconds != null && maxAgeSeconds > 0 && maxAgeSeconds <= LONGEST_SECONDS;
    }

    LogSequenceNumber lsn() {
        return new LogSequenceNumber(ledgerId, entryId);
    }

    /** Whether nobody has moved it for longer than it counts; both times in ms by one clock. */
    boolean isAbandoned(long writtenAt, long now) {
        return now - writtenAt > Duration.ofSeconds(maxAgeSeconds).toMillis();
    }
}
