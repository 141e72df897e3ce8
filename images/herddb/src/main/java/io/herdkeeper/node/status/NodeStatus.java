package io.herdkeeper.node.status;

import herddb.core.AbstractTableManager;
import herddb.core.TableSpaceManager;
import herddb.log.LogSequenceNumber;
import herddb.metadata.MetadataStorageManager;
import herddb.metadata.MetadataStorageManagerException;
import herddb.model.Table;
import herddb.model.TableSpace;
import herddb.server.Server;
import herddb.storage.DataStorageManagerException;
import io.herdkeeper.node.check.FollowerChecks;
import io.herdkeeper.node.check.FullChecks;
import io.herdkeeper.node.contact.Contacts;
import io.herdkeeper.node.internals.HerdInternals;
import io.herdkeeper.node.log.NodeCommitLog;
import io.herdkeeper.node.log.NodeCommitLogManager;
import io.herdkeeper.node.log.Position;
import io.herdkeeper.node.log.PromotionBars;
import io.herdkeeper.node.statement.BlockedTablespaces;
import io.herdkeeper.node.users.MountedUsers;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.function.BiFunction;
import java.util.logging.Level;
import java.util.logging.Logger;

/** Reads what the node and its tablespaces do; changes nothing. */
public final class NodeStatus {

    private static final Logger LOGGER = Logger.getLogger(NodeStatus.class.getName());

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
    private final FollowerChecks followerChecks;
    private final PromotionBars bars;
    private final BlockedTablespaces blocked;
    private volatile Phase phase = Phase.STARTING;

    public NodeStatus(Server server, HerdEvents events) {
        this.server = server;
        this.events = events;
        contacts = new Contacts(server);
        bars = PromotionBars.of(server.getManager());
        followerChecks = FollowerChecks.of(server.getManager());
        blocked = new BlockedTablespaces(server.getManager());
    }

    /** What the node knows of its way to ZooKeeper and to its bookies. */
    public Contacts contacts() {
        return contacts;
    }

    /** The tablespaces on which statements hang. */
    public BlockedTablespaces blocked() {
        return blocked;
    }

    /** Which users are let in; null when they can't change while the process lives. */
    public MountedUsers.Told users() {
        return server.getUserManager() instanceof MountedUsers users ? users.told() : null;
    }

    /** The checks of all tables that were asked for here. */
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

    /** The manager of a tablespace that runs on this node, or null; by its name in any letters, as the metadata find it. */
    public TableSpaceManager manager(String tablespace) {
        TableSpaceManager exact = server.getManager().getTableSpaceManager(tablespace);
        return exact != null ? exact : server.getManager().getLocalTableSpaces().stream().filter(tablespace::equalsIgnoreCase).findAny()
                .map(server.getManager()::getTableSpaceManager).orElse(null);
    }

    /**
     * Up to where a tablespace is on this node's own disk.
     *
     * @throws DataStorageManagerException when the disk does not tell
     */
    public LogSequenceNumber checkpoint(TableSpaceManager tablespace) {
        return server.getManager().getDataStorageManager().getLastcheckpointSequenceNumber(tablespace.getTableSpaceUUID());
    }

    /** Whether the metadata names this node as a replica of a tablespace. */
    public boolean isAssigned(String tablespace) throws MetadataStorageManagerException {
        TableSpace metadata = server.getMetadataStorageManager().describeTableSpace(tablespace);
        return metadata != null && isAssigned(metadata);
    }

    /**
     * The tablespaces that are assigned to this node or still run on it.
     *
     * @throws MetadataStorageManagerException when ZooKeeper can't be asked
     */
    public List<TablespaceStatus> tablespaces() throws MetadataStorageManagerException {
        return List.copyOf(each((tablespace, manager) ->
                manager != null || isAssigned(tablespace) ? status(tablespace, isOf(tablespace, manager) ? manager : null) : null).values());
    }

    /**
     * Whether the activator has nothing to do: every tablespace has the role that the metadata gives to this node.
     *
     * @throws MetadataStorageManagerException when ZooKeeper can't be asked
     */
    public boolean settled() throws MetadataStorageManagerException {
        return !each((tablespace, manager) ->
                isAssigned(tablespace) ? isOf(tablespace, manager) && role(tablespace, manager) == wanted(tablespace) : manager == null)
                .containsValue(false);
    }

    /**
     * The tablespaces that this node leads, or is named for, though another replica could.
     *
     * @throws MetadataStorageManagerException when ZooKeeper can't be asked
     */
    public List<String> leaderships() throws MetadataStorageManagerException {
        return List.copyOf(each((tablespace, manager) ->
                tablespace.replicas.size() > 1 && (wanted(tablespace) == Role.LEADER || leads(manager)) ? tablespace : null).keySet());
    }

    /**
     * A tablespace that this node leads by itself, and that it is to stop.
     *
     * @param stopping whether the activator has begun to stop it, also since it is dropped or its log has failed; if not, the metadata names
     *                 another leader, and the activator boots or checkpoints another tablespace
     */
    public record DisplacedLeadership(String tablespace, boolean stopping) {
    }

