package io.herdkeeper.node.refusals;

import java.net.InetSocketAddress;
import java.net.SocketAddress;
import java.time.Duration;
import java.util.Locale;
import java.util.logging.Level;
import java.util.logging.Logger;

/**
 * Whom this process did not let in: each is counted, and some are logged with their address. Nothing that they sent is logged, since that
 * may be a password.
 */
public final class Refusals {

    /** Why somebody was refused. */
    public enum Reason {
        /** A SQL connection without a login, or with a wrong one. */
        LOGIN,
        /** Plain text where TLS is demanded. */
        PLAINTEXT,
        /** Something else than a login, sent before the login. */
        REQUEST,
        /** A TLS handshake that failed. */
        TLS,
        /** A request without the token, or with a wrong one. */
        TOKEN,
        /** The oldest of too many connections that are not logged in. */
        TOO_MANY;

        final Log log = new Log();

        /** How often. */
        public long count() {
            return log.count();
        }

        /** As the metric calls it. */
        public String label() {
            return name().toLowerCase(Locale.ROOT);
        }
    }

    /** For each reason, in a minute: nobody fills a disk or hides other lines by being refused. */
    private static final int MOST_LINES = 10;
    private static final long MINUTE_NANOS = Duration.ofMinutes(1).toNanos();
    private static final Logger LOGGER = Logger.getLogger(Refusals.class.getName());

    private Refusals() {
    }

    /** @param what was refused, in words of this program */
    public static void tell(Reason reason, SocketAddress peer, String what) {
        long unlogged = reason.log.counted(System.nanoTime());
        if (unlogged >= 0) {
            LOGGER.log(Level.WARNING, "refused {0} ({1}): {2}; {3} more since the last such line",
                    new Object[]{text(peer), reason.label(), what, String.valueOf(unlogged)});
        }
    }

    private static String text(SocketAddress peer) {
        return peer instanceof InetSocketAddress address ? address.getAddress().getHostAddress() + ":" + address.getPort()
                : String.valueOf(peer);
    }

    /** What is told for one reason. */
    static final class Log {

        private long count;
        private long unlogged;
        private long minuteNanos;
        private int lines;

        synchronized long count() {
            return count;
        }

        /** Counts one more: the number of those since the last line, or less than 0 if this one is not to be logged. */
        synchronized long counted(long nowNanos) {
            if (count++ == 0 || nowNanos - minuteNanos >= MINUTE_NANOS) {
                beginMinute(nowNanos);
            }
            if (lines == MOST_LINES) {
                unlogged++;
                return -1;
            }
            lines++;
            long left = unlogged;
            unlogged = 0;
            return left;
        }

        synchronized void beginMinute(long nowNanos) {
            minuteNanos = nowNanos;
            lines = 0;
        }
    }
}
