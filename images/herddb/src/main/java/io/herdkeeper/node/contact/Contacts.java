package io.herdkeeper.node.contact;

import herddb.cluster.ZookeeperMetadataStorageManager;
import herddb.server.Server;
import io.herdkeeper.node.log.NodeCommitLogManager;
import java.util.List;
import java.util.Map;

/** The state of the node's connections to ZooKeeper and to its bookies. Reading it needs neither. */
public final class Contacts {

    /**
     * A line of {@code GET /alive}, as JSON.
     *
     * @param zooKeeper             whether ZooKeeper answers
     * @param unacknowledgedSeconds the tablespaces that this node leads, and whose bookies have acknowledged nothing for a second or
     *                              more though entries wait for it; with the seconds
     * @param failed                the tablespaces whose log failed while this node led them, until they are led or followed again
     */
    public record Report(Period zooKeeper, Map<String, Double> unacknowledgedSeconds, List<String> failed) {
    }

    private final ZooKeeperContact zooKeeper;
    private final BookieContact bookies;
    private final Server server;

    public Contacts(Server server) {
        this.server = server;
        zooKeeper = new ZooKeeperContact((ZookeeperMetadataStorageManager) server.getMetadataStorageManager());
        bookies = new BookieContact(server);
    }

    /** Looks from now on, until the threads that it returns are interrupted; the server has been started. */
    public List<Thread> start() {
        return List.of(zooKeeper.start(), bookies.start());
    }

    public Report report() {
        return new Report(zooKeeper.period(), bookies.unacknowledgedSeconds(), failed());
    }

    private List<String> failed() {
        return NodeCommitLogManager.of(server.getManager()).failures().tablespaces();
    }
}
