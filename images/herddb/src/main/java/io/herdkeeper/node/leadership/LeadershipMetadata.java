package io.herdkeeper.node.leadership;

import herddb.cluster.ZookeeperMetadataStorageManager;
import herddb.metadata.MetadataStorageManagerException;
import herddb.model.DDLException;
import herddb.model.NodeMetadata;
import herddb.model.TableSpace;
import herddb.model.TableSpaceReplicaState;
import herddb.server.ServerConfiguration;
import java.util.Collection;
import java.util.List;
import java.util.function.Consumer;

/**
 * HerdDB's ZooKeeper client. Heartbeats block no other request ({@link Heartbeats}), and it reports each record that is read, so that a
 * follower ends as soon as this node is its leader.
 *
 * <p>HerdDB reopens an expired session in each thread that learns of it, and closes the existing one, even if another thread has just
 * opened that. Two threads with one expired session would close each other's new sessions. So one thread at a time sends requests, and the
 * next one uses the reopened session. Heartbeats must not wait, so they have their own session.
 */
public class LeadershipMetadata extends ZookeeperMetadataStorageManager {

    /** Used, and so opened, by the heartbeats' thread alone. */
    private final ZookeeperMetadataStorageManager ofHeartbeats;
    private final Heartbeats heartbeats = new Heartbeats(this::write);
    /** Held by who asks. Not this object, which HerdDB holds itself: a session's events come in a thread that asks for it. */
    private final Object session = new Object();
    private volatile Consumer<TableSpace> reader = record -> { };
    private volatile Consumer<TableSpace> dropper = record -> { };

    /** Not connected yet. */
    public LeadershipMetadata(ServerConfiguration configuration) {
        this(configuration, new ZookeeperMetadataStorageManager(
                address(configuration), sessionTimeout(configuration), basePath(configuration)));
    }

    /** Not connected yet, with this way to ZooKeeper for the heartbeats, which nobody else uses. */
    protected LeadershipMetadata(ServerConfiguration configuration, ZookeeperMetadataStorageManager ofHeartbeats) {
        super(address(configuration), sessionTimeout(configuration), basePath(configuration));
        this.ofHeartbeats = ofHeartbeats;
    }

    private static String address(ServerConfiguration configuration) {
        return configuration.getString(
                ServerConfiguration.PROPERTY_ZOOKEEPER_ADDRESS, ServerConfiguration.PROPERTY_ZOOKEEPER_ADDRESS_DEFAULT);
    }

    private static int sessionTimeout(ServerConfiguration configuration) {
        return configuration.getInt(ServerConfiguration.PROPERTY_ZOOKEEPER_SESSIONTIMEOUT,
                ServerConfiguration.PROPERTY_ZOOKEEPER_SESSIONTIMEOUT_DEFAULT);
    }

    private static String basePath(ServerConfiguration configuration) {
        return configuration.getString(ServerConfiguration.PROPERTY_ZOOKEEPER_PATH, ServerConfiguration.PROPERTY_ZOOKEEPER_PATH_DEFAULT);
    }

    /** Who hears of each record that is read, in the thread that reads it. */
    public void tell(Consumer<TableSpace> who) {
        reader = who;
    }

    /** Who hears of each tablespace that this node has dropped, before the DROP is answered. */
    public void tellOfDrops(Consumer<TableSpace> who) {
        dropper = who;
    }

    @Override
    public TableSpace describeTableSpace(String name) throws MetadataStorageManagerException {
        TableSpace record;
        synchronized (session) {
            record = super.describeTableSpace(name);
        }
        if (record != null) {
            reader.accept(record);
        }
        return record;
    }

    @Override
    public Collection<String> listTableSpaces() throws MetadataStorageManagerException {
        synchronized (session) {
            return super.listTableSpaces();
        }
    }

    /** Each node has a tablespace of its own name, for what belongs to no other. HerdDB would take that for the new one, or stop it. */
    @Override
    public void registerTableSpace(TableSpace made) throws DDLException, MetadataStorageManagerException {
        synchronized (session) {
            if (super.listNodes().stream().anyMatch(node -> node.nodeId.equalsIgnoreCase(made.name))) {
                throw new MetadataStorageManagerException("there can't be a tablespace " + made.name
                        + ", since a SQL node has this name: give it another one");
            }
            super.registerTableSpace(made);
        }
    }

    /**
     * Also refuses a change that is meant for an earlier tablespace of the name: versions of its record begin at 0 again. HerdDB reads all
     * records, may then boot tablespaces for minutes, and then names itself the leader in what it has read.
     */
    @Override
    public boolean updateTableSpace(TableSpace next, TableSpace previous) throws DDLException, MetadataStorageManagerException {
        synchronized (session) {
            TableSpace present = super.describeTableSpace(next.name);
            return present != null && present.uuid.equals(previous.uuid) && super.updateTableSpace(next, previous);
        }
    }

    /**
     * HerdDB says nothing when the record has changed since it was read, and stays. When ZooKeeper's answer is lost, it may be gone. A later
     * tablespace of the name stays, too: versions of its record begin at 0 again.
     */
    @Override
    public void dropTableSpace(String name, TableSpace previous) throws DDLException, MetadataStorageManagerException {
        MetadataStorageManagerException unknown = null;
        TableSpace left;
        synchronized (session) {
            left = super.describeTableSpace(name);
            if (left != null && left.uuid.equals(previous.uuid)) {
                try {
                    super.dropTableSpace(name, previous);
                } catch (MetadataStorageManagerException error) {
                    unknown = error;
                }
                left = super.describeTableSpace(name);
            }
        }
        if (left != null && left.uuid.equals(previous.uuid)) {
            throw unknown != null ? unknown
                    : new MetadataStorageManagerException("tablespace " + name + " was changed meanwhile, and is not dropped: try again");
        }
        dropper.accept(previous);
    }

    @Override
    public List<NodeMetadata> listNodes() throws MetadataStorageManagerException {
        synchronized (session) {
            return super.listNodes();
        }
    }

    @Override
    public List<TableSpaceReplicaState> getTableSpaceReplicaState(String tableSpaceUuid) throws MetadataStorageManagerException {
        synchronized (session) {
            return super.getTableSpaceReplicaState(tableSpaceUuid);
        }
    }

    @Override
    public void updateTableSpaceReplicaState(TableSpaceReplicaState state) {
        heartbeats.say(state);
    }

    private void write(TableSpaceReplicaState state) throws MetadataStorageManagerException {
        ofHeartbeats.start(false); // does nothing once it is connected
        ofHeartbeats.updateTableSpaceReplicaState(state);
    }

    @Override
    public void close() throws MetadataStorageManagerException {
        heartbeats.close();
        ofHeartbeats.close();
        super.close();
    }
}
