package io.herdkeeper.node.leadership;

import herddb.metadata.MetadataStorageManagerException;
import io.herdkeeper.node.status.NodeStatus;
import java.time.Duration;
import java.util.List;
import java.util.logging.Level;
import java.util.logging.Logger;

/**
 * The time between SIGTERM and the end of the server: it serves until other nodes have taken over its leaderships.
 *
 * <p>The operator sees that the pod is terminating, and chooses the next leaders. Without an operator, HerdDB's own failover finds that
 * the node is gone. So this class only waits.
 */
public final class Departure {

    private static final Logger LOGGER = Logger.getLogger(Departure.class.getName());
    private static final long POLL_MILLIS = 100;

    private Departure() {
    }

    /** Waits until the node leads nothing that another replica could lead, at the longest for {@code patience}. */
    public static void awaitHandOver(NodeStatus status, Duration patience) {
        long deadline = System.nanoTime() + patience.toNanos();
        try {
            List<String> led = status.leaderships();
            while (!led.isEmpty() && System.nanoTime() - deadline < 0) {
                Thread.sleep(POLL_MILLIS);
                led = status.leaderships();
            }
            LOGGER.log(Level.INFO, led.isEmpty() ? "leads no tablespace any more" : "stops while it still leads {0}: no other node took over", led);
        } catch (MetadataStorageManagerException | RuntimeException error) {
            LOGGER.log(Level.WARNING, "stops without knowing which tablespaces it leads: {0}", error.toString());
        } catch (InterruptedException error) {
            Thread.currentThread().interrupt();
        }
    }
}
