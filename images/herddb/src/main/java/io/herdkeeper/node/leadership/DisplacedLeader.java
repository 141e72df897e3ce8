package io.herdkeeper.node.leadership;

import herddb.metadata.MetadataStorageManagerException;
import io.herdkeeper.node.background.Repeated;
import io.herdkeeper.node.status.NodeStatus;
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
 * tablespace's read lock in its hand, and the activator waits for the tablespace. The node then acts on no change of any
 * tablespace any more, and answers reads with what it had. Nothing is lost with the process: its log is fenced, and it follows
 * once it is started again.
 */
public final class DisplacedLeader {

    private static final Logger LOGGER = Logger.getLogger(DisplacedLeader.class.getName());
    private static final Duration PAUSE = Duration.ofMillis(500);

    private final NodeStatus status;
    private final Duration patience;
    private final Consumer<String> end;
    /** Since when each tablespace is led elsewhere, by {@link System#nanoTime}. */
    private final Map<String, Long> since = new HashMap<>();

    /**
     * @param patience how long a tablespace may take to stop once that has begun
     * @param end      ends the process, and is told why
     */
    public DisplacedLeader(NodeStatus status, Duration patience, Consumer<String> end) {
        this.status = status;
        this.patience = patience;
        this.end = end;
    }

    /** Looks from now on. */
    public void start() {
        Repeated.start("displaced-leader", PAUSE, this::look);
    }

    private void look() {
        if (status.phase() != Phase.RUNNING) {
            return;
        }
        try {
            List<String> displaced = status.stoppingLeaderships();
            since.keySet().retainAll(displaced);
            long now = System.nanoTime();
            for (String tablespace : displaced) {
                long began = since.computeIfAbsent(tablespace, first -> now);
                if (now - began > patience.toNanos()) {
                    end.accept("another node leads tablespace " + tablespace + ", and this one has not stopped leading it within "
                            + patience.toSeconds() + " s");
                }
            }
        } catch (MetadataStorageManagerException | RuntimeException error) {
            // What can't be read may have been given back: the time begins anew.
            since.clear();
            LOGGER.log(Level.FINE, "who leads is not readable: {0}", error.toString());
        }
    }
}
