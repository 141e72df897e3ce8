package io.herdkeeper.node.status;

import herddb.core.AbstractTableManager;
import herddb.core.DBManager;
import herddb.core.TableSpaceManager;
import herddb.metadata.MetadataStorageManager;
import herddb.metadata.MetadataStorageManagerException;
import herddb.model.Table;
import herddb.model.TableSpace;
import herddb.server.Server;
import io.herdkeeper.node.log.HerdInternals;
import io.herdkeeper.node.log.NodeCommitLog;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/** Reads what the node and its tablespaces do; changes nothing. */
public final class NodeStatus {

    /** Where the process is between its start and its end. */
    public enum Phase { STARTING, RUNNING, STOPPING }

    private final Server server;
    private final HerdEvents events;
    private volatile Phase phase = Phase.STARTING;

    public NodeStatus(Server server, HerdEvents events) {
        this.server = server;
        this.events = events;
    }

    public Phase phase() {
        return phase;
    }

    /** Tells where the process is now; it never goes back. */
    public synchronized void enter(Phase next) {
        if (next.compareTo(phase) > 0) {
            phase = next;
        }
    }

    /** Whether the thread that boots and stops tablespaces died though nobody asked the node to stop. */
    public boolean activatorDied() {
        return phase == Phase.RUNNING && !server.getManager().isStopped()
                && !HerdInternals.activator(server.getManager()).isAlive();
    }

    /** The manager of a tablespace that runs on this node, or null. */
    public TableSpaceManager manager(String tablespace) {
        return server.getManager().getTableSpaceManager(tablespace);
    }

    /** Whether the metadata names this node as a replica of a tablespace. */
    public boolean isAssigned(String tablespace) throws MetadataStorageManagerException {
        TableSpace metadata = server.getMetadataStorageManager().describeTableSpace(tablespace);
        return metadata != null && metadata.isNodeAssignedToTableSpace(server.getNodeId());
    }

    /**
     * The tablespaces that are assigned to this node or still run on it.
     *
     * @throws MetadataStorageManagerException when ZooKeeper can't be asked
     */
    public List<TablespaceStatus> tablespaces() throws MetadataStorageManagerException {
        MetadataStorageManager metadata = server.getMetadataStorageManager();
        DBManager node = server.getManager();
        List<TablespaceStatus> found = new ArrayList<>();
        for (String name : metadata.listTableSpaces()) {
            TableSpace tablespace = metadata.describeTableSpace(name);
            TableSpaceManager manager = node.getTableSpaceManager(name);
            if (tablespace != null && (manager != null || tablespace.isNodeAssignedToTableSpace(server.getNodeId()))) {
                found.add(status(tablespace, manager));
            }
        }
        return found;
    }

    private TablespaceStatus status(TableSpace tablespace, TableSpaceManager manager) {
        Role role = role(tablespace, manager);
        Role wanted = tablespace.leaderId.equals(server.getNodeId()) ? Role.LEADER : Role.FOLLOWER;
        return new TablespaceStatus(
                tablespace.name,
                tablespace.uuid,
                tablespace.leaderId,
                tablespace.replicas.stream().sorted().toList(),
                role,
                role == wanted,
                manager != null && manager.getLog() instanceof NodeCommitLog log ? Position.of(log.appliedPosition()) : null,
                manager == null ? null : Position.of(manager.getLog().getLastSequenceNumber()),
                manager == null ? 0 : manager.getOpenTransactions().size(),
                rows(manager),
                events.verdicts(tablespace.name),
                events.lastError(tablespace.name));
    }

    private Role role(TableSpace tablespace, TableSpaceManager manager) {
        boolean assigned = tablespace.isNodeAssignedToTableSpace(server.getNodeId());
        if (phase == Phase.STOPPING || !assigned) {
            return Role.STOPPED;
        }
        if (manager == null) {
            return Role.BOOTING;
        }
        if (manager.isFailed()) {
            return Role.FAILED;
        }
        if (manager.isClosed()) {
            return Role.STOPPED;
        }
        return manager.isLeader() ? Role.LEADER : Role.FOLLOWER;
    }

    private static Map<String, Long> rows(TableSpaceManager manager) {
        Map<String, Long> rows = new TreeMap<>();
        if (manager != null) {
            for (Table table : manager.getAllCommittedTables()) {
                AbstractTableManager tableManager = manager.getTableManager(table.name);
                if (tableManager != null && !tableManager.isSystemTable()) {
                    rows.put(table.name, tableManager.getStats().getTablesize());
                }
            }
        }
        return rows;
    }
}
