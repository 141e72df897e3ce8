package io.herdkeeper.node.log;

import herddb.core.DBManager;
import herddb.file.FileDataStorageManager;
import io.herdkeeper.node.internals.HerdInternals;
import java.io.IOException;
import java.nio.channels.FileChannel;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;

/**
 * The tablespaces of which this node must not promote itself to leader: for each a file {@code barred/<uuid>} in the data folder.
 *
 * <p>HerdDB's own failover only checks that the log has the entries that the follower's disk lacks; it knows no verdicts about rows. The
 * files outlive the process. A node that the metadata names leads all the same: that was another party's decision.
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

    /** Puts one, which a machine that stops right after this has, too. One that is there stays. */
    public void put(String tableSpaceUuid) throws IOException {
        Files.createDirectories(folder);
        try {
            Files.createFile(file(tableSpaceUuid));
        } catch (FileAlreadyExistsException again) {
            // Whoever made it may have ended before it was on the disk: so all of what follows is done again.
        }
        sync(folder);
        sync(folder.getParent());
    }

    /** Takes one away, for good; where there is none, nothing is done. */
    public void take(String tableSpaceUuid) throws IOException {
        if (Files.deleteIfExists(file(tableSpaceUuid))) {
            sync(folder);
        }
    }

    private Path file(String tableSpaceUuid) {
        return folder.resolve(tableSpaceUuid);
    }

    private static void sync(Path folder) throws IOException {
        try (FileChannel channel = FileChannel.open(folder, StandardOpenOption.READ)) {
            channel.force(true);
        }
    }
}
