package io.herdkeeper.node.disk;

import herddb.core.MemoryManager;
import herddb.core.PostCheckpointAction;
import herddb.core.RecordSetFactory;
import herddb.file.FileDataStorageManager;
import herddb.file.PositionedRows;
import herddb.index.KeyToPageIndex;
import herddb.index.TableKeys;
import herddb.log.LogSequenceNumber;
import herddb.model.Index;
import herddb.model.Record;
import herddb.model.Table;
import herddb.model.Transaction;
import herddb.server.ServerConfiguration;
import herddb.storage.DataStorageManagerException;
import herddb.storage.FullTableScanConsumer;
import herddb.storage.IndexStatus;
import herddb.storage.TableStatus;
import herddb.utils.Bytes;
import herddb.utils.XXHash64Utils;
import io.herdkeeper.node.internals.HerdInternals;
import java.io.IOException;
import java.nio.channels.FileChannel;
import java.nio.file.DirectoryIteratorException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.Lock;
import java.util.concurrent.locks.LockSupport;
import java.util.concurrent.locks.ReadWriteLock;
import java.util.concurrent.locks.ReentrantReadWriteLock;
import java.util.function.BooleanSupplier;
import java.util.function.Consumer;
import java.util.function.Function;
import java.util.logging.Level;
import java.util.logging.Logger;
import java.util.stream.Collectors;
import org.apache.bookkeeper.stats.StatsLogger;

/**
 * HerdDB's files, with the holes of its checkpoints closed (0.29, {@code FileDataStorageManager}).
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
 * <li>A dropped table keeps its files until a checkpoint is written without it ({@link #dropTable}).
 * <li>No checkpoint is written behind one that failed midway ({@link #isUnfit}).
 * <li>The newest checkpoint of a table is found by its name ({@link #getLatestTableStatus}).
 * <li>A copy that is to be downloaded again is kept until the new one is whole ({@link #setAside}).
 * <li>A copy that is erased has no checkpoint any more before it lacks anything else ({@link #eraseTablespaceData}).
 * <li>Nor has an index that is dropped or truncated ({@link #dropIndex}, {@link #truncateIndex}).
 * <li>A boot deletes what the newest checkpoint does not have ({@link #initTablespace}).
 * <li>A table is checkpointed with its keys, or not at all ({@link #initTable}).
 * </ul>
 */
public final class CheckpointFiles extends FileDataStorageManager {

    private static final Logger LOGGER = Logger.getLogger(CheckpointFiles.class.getName());
    /** How HerdDB describes what it does to a file that it could not read. */
    private static final String UNREAD = "delete unparsable";
    /** The end of the name of the index of a table's keys ({@code BLinkKeyToPageIndex}). */
    private static final String KEYS = "_primary";
    private static final String CHECKPOINT = ".checkpoint";
    /** Of rows that are sent at once, if not of one page alone. */
    private static final long PIECE_BYTES = 4 << 20;
    private static final long PAGE_SECONDS = 30;
    private static final long PAGE_PAUSE_NANOS = 1_000_000;

    /** What the download that a thread sends keeps of tables. */
    private static final ThreadLocal<Set<Kept>> KEPT = new ThreadLocal<>();

