package io.herdkeeper.node.log;

import herddb.log.LogNotAvailableException;
import java.time.Clock;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;

/**
 * The tablespaces whose log failed while this node led them, until the node leads or follows them again.
 *
 * <p>HerdDB stops such a tablespace within a second and boots it again. After that, a leader that lost its bookies would look like one
 * that boots for the first time.
 */
public final class LogFailures {

    private record Failure(String tablespace, String why) {
    }

    private final Clock clock;
    /** By the tablespace's uuid: one that is dropped and made anew under its name has not failed. */
    private final Map<String, Failure> failures = new ConcurrentHashMap<>();

    LogFailures(Clock clock) {
        this.clock = clock;
    }

    /** The first failure counts: what comes later follows from it. */
    void failed(String uuid, String tablespace, Throwable error) {
        failures.computeIfAbsent(uuid, key -> new Failure(tablespace, clock.instant() + " the log failed: "
                + (error == null ? "no new ledger could be written" : rootOf(error))));
    }

    void over(String uuid) {
        failures.remove(uuid);
    }

    /** Forgets tablespaces that have been dropped; one may be made anew under the name. */
    void exists(String tablespace, String uuid) {
        failures.entrySet().removeIf(each -> each.getValue().tablespace().equals(tablespace) && !each.getKey().equals(uuid));
    }

    /** Forgets tablespaces that have been dropped. */
    public void exist(Set<String> uuids) {
        failures.keySet().retainAll(uuids);
    }

    /** When and why the log of the tablespace with this uuid failed, or null. */
    public String why(String uuid) {
        Failure failure = failures.get(uuid);
        return failure == null ? null : failure.why();
    }

    /** Their names, sorted. */
    public List<String> tablespaces() {
        return failures.values().stream().map(Failure::tablespace).distinct().sorted().toList();
    }

    /**
     * What the client of a statement is told, of which an entry is in the log that the leader could not apply: the next boot may do so. Clients
     * know this class, and take any other error for a refusal.
     */
    public static LogNotAvailableException outcomeUnknown(Throwable error) {
        return new LogNotAvailableException("it is logged, and this node could not apply it; it may be durable: " + rootOf(error), error);
    }

    /** The cause that has no cause. */
    public static Throwable rootOf(Throwable error) {
        Throwable root = error;
        while (root.getCause() != null) {
            root = root.getCause();
        }
        return root;
    }
}
