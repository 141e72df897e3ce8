package io.herdkeeper.node.log;

import herddb.core.DBManager;
import herddb.file.FileDataStorageManager;
import io.herdkeeper.node.internals.HerdInternals;
import java.io.IOException;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.StandardOpenOption;

/**
 * The tablespaces of which this node must not promote itself to leader: for each a file {@code barred/<uuid>} in the data folder.
 *
 * <p>HerdDB's own failover only checks that the log has the entries that the follower's disk lacks; it knows no verdicts about rows. The
 * files outlive the process. A node that the metadata names leads all the same: that was another party's decision.
 *
 * <p>A file has {@code <ledger>,<entry>}: only a verdict about a later LSN may lift the bar. It is empty if nobody told the LSN.
 */
public final class PromotionBars {

    private final Path folder;

    PromotionBars(Path dataFolder) {
        folder = dataFolder.resolve("barred");
    }

    /** Those of one node, which need not have been started. */
    public static PromotionBars of(DBManager node) {
        return new PromotionBars(HerdInternals.dataFolder((FileDataStorageManager) node.getDataStorageManager()));
    }

    /** Whether there is one; true also when the disk does not say. */
    public boolean stands(String tableSpaceUuid) {
        return !Files.notExists(file(tableSpaceUuid));
    }

    /** The LSN that a verdict must exceed to lift the bar; null if there is none, or the disk does not say. */
    public Position until(String tableSpaceUuid) {
        try {
            return Position.parse(Files.readString(file(tableSpaceUuid)));
        } catch (IOException untold) {
            return null;
        }
    }

    /**
     * Puts one, which a machine that stops right after this has, too. One that is there keeps the later of both LSNs.
     *
     * @param until the LSN that a verdict must exceed to lift the bar; null if it is not known
     */
    public synchronized void put(String tableSpaceUuid, Position until) throws IOException {
        Files.createDirectories(folder);
        Position before = until(tableSpaceUuid);
        boolean later = until != null && (before == null || until.lsn().after(before.lsn()));
        if (later || !stands(tableSpaceUuid)) {
            Path written = Files.createTempFile(folder, "", ".new");
            Files.writeString(written, until == null ? "" : until.text());
            sync(written);
            Files.move(written, file(tableSpaceUuid), StandardCopyOption.ATOMIC_MOVE);
        }
        // Whoever put one that is there may have ended before it was on the disk.
        sync(folder);
        sync(folder.getParent());
    }

    /**
     * Takes one away unless it is of a later LSN than that, or the disk does not tell its LSN; null: any. Where there is none, nothing is done.
     *
     * @return whether none is left
     */
    public synchronized boolean lift(String tableSpaceUuid, Position until) throws IOException {
        if (until != null && stands(tableSpaceUuid)) {
            Position found = until(tableSpaceUuid);
            if (found == null || found.lsn().after(until.lsn())) {
                return false;
            }
        }
        take(tableSpaceUuid);
        return true;
    }

    /** Takes one away, for good; where there is none, nothing is done. */
    public synchronized void take(String tableSpaceUuid) throws IOException {
        if (Files.deleteIfExists(file(tableSpaceUuid))) {
            sync(folder);
        }
    }

    private Path file(String tableSpaceUuid) {
        return folder.resolve(tableSpaceUuid);
    }

    private static void sync(Path path) throws IOException {
        try (FileChannel channel = FileChannel.open(path, StandardOpenOption.READ)) {
            channel.force(true);
        }
    }
}
