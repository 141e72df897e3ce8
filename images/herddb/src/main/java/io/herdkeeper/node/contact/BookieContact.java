package io.herdkeeper.node.contact;

import herddb.core.TableSpaceManager;
import herddb.log.LogSequenceNumber;
import herddb.server.Server;
import io.herdkeeper.node.background.Repeated;
import io.herdkeeper.node.log.NodeCommitLog;
import java.time.Duration;
import java.util.HashMap;
import java.util.Map;
import java.util.TreeMap;

/**
 * How long the bookies have acknowledged nothing although entries of a log wait.
 *
 * <p>They acknowledge in the order of the log. So if the next entry to be acknowledged stays the same, none was acknowledged.
 */
public final class BookieContact {

    private static final Duration PERIOD = Duration.ofMillis(250);
    /** What waits for less is the way to a bookie's disk and back. */
    private static final double REMARKABLE_SECONDS = 1;

    /** The entry that a log waits for, and since when, by {@link System#nanoTime}. */
    private record Wait(LogSequenceNumber entry, long since) {
    }

    private final Server server;
    private final Map<String, Wait> waits = new HashMap<>();

    BookieContact(Server server) {
        this.server = server;
    }

    /** Looks from now on, until the thread that it returns is interrupted. */
    Thread start() {
        return Repeated.start("bookie-contact", PERIOD, this::look);
    }

    /** The seconds for which each tablespace has waited; those that wait for a moment only, or for nothing, are left out. */
    synchronized Map<String, Double> unacknowledgedSeconds() {
        Map<String, Double> seconds = new TreeMap<>();
        long now = System.nanoTime();
        waits.forEach((tablespace, wait) -> {
            double waited = (now - wait.since()) / 1e9;
            if (waited >= REMARKABLE_SECONDS) {
                seconds.put(tablespace, waited);
            }
        });
        return seconds;
    }

    private void look() {
        Map<String, LogSequenceNumber> awaited = new HashMap<>();
        for (String name : server.getManager().getLocalTableSpaces()) {
            TableSpaceManager tablespace = server.getManager().getTableSpaceManager(name);
            if (tablespace != null && tablespace.getLog() instanceof NodeCommitLog log && !log.isFailed()) {
                LogSequenceNumber entry = log.awaited();
                if (entry != null) {
                    awaited.put(name, entry);
                }
            }
        }
        note(awaited);
    }

    private synchronized void note(Map<String, LogSequenceNumber> awaited) {
        long now = System.nanoTime();
        waits.keySet().retainAll(awaited.keySet());
        awaited.forEach((tablespace, entry) -> {
            Wait before = waits.get(tablespace);
            if (before == null || !before.entry().equals(entry)) {
                waits.put(tablespace, new Wait(entry, now));
            }
        });
    }
}
