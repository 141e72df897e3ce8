package io.herdkeeper.node.evidence;

import herddb.cluster.ZookeeperMetadataStorageManager;
import herddb.core.TableSpaceManager;
import herddb.file.FileDataStorageManager;
import herddb.log.LogNotAvailableException;
import herddb.log.LogSequenceNumber;
import herddb.metadata.MetadataStorageManagerException;
import herddb.model.TableSpace;
import herddb.server.Server;
import herddb.storage.DataStorageManagerException;
import io.herdkeeper.node.disk.CheckpointFiles;
import io.herdkeeper.node.internals.HerdInternals;
import io.herdkeeper.node.log.Majority;
import io.herdkeeper.node.log.Position;
import io.herdkeeper.node.log.PromotionBars;
import io.herdkeeper.node.refusals.OrderRefusedException;
import java.io.IOException;
import java.nio.channels.FileChannel;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.StandardOpenOption;
import java.time.Clock;
import java.time.ZoneOffset;
import java.time.format.DateTimeFormatter;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.Lock;
import java.util.concurrent.locks.ReentrantLock;
import java.util.logging.Level;
import java.util.logging.Logger;
import org.apache.zookeeper.KeeperException;

/**
 * This node's files of tablespaces: written on request, barred from leading, and moved aside.
 *
 * <p>HerdDB keeps the files of a replica that was removed, and starts from them when the node gets a replica again. A replica whose rows
 * are wrong is moved aside, so that the next one starts from nothing. It stays as evidence in {@code
 * evidence/<uuid>.<time>.<ledger>.<entry>}, beside the tablespaces' own folders. Each tablespace has one; an older one is deleted.
 */
public final class LocalCopies {

    private static final Logger LOGGER = Logger.getLogger(LocalCopies.class.getName());
    private static final DateTimeFormatter TIME = DateTimeFormatter.ofPattern("yyyyMMdd'T'HHmmssSSS'Z'").withZone(ZoneOffset.UTC);
    private static final long LOCK_SECONDS = 5;

    private final Server server;
    private final Clock clock;
    private final PromotionBars bars;
    /** By uuid: held while a copy's folder is written on request, and while it is moved. */
    private final Map<String, Lock> folders = new ConcurrentHashMap<>();

    public LocalCopies(Server server, Clock clock) {
        this.server = server;
        this.clock = clock;
        bars = PromotionBars.of(server.getManager());
    }

    /** What was moved: the folder that has it now, and up to where its tables were on the disk. */
    public record Evidence(Path folder, LogSequenceNumber checkpoint) {
    }

    /** HerdDB has no such tablespace. */
    public static final class NoSuchTablespaceException extends Exception {

        private static final long serialVersionUID = 1L;

        NoSuchTablespaceException(String message) {
            super(message);
        }
    }

    /**
     * Writes the tables of a running copy to its folder, and says up to where they are there.
     *
     * <p>HerdDB would do so for one that has stopped, too, in a folder that was moved aside meanwhile: the next copy would begin with
     * what is in it.
     */
    public LogSequenceNumber checkpoint(TableSpaceManager tablespace) throws OrderRefusedException {
        String uuid = tablespace.getTableSpaceUUID();
        String name = tablespace.getTableSpaceName();
        Lock folder = folder(uuid);
        folder.lock();
        try {
            if (tablespace.isClosed() || server.getManager().getTableSpaceManager(name) != tablespace) {
                throw new OrderRefusedException("tablespace " + name + " has stopped on this node: nothing is written");
            }
            if (tablespace.isFailed()) {
                throw new OrderRefusedException("tablespace " + name + " has failed on this node: nothing is written");
            }
            try {
                if (tablespace.checkpoint(false, false, false) == null) {
                    throw new OrderRefusedException("tablespace " + name + " is booting: ask again");
                }
            } catch (LogNotAvailableException | DataStorageManagerException stopped) { // since it was asked, or its disk failed
                throw new OrderRefusedException(stopped.getMessage());
            }
            return server.getManager().getDataStorageManager().getLastcheckpointSequenceNumber(uuid);
        } finally {
            folder.unlock();
        }
    }

