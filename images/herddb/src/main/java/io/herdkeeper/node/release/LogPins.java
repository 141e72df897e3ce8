package io.herdkeeper.node.release;

import com.fasterxml.jackson.databind.ObjectMapper;
import herddb.cluster.ZookeeperMetadataStorageManager;
import herddb.log.LogSequenceNumber;
import io.herdkeeper.node.log.Majority;
import io.herdkeeper.node.log.Position;
import java.io.IOException;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalLong;
import org.apache.zookeeper.CreateMode;
import org.apache.zookeeper.KeeperException;
import org.apache.zookeeper.ZooDefs.Ids;
import org.apache.zookeeper.ZooKeeper;
import org.apache.zookeeper.data.Stat;

/**
 * What needs a tablespace's log, and from where on: znodes {@code <HerdDB's root>/logPins/<tablespace uuid>/<name>}, each with
 * an LSN as JSON, {@code {"ledgerId":5,"entryId":90}}. Everything at and behind a pin is kept.
 *
 * <p>{@code replica-<node>} is up to where that node's own disk has the tables, and counts while the node is a replica.
 * {@code stream-<name>} is of a stream of changes; it has {@code maxAgeSeconds} besides, and counts for so long after it was written
 * last. Pins of other names count for as long as they are there; {@code checkpoint} is the operator's.
 *
 * <p>How old a pin is, is told by ZooKeeper's clock alone: the time of its own last change beside that of the newest heartbeat of the
 * tablespace's replicas. Where there is none, no pin is too old.
 */
public final class LogPins {

    private static final String REPLICA = "replica-";
    private static final String STREAM = "stream-";
    private static final ObjectMapper JSON = new ObjectMapper();

    private final ZookeeperMetadataStorageManager metadata;
    private final String root;
    private final String heartbeats;

    public LogPins(ZookeeperMetadataStorageManager metadata) {
        this.metadata = metadata;
        this.root = metadata.getBasePath() + "/logPins";
        this.heartbeats = metadata.getBasePath() + "/replicas";
    }

    /** The pin of a node's copy. */
    public static String ofReplica(String node) {
        return REPLICA + node;
    }

    /** Whether a pin is that of a node's copy. */
    public static boolean isOfReplica(String name) {
        return name.startsWith(REPLICA);
    }

    /**
     * The pins of a tablespace by name, without those of streams that are too old; empty where what a pin holds is no LSN, so that
     * nobody knows what it keeps. None is missing that was there when this was called.
     *
     * @throws KeeperException ZooKeeper can't be read
     */
    public Map<String, Optional<LogSequenceNumber>> read(String tablespaceUuid)
            throws KeeperException, InterruptedException, IOException {
        ZooKeeper zooKeeper = metadata.ensureZooKeeper();
        String folder = root + "/" + tablespaceUuid;
        Majority.catchUp(zooKeeper, folder);
        Map<String, Optional<LogSequenceNumber>> pins = new HashMap<>();
        List<String> names = children(zooKeeper, folder);
        OptionalLong now = names.stream().anyMatch(name -> name.startsWith(STREAM))
                ? latest(heartbeats(tablespaceUuid)) : OptionalLong.empty();
        for (String name : names) {
            try {
                Stat written = new Stat();
                byte[] data = zooKeeper.getData(folder + "/" + name, false, written);
                if (!name.startsWith(STREAM)) {
                    pins.put(name, position(data));
                    continue;
                }
                Optional<StreamPin> pin = streamPin(data);
                if (pin.isEmpty() || now.isEmpty() || !pin.get().isAbandoned(written.getMtime(), now.getAsLong())) {
                    pins.put(name, pin.map(StreamPin::lsn));
                }
            } catch (KeeperException.NoNodeException gone) {
                // Whoever took it away does not need the log any more.
            }
        }
        return pins;
    }

    /** Sets a pin, forth or back: an emptied disk needs more than before. */
    public void set(String tablespaceUuid, String name, LogSequenceNumber from)
            throws KeeperException, InterruptedException, IOException {
        ZooKeeper zooKeeper = metadata.ensureZooKeeper();
        String folder = root + "/" + tablespaceUuid;
        byte[] data = JSON.writeValueAsBytes(Position.of(from));
        try {
            zooKeeper.setData(folder + "/" + name, data, -1);
        } catch (KeeperException.NoNodeException first) {
            ensure(zooKeeper, root, new byte[0]);
            ensure(zooKeeper, folder, new byte[0]);
            ensure(zooKeeper, folder + "/" + name, data);
        }
    }

    private static List<String> children(ZooKeeper zooKeeper, String folder) throws KeeperException, InterruptedException {
        try {
            return zooKeeper.getChildren(folder, false);
        } catch (KeeperException.NoNodeException nobodyYet) {
            return List.of();
        }
    }

    /**
     * The last sign of life of each node that ever had a replica, by ZooKeeper's clock.
     *
     * @throws KeeperException ZooKeeper can't be read
     */
    public Map<String, Stat> heartbeats(String tablespaceUuid) throws KeeperException, InterruptedException, IOException {
        ZooKeeper zooKeeper = metadata.ensureZooKeeper();
        Map<String, Stat> beats = new HashMap<>();
        for (String node : children(zooKeeper, heartbeats + "/" + tablespaceUuid)) {
            Stat beat = zooKeeper.exists(heartbeats + "/" + tablespaceUuid + "/" + node, false);
            if (beat != null) {
                beats.put(node, beat);
            }
        }
        return beats;
    }

    /**
     * When the last of them was, in ms.
     *
     * <p>The last by the order of transactions: a replica that is gone may have beaten under the clock of a member that was ahead.
     */
    public static OptionalLong latest(Map<String, Stat> heartbeats) {
        return heartbeats.values().stream().max(Comparator.comparingLong(Stat::getMzxid)).stream().mapToLong(Stat::getMtime).findAny();
    }

    /** Empty for what is none: of that nobody knows how long it counts, either. */
    private static Optional<StreamPin> streamPin(byte[] data) {
        try {
            return Optional.ofNullable(JSON.readValue(data == null ? new byte[0] : data, StreamPin.class)).filter(StreamPin::isWhole);
        } catch (IOException error) {
            return Optional.empty();
        }
    }

    private static Optional<LogSequenceNumber> position(byte[] data) {
        try {
            return Optional.of(JSON.readValue(data == null ? new byte[0] : data, Position.class).lsn());
        } catch (IOException error) {
            return Optional.empty();
        }
    }

    private static void ensure(ZooKeeper zooKeeper, String path, byte[] data) throws KeeperException, InterruptedException {
        try {
            zooKeeper.create(path, data, Ids.OPEN_ACL_UNSAFE, CreateMode.PERSISTENT);
        } catch (KeeperException.NodeExistsException there) {
            // as wanted; a pin is only ever written by its owner
        }
    }
}
