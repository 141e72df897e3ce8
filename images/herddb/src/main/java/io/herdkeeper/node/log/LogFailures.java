package io.herdkeeper.node.log;

import java.time.Clock;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/**
 * The tablespaces whose log failed while this node led them, until the node leads or follows them again.
 *
 * <p>HerdDB stops such a tablespace within a second and boots it again: after that nothing would tell a leader that lost its bookies
 * from one that boots for the first time.
 */
public final class LogFailures {

    private final Clock clock;
    private final Map<String, String> failures = new ConcurrentHashMap<>();

    LogFailures(Clock clock) {
        this.clock = clock;
    }

    /** The first failure counts: what comes later follows from it. */
    void failed(String tablespace, Throwable error) {
        failures.computeIfAbsent(tablespace, name -> clock.instant() + " the log failed: " + rootOf(error));
    }

    void over(String tablespace) {
        failures.remove(tablespace);
    }

    /** When and why a log failed, or null. */
    public String why(String tablespace) {
        return failures.get(tablespace);
    }

    /** Their names, sorted. */
    public List<String> tablespaces() {
        return failures.keySet().stream().sorted().toList();
    }

    private static String rootOf(Throwable error) {
        Throwable root = error;
        while (root != null && root.getCause() != null) {
            root = root.getCause();
        }
        return root == null ? "no new ledger could be written" : root.toString();
    }
}
