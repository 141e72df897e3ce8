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
 * Ends the process of a node that goes on leading a tablespace which the metadata has given to another one.
 *
 * <p>HerdDB's one activator thread stops such a tablespace within a second, unless it waits for ever: an UPDATE or a DELETE whose
 * log entry failed keeps the lock of its row (TableManager.executeUpdateAsync), the next one waits for that lock with the
 * tablespace's read lock in its hand, and the activator waits for the tablespace: to stop it, or for the checkpoint that was due
 * before it looked. The node then acts on no change of any tablespace any more, and answers reads with what it had. Nothing is lost with the process: its log is fenced, and it follows
 * once it is started again.
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

    private void look() {
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
                    end.accept("another node leads tablespace " + leadership.tablespace() + ", and this one has not "
                            + (leadership.stopping() ? "stopped" : "begun to stop") + " leading it within " + limit.toSeconds() + " s");
                }
            }
        } catch (MetadataStorageManagerException | RuntimeException error) {
            // What can't be read may have been given back: the time begins anew.
            since.clear();
            LOGGER.log(Level.FINE, "the leaders can''t be read: {0}", error.toString());
        }
    }
}