    /**
     * From now on HerdDB's own failover does not make this node the leader of a tablespace, until {@link #unbar} or {@link #setAside}.
     *
     * <p>Only of one that it replicates: an order that comes late must not bar the copy that is made anew.
     *
     * @param uuid  the tablespace that is meant; one that has its name meanwhile is left alone
     * @param until the LSN that a verdict must exceed to lift the bar; null if it is not known
     * @throws MetadataStorageManagerException when ZooKeeper can't be asked
     */
    public void bar(String name, String uuid, Position until)
            throws NoSuchTablespaceException, OrderRefusedException, MetadataStorageManagerException, IOException {
        if (!isReplica(record(name, uuid))) {
            throw new OrderRefusedException("this node has no replica of tablespace " + name + ": there is nothing to bar");
        }
        bars.put(uuid, until);
        LOGGER.log(Level.INFO, "this node no longer promotes itself to leader of tablespace {0}", name);
    }

    /**
     * Takes back {@link #bar}; without effect on what is not barred.
     *
     * @param until the LSN of the bar that is meant, so that an order that comes late leaves a later one; null for any
     */
    public void unbar(String name, String uuid, Position until)
            throws NoSuchTablespaceException, OrderRefusedException, MetadataStorageManagerException, IOException {
        record(name, uuid);
        if (!bars.lift(uuid, until)) {
            throw new OrderRefusedException(
                    "another bar of tablespace " + name + " stands than that of " + until.text() + ": read it again");
        }
        LOGGER.log(Level.INFO, "this node may promote itself to leader of tablespace {0}", name);
    }

    private Lock folder(String uuid) {
        return folders.computeIfAbsent(uuid, first -> new ReentrantLock());
    }

    /**
     * Moves the copy of a tablespace aside, which this node must neither hold nor be named for. With it goes what barred it.
     *
     * @param uuid the tablespace that is meant; one that has its name meanwhile is left alone
     * @return what was moved; null when the disk has nothing of it
     * @throws MetadataStorageManagerException when ZooKeeper can't be asked
     */
    public Evidence setAside(String name, String uuid) throws NoSuchTablespaceException, OrderRefusedException,
            MetadataStorageManagerException, IOException, InterruptedException {
        Path data = dataFolder();
        Path kept = data.resolve("evidence");
        Lock folder = folder(uuid);
        if (!folder.tryLock(LOCK_SECONDS, TimeUnit.SECONDS)) {
            throw new OrderRefusedException("a checkpoint of tablespace " + name + " is being written: ask again");
        }
        Evidence moved;
        try {
            moved = moveUnlessUsed(name, uuid, data, kept);
            // After the move, so that there is no moment in which nothing bars the copy. Who repeats the order takes what was left of it.
            bars.take(uuid);
        } finally {
            folder.unlock();
        }
        if (moved != null) {
            LOGGER.log(Level.INFO, "the files of tablespace {0} were moved to {1}", new Object[]{name, moved.folder()});
            deleteOlder(kept, uuid, moved.folder());
        }
        return moved;
    }

    private Evidence moveUnlessUsed(String name, String uuid, Path data, Path kept) throws NoSuchTablespaceException,
            OrderRefusedException, MetadataStorageManagerException, IOException, InterruptedException {
        // Shared with the activator, which boots nothing meanwhile: not even a copy that is declared in this very moment.
        Lock lock = HerdInternals.generalLock(server.getManager()).readLock();
        if (!lock.tryLock(LOCK_SECONDS, TimeUnit.SECONDS)) {
            throw new OrderRefusedException("this node is booting or stopping a tablespace: ask again");
        }
        try {
            refuseWhatIsUsed(name, uuid);
            return move(data.resolve(uuid + ".tablespace"), uuid, kept);
        } finally {
            lock.unlock();
        }
    }

