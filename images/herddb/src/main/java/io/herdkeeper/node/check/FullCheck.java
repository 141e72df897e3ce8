package io.herdkeeper.node.check;

import io.herdkeeper.node.status.Position;
import java.util.Collections;
import java.util.Map;
import java.util.TreeMap;

/**
 * HerdDB's consistency check of all tables of a tablespace, as its leader ran it. Each table is checked at an entry of its own.
 *
 * @param startedAtMillis     in ms since 1970
 * @param endedAtMillis       the same; null while it runs
 * @param after               the log's last entry before it began: the verdicts on it are at later entries
 * @param until               its last entry so far, so that a follower that is there has seen all of it; null before the first
 * @param tables              the tables that are done, each with the ms for which its writes, and all others of the tablespace, could
 *                            have had to wait
 * @param notChecked          the tables that HerdDB can't check, each with the reason: it does not quote names that SQL has for itself
 * @param writesStoppedMillis the sum of these, and of what a table took that could not be checked
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
        String error) {

    static FullCheck begun(long startedAtMillis, Position after) {
        return new FullCheck(startedAtMillis, null, after, null, Map.of(), Map.of(), 0, null);
    }

    FullCheck withTable(String table, long millis, Position entry) {
        return new FullCheck(startedAtMillis, null, after, entry, with(tables, table, millis), notChecked, writesStoppedMillis + millis, null);
    }

    /** With a table that can't be checked, and the ms that it took to find that out. */
    FullCheck without(String table, String why, long millis) {
        return new FullCheck(startedAtMillis, null, after, until, tables, with(notChecked, table, why), writesStoppedMillis + millis, null);
    }

    /** With ms of no table's check. */
    FullCheck stopped(long millis, String why) {
        return new FullCheck(startedAtMillis, null, after, until, tables, notChecked, writesStoppedMillis + millis, why);
    }

    FullCheck ended(long atMillis, String why) {
        return new FullCheck(startedAtMillis, atMillis, after, until, tables, notChecked, writesStoppedMillis, why);
    }

    private static <T> Map<String, T> with(Map<String, T> before, String table, T value) {
        Map<String, T> more = new TreeMap<>(before);
        more.put(table, value);
        return Collections.unmodifiableMap(more);
    }
}
