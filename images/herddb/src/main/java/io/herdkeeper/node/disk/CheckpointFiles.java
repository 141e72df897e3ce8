package io.herdkeeper.node.disk;

import herddb.core.PostCheckpointAction;
import herddb.file.FileDataStorageManager;
import herddb.log.LogSequenceNumber;
import herddb.model.Index;
import herddb.model.Record;
import herddb.model.Table;
import herddb.model.Transaction;
import herddb.server.ServerConfiguration;
import herddb.storage.DataStorageManagerException;
import herddb.utils.Bytes;
import io.herdkeeper.node.internals.HerdInternals;
import java.io.IOException;
import java.nio.channels.FileChannel;
import java.nio.file.DirectoryIteratorException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.Collection;
import java.util.List;
import java.util.Set;
import java.util.function.Consumer;
import java.util.function.Function;
import java.util.stream.Collectors;
import org.apache.bookkeeper.stats.StatsLogger;

/**
 * HerdDB's files, with five holes of its checkpoints closed (0.29, {@code FileDataStorageManager}).
 *
 * <ul>
 * <li>A page is on the disk before a checkpoint names it. HerdDB forces a page's file while a page of less than 64 KiB is still in a
 *     buffer, and writes it afterwards. The checkpoint itself is forced as it should be. So a machine that lost its power came back with a
 *     checkpoint whose pages were missing, and its copy could not be booted any more.
 * <li>A file that can't be read is not deleted for that. HerdDB looks through the files of older checkpoints after it has written those of
 *     a new one, and deletes what it can't read: also the new ones, where a single read failed.
 * <li>A checkpoint at the position of the newest one leaves that one's definitions as they are. HerdDB writes them again in place: a
 *     process that was killed there, in the boot of an idle tablespace, left a checkpoint with half of them.
 * <li>A checkpoint that can't be seen now is not taken for none ({@link #getLastcheckpointSequenceNumber}).
 * <li>Nor are its open transactions ({@link #loadTransactions}).
 * </ul>
 */
public final class CheckpointFiles extends FileDataStorageManager {

    /** How HerdDB describes what it does to a file that it could not read. */
    private static final String UNREAD = "delete unparsable";

    private final boolean forces;

    /** Files in {@code folder}, which may have some, with the settings of HerdDB's own. */
    public CheckpointFiles(Path folder, Path temporary, ServerConfiguration configuration, StatsLogger statistics) {
        super(folder, temporary,
                configuration.getInt(ServerConfiguration.PROPERTY_DISK_SWAP_MAX_RECORDS,
                        ServerConfiguration.PROPERTY_DISK_SWAP_MAX_RECORDS_DEFAULT),
                requiresForce(configuration),
                configuration.getBoolean(ServerConfiguration.PROPERTY_PAGE_USE_ODIRECT, ServerConfiguration.PROPERTY_PAGE_USE_ODIRECT_DEFAULT),
                configuration.getBoolean(ServerConfiguration.PROPERTY_INDEX_USE_ODIRECT, ServerConfiguration.PROPERTY_INDEX_USE_ODIRECT_DEFAULT),
                configuration.getBoolean(ServerConfiguration.PROPERTY_HASH_CHECKS_ENABLED, ServerConfiguration.PROPERTY_HASH_CHECKS_ENABLED_DEFAULT),
                configuration.getBoolean(ServerConfiguration.PROPERTY_HASH_WRITES_ENABLED, ServerConfiguration.PROPERTY_HASH_WRITES_ENABLED_DEFAULT),
                statistics);
        forces = requiresForce(configuration);
    }

    private static boolean requiresForce(ServerConfiguration configuration) {
        return configuration.getBoolean(ServerConfiguration.PROPERTY_REQUIRE_FSYNC, ServerConfiguration.PROPERTY_REQUIRE_FSYNC_DEFAULT);
    }

    @Override
    public void writePage(String tableSpace, String table, long page, Collection<Record> records) {
        super.writePage(tableSpace, table, page, records);
        force(tableSpace, table + ".table", page);
    }

    @Override
    public void writeIndexPage(String tableSpace, String index, long page, DataWriter writer) {
        super.writeIndexPage(tableSpace, index, page, writer);
        force(tableSpace, index + ".index", page);
    }

