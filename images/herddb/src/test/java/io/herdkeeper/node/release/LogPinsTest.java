package io.herdkeeper.node.release;

import static org.junit.jupiter.api.Assertions.assertEquals;

import herddb.cluster.ZookeeperMetadataStorageManager;
import herddb.log.LogSequenceNumber;
import io.herdkeeper.node.testing.BookKeeperForTests;
import java.io.IOException;
import java.util.Map;
import java.util.Optional;
import org.apache.zookeeper.CreateMode;
import org.apache.zookeeper.InterposedConnection;
import org.apache.zookeeper.InterposedConnection.Sending;
import org.apache.zookeeper.KeeperException;
import org.apache.zookeeper.ZooDefs.Ids;
import org.apache.zookeeper.ZooKeeper;
import org.apache.zookeeper.proto.ReplyHeader;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** A pin that somebody has just written through another member of ZooKeeper. */
class LogPinsTest {

    private static final int SESSION_MILLIS = 20_000;
    private static final String UUID = "a-tablespace";
    private static final LogSequenceNumber FROM = new LogSequenceNumber(3, 0);

    private ZookeeperMetadataStorageManager others;
    private MemberBehind way;

    @BeforeEach
    void connect() throws Exception {
        String address = BookKeeperForTests.running().zooKeeperAddress();
        String root = BookKeeperForTests.running().newRoot();
        others = new ZookeeperMetadataStorageManager(address, SESSION_MILLIS, root);
        others.start();
        way = new MemberBehind(address, root);
        way.start(false);
    }

    @AfterEach
    void disconnect() throws Exception {
        way.close();
        others.close();
    }

    @Test
    void isReadThoughTheMemberOfWhoReadsIsBehind() throws Exception {
        new LogPins(others).set(UUID, "checkpoint", FROM);
        way.lacking = others.getBasePath() + "/logPins/" + UUID + "/checkpoint";
        assertEquals(Map.of("checkpoint", Optional.of(FROM)), new LogPins(way).read(UUID));
    }

    @Test
    void isNoneBeforeAnybodyHasWrittenOne() throws Exception {
        assertEquals(Map.of(), new LogPins(way).read(UUID));
    }

    /** A way through a member that does not have a znode yet, until it has taken part in a transaction. */
    private final class MemberBehind extends ZookeeperMetadataStorageManager {

        private volatile String lacking;

        MemberBehind(String address, String root) {
            super(address, SESSION_MILLIS, root);
        }

        @Override
        public synchronized ZooKeeper ensureZooKeeper() throws KeeperException, InterruptedException, IOException {
            ZooKeeper session = super.ensureZooKeeper();
            InterposedConnection.into(session, (operation, path, changes, sending) -> {
                if (changes) {
                    lacking = null;
                }
                return lacking == null ? sending.send() : without(lacking, sending);
            });
            return session;
        }

        private ReplyHeader without(String path, Sending sending) throws InterruptedException {
            try {
                ZooKeeper session = others.ensureZooKeeper();
                byte[] data = session.getData(path, false, null);
                session.delete(path, -1);
                ReplyHeader answer = sending.send();
                session.create(path, data, Ids.OPEN_ACL_UNSAFE, CreateMode.PERSISTENT);
                return answer;
            } catch (KeeperException | IOException error) {
                throw new IllegalStateException(error);
            }
        }
    }
}
