package io.herdkeeper.node;

import herddb.cluster.ZookeeperMetadataStorageManager;
import herddb.log.CommitLogManager;
import herddb.server.Server;
import herddb.server.ServerConfiguration;
import io.herdkeeper.node.log.HerdInternals;
import io.herdkeeper.node.log.NodeCommitLogManager;
import org.apache.bookkeeper.stats.StatsProvider;

/** Makes HerdDB's server with this program's log in it. */
public final class NodeServer {

    private NodeServer() {
    }

    /** Makes a manager of commit logs out of what the server knows while it is being built. */
    @FunctionalInterface
    public interface LogManagerFactory {

        CommitLogManager create(ZookeeperMetadataStorageManager metadata);
    }

    /** A server in mode cluster that is not started yet. */
    public static Server create(ServerConfiguration configuration, StatsProvider statistics) {
        HerdInternals.verify();
        return create(configuration, statistics,
                metadata -> new NodeCommitLogManager(metadata, configuration, statistics.getStatsLogger("")));
    }

    static Server create(ServerConfiguration configuration, StatsProvider statistics, LogManagerFactory logManagers) {
        // An anonymous class on purpose: Server's constructor calls buildCommitLogManager, and captured variables are set
        // before that constructor runs, fields of a named subclass only after it.
        return new Server(configuration, statistics) {
            @Override
            protected CommitLogManager buildCommitLogManager() {
                return logManagers.create((ZookeeperMetadataStorageManager) getMetadataStorageManager());
            }
        };
    }
}
