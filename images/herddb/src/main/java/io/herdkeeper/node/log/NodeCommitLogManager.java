package io.herdkeeper.node.log;

import herddb.cluster.BookkeeperCommitLog;
import herddb.cluster.BookkeeperCommitLogManager;
import herddb.cluster.LedgersInfo;
import herddb.cluster.ZookeeperMetadataStorageManager;
import herddb.core.DBManager;
import herddb.log.LogNotAvailableException;
import herddb.metadata.MetadataStorageManagerException;
import herddb.model.TableSpace;
import herddb.server.ServerConfiguration;
import io.herdkeeper.node.internals.HerdInternals;
import io.herdkeeper.node.log.NodeCommitLog.LogIdentity;
import java.time.Clock;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.logging.Level;
import java.util.logging.Logger;
import org.apache.bookkeeper.client.LedgersWithOwnPasswords;
import org.apache.bookkeeper.stats.StatsLogger;

/** Makes a {@link NodeCommitLog} for each tablespace, with the sizes and periods of the server's configuration. */
public class NodeCommitLogManager extends BookkeeperCommitLogManager {

    private static final Logger LOGGER = Logger.getLogger(NodeCommitLogManager.class.getName());
    private static final long FENCE_SECONDS = 10;
    /** A leader lists a ledger now and then. */
    private static final int LISTINGS = 5;

    private final ZookeeperMetadataStorageManager metadata;
    private final LogFailures failures = new LogFailures(Clock.systemUTC());
    private final StuckReplays stuckReplays = new StuckReplays();
    /** The uuids of tablespaces whose last boot as the leader ended for want of bookies. */
    private final Set<String> lackBookies = ConcurrentHashMap.newKeySet();
    private volatile PromotionBars bars;
    private volatile FollowerCheck followerCheck;

    /** The one that a node of this program was made with. */
    public static NodeCommitLogManager of(DBManager node) {
        return (NodeCommitLogManager) HerdInternals.logs(node);
    }

    /**
     * A manager that is not started yet.
     *
     * @throws IllegalArgumentException when checkpoints are rarer than half of the retention: a ledger could then be dropped
     *                                  before the checkpoint that replaces it exists
     */
    public NodeCommitLogManager(
            ZookeeperMetadataStorageManager metadata, ServerConfiguration configuration, StatsLogger statistics) {
        super(metadata, configuration, statistics);
        this.metadata = metadata;
        setEnsemble(configuration.getInt(ServerConfiguration.PROPERTY_BOOKKEEPER_ENSEMBLE,
                ServerConfiguration.PROPERTY_BOOKKEEPER_ENSEMBLE_DEFAULT));
        setWriteQuorumSize(configuration.getInt(ServerConfiguration.PROPERTY_BOOKKEEPER_WRITEQUORUMSIZE,
                ServerConfiguration.PROPERTY_BOOKKEEPER_WRITEQUORUMSIZE_DEFAULT));
        setAckQuorumSize(configuration.getInt(ServerConfiguration.PROPERTY_BOOKKEEPER_ACKQUORUMSIZE,
                ServerConfiguration.PROPERTY_BOOKKEEPER_ACKQUORUMSIZE_DEFAULT));
        setMaxLedgerSizeBytes(configuration.getLong(ServerConfiguration.PROPERTY_BOOKKEEPER_LEDGERS_MAX_SIZE,
                ServerConfiguration.PROPERTY_BOOKKEEPER_LEDGERS_MAX_SIZE_DEFAULT));
        setMaxIdleTime(configuration.getLong(ServerConfiguration.PROPERTY_BOOKKEEPER_MAX_IDLE_TIME,
                ServerConfiguration.PROPERTY_BOOKKEEPER_MAX_IDLE_TIME_DEFAULT));
        setLedgersRetentionPeriod(retentionPeriod(configuration));
    }

    /** Connects to ZooKeeper, and to bookies when they are needed. */
    @Override
    public void start() throws LogNotAvailableException {
        PromptMetadataDriver.register();
        super.start();
    }

    /** The leaders' logs that failed. */
    public LogFailures failures() {
        return failures;
    }

    /** The tablespaces whose log can't be replayed here. */
    public StuckReplays stuckReplays() {
        return stuckReplays;
    }

    /** Tells which copies are barred; a server makes this manager before it knows its data folder. */
    public void obey(PromotionBars given) {
        bars = given;
    }

    /** Has followers compare their rows where the log says so; null leaves that to HerdDB's own code, as before the first call. */
    public void compareBy(FollowerCheck check) {
        followerCheck = check;
    }

    /** What was given to {@link #compareBy} last. */
    public FollowerCheck followerCheck() {
        return followerCheck;
    }

