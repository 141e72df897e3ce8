package io.herdkeeper.node.leadership;

import herddb.core.ActivatorRunRequest;
import herddb.core.DBManager;
import herddb.metadata.MetadataStorageManagerException;
import herddb.server.Server;
import io.herdkeeper.node.status.NodeStatus;
import io.herdkeeper.node.status.NodeStatus.Phase;
import java.util.Map;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.logging.Level;
import java.util.logging.Logger;

/**
 * Makes the node apply a leadership change at once.
 *
 * <p>HerdDB's activator stops a tablespace in one pass and boots it in the next. It waits a second before each pass unless it is
 * triggered, and ZooKeeper's watch triggers only the first one. So after each change of the metadata, and on request, this class triggers
 * the activator until every tablespace has its role. It stops at the first failure: the activator repeats a failing boot by itself, once a
 * second.
 */
public final class ActivatorWaker {

    private static final Logger LOGGER = Logger.getLogger(ActivatorWaker.class.getName());
    private static final long PAUSE_MILLIS = 10;
    /** Once a change has taken longer than a second, ZooKeeper is not asked a hundred times a second for it. */
    private static final long LATER_PAUSE_MILLIS = 250;
    private static final long LONGEST_SECONDS = 30;

    private final Server server;
    private final NodeStatus status;
    private final Semaphore wanted = new Semaphore(0);

    public ActivatorWaker(Server server, NodeStatus status) {
        this.server = server;
        this.status = status;
    }

    /** Listens to the metadata from now on, until the thread that it returns is interrupted; the server has been started. */
    public Thread start() {
        DBManager activator = server.getManager();
        server.getMetadataStorageManager().setMetadataChangeListener(change -> {
            activator.metadataChanged(change);
            wake();
        });
        Thread thread = new Thread(this::run, "activator-waker");
        thread.setDaemon(true);
        thread.start();
        wake();
        return thread;
    }

    /** Has the activator look at once, and again until everything is settled; returns at once. */
    public void wake() {
        wanted.release();
    }

    private void run() {
        try {
            while (true) {
                wanted.acquire();
                wanted.drainPermits();
                push();
            }
        } catch (InterruptedException ended) {
            Thread.currentThread().interrupt();
        }
    }

    private void push() throws InterruptedException {
        Map<String, String> before = status.errors();
        long start = System.nanoTime();
        long deadline = start + TimeUnit.SECONDS.toNanos(LONGEST_SECONDS);
        try {
            while (status.phase() != Phase.STOPPING && !status.settled() && System.nanoTime() - deadline < 0) {
                if (!status.errors().equals(before)) {
                    LOGGER.log(Level.INFO, "the activator is no longer woken, since a tablespace failed: {0}", status.errors());
                    return;
                }
                server.getManager().triggerActivator(ActivatorRunRequest.TABLESPACEMANAGEMENT);
                Thread.sleep(System.nanoTime() - start < TimeUnit.SECONDS.toNanos(1) ? PAUSE_MILLIS : LATER_PAUSE_MILLIS);
            }
        } catch (MetadataStorageManagerException | RuntimeException error) {
            LOGGER.log(Level.INFO, "the activator is no longer woken, since the metadata is not readable: {0}", error.toString());
        }
    }
}