    @Override
    public Collection<PostCheckpointAction> writeTables(String tableSpace, LogSequenceNumber position, List<Table> tables,
            List<Index> indexes, boolean prepareActions) {
        if (getLastcheckpointSequenceNumber(tableSpace).equals(position) && hasDefinitions(tableSpace, position, tables, indexes)) {
            return List.of(); // what is older goes with the next checkpoint
        }
        return ofWhatWasRead(super.writeTables(tableSpace, position, tables, indexes, prepareActions));
    }

    @Override
    public Collection<PostCheckpointAction> writeTransactionsAtCheckpoint(
            String tableSpace, LogSequenceNumber position, Collection<Transaction> transactions) {
        return ofWhatWasRead(super.writeTransactionsAtCheckpoint(tableSpace, position, transactions));
    }

    /**
     * The position of the newest checkpoint, by the names of the files; START_OF_TIME if there is none.
     *
     * <p>HerdDB reads the files, and tells of an earlier one, or of none, where it can't list or read them, and where it lists them just before
     * a new checkpoint replaces them. A follower that believes that erases its copy and downloads it again; a leader drops what the follower's
     * disk needs of the log. A file has its name once it is written and forced.
     *
     * @throws DataStorageManagerException where the files can't be listed; ask again
     */
    @Override
    public LogSequenceNumber getLastcheckpointSequenceNumber(String tableSpace) {
        Path folder = HerdInternals.dataFolder(this).resolve(tableSpace + ".tablespace");
        LogSequenceNumber newest = LogSequenceNumber.START_OF_TIME;
        try (DirectoryStream<Path> files = Files.newDirectoryStream(Files.createDirectories(folder))) {
            for (Path file : files) {
                LogSequenceNumber position = positionOf(file.getFileName().toString().split("\\."));
                newest = position.after(newest) ? position : newest;
            }
        } catch (IOException | DirectoryIteratorException | NumberFormatException error) {
            throw new DataStorageManagerException("the newest checkpoint in " + folder + " is not known", error);
        }
        return newest;
    }

    /**
     * Gives the transactions that were open at a checkpoint.
     *
     * <p>HerdDB gives none where it can't see their file, and loses what they wrote before the checkpoint, also once they commit. Each
     * checkpoint writes that file before its own name.
     *
     * @throws DataStorageManagerException where the file of a checkpoint is not there, or can't be seen
     */
    @Override
    public void loadTransactions(LogSequenceNumber position, String tableSpace, Consumer<Transaction> consumer) {
        String name = "transactions." + position.ledgerId + "." + position.offset + ".tx";
        Path file = HerdInternals.dataFolder(this).resolve(tableSpace + ".tablespace").resolve(name);
        if (!position.isStartOfTime() && !Files.isRegularFile(file)) {
            throw new DataStorageManagerException("the checkpoint's open transactions can't be read: " + file + " is not there or can't be seen");
        }
        super.loadTransactions(position, tableSpace, consumer);
    }

    /** By the parts of a file's name; START_OF_TIME for other files. */
    private static LogSequenceNumber positionOf(String[] name) {
        return name.length == 4 && name[0].equals("checkpoint") && name[3].equals("checkpoint")
                ? new LogSequenceNumber(Long.parseLong(name[1]), Long.parseLong(name[2])) : LogSequenceNumber.START_OF_TIME;
    }

    private boolean hasDefinitions(String tableSpace, LogSequenceNumber position, List<Table> tables, List<Index> indexes) {
        try {
            return serialized(loadTables(position, tableSpace), Table::serialize).equals(serialized(tables, Table::serialize))
                    && serialized(loadIndexes(position, tableSpace), Index::serialize).equals(serialized(indexes, Index::serialize));
        } catch (DataStorageManagerException unreadable) {
            return false;
        }
    }

    private static <T> Set<Bytes> serialized(List<T> definitions, Function<T, byte[]> how) {
        return definitions.stream().map(each -> Bytes.from_array(how.apply(each))).collect(Collectors.toSet());
    }

    private static Collection<PostCheckpointAction> ofWhatWasRead(Collection<PostCheckpointAction> actions) {
        return actions.stream().filter(action -> !action.description.startsWith(UNREAD)).toList();
    }

    private void force(String tableSpace, String owner, long page) {
        if (!forces) {
            return;
        }
        Path file = HerdInternals.dataFolder(this).resolve(tableSpace + ".tablespace").resolve(owner).resolve(page + FILEEXTENSION_PAGE);
        try (FileChannel channel = FileChannel.open(file, StandardOpenOption.WRITE)) {
            channel.force(false);
        } catch (IOException error) {
            throw new DataStorageManagerException(error);
        }
    }
}
