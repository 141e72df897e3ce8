package io.herdkeeper.node.check;

import io.herdkeeper.node.log.Position;
import java.util.Collections;
import java.util.Map;
import java.util.TreeMap;

/**
 * The check of all tables of a tablespace, as its leader ran it. Each table is checked in parts, each at an entry of its own.
 *
 * @param startedAtMillis     in ms since 1970
 * @param endedAtMillis       the same; null while it runs
 * @param after               the log's last entry before it began: the verdicts on it are at later entries
 * @param until               its last entry so far, so that a follower that is there has seen all of it; null before the first
 * @param tables              the tables that are done, each with the ms for which writes to the tablespace could have had to wait
 * @param notChecked          the tables that could not be read, each with the reason
 * @param writesStoppedMillis the same of the whole check; not in one piece, writes go on between two parts
 * @param longestStopMillis   the longest piece
 * @param error               why it ended before all tables were done; null when it did not
 */
public record FullCheck(
        long startedAtMillis,
        Long endedAtMillis,
        Position after,
        Position until,
        Map<String, Long> tables,
        Map<String, String> notChecked,
        long writesStoppedMillis,
        long longestStopMillis,
        String error) {

    static FullCheck begun(long startedAtMillis, Position after) {
        return new FullCheck(startedAtMillis, null, after, null, Map.of(), Map.of(), 0, 0, null);
    }

    /** With ms more in one piece. */
    FullCheck stopped(long millis) {
        return new FullCheck(startedAtMillis, null, after, until, tables, notChecked, writesStoppedMillis + millis,
                Math.max(longestStopMillis, millis), null);
    }

    /** With an entry more. */
    FullCheck at(Position entry) {
        return new FullCheck(startedAtMillis, null, after, entry, tables, notChecked, writesStoppedMillis, longestStopMillis, null);
    }

    /** With a table that is done, and the ms that it took of those that were added already. */
    FullCheck with(String table, long millis) {
        return new FullCheck(startedAtMillis, null, after, until, with(tables, table, millis), notChecked, writesStoppedMillis,
                longestStopMillis, null);
    }

    /** With a table that could not be read. */
    FullCheck without(String table, String why) {
        return new FullCheck(startedAtMillis, null, after, until, tables, with(notChecked, table, why), writesStoppedMillis,
                longestStopMillis, null);
    }

    FullCheck ended(long atMillis, String why) {
        return new FullCheck(startedAtMillis, atMillis, after, until, tables, notChecked, writesStoppedMillis, longestStopMillis, why);
    }

    private static <T> Map<String, T> with(Map<String, T> before, String table, T value) {
        Map<String, T> more = new TreeMap<>(before);
        more.put(table, value);
        return Collections.unmodifiableMap(more);
    }
}
