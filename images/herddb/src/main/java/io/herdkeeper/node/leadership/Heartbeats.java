package io.herdkeeper.node.leadership;

import herddb.metadata.MetadataStorageManagerException;
import herddb.model.TableSpaceReplicaState;
import io.netty.util.concurrent.DefaultThreadFactory;
import java.time.Duration;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.logging.Level;
import java.util.logging.Logger;

/**
 * Writes the node's heartbeats in a separate thread.
 *
 * <p>HerdDB's activator sends a heartbeat in each pass, for one tablespace after the other. It waits each time until ZooKeeper has
 * written it to its disks. So a tablespace that is stopped in order to boot as the leader would wait for the heartbeats of all others. The
 * activator needs no answer. This class writes only heartbeats that the activator has sent, so a hanging activator still falls silent. Of
 * several heartbeats of one replica only the latest is written.
 */
final class Heartbeats implements AutoCloseable {

    private static final Logger LOGGER = Logger.getLogger(Heartbeats.class.getName());
    private static final int LAST_WRITES_SECONDS = 1;

    private final Writer writer;
    /** By the tablespace's uuid, what is not being written yet; each has its turn in the queue. */
    private final Map<String, TableSpaceReplicaState> said = new ConcurrentHashMap<>();
    private final ThreadPoolExecutor thread = new ThreadPoolExecutor(1, 1, 0, TimeUnit.SECONDS, new LinkedBlockingQueue<>(),
            new DefaultThreadFactory("heartbeats", true), new ThreadPoolExecutor.DiscardPolicy());

    /** Where a heartbeat goes. */
    @FunctionalInterface
    interface Writer {

        void write(TableSpaceReplicaState state) throws MetadataStorageManagerException;
    }

    Heartbeats(Writer writer) {
        this.writer = writer;
    }

    /** Has it written, and returns at once; after {@link #close} it is not written any more. */
    void say(TableSpaceReplicaState state) {
        if (said.put(state.uuid, state) == null) {
            thread.execute(() -> write(said.remove(state.uuid)));
        }
    }

    private void write(TableSpaceReplicaState state) {
        try {
            writer.write(state);
        } catch (MetadataStorageManagerException | RuntimeException error) {
            // The next pass says it anew, a second later.
            LOGGER.log(Level.INFO, "the heartbeat of tablespace {0} was not written: {1}", new Object[]{state.uuid, error.toString()});
        }
    }

    /** Ends the thread, once what was said is written, or after a second: then the rest never is, since it would open a new session. */
    @Override
    public void close() {
        thread.shutdown();
        try {
            if (!thread.awaitTermination(LAST_WRITES_SECONDS, TimeUnit.SECONDS)) {
                thread.shutdownNow();
            }
        } catch (InterruptedException error) {
            Thread.currentThread().interrupt();
        }
    }

    /** Whether the thread has ended within a time. */
    boolean awaitEnd(Duration limit) throws InterruptedException {
        return thread.awaitTermination(limit.toMillis(), TimeUnit.MILLISECONDS);
    }
}