    /** @throws MetadataStorageManagerException when ZooKeeper can't be asked */
    public List<DisplacedLeadership> displacedLeaderships() throws MetadataStorageManagerException {
        List<DisplacedLeadership> found = new ArrayList<>(each((tablespace, manager) ->
                leads(manager) && !manager.isClosed() && (wanted(tablespace) != Role.LEADER || !isOf(tablespace, manager))
                        ? new DisplacedLeadership(tablespace.name, false) : null).values());
        for (String name : server.getManager().getLocalTableSpaces()) {
            TableSpaceManager manager = manager(name);
            if (leads(manager) && manager.isClosed()) {
                found.add(new DisplacedLeadership(name, true));
            }
        }
        return List.copyOf(found);
    }

    /** The tablespaces that run on this node, by what the node itself knows: ZooKeeper is not asked. */
    public List<RunningTablespace> running() {
        List<RunningTablespace> found = new ArrayList<>();
        for (String name : server.getManager().getLocalTableSpaces()) {
            TableSpaceManager manager = manager(name);
            LogSequenceNumber applied = manager != null && manager.getLog() instanceof NodeCommitLog log ? log.appliedPosition() : null;
            if (applied != null && !manager.isClosed() && !manager.isFailed()) {
                found.add(new RunningTablespace(name, manager.isLeader(), applied, manager.getOpenTransactions().size(), blocked.seconds(manager)));
            }
        }
        return found;
    }

    /** Every failure that {@link TablespaceStatus#lastError} shows, to tell whether there was another one meanwhile. */
    public Map<String, String> errors() {
        return events.errors();
    }

    /**
     * What a look at each tablespace gives, by its name; null is left out. Each is looked at as soon as its metadata is read. Its manager has
     * the name as it was created, also with capital letters, which the list of names lacks.
     */
    private <T> Map<String, T> each(BiFunction<TableSpace, TableSpaceManager, T> look) throws MetadataStorageManagerException {
        MetadataStorageManager metadata = server.getMetadataStorageManager();
        Map<String, T> found = new LinkedHashMap<>();
        for (String name : metadata.listTableSpaces()) {
            TableSpace tablespace = metadata.describeTableSpace(name);
            T seen = tablespace == null ? null : look.apply(tablespace, manager(tablespace.name));
            if (seen != null) {
                found.put(name, seen);
            }
        }
        return found;
    }

    private boolean isAssigned(TableSpace tablespace) {
        return tablespace.isNodeAssignedToTableSpace(server.getNodeId());
    }

    /** Whether it runs this tablespace, and not one of the same name that was dropped. */
    private static boolean isOf(TableSpace tablespace, TableSpaceManager manager) {
        return manager != null && manager.getTableSpaceUUID().equals(tablespace.uuid);
    }

    private static boolean leads(TableSpaceManager manager) {
        return manager != null && manager.isLeader();
    }

    private Role wanted(TableSpace tablespace) {
        return tablespace.leaderId.equals(server.getNodeId()) ? Role.LEADER : Role.FOLLOWER;
    }

    /** Null when the disk does not tell: a copy of which that is not known is not chosen to lead, and the others are told of all the same. */
    private LogSequenceNumber checkpointIfKnown(TableSpaceManager tablespace) {
        try {
            return checkpoint(tablespace);
        } catch (DataStorageManagerException unknown) {
            LOGGER.log(Level.WARNING, "tablespace {0}: {1}", new Object[]{tablespace.getTableSpaceName(), unknown.toString()});
            return null;
        }
    }

    private TablespaceStatus status(TableSpace tablespace, TableSpaceManager manager) {
        Role role = role(tablespace, manager);
        NodeCommitLog log = manager != null && manager.getLog() instanceof NodeCommitLog own ? own : null;
        LogSequenceNumber checkpoint = manager == null ? null : checkpointIfKnown(manager);
        return new TablespaceStatus(
                tablespace.name,
                tablespace.uuid,
                tablespace.leaderId,
                tablespace.replicas.stream().sorted().toList(),
                role,
                role == wanted(tablespace),
                log == null ? null : Position.of(log.appliedPosition()),
                log == null ? null : Position.of(log.appliedPosition()),
                checkpoint == null ? null : Position.of(checkpoint),
                log == null || checkpoint == null ? null : log.recoverableFrom(checkpoint),
                bars.stands(tablespace.uuid),
                bars.until(tablespace.uuid),
                log == null ? null : log.retained(),
                manager == null ? 0 : manager.getOpenTransactions().size(),
                manager == null ? 0 : blocked.seconds(manager),
                rows(manager),
                log == null ? null : counts(manager, log),
                NodeCommitLogManager.of(server.getManager()).stuckReplays().of(tablespace.uuid),
                followerChecks.verdicts(tablespace.uuid),
                fullChecks.last(tablespace.uuid),
                role == Role.FAILED && failure(tablespace) != null ? failure(tablespace) : events.lastError(tablespace.name));
    }

    /** Why this node lost the log of a tablespace that it shall lead; null when it did not. */
    private String failure(TableSpace tablespace) {
        return wanted(tablespace) == Role.LEADER ? NodeCommitLogManager.of(server.getManager()).failures().why(tablespace.uuid) : null;
    }

    private Role role(TableSpace tablespace, TableSpaceManager manager) {
        if (phase == Phase.STOPPING || !isAssigned(tablespace)) {
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

    private static RowCounts counts(TableSpaceManager manager, NodeCommitLog log) {
        LogSequenceNumber before = log.settledPosition();
        Map<String, Long> rows = rows(manager);
        LogSequenceNumber after = log.settledPosition();
        return new RowCounts(before != null && before.equals(after), Position.of(after == null ? log.appliedPosition() : after), rows);
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
