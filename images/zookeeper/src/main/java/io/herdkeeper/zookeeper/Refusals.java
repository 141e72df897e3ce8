package io.herdkeeper.zookeeper;

import java.time.Duration;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Requests that an access list refused: ten a minute are logged, so that nobody fills a disk by being refused. */
final class Refusals {

    private static final int MOST_LINES = 10;
    private static final int MOST_LETTERS = 200;
    private static final long MINUTE_NANOS = Duration.ofMinutes(1).toNanos();
    private static final Logger LOGGER = LoggerFactory.getLogger(Refusals.class);

    private long unlogged;
    private long minuteNanos = System.nanoTime() - MINUTE_NANOS;
    private int lines;

    /**
     * Logs a refusal, or counts it for the next line.
     *
     * @param subject of the client's certificate
     * @param what it tried; only its beginning is logged, since a path may be long
     */
    synchronized void tell(String subject, String what) {
        long now = System.nanoTime();
        if (now - minuteNanos >= MINUTE_NANOS) {
            minuteNanos = now;
            lines = 0;
        }
        if (lines == MOST_LINES) {
            unlogged++;
            return;
        }
        lines++;
        String beginning = what.length() <= MOST_LETTERS ? what : what.substring(0, MOST_LETTERS) + "...";
        LOGGER.warn("refused {} (access): {}; {} more since the last such line", subject, beginning, unlogged);
        unlogged = 0;
    }
}
