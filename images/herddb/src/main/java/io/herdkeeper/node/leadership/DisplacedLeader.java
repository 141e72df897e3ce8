package io.herdkeeper.node.leadership;

import herddb.metadata.MetadataStorageManagerException;
import io.herdkeeper.node.background.Repeated;
import io.herdkeeper.node.status.NodeStatus;
import io.herdkeeper.node.status.NodeStatus.DisplacedLeadership;
import io.herdkeeper.node.status.NodeStatus.Phase;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Consumer;
import java.util.logging.Level;
import java.util.logging.Logger;

/**
 * Ends the process of a node that leads a tablespace in vain: the metadata assigned it to another node, it is dropped, or its log has
 * failed.
 *
 * <p>HerdDB's only activator thread stops such a tablespace within a second, unless it waits forever. An UPDATE or a DELETE whose log
 * entry failed keeps the lock of its row (TableManager.executeUpdateAsync). The next one waits for that lock and holds the tablespace's
 * read lock. The activator waits for the tablespace: to stop it, or for a checkpoint that was due before. The node then ignores changes of
 * all tablespaces, and answers reads with outdated rows. Nothing is lost with the process: its log is fenced, and it follows after the
 * restart.
 */
public final class DisplacedLeader {

    private static final Logger LOGGER = Logger.getLogger(DisplacedLeader.class.getName());
    private static final Duration PAUSE = Duration.ofMillis(500);

    private final NodeStatus status;
    private final Patience patience;
    private final Consumer<String> end;
    /** Since when each leadership is in its state, by {@link System#nanoTime}. */
    private final Map<DisplacedLeadership, Long> since = new HashMap<>();

    /**
     * How long a displaced leader may take.
     *
     * @param begin until it begins to stop; a checkpoint of another tablespace, for which the activator waits, fits in
     * @param stop  from then on until it has stopped
     */
    public record Patience(Duration begin, Duration stop) {
    }

    /** @param end ends the process, and receives the reason */
    public DisplacedLeader(NodeStatus status, Patience patience, Consumer<String> end) {
        this.status = status;
        this.patience = patience;
        this.end = end;
    }

    /** Looks from now on, until the thread that it returns is interrupted. */
    public Thread start() {
        return Repeated.start("displaced-leader", PAUSE, this::look);
    }

    /** Looks once; not by two threads. */
    void look() {
        if (status.phase() != Phase.RUNNING) {
            return;
        }
        try {
            List<DisplacedLeadership> displaced = status.displacedLeaderships();
            since.keySet().retainAll(displaced);
            long now = System.nanoTime();
            for (DisplacedLeadership leadership : displaced) {
                long began = since.computeIfAbsent(leadership, first -> now);
                Duration limit = leadership.stopping() ? patience.stop() : patience.begin();
                if (now - began > limit.toNanos()) {
                    end.accept(leadership.stopping()
                            ? "tablespace " + leadership.tablespace() + " has not stopped within " + limit.toSeconds() + " s"
                            : "another node leads tablespace " + leadership.tablespace() + ", and this one has not begun to stop leading it"
                                    + " within " + limit.toSeconds() + " s");
                }
            }
        } catch (MetadataStorageManagerException | RuntimeException error) {
            // What can't be read may have been given back: the time begins anew.
            since.clear();
            LOGGER.log(Level.FINE, "the leaders can''t be read: {0}", error.toString());
        }
    }
}
