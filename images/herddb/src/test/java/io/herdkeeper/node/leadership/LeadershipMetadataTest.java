package io.herdkeeper.node.leadership;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import herddb.cluster.ZookeeperMetadataStorageManager;
import herddb.metadata.MetadataStorageManagerException;
import herddb.model.TableSpaceReplicaState;
import herddb.server.ServerConfiguration;
import io.herdkeeper.node.testing.Await;
import io.herdkeeper.node.testing.BookKeeperForTests;
import java.time.Duration;
import java.util.Collections;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.logging.Handler;
import java.util.logging.Level;
import java.util.logging.LogRecord;
import java.util.logging.Logger;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** Sessions that ZooKeeper ends. */
class LeadershipMetadataTest {

    private static final Duration LIMIT = Duration.ofSeconds(60);
    private static final int ROUNDS = 5;

    private final Opened opened = new Opened();
    private BookKeeperForTests zooKeeper;
    /** With a session of its own, so that looking does nothing in those that are looked at. */
    private ZookeeperMetadataStorageManager reader;
    private Set<Long> others;
    private LeadershipMetadata metadata;
    private long said;

    @BeforeEach
    void heartbeatsAreWritten() throws Exception {
        zooKeeper = BookKeeperForTests.running();
        String root = zooKeeper.newRoot();
        reader = new ZookeeperMetadataStorageManager(zooKeeper.zooKeeperAddress(), (int) LIMIT.toMillis(), root);
        reader.start(false);
        others = zooKeeper.sessions();
        ServerConfiguration configuration = new ServerConfiguration();
        configuration.set(ServerConfiguration.PROPERTY_ZOOKEEPER_ADDRESS, zooKeeper.zooKeeperAddress());
        configuration.set(ServerConfiguration.PROPERTY_ZOOKEEPER_PATH, root);
        metadata = new LeadershipMetadata(configuration);
        metadata.start();
        sayUntilWritten();
        opened.listen();
    }

    @AfterEach
    void end() throws Exception {
        opened.close();
        metadata.close();
        Await.until("its sessions have ended", LIMIT, () -> sessions().isEmpty());
        reader.close();
    }

    @Test
    void aSessionThatTheHeartbeatsOpenAgainIsNobodyElses() throws Exception {
        long activators = metadata.getZooKeeper().getSessionId();
        Set<Long> heartbeats = sessions();
        heartbeats.remove(activators);
        expire(heartbeats);
        sayUntilWritten();
        assertEquals(1, heartbeats.size());
        assertEquals(1, opened.count.get());
        assertEquals(activators, metadata.getZooKeeper().getSessionId());
        assertTrue(sessions().contains(activators));
    }

    @Test
    void ofTwoThreadsWhoseSessionsEndTogetherNoneEndsWhatTheOtherHasOpened() throws Exception {
        ExecutorService activator = Executors.newSingleThreadExecutor();
        try {
            for (int round = 0; round < ROUNDS; round++) {
                Set<Long> ended = sessions();
                int before = opened.count.get();
                assertFalse(ended.isEmpty());
                expire(ended);
                Future<Long> activators = activator.submit(this::listUntilAnswered);
                sayUntilWritten();
                assertEquals(activators.get(LIMIT.toSeconds(), TimeUnit.SECONDS), metadata.getZooKeeper().getSessionId());
                assertEquals(ended.size(), opened.count.get() - before, "as many are opened as have ended");
                assertEquals(ended.size(), sessions().size());
            }
        } finally {
            activator.shutdownNow();
        }
    }

    @Test
    void ofManyThreadsWithOneSessionThatEndsOneOpensItAgain() throws Exception {
        ExecutorService readers = Executors.newFixedThreadPool(5);
        try {
            for (int round = 0; round < ROUNDS; round++) {
                Set<Long> activators = Set.of(metadata.getZooKeeper().getSessionId());
                int before = opened.count.get();
                expire(activators);
                CyclicBarrier together = new CyclicBarrier(5);
                List<Future<Long>> asked = IntStream.range(0, 5).mapToObj(reader -> readers.submit(() -> {
                    together.await();
                    return listUntilAnswered();
                })).toList();
                for (Future<Long> one : asked) {
                    one.get(LIMIT.toSeconds(), TimeUnit.SECONDS);
                }
                assertEquals(1, opened.count.get() - before);
            }
        } finally {
            readers.shutdownNow();
        }
    }

    /** What the activator does in each pass; returns the session that it goes on with. */
    private long listUntilAnswered() throws Exception {
        Await.until("the tablespaces are listed", LIMIT, () -> {
            try {
                metadata.listTableSpaces();
                return true;
            } catch (MetadataStorageManagerException expired) {
                return false;
            }
        });
        return metadata.getZooKeeper().getSessionId();
    }

    private void sayUntilWritten() throws Exception {
        long next = ++said;
        Await.until("the heartbeat is written", LIMIT, () -> {
            metadata.updateTableSpaceReplicaState(TableSpaceReplicaState.builder().uuid("app").nodeId("n0")
                    .mode(TableSpaceReplicaState.MODE_FOLLOWER).timestamp(next).build());
            return isWritten(next);
        });
    }

    private boolean isWritten(long timestamp) throws Exception {
        return reader.getTableSpaceReplicaState("app").stream().anyMatch(state -> state.timestamp == timestamp);
    }

    private void expire(Set<Long> sessions) throws Exception {
        sessions.forEach(zooKeeper::expire);
        Await.until("ZooKeeper has ended them", LIMIT, () -> Collections.disjoint(zooKeeper.sessions(), sessions));
    }

    /** Those of the one that is tested. */
    private Set<Long> sessions() {
        Set<Long> found = new HashSet<>(zooKeeper.sessions());
        found.removeAll(others);
        return found;
    }

    /** Counts how often HerdDB has opened a session. */
    private static final class Opened extends Handler {

        private final Logger logger = Logger.getLogger(ZookeeperMetadataStorageManager.class.getName());
        private final AtomicInteger count = new AtomicInteger();

        void listen() {
            logger.setLevel(Level.INFO);
            logger.addHandler(this);
        }

        @Override
        public void publish(LogRecord event) {
            if (event.getMessage() != null && event.getMessage().startsWith("Connected to ZK")) {
                count.incrementAndGet();
            }
        }

        @Override
        public void flush() {
            // nothing is buffered
        }

        @Override
        public void close() {
            logger.removeHandler(this);
            logger.setLevel(null);
        }
    }
}
