package io.herdkeeper.node.status;

import herddb.core.AbstractTableManager;
import herddb.core.DBManager;
import herddb.core.TableSpaceManager;
import herddb.log.LogSequenceNumber;
import herddb.metadata.MetadataStorageManager;
import herddb.metadata.MetadataStorageManagerException;
import herddb.model.Table;
import herddb.model.TableSpace;
import herddb.server.Server;
import io.herdkeeper.node.check.FullChecks;
import io.herdkeeper.node.contact.Contacts;
import io.herdkeeper.node.log.HerdInternals;
import io.herdkeeper.node.log.NodeCommitLog;
import io.herdkeeper.node.log.NodeCommitLogManager;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/** Reads what the node and its tablespaces do; changes nothing. */
public final class NodeStatus {

    /** Where the process is between its start and its end. */
    public enum Phase {
        STARTING,
        RUNNING,
        /** Asked to stop: it serves on until its leaderships have gone to other nodes. */
        LEAVING,
        STOPPING
    }

    private final Server server;
    private final HerdEvents events;
    private final Contacts contacts;
    private final FullChecks fullChecks = new FullChecks();
    private volatile Phase phase = Phase.STARTING;

    public NodeStatus(Server server, HerdEvents events) {
        this.server = server;
        this.events = events;
        contacts = new Contacts(server);
    }

    /** What the node knows of its way to ZooKeeper and to its bookies. */
    public Contacts contacts() {
        return contacts;
    }

    /** HerdDB's consistency checks that were asked for here. */
    public FullChecks fullChecks() {
        return fullChecks;
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

    /** Up to where a tablespace is on this node's own disk. */
    public LogSequenceNumber checkpoint(TableSpaceManager tablespace) {
        return server.getManager().getDataStorageManager().getLastcheckpointSequenceNumber(tablespace.getTableSpaceUUID());
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

    /**
     * Whether the activator has nothing to do: every tablespace has the role that the metadata gives to this node.
     *
     * @throws MetadataStorageManagerException when ZooKeeper can't be asked
     */
    public boolean settled() throws MetadataStorageManagerException {
        MetadataStorageManager metadata = server.getMetadataStorageManager();
        for (String name : metadata.listTableSpaces()) {
            TableSpace tablespace = metadata.describeTableSpace(name);
            TableSpaceManager manager = server.getManager().getTableSpaceManager(name);
            if (tablespace == null) {
                continue;
            }
            boolean settled = tablespace.isNodeAssignedToTableSpace(server.getNodeId())
                    ? role(tablespace, manager) == wanted(tablespace) : manager == null;
            if (!settled) {
                return false;
            }
        }
        return true;
    }

    /**
     * The tablespaces that this node leads, or is named for, though another replica could.
     *
     * @throws MetadataStorageManagerException when ZooKeeper can't be asked
     */
    public List<String> leaderships() throws MetadataStorageManagerException {
        MetadataStorageManager metadata = server.getMetadataStorageManager();
        List<String> led = new ArrayList<>();
        for (String name : metadata.listTableSpaces()) {
            TableSpace tablespace = metadata.describeTableSpace(name);
            TableSpaceManager manager = server.getManager().getTableSpaceManager(name);
            if (tablespace != null && tablespace.replicas.size() > 1
                    && (tablespace.leaderId.equals(server.getNodeId()) || manager != null && manager.isLeader())) {
                led.add(name);
            }
        }
        return led;
    }

    /**
     * The tablespaces that this node still leads by itself, though the metadata names another leader.
     *
     * @throws MetadataStorageManagerException when ZooKeeper can't be asked
     */
    public List<String> displacedLeaderships() throws MetadataStorageManagerException {
        MetadataStorageManager metadata = server.getMetadataStorageManager();
        List<String> displaced = new ArrayList<>();
        for (String name : metadata.listTableSpaces()) {
            TableSpace tablespace = metadata.describeTableSpace(name);
            TableSpaceManager manager = server.getManager().getTableSpaceManager(name);
            if (tablespace != null && manager != null && manager.isLeader() && !tablespace.leaderId.equals(server.getNodeId())) {
                displaced.add(name);
            }
        }
        return displaced;
    }

    /** Every failure that {@link TablespaceStatus#lastError} shows, to tell whether there was another one meanwhile. */
    public Map<String, String> errors() {
        return events.errors();
    }

    private Role wanted(TableSpace tablespace) {
        return tablespace.leaderId.equals(server.getNodeId()) ? Role.LEADER : Role.FOLLOWER;
    }

    private TablespaceStatus status(TableSpace tablespace, TableSpaceManager manager) {
        Role role = role(tablespace, manager);
        NodeCommitLog log = manager != null && manager.getLog() instanceof NodeCommitLog own ? own : null;
        LogSequenceNumber checkpoint = manager == null ? null : checkpoint(manager);
        return new TablespaceStatus(
                tablespace.name,
                tablespace.uuid,
                tablespace.leaderId,
                tablespace.replicas.stream().sorted().toList(),
                role,
                role == wanted(tablespace),
                log == null ? null : Position.of(log.appliedPosition()),
                manager == null ? null : Position.of(manager.getLog().getLastSequenceNumber()),
                checkpoint == null ? null : Position.of(checkpoint),
                log == null ? null : log.recoverableFrom(checkpoint),
                log == null ? null : log.retained(),
                manager == null ? 0 : manager.getOpenTransactions().size(),
                rows(manager),
                events.verdicts(tablespace.name),
                fullChecks.last(tablespace.uuid),
                role == Role.FAILED && failure(tablespace) != null ? failure(tablespace) : events.lastError(tablespace.name));
    }

    /** Why this node lost the log of a tablespace that it shall lead; null when it did not. */
    private String failure(TableSpace tablespace) {
        return wanted(tablespace) == Role.LEADER ? NodeCommitLogManager.of(server.getManager()).failures().why(tablespace.uuid) : null;
    }

    private Role role(TableSpace tablespace, TableSpaceManager manager) {
        boolean assigned = tablespace.isNodeAssignedToTableSpace(server.getNodeId());
        if (phase == Phase.STOPPING || !assigned) {
            return Role.STOPPED;
        }
        if (manager == null) {
            return failure(tablespace) == null ? Role.BOOTING : Role.FAILED;
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
