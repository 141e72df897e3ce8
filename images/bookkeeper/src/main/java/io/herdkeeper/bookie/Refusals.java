package io.herdkeeper.bookie;

import java.time.Duration;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Requests or connections that were refused for one reason: each is counted, and ten a minute are logged, so that nobody fills a disk by being refused. */
final class Refusals {

    private static final int MOST_LINES = 10;
    private static final long MINUTE_NANOS = Duration.ofMinutes(1).toNanos();
    private static final Logger LOGGER = LoggerFactory.getLogger(Refusals.class);

    private final String reason;
    private long count;
    private long unlogged;
    private long minuteNanos;
    private int lines;

    /** @param reason as the metric calls it */
    Refusals(String reason) {
        this.reason = reason;
    }

    /**
     * @param peer its address
     * @param what was refused; nothing that was sent, which may be secret
     */
    synchronized void tell(Object peer, String what) {
        long now = System.nanoTime();
        if (count++ == 0 || now - minuteNanos >= MINUTE_NANOS) {
            minuteNanos = now;
            lines = 0;
        }
        if (lines == MOST_LINES) {
            unlogged++;
            return;
        }
        lines++;
        LOGGER.warn("refused {} ({}): {}; {} more since the last such line", peer, reason, what, unlogged);
        unlogged = 0;
    }

    /** A line in Prometheus' text format. */
    synchronized String metric() {
        return "herdkeeper_refused_total{reason=\"" + reason + "\"} " + count + "\n";
    }
}