    private void refuseWhatIsUsed(String name, String uuid)
            throws NoSuchTablespaceException, OrderRefusedException, MetadataStorageManagerException, InterruptedException {
        catchUp(uuid); // the replica may have been declared again since the order was given
        TableSpace record = record(name, uuid);
        if (isReplica(record)) {
            throw new OrderRefusedException("this node has a replica of tablespace " + name + ": remove it from the replica list first");
        }
        if (server.getManager().getTableSpaceManager(record.name) != null) { // by its own letters; the record is found by any
            throw new OrderRefusedException("tablespace " + name + " still runs on this node: ask again");
        }
    }

    private void catchUp(String uuid) throws MetadataStorageManagerException, InterruptedException {
        ZookeeperMetadataStorageManager metadata = (ZookeeperMetadataStorageManager) server.getMetadataStorageManager();
        try {
            Majority.catchUp(metadata.ensureZooKeeper(), metadata.getBasePath() + "/ledgers/" + uuid);
        } catch (KeeperException | IOException error) {
            throw new MetadataStorageManagerException(error);
        }
    }

    private TableSpace record(String name, String uuid)
            throws NoSuchTablespaceException, OrderRefusedException, MetadataStorageManagerException {
        TableSpace record = server.getMetadataStorageManager().describeTableSpace(name);
        if (record == null) {
            throw new NoSuchTablespaceException("HerdDB has no tablespace " + name);
        }
        if (!record.uuid.equals(uuid)) {
            throw new OrderRefusedException("tablespace " + name + " is " + record.uuid + ", not " + uuid);
        }
        return record;
    }

    private boolean isReplica(TableSpace record) {
        return record.isNodeAssignedToTableSpace(server.getNodeId()) || record.leaderId.equals(server.getNodeId());
    }

    private Evidence move(Path copy, String uuid, Path kept) throws IOException {
        // The next boot would begin from it, else.
        ((CheckpointFiles) server.getManager().getDataStorageManager()).putBack(uuid);
        if (!Files.isDirectory(copy) || isEmpty(copy)) {
            return null;
        }
        LogSequenceNumber checkpoint = server.getManager().getDataStorageManager().getLastcheckpointSequenceNumber(uuid);
        Files.createDirectories(kept);
        Path target = kept.resolve(prefix(uuid) + TIME.format(clock.instant()) + "." + checkpoint.ledgerId + "." + checkpoint.offset);
        Files.move(copy, target, StandardCopyOption.ATOMIC_MOVE);
        // A machine that stops now must not bring the wrong rows back.
        sync(kept);
        sync(copy.getParent());
        return new Evidence(target, checkpoint);
    }

    /** What can't be deleted takes room, and nothing else: the next one deletes it. */
    private static void deleteOlder(Path kept, String uuid, Path newest) {
        try {
            for (Path folder : folders(kept, uuid)) {
                if (!folder.equals(newest)) {
                    FileDataStorageManager.deleteDirectory(folder);
                }
            }
        } catch (IOException error) {
            LOGGER.log(Level.WARNING, "older evidence in " + kept + " was not deleted", error);
        }
    }

    private static List<Path> folders(Path kept, String uuid) throws IOException {
        List<Path> found = new ArrayList<>();
        try (DirectoryStream<Path> folders = Files.newDirectoryStream(kept, prefix(uuid) + "*")) {
            folders.forEach(found::add);
        }
        return found;
    }

    private static String prefix(String uuid) {
        return uuid + ".";
    }

    private static boolean isEmpty(Path folder) throws IOException {
        try (DirectoryStream<Path> files = Files.newDirectoryStream(folder)) {
            return !files.iterator().hasNext();
        }
    }

    private static void sync(Path folder) throws IOException {
        try (FileChannel channel = FileChannel.open(folder, StandardOpenOption.READ)) {
            channel.force(true);
        }
    }

    /** Where this node keeps its data, of which the copies are a part. */
    public Path dataFolder() {
        return HerdInternals.dataFolder((FileDataStorageManager) server.getManager().getDataStorageManager());
    }
}
