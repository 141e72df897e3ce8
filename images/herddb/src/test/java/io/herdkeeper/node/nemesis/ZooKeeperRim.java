package io.herdkeeper.node.nemesis;

import herddb.cluster.ZookeeperMetadataStorageManager;
import herddb.server.ServerConfiguration;
import io.herdkeeper.node.leadership.LeadershipMetadata;
import io.herdkeeper.node.testing.BookKeeperForTests;
import java.io.IOException;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.zookeeper.InterposedConnection;
import org.apache.zookeeper.KeeperException;
import org.apache.zookeeper.ZooKeeper;
import org.apache.zookeeper.proto.ReplyHeader;

/** The sessions of a node's process with ZooKeeper, each of whose requests is a call of it. */
final class ZooKeeperRim {

    /** These look whether something has changed, as often as there is time; what they find, the boot asks for itself. */
    private static final Set<String> POLLS = Set.of("DBManager.manageTableSpaces", "DBManager.handleTableSpace");

    private final Life life;
    private final String root;
    private final Set<ZooKeeper> sessions = ConcurrentHashMap.newKeySet();

    ZooKeeperRim(Life life, String root) {
        this.life = life;
        this.root = root;
    }

    /** The node's way to ZooKeeper, not connected yet. */
    LeadershipMetadata metadata(ServerConfiguration configuration, int sessionTimeout) {
        String address = configuration.getString(ServerConfiguration.PROPERTY_ZOOKEEPER_ADDRESS, null);
        return new Metadata(configuration, new Heartbeats(address, sessionTimeout, root));
    }

    /** Has ZooKeeper end the sessions. */
    void expire() throws Exception {
        for (ZooKeeper session : sessions) {
            BookKeeperForTests.running().expire(session.getSessionId());
        }
    }

    /** Ends what is left of the sessions. */
    void close() throws IOException {
        for (ZooKeeper session : sessions) {
            InterposedConnection.closeReal(session);
        }
    }

    private ZooKeeper interposed(ZooKeeper session) {
        if (sessions.add(session)) {
            InterposedConnection.into(session, this::ask);
        }
        return session;
    }

    private ReplyHeader ask(String operation, String path, boolean changes, InterposedConnection.Sending sending) throws InterruptedException {
        if (Thread.currentThread().getName().equals("activator-waker")) {
            return life.idle(sending::send);
        }
        String caller = Caller.of();
        boolean heartbeat = path.startsWith(root + "/replicas/");
        Call call = new Call(Kind.ZOOKEEPER, operation + " " + Caller.plain(path.substring(Math.min(root.length(), path.length()))) + " by " + caller,
                changes, heartbeat || POLLS.contains(caller));
        Life.Visit visit = life.begin(call);
        if (visit.fails()) {
            return null;
        }
        ReplyHeader answer = visit.effect(sending::send);
        return visit.isLost() ? null : answer;
    }

    private final class Metadata extends LeadershipMetadata {

        Metadata(ServerConfiguration configuration, ZookeeperMetadataStorageManager ofHeartbeats) {
            super(configuration, ofHeartbeats);
        }

        @Override
        public synchronized ZooKeeper ensureZooKeeper() throws KeeperException, InterruptedException, IOException {
            return interposed(super.ensureZooKeeper());
        }
    }

    private final class Heartbeats extends ZookeeperMetadataStorageManager {

        Heartbeats(String address, int sessionTimeout, String path) {
            super(address, sessionTimeout, path);
        }

        @Override
        public synchronized ZooKeeper ensureZooKeeper() throws KeeperException, InterruptedException, IOException {
            return interposed(super.ensureZooKeeper());
        }
    }
}