    /** Tells the log of a tablespace that runs here whom its record names as the leader; a record that was read from ZooKeeper. */
    public void recordRead(TableSpace record) {
        failures.exists(record.name, record.uuid);
        if (HerdInternals.log(this, record.uuid) instanceof NodeCommitLog own) {
            own.namedLeader(record.leaderId, (Integer) record.metadataStorageVersion);
        }
    }

    /**
     * Has nobody write the log of a dropped tablespace any more. Its leader, which may be another node, learns of the DROP later. It would
     * acknowledge rows meanwhile, also to clients that mean a new tablespace of the same name.
     */
    public void fence(TableSpace dropped) {
        try {
            List<Long> ledgers = lastLedgers(dropped.uuid);
            if (!ledgers.isEmpty()) {
                new LedgersWithOwnPasswords(getBookKeeper(), dropped.uuid)
                        .fence(ledgers.get(ledgers.size() - 1)).get(FENCE_SECONDS, TimeUnit.SECONDS).close();
            }
        } catch (InterruptedException stopping) {
            Thread.currentThread().interrupt();
        } catch (Exception error) {
            LOGGER.log(Level.WARNING, "tablespace " + dropped.name + " is dropped, and its log could not be fenced: its leader "
                    + dropped.leaderId + " may acknowledge rows until it learns of that", error);
        }
    }

    /** The ledgers of a log to which its leader adds no more: it lists each before the first entry, by compare-and-set. */
    private List<Long> lastLedgers(String tableSpaceUuid) throws LogNotAvailableException {
        for (int tries = 1;; tries++) {
            LedgersInfo list = metadata.getActualLedgersList(tableSpaceUuid);
            try {
                metadata.saveActualLedgersList(tableSpaceUuid, list);
                return list.getActiveLedgers();
            } catch (LogNotAvailableException listed) {
                if (tries == LISTINGS) {
                    throw listed;
                }
            }
        }
    }

    /** Whether this node must not make itself the leader of a tablespace; nobody may before {@link #obey}. */
    boolean isBarred(String tableSpaceUuid) {
        PromotionBars known = bars;
        return known == null || known.stands(tableSpaceUuid);
    }

    private static long retentionPeriod(ServerConfiguration configuration) {
        long retention = configuration.getLong(ServerConfiguration.PROPERTY_BOOKKEEPER_LEDGERS_RETENTION_PERIOD,
                ServerConfiguration.PROPERTY_BOOKKEEPER_LEDGERS_RETENTION_PERIOD_DEFAULT);
        long checkpoint = configuration.getLong(ServerConfiguration.PROPERTY_CHECKPOINT_PERIOD,
                ServerConfiguration.PROPERTY_CHECKPOINT_PERIOD_DEFAULT);
        if (retention > 0 && checkpoint > retention / 2) {
            throw new IllegalArgumentException(ServerConfiguration.PROPERTY_CHECKPOINT_PERIOD + "=" + checkpoint
                    + " must be at most half of " + ServerConfiguration.PROPERTY_BOOKKEEPER_LEDGERS_RETENTION_PERIOD + "="
                    + retention + " (both in ms)");
        }
        return retention;
    }

    void lacksBookies(String tableSpaceUuid, boolean lacks) {
        if (lacks) {
            lackBookies.add(tableSpaceUuid);
        } else {
            lackBookies.remove(tableSpaceUuid);
        }
    }

    /**
     * {@inheritDoc}
     *
     * @throws LogNotAvailableException where this node shall lead and an earlier boot lacked bookies, until they are there. HerdDB boots each
     *                                  second, and reads the tables and replays the log before it would learn of that
     */
    @Override
    public BookkeeperCommitLog createCommitLog(String tableSpaceUuid, String tableSpaceName, String nodeId) {
        NodeCommitLog log = open(new LogIdentity(tableSpaceUuid, tableSpaceName, nodeId), metadata);
        log.setEnsemble(getEnsemble());
        log.setWriteQuorumSize(getWriteQuorumSize());
        log.setAckQuorumSize(getAckQuorumSize());
        log.setMaxLedgerSizeBytes(getMaxLedgerSizeBytes());
        log.setMaxIdleTime(getMaxIdleTime());
        log.setLedgersRetentionPeriod(getLedgersRetentionPeriod());
        if (lackBookies.contains(tableSpaceUuid) && isNamedLeader(tableSpaceName, nodeId)) {
            log.requireBookies();
        }
        HerdInternals.register(this, tableSpaceUuid, log);
        return log;
    }

    private boolean isNamedLeader(String tableSpaceName, String nodeId) {
        try {
            TableSpace record = metadata.describeTableSpace(tableSpaceName);
            return record != null && record.leaderId.equals(nodeId);
        } catch (MetadataStorageManagerException unknown) {
            return false; // then the boot tells
        }
    }

    NodeCommitLog open(LogIdentity identity, ZookeeperMetadataStorageManager way) {
        return new NodeCommitLog(identity, way, this);
    }
}