    private final boolean forces;
    private final RecordSetFactory results;
    /** The folders of tables that are dropped, and that the newest checkpoint may have, by the tablespaces' uuids. */
    private final Map<String, Set<Path>> dropped = new ConcurrentHashMap<>();
    /** The uuids of the tables that the newest checkpoint has, by the tablespaces' uuids. */
    private final Map<String, Set<String>> checkpointed = new ConcurrentHashMap<>();
    /** The same of a checkpoint whose tables are being written, or were until it failed. */
    private final Map<String, Set<String>> begun = new ConcurrentHashMap<>();
    /** The uuids of the tablespaces of which a page of a table could not be written since they booted. */
    private final Set<String> torn = ConcurrentHashMap.newKeySet();
    /** By the tablespaces' uuids; shared by who writes a page of a table. */
    private final Map<String, ReadWriteLock> pages = new ConcurrentHashMap<>();
    /** What indexes of keys had at the position at which they are checkpointed again, by the folders of their tables. */
    private final Map<Path, Path> before = new ConcurrentHashMap<>();

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
        results = PositionedRows.factory(temporary, configuration.getInt(ServerConfiguration.PROPERTY_DISK_SWAP_MAX_RECORDS,
                ServerConfiguration.PROPERTY_DISK_SWAP_MAX_RECORDS_DEFAULT));
    }

    private static boolean requiresForce(ServerConfiguration configuration) {
        return configuration.getBoolean(ServerConfiguration.PROPERTY_REQUIRE_FSYNC, ServerConfiguration.PROPERTY_REQUIRE_FSYNC_DEFAULT);
    }

    @Override
    public RecordSetFactory createRecordSetFactory() {
        return results;
    }

    @Override
    public KeyToPageIndex createKeyToPageMap(String tablespace, String table, MemoryManager memory) {
        return new TableKeys(tablespace, table, memory, this);
    }

    /**
     * A tablespace boots. What its newest checkpoint does not have is deleted: the log makes it anew.
     *
     * <p>A process that is killed while it deletes the files of a dropped table leaves some of them. HerdDB would boot a table of half of its
     * files, and can't apply a change of a row that is not there any more.
     */
    @Override
    public void initTablespace(String tableSpace) {
        putBack(tableSpace);
        begun.remove(tableSpace);
        torn.remove(tableSpace);
        super.initTablespace(tableSpace);
        LogSequenceNumber newest = getLastcheckpointSequenceNumber(tableSpace);
        if (!newest.isStartOfTime()) {
            deleteFoldersWithout(tableSpace, newest);
        }
    }

    private void deleteFoldersWithout(String tableSpace, LogSequenceNumber checkpoint) {
        Set<String> kept = new HashSet<>();
        for (Table table : super.loadTables(checkpoint, tableSpace)) {
            kept.add(table.uuid + ".table");
            kept.add(table.uuid + KEYS + ".index");
        }
        for (Index index : loadIndexes(checkpoint, tableSpace)) {
            kept.add(index.uuid + ".index");
        }
        for (Path folder : list(folder(tableSpace))) {
            String name = folder.getFileName().toString();
            if ((name.endsWith(".table") || name.endsWith(".index")) && !kept.contains(name)) {
                deleteFolder(folder);
            }
        }
    }

    /**
     * A table boots. If it was being checkpointed again at its newest position, it boots from what it had there before.
     *
     * <p>HerdDB replaces what the index of keys has there, and then what the table has. Between both, the index names pages that the table does
     * not have, and the boot would delete: its rows would be lost.
     */
    @Override
    public void initTable(String tableSpace, String table) {
        inUse(tableSpace, table + ".table");
        super.initTable(tableSpace, table);
        Path folder = folder(tableSpace).resolve(table + ".table");
        for (Path file : list(folder(tableSpace).resolve(table + KEYS + ".index"))) {
            String name = file.getFileName().toString();
            int end = name.indexOf(CHECKPOINT + ".") + CHECKPOINT.length();
            if (end > CHECKPOINT.length() && !name.endsWith(".tmp")) {
                Path now = folder.resolve(name.substring(0, end));
                if (Files.exists(now) && name.equals(nameBefore(now))) {
                    move(file, file.resolveSibling(now.getFileName()));
                } else {
                    delete(file);
                }
            }
        }
    }

    /** By the content of what a table has at a position. */
    private static String nameBefore(Path table) {
        try {
            byte[] content = Files.readAllBytes(table);
            return table.getFileName() + "." + Long.toHexString(XXHash64Utils.hash(content, 0, content.length));
        } catch (IOException error) {
            throw new DataStorageManagerException(error);
        }
    }

    /** Keeps what the index of a table's keys has at a position, until the table is checkpointed there, too ({@link #initTable}). */
    private void keepBefore(String tableSpace, String index, LogSequenceNumber position) {
        Path table = folder(tableSpace).resolve(index.substring(0, index.length() - KEYS.length()) + ".table");
        Path folder = folder(tableSpace).resolve(index + ".index");
        String name = position.ledgerId + "." + position.offset + CHECKPOINT;
        if (!Files.exists(folder.resolve(name)) || !Files.exists(table.resolve(name))) {
            return;
        }
        Path kept = folder.resolve(nameBefore(table.resolve(name)));
        Path written = folder.resolve(kept.getFileName() + ".tmp");
        try {
            Files.copy(folder.resolve(name), written, StandardCopyOption.REPLACE_EXISTING);
            try (FileChannel channel = FileChannel.open(written, StandardOpenOption.WRITE)) {
                channel.force(true);
            }
        } catch (IOException error) {
            throw new DataStorageManagerException(error);
        }
        move(written, kept);
        forceNames(folder);
        before.put(table, kept);
    }

    private static void move(Path from, Path to) {
        try {
            Files.move(from, to, StandardCopyOption.ATOMIC_MOVE, StandardCopyOption.REPLACE_EXISTING);
        } catch (IOException error) {
            throw new DataStorageManagerException(error);
        }
    }

    private static void delete(Path file) {
        try {
            Files.deleteIfExists(file);
        } catch (IOException error) {
            throw new DataStorageManagerException(error);
        }
    }

    /** What a folder has; nothing if it is not there. */
    private static List<Path> list(Path folder) {
        List<Path> found = new ArrayList<>();
        if (Files.isDirectory(folder)) {
            try (DirectoryStream<Path> files = Files.newDirectoryStream(folder)) {
                files.forEach(found::add);
            } catch (IOException | DirectoryIteratorException error) {
                throw new DataStorageManagerException("the files in " + folder + " are not known", error);
            }
        }
        return found;
    }

    @Override
    public void initIndex(String tableSpace, String index) {
        inUse(tableSpace, index + ".index");
        super.initIndex(tableSpace, index);
    }

    /**
     * Has the next checkpoint delete the files of a dropped table that the newest one has.
     *
     * <p>HerdDB deletes them at once. A boot from the checkpoint before then has the table without its rows, and can't apply a change of one
     * that the log has before the DROP: no node could boot the tablespace any more.
     */
    @Override
    public void dropTable(String tableSpace, String table) {
        if (isCheckpointed(tableSpace, table)) {
            leave(tableSpace, table + ".table");
        } else {
            super.dropTable(tableSpace, table);
        }
    }

    /**
     * The same for the index of a table's keys. HerdDB makes any other one anew where the newest checkpoint has none of it. So that goes first:
     * a process that is killed meanwhile would boot an index without its pages, and could apply no change of a row.
     */
    @Override
    public void dropIndex(String tableSpace, String index) {
        if (index.endsWith(KEYS) && isCheckpointed(tableSpace, index.substring(0, index.length() - KEYS.length()))) {
            leave(tableSpace, index + ".index");
            return;
        }
        Path folder = folder(tableSpace).resolve(index + ".index");
        List<Path> files = list(folder);
        files.stream().filter(file -> file.getFileName().toString().endsWith(CHECKPOINT)).forEach(CheckpointFiles::delete);
        if (!files.isEmpty()) {
            forceNames(folder);
        }
        super.dropIndex(tableSpace, index);
    }

    /** The next checkpoint of the index deletes its pages. HerdDB deletes them at once, though the newest checkpoint names them. */
    @Override
    public void truncateIndex(String tableSpace, String index) {
        // see above
    }

    private boolean isCheckpointed(String tableSpace, String table) {
        Set<String> tables = checkpointed.get(tableSpace);
        return tables == null || tables.contains(table);
    }

    private void leave(String tableSpace, String folder) {
        droppedOf(tableSpace).add(folder(tableSpace).resolve(folder));
    }

    private void inUse(String tableSpace, String folder) {
        droppedOf(tableSpace).remove(folder(tableSpace).resolve(folder));
    }

    private Set<Path> droppedOf(String tableSpace) {
        return dropped.computeIfAbsent(tableSpace, any -> ConcurrentHashMap.newKeySet());
    }

    @Override
    public void writePage(String tableSpace, String table, long page, Collection<Record> records) {
        Lock writing = pagesOf(tableSpace).readLock();
        writing.lock();
        try {
            super.writePage(tableSpace, table, page, records);
            force(tableSpace, table + ".table", page);
        } catch (RuntimeException | Error error) {
            if (!Files.notExists(folder(tableSpace).resolve(table + ".table"))) { // nobody misses a page of a dropped table
                torn.add(tableSpace);
            }
            throw error;
        } finally {
            writing.unlock();
        }
    }

    /**
     * Waits for the pages that are being written, or are about to be: a query that needs memory writes one, too, and HerdDB takes it for written
     * meanwhile.
     */
    @Override
    public List<PostCheckpointAction> tableCheckpoint(String tableSpace, String table, TableStatus status, boolean pin) {
        Lock written = pagesOf(tableSpace).writeLock();
        long begin = System.nanoTime();
        while (true) {
            written.lock();
            try {
                requirePages(tableSpace);
                if (hasPages(tableSpace, table, status)) {
                    List<PostCheckpointAction> actions = super.tableCheckpoint(tableSpace, table, status, pin);
                    forgetBefore(folder(tableSpace).resolve(table + ".table"));
                    if (pin && KEPT.get() != null) {
                        KEPT.get().add(new Kept(tableSpace, table, status.sequenceNumber));
                    }
                    return actions;
                }
            } finally {
                written.unlock();
            }
            if (System.nanoTime() - begin > TimeUnit.SECONDS.toNanos(PAGE_SECONDS)) {
                torn.add(tableSpace);
            }
            LockSupport.parkNanos(PAGE_PAUSE_NANOS);
        }
    }

    private boolean hasPages(String tableSpace, String table, TableStatus status) {
        Set<String> files = list(folder(tableSpace).resolve(table + ".table")).stream().map(file -> file.getFileName().toString())
                .collect(Collectors.toSet());
        return status.activePages.keySet().stream().allMatch(page -> files.contains(page + FILEEXTENSION_PAGE));
    }

    private void forgetBefore(Path table) {
        Path kept = before.remove(table);
        if (kept != null) {
            delete(kept);
        }
    }

    /** Nobody reads an index for who downloads the tables, and HerdDB would never let go of its pages. */
    @Override
    public List<PostCheckpointAction> indexCheckpoint(String tableSpace, String index, IndexStatus status, boolean pin) {
        if (index.endsWith(KEYS)) {
            keepBefore(tableSpace, index, status.sequenceNumber);
        }
        return super.indexCheckpoint(tableSpace, index, status, false);
    }

    /** The pages that a table has at a position. */
    private record Kept(String tableSpace, String table, LogSequenceNumber position) {
    }

    /**
     * Sends a download, and keeps no page for it afterwards. HerdDB keeps the tables as they are at its beginning, and lets go of none where one is
     * dropped meanwhile: no checkpoint would delete their pages until the process ends.
     */
    public boolean download(BooleanSupplier sending) {
        KEPT.set(new HashSet<>());
        try {
            return sending.getAsBoolean();
        } finally {
            Set<Kept> left = KEPT.get();
            KEPT.remove();
            for (Kept table : left) {
                try {
                    super.unPinTableCheckpoint(table.tableSpace, table.table, table.position);
                } catch (DataStorageManagerException gone) {
                    // with the table's files
                }
            }
        }
    }

    @Override
    public void unPinTableCheckpoint(String tableSpace, String table, LogSequenceNumber position) {
        super.unPinTableCheckpoint(tableSpace, table, position);
        if (KEPT.get() != null) {
            KEPT.get().remove(new Kept(tableSpace, table, position));
        }
    }

    /**
     * Reads a table for who downloads it, and has the rows sent in pieces. HerdDB sends ten thousand at once: with wide rows, which may have
     * a megabyte each, the leader's process ends for lack of memory.
     */
    @Override
    public void fullTableScan(String tableSpace, String table, LogSequenceNumber position, FullTableScanConsumer download) {
        super.fullTableScan(tableSpace, table, position, new FullTableScanConsumer() {
            private long bytes;

            @Override
            public void acceptTableStatus(TableStatus status) {
                download.acceptTableStatus(status);
            }

            @Override
            public void acceptPage(long page, List<Record> records) {
                download.acceptPage(page, records);
                bytes += records.stream().mapToLong(record -> record.key.getLength() + record.value.getLength()).sum();
                if (bytes > PIECE_BYTES) {
                    HerdInternals.sendRows(download);
                    bytes = 0;
                }
            }

            @Override
            public void endTable() {
                download.endTable();
            }
        });
    }

    private void requirePages(String tableSpace) {
        if (torn.contains(tableSpace)) {
            throw new DataStorageManagerException("a page of tablespace " + tableSpace + " could not be written");
        }
    }

    private ReadWriteLock pagesOf(String tableSpace) {
        return pages.computeIfAbsent(tableSpace, any -> new ReentrantReadWriteLock());
    }

    @Override
    public void writeIndexPage(String tableSpace, String index, long page, DataWriter writer) {
        super.writeIndexPage(tableSpace, index, page, writer);
        force(tableSpace, index + ".index", page);
    }

    /**
     * Whether a page of one of the tablespace's tables could not be written since it booted, or its last checkpoint failed while it wrote tables.
     *
     * <p>HerdDB takes such a page for written, and a row for moved that is on no page. The next checkpoint that succeeds would lack these rows,
     * and so would the copy that boots from it. So none is written until the tablespace has booted again, from the one before.
     */
    public boolean isUnfit(String tableSpace) {
        return begun.containsKey(tableSpace) || torn.contains(tableSpace);
    }

    /** Whether the disk has room for so many bytes. */
    public boolean hasRoom(String tableSpace, long bytes) {
        try {
            return Files.getFileStore(folder(tableSpace)).getUsableSpace() >= bytes;
        } catch (IOException unknown) {
            return false;
        }
    }

    /**
     * Empties the folder of a copy that is about to be downloaded again. What it has stays beside it until the new copy's first checkpoint, or the
     * next boot ({@link #putBack}): the leader may be lost before it has sent all, and this copy may be the last one. Where the disk lacks the room
     * for it a second time, it is erased.
     */
    public void setAside(String tableSpace) {
        Path folder = folder(tableSpace);
        if (getLastcheckpointSequenceNumber(tableSpace).isStartOfTime()) {
            eraseTablespaceData(tableSpace);
        } else if (room(folder) < size(folder)) {
            LOGGER.log(Level.WARNING, "{0} is erased before its replacement has come: the disk has no room for both", folder);
            eraseTablespaceData(tableSpace);
        } else {
            move(folder, aside(tableSpace));
            forceNames(folder.getParent());
        }
    }

    /** Puts back what {@link #setAside} has kept, in place of a new copy that is not whole; deletes it beside one that is. */
    public void putBack(String tableSpace) {
        Path kept = aside(tableSpace);
        if (Files.notExists(kept)) {
            return;
        }
        if (!getLastcheckpointSequenceNumber(tableSpace).isStartOfTime()) {
            deleteFolder(kept);
            return;
        }
        Path folder = folder(tableSpace);
        deleteFolder(folder);
        move(kept, folder);
        forceNames(folder.getParent());
    }

    private Path aside(String tableSpace) {
        return HerdInternals.dataFolder(this).resolve(tableSpace + ".replaced");
    }

    private static long room(Path folder) {
        try {
            return Files.getFileStore(folder).getUsableSpace();
        } catch (IOException error) {
            throw new DataStorageManagerException(error);
        }
    }

    private static long size(Path folder) {
        long bytes = 0;
        for (Path file : list(folder)) {
            try {
                bytes += Files.isDirectory(file) ? size(file) : Files.size(file);
            } catch (IOException error) {
                throw new DataStorageManagerException(error);
            }
        }
        return bytes;
    }

    @Override
    public Collection<PostCheckpointAction> writeTables(String tableSpace, LogSequenceNumber position, List<Table> tables,
            List<Index> indexes, boolean ofACheckpoint) {
        Collection<PostCheckpointAction> actions = writeDefinitions(tableSpace, position, tables, indexes, ofACheckpoint);
        if (ofACheckpoint) {
            begun.put(tableSpace, uuids(tables)); // the tables follow
        }
        return actions;
    }

    /** Those of the newest checkpoint, of which a boot begins. */
    @Override
    public List<Table> loadTables(LogSequenceNumber position, String tableSpace) {
        List<Table> tables = super.loadTables(position, tableSpace);
        checkpointed.put(tableSpace, uuids(tables));
        return tables;
    }

    private static Set<String> uuids(List<Table> tables) {
        return tables.stream().map(table -> table.uuid).collect(Collectors.toSet());
    }

    private Collection<PostCheckpointAction> writeDefinitions(String tableSpace, LogSequenceNumber position, List<Table> tables,
            List<Index> indexes, boolean ofACheckpoint) {
        if (getLastcheckpointSequenceNumber(tableSpace).equals(position) && hasDefinitions(tableSpace, position, tables, indexes)) {
            return List.of(); // what is older goes with the next checkpoint
        }
        return ofWhatWasRead(super.writeTables(tableSpace, position, tables, indexes, ofACheckpoint));
    }

    @Override
    public Collection<PostCheckpointAction> writeTransactionsAtCheckpoint(
            String tableSpace, LogSequenceNumber position, Collection<Transaction> transactions) {
        if (isUnfit(tableSpace)) {
            throw new DataStorageManagerException("an earlier checkpoint of tablespace " + tableSpace
                    + " failed midway, or a page could not be written: none is written until it has booted again");
        }
        return ofWhatWasRead(super.writeTransactionsAtCheckpoint(tableSpace, position, transactions));
    }

    /** Its name is on the disk when this returns: then the log before it may go. The dropped tables that it does not have go behind it. */
    @Override
    public Collection<PostCheckpointAction> writeCheckpointSequenceNumber(String tableSpace, LogSequenceNumber position) {
        requirePages(tableSpace);
        Collection<PostCheckpointAction> actions = new ArrayList<>(super.writeCheckpointSequenceNumber(tableSpace, position));
        Set<String> tables = begun.get(tableSpace);
        if (tables != null) {
            checkpointed.put(tableSpace, tables);
        }
        forceNames(folder(tableSpace));
        begun.remove(tableSpace);
        Path replaced = aside(tableSpace);
        if (Files.exists(replaced)) {
            forceNames(replaced.getParent());
            actions.add(new PostCheckpointAction(tableSpace, tableSpace, "delete the replaced " + replaced) {
                @Override
                public void run() {
                    deleteFolder(replaced);
                }
            });
        }
        Set<Path> folders = droppedOf(tableSpace);
        for (Path folder : Set.copyOf(folders)) {
            actions.add(new PostCheckpointAction(tableSpace, folder.getFileName().toString(), "delete the dropped " + folder) {
                @Override
                public void run() {
                    if (folders.remove(folder)) {
                        try {
                            deleteFolder(folder);
                        } catch (RuntimeException error) {
                            folders.add(folder); // the next checkpoint tries again
                            throw error;
                        }
                    }
                }
            });
        }
        return actions;
    }

    private static void deleteFolder(Path folder) {
        try {
            deleteDirectory(folder);
        } catch (IOException error) {
            throw new DataStorageManagerException(error);
        }
    }

    /**
     * Erases a copy that is about to be downloaded. The names of its checkpoints go first: HerdDB deletes in any order, and a process that is
     * killed meanwhile could neither boot from what is left nor begin the download again.
     */
    @Override
    public void eraseTablespaceData(String tableSpace) {
        Path folder = folder(tableSpace);
        try (DirectoryStream<Path> files = Files.newDirectoryStream(Files.createDirectories(folder))) {
            for (Path file : files) {
                if (!positionOf(file, "checkpoint.").isStartOfTime()) {
                    Files.delete(file);
                }
            }
        } catch (IOException | DirectoryIteratorException | NumberFormatException error) {
            throw new DataStorageManagerException("the checkpoints in " + folder + " can't be deleted", error);
        }
        forceNames(folder);
        super.eraseTablespaceData(tableSpace);
    }

    /**
     * What a table has on the disk, at the newest position of its files. HerdDB goes by their times: a clock that was put back has it boot a
     * table from an older position than its tablespace, and what is between is lost.
     */
    @Override
    public TableStatus getLatestTableStatus(String tableSpace, String table) {
        Path folder = folder(tableSpace).resolve(table + ".table");
        LogSequenceNumber newest = LogSequenceNumber.START_OF_TIME;
        try (DirectoryStream<Path> files = Files.newDirectoryStream(Files.createDirectories(folder))) {
            for (Path file : files) {
                LogSequenceNumber position = positionOf(file, "");
                newest = position.after(newest) ? position : newest;
            }
        } catch (IOException | DirectoryIteratorException | NumberFormatException error) {
            throw new DataStorageManagerException("the newest checkpoint in " + folder + " is not known", error);
        }
        return newest.isStartOfTime() ? TableStatus.buildTableStatusForNewCreatedTable(table) : getTableStatus(tableSpace, table, newest);
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
        Path folder = folder(tableSpace);
        LogSequenceNumber newest = LogSequenceNumber.START_OF_TIME;
        try (DirectoryStream<Path> files = Files.newDirectoryStream(Files.createDirectories(folder))) {
            for (Path file : files) {
                LogSequenceNumber position = positionOf(file, "checkpoint.");
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
        Path file = folder(tableSpace).resolve(name);
        if (!position.isStartOfTime() && !Files.isRegularFile(file)) {
            throw new DataStorageManagerException("the checkpoint's open transactions can't be read: " + file + " is not there or can't be seen");
        }
        super.loadTransactions(position, tableSpace, consumer);
    }

    /** By a file's name, {@code <prefix><ledger>.<entry>.checkpoint}; START_OF_TIME for other files. */
    private static LogSequenceNumber positionOf(Path file, String prefix) {
        String name = file.getFileName().toString();
        String[] parts = name.startsWith(prefix) ? name.substring(prefix.length()).split("\\.") : new String[0];
        return parts.length == 3 && parts[2].equals("checkpoint")
                ? new LogSequenceNumber(Long.parseLong(parts[0]), Long.parseLong(parts[1])) : LogSequenceNumber.START_OF_TIME;
    }

    private Path folder(String tableSpace) {
        return HerdInternals.dataFolder(this).resolve(tableSpace + ".tablespace");
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
        Path file = folder(tableSpace).resolve(owner).resolve(page + FILEEXTENSION_PAGE);
        try (FileChannel channel = FileChannel.open(file, StandardOpenOption.WRITE)) {
            channel.force(false);
        } catch (IOException error) {
            throw new DataStorageManagerException(error);
        }
    }

    /** Which files a folder has is on the disk behind this, too. */
    private void forceNames(Path folder) {
        if (!forces) {
            return;
        }
        try (FileChannel channel = FileChannel.open(folder, StandardOpenOption.READ)) {
            channel.force(true);
        } catch (IOException error) {
            throw new DataStorageManagerException(error);
        }
    }
}
