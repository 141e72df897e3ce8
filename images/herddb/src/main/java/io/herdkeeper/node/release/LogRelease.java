package io.herdkeeper.node.release;

import herddb.cluster.LedgersInfo;
import herddb.cluster.ZookeeperMetadataStorageManager;
import herddb.core.TableSpaceManager;
import herddb.log.LogSequenceNumber;
import herddb.metadata.MetadataStorageManagerException;
import herddb.model.TableSpace;
import herddb.server.Server;
import io.herdkeeper.node.background.Repeated;
import io.herdkeeper.node.log.NodeCommitLog;
import io.herdkeeper.node.log.NodeCommitLog.NotWritingException;
import io.herdkeeper.node.log.NodeCommitLogManager;
import io.herdkeeper.node.log.RetainedLog;
import io.herdkeeper.node.release.ReleaseRule.Decision;
import io.herdkeeper.node.release.ReleaseRule.Need;
import java.io.IOException;
import java.time.Clock;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.logging.Level;
import java.util.logging.Logger;
import java.util.stream.Collectors;
import org.apache.zookeeper.KeeperException;
import org.apache.zookeeper.data.Stat;

/**
 * Drops unneeded ledgers of the tablespaces that this node leads, and publishes from where on its own copies need the log
 * ({@link LogPins}).
 *
 * <p>It works beside the statements: HerdDB itself would drop ledgers with the whole tablespace locked. After a failed read
 * nothing is dropped. A ledger is old, and a replica dead, once this node's clock and ZooKeeper's say so: one of them may be ahead.
 */
public final class LogRelease {

    /** Seldom enough for ZooKeeper, and often enough beside a retention of an hour. */
    public static final Duration PERIOD = Duration.ofSeconds(10);
    private static final Logger LOGGER = Logger.getLogger(LogRelease.class.getName());

    private final Server server;
    private final Clock clock;
    private final LogPins pins;
    /** What this process has published, by tablespace. */
    private final Map<String, LogSequenceNumber> published = new HashMap<>();

    public LogRelease(Server server, Clock clock) {
        this.server = server;
        this.clock = clock;
        this.pins = new LogPins((ZookeeperMetadataStorageManager) server.getMetadataStorageManager());
    }

    /** Looks from now on, until the thread that it returns is interrupted; the server has been started. */
    public Thread start(Duration period) {
        return Repeated.start("log-release", period, this::look);
    }

    /** Looks once, as {@link #start} does again and again. */
    public void look() throws MetadataStorageManagerException, InterruptedException {
        Set<String> uuids = new HashSet<>();
        for (String name : server.getMetadataStorageManager().listTableSpaces()) {
            TableSpace tablespace = server.getMetadataStorageManager().describeTableSpace(name);
            if (tablespace != null) {
                uuids.add(tablespace.uuid);
            }
            if (tablespace == null || !tablespace.isNodeAssignedToTableSpace(server.getNodeId())) {
                continue;
            }
            try {
                publish(tablespace);
                release(tablespace);
            } catch (NotWritingException another) {
                LOGGER.log(Level.FINE, "{0}", another.getMessage());
            } catch (KeeperException | IOException | RuntimeException error) {
                LOGGER.log(Level.INFO, "tablespace {0}: no ledger is dropped now: {1}", new Object[]{name, error.toString()});
            }
        }
        NodeCommitLogManager.of(server.getManager()).failures().exist(uuids);
    }

    private void publish(TableSpace tablespace) throws KeeperException, InterruptedException, IOException {
        LogSequenceNumber onDisk = onDisk(tablespace);
        if (!onDisk.equals(published.get(tablespace.uuid))) {
            pins.set(tablespace.uuid, LogPins.ofReplica(server.getNodeId()), onDisk);
            published.put(tablespace.uuid, onDisk);
        }
    }

    private LogSequenceNumber onDisk(TableSpace tablespace) {
        return server.getManager().getDataStorageManager().getLastcheckpointSequenceNumber(tablespace.uuid);
    }

    private void release(TableSpace tablespace)
            throws KeeperException, InterruptedException, IOException, NotWritingException {
        TableSpaceManager manager = server.getManager().getTableSpaceManager(tablespace.name);
        if (manager == null || !manager.isLeader() || !(manager.getLog() instanceof NodeCommitLog log)) {
            return;
        }
        log.showBegin();
        long retention = log.getLedgersRetentionPeriod();
        LedgersInfo ledgers = log.writtenLedgers();
        long now = clock.millis();
        if (retention <= 0 || ReleaseRule.ended(ledgers, now, retention).isEmpty()) {
            log.retained(null);
            return;
        }
        Map<String, Stat> signs = pins.heartbeats(tablespace.uuid);
        long sure = Math.min(now, LogPins.latest(signs).orElse(0));
        Decision decision = ReleaseRule.decide(ledgers, sure, retention, needs(tablespace, ledgers, dead(signs, sure - retention)));
        for (long ledger : decision.released()) {
            log.dropOldest(ledger);
        }
        log.retained(decision.kept().isEmpty() ? null
                : new RetainedLog(decision.kept().size(), decision.keptSince(), decision.keptFor()));
    }

    /**
     * Who needs the log. The leader's own copy is read from its disk. A replica that has given no sign of life for the whole retention
     * does not count, else one dead machine would fill the bookies: it copies from the leader when it comes back.
     */
    private List<Need> needs(TableSpace tablespace, LedgersInfo ledgers, Set<String> dead)
            throws KeeperException, InterruptedException, IOException {
        Map<String, Optional<LogSequenceNumber>> found = pins.read(tablespace.uuid);
        List<Need> needs = new ArrayList<>();
        needs.add(new Need("this node's own checkpoint", Optional.of(onDisk(tablespace))));
        for (String node : tablespace.replicas) {
            Optional<LogSequenceNumber> from = found.getOrDefault(LogPins.ofReplica(node), Optional.empty());
            boolean copiesFromTheLeader = from.isPresent() && !NodeCommitLog.hasAllAfter(ledgers, from.get());
            if (!node.equals(server.getNodeId()) && !dead.contains(node) && !copiesFromTheLeader) {
                needs.add(new Need("replica " + node + (from.isPresent() ? "" : ", whose position on disk is unknown"), from));
            }
        }
        found.forEach((name, from) -> {
            if (!LogPins.isOfReplica(name)) {
                needs.add(new Need(name, from));
            }
        });
        return needs;
    }

    private static Set<String> dead(Map<String, Stat> signs, long before) {
        return signs.keySet().stream().filter(node -> signs.get(node).getMtime() < before).collect(Collectors.toSet());
    }
}
