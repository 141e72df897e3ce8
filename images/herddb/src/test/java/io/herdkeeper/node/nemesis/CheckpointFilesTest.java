package io.herdkeeper.node.nemesis;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import herddb.core.PageSet.DataPageMetaData;
import herddb.core.PostCheckpointAction;
import herddb.file.FileDataStorageManager;
import herddb.log.CommitLogResult;
import herddb.log.LogSequenceNumber;
import herddb.model.ColumnTypes;
import herddb.model.Record;
import herddb.model.Table;
import herddb.model.Transaction;
import herddb.server.ServerConfiguration;
import herddb.storage.DataStorageManagerException;
import herddb.storage.IndexStatus;
import herddb.storage.TableStatus;
import herddb.utils.Bytes;
import herddb.utils.ExtendedDataInputStream;
import io.herdkeeper.node.disk.CheckpointFiles;
import io.herdkeeper.node.testing.Await;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.FileTime;
import java.time.Duration;
import java.util.AbstractList;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CountDownLatch;
import java.util.stream.Collectors;
import java.util.stream.LongStream;
import java.util.stream.Stream;
import org.apache.bookkeeper.stats.NullStatsLogger;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** What a checkpoint has written is there after a power cut, and what a new one deletes is older than itself. */
class CheckpointFilesTest {

    private static final Record ROW = new Record(Bytes.from_string("key"), Bytes.from_string("value"));

    private static final Record ANOTHER = new Record(Bytes.from_string("key"), Bytes.from_string("another value"));

    private static final Duration LIMIT = Duration.ofSeconds(30);

    private static final Nemesis.Listener NOBODY = new Nemesis.Listener() {
        @Override
        public void strikes() {
            // nobody waits for it
        }

        @Override
        public void struck(Strike strike, Life life, Hold hold) {
            // nothing is done about it
        }
    };

    @TempDir
    private Path folder;

    @Test
    void aPageIsThereAfterAPowerCut() {
        Life life = life();
        write(ours(new Disk(life).seen(folder)));
        life.kill();
        FileDataStorageManager next = ours(folder);
        assertEquals(List.of(ROW), next.readPage("space", "table", 1L));
        long read = next.readIndexPage("space", "index", 1L, in -> in.readVLong());
        assertEquals(7, read);
    }

    @Test
    void plainHerdDbsPageIsTorn() {
        Life life = life();
        write(new FileDataStorageManager(new Disk(life).seen(folder)));
        life.kill();
        assertThrows(RuntimeException.class, () -> ours(folder).readPage("space", "table", 1L));
    }

    @Test
    void aFileThatCanNotBeReadIsNotDeletedForThat() throws Exception {
        Path unreadable = Files.createDirectories(folder.resolve("space.tablespace")).resolve("tables.1.1.tablesmetadata");
        Files.writeString(unreadable, "?");
        FileDataStorageManager files = ours(folder);
        files.writeTransactionsAtCheckpoint("space", new LogSequenceNumber(1, 2), List.of()).forEach(PostCheckpointAction::run);
        files.writeTables("space", new LogSequenceNumber(1, 2), List.of(), List.of(), true).forEach(PostCheckpointAction::run);
        assertTrue(Files.exists(unreadable));
        files.writeTables("space", new LogSequenceNumber(1, 3), List.of(), List.of(), true).forEach(PostCheckpointAction::run);
        assertTrue(Files.notExists(folder.resolve("space.tablespace/tables.1.2.tablesmetadata")), "an older one that can be read goes");
    }

    @Test
    void theDefinitionsOfTheNewestCheckpointAreNotWrittenAgainInPlace() throws Exception {
        FileDataStorageManager files = ours(folder);
        LogSequenceNumber position = new LogSequenceNumber(1, 2);
        Table table = Table.builder().tablespace("space").name("t").uuid("t").column("k", ColumnTypes.INTEGER).primaryKey("k").build();
        files.writeTables("space", position, List.of(table), List.of(), true);
        files.writeCheckpointSequenceNumber("space", position);
        Path definitions = folder.resolve("space.tablespace/tables.1.2.tablesmetadata");
        FileTime before = FileTime.fromMillis(0);
        Files.setLastModifiedTime(definitions, before);
        files.writeTables("space", position, List.of(table), List.of(), true);
        assertEquals(before, Files.getLastModifiedTime(definitions));
        files.writeTables("space", position, List.of(), List.of(), true);
        assertEquals(List.of(), files.loadTables(position, "space"), "others are written");
    }

    @Test
    void theNewestCheckpointIsKnownWhereItsFileCanNotBeRead() throws Exception {
        CheckpointFiles files = ours(folder);
        assertEquals(LogSequenceNumber.START_OF_TIME, files.getLastcheckpointSequenceNumber("space"));
        files.writeCheckpointSequenceNumber("space", new LogSequenceNumber(1, 2));
        files.writeCheckpointSequenceNumber("space", new LogSequenceNumber(1, 13));
        Files.writeString(folder.resolve("space.tablespace/checkpoint.1.13.checkpoint"), "?");
        FileDataStorageManager plain = new FileDataStorageManager(folder);
        assertTrue(new LogSequenceNumber(1, 13).after(plain.getLastcheckpointSequenceNumber("space")), "HerdDB tells an earlier one");
        assertEquals(new LogSequenceNumber(1, 13), files.getLastcheckpointSequenceNumber("space"));
    }

    @Test
    void aCheckpointIsNotTakenForNoneWhereTheFolderCanNotBeListed() {
        ours(folder).writeCheckpointSequenceNumber("space", new LogSequenceNumber(1, 2));
        FileDataStorageManager plain = new FileDataStorageManager(
                failingAt("list space.tablespace by FileDataStorageManager.getLastcheckpointSequenceNumber"));
        assertEquals(LogSequenceNumber.START_OF_TIME, plain.getLastcheckpointSequenceNumber("space"), "HerdDB tells of none");
        FileDataStorageManager files = ours(failingAt("list space.tablespace by CheckpointFiles.getLastcheckpointSequenceNumber"));
        assertThrows(DataStorageManagerException.class, () -> files.getLastcheckpointSequenceNumber("space"));
        assertEquals(new LogSequenceNumber(1, 2), files.getLastcheckpointSequenceNumber("space"), "once it can be listed");
    }

    @Test
    void openTransactionsAreNotTakenForNoneWhereTheirFileCanNotBeSeen() throws Exception {
        LogSequenceNumber position = new LogSequenceNumber(1, 2);
        List<Transaction> open = List.of(new Transaction(7, "space", new CommitLogResult(position, false, true)));
        ours(folder).writeTransactionsAtCheckpoint("space", position, open);
        assertEquals(List.of(7L), transactions(ours(folder), position));
        Path file = folder.resolve("space.tablespace/transactions.1.2.tx");
        Files.delete(file);
        Files.createSymbolicLink(file, file); // no stat of it succeeds, and neither does it say that nothing is there
        assertEquals(List.of(), transactions(new FileDataStorageManager(folder), position), "HerdDB gives none");
        assertThrows(DataStorageManagerException.class, () -> transactions(ours(folder), position));
        assertEquals(List.of(), transactions(ours(folder), LogSequenceNumber.START_OF_TIME), "before the first checkpoint");
    }

    @Test
    void theNameOfACheckpointIsOnTheDiskBeforeItCounts() {
        FileDataStorageManager files = ours(failingAt("force space.tablespace by CheckpointFiles.forceNames"));
        assertThrows(DataStorageManagerException.class, () -> files.writeCheckpointSequenceNumber("space", new LogSequenceNumber(1, 2)));
    }

    @Test
    void aTableBootsFromItsNewestFileWhateverTheClockSaid() throws Exception {
        CheckpointFiles files = ours(folder);
        assertEquals(LogSequenceNumber.START_OF_TIME, files.getLatestTableStatus("space", "table").sequenceNumber);
        for (long entry : List.of(2L, 13L)) {
            files.tableCheckpoint("space", "table", status(new LogSequenceNumber(1, entry)), false);
        }
        Files.setLastModifiedTime(folder.resolve("space.tablespace/table.table/1.13.checkpoint"), FileTime.fromMillis(0));
        assertEquals(new LogSequenceNumber(1, 2), new FileDataStorageManager(folder).getLatestTableStatus("space", "table").sequenceNumber,
                "HerdDB goes by the times");
        assertEquals(new LogSequenceNumber(1, 13), files.getLatestTableStatus("space", "table").sequenceNumber);
    }

    @Test
    void aDroppedTableKeepsItsFilesUntilACheckpointIsWrittenWithoutIt() {
        CheckpointFiles files = ours(folder);
        write(files);
        files.initIndex("space", "table_primary");
        files.dropTable("space", "table");
        files.dropIndex("space", "table_primary");
        assertEquals(List.of(ROW), files.readPage("space", "table", 1L));
        files.writeCheckpointSequenceNumber("space", new LogSequenceNumber(1, 2)).forEach(PostCheckpointAction::run);
        assertTrue(Files.notExists(folder.resolve("space.tablespace/table.table")));
        assertTrue(Files.notExists(folder.resolve("space.tablespace/table_primary.index")));
    }

    @Test
    void aDroppedTableThatNoCheckpointHasGivesItsRoomBackAtOnce() {
        CheckpointFiles files = ours(folder);
        begin(files, 2);
        files.writeCheckpointSequenceNumber("space", new LogSequenceNumber(1, 2));
        write(files);
        files.dropTable("space", "table");
        assertTrue(Files.notExists(folder.resolve("space.tablespace/table.table")));
    }

    @Test
    void aTableThatABootHasAgainKeepsItsFiles() {
        CheckpointFiles files = ours(folder);
        write(files);
        files.dropTable("space", "table");
        files.initTable("space", "table");
        files.writeCheckpointSequenceNumber("space", new LogSequenceNumber(1, 2)).forEach(PostCheckpointAction::run);
        assertEquals(List.of(ROW), files.readPage("space", "table", 1L));
    }

    @Test
    void behindACheckpointThatFailedMidwayNoneIsWrittenBeforeTheTablespaceBoots() {
        CheckpointFiles files = ours(folder);
        begin(files, 2);
        assertThrows(DataStorageManagerException.class, () -> begin(files, 3));
        files.initTablespace("space");
        begin(files, 3);
        files.writeCheckpointSequenceNumber("space", new LogSequenceNumber(1, 3));
        begin(files, 4);
    }

    @Test
    void behindAPageThatCouldNotBeWrittenNoCheckpointIsWrittenBeforeTheTablespaceBoots() throws Exception {
        CheckpointFiles files = ours(folder);
        write(files);
        Files.createDirectory(folder.resolve("space.tablespace/table.table/2.page"));
        assertThrows(DataStorageManagerException.class, () -> files.writePage("space", "table", 2, List.of(ROW)));
        files.writePage("space", "table", 3, List.of(ROW));
        assertThrows(DataStorageManagerException.class,
                () -> files.tableCheckpoint("space", "table", status(new LogSequenceNumber(1, 2)), false));
        assertThrows(DataStorageManagerException.class, () -> begin(files, 2));
        files.initTablespace("space");
        begin(files, 2);
    }

    @Test
    void aPageOfADroppedTableThatCanNotBeWrittenHoldsUpNoCheckpoint() throws Exception {
        CheckpointFiles files = ours(folder);
        write(files);
        begin(files, 2);
        files.writeCheckpointSequenceNumber("space", new LogSequenceNumber(1, 2));
        files.dropTable("space", "table");
        assertThrows(DataStorageManagerException.class, () -> files.writePage("space", "table", 2, List.of(ROW)));
        begin(files, 3);
    }

    @Test
    void aTablesCheckpointWaitsForThePageThatIsBeingWritten() throws Exception {
        CheckpointFiles files = ours(folder);
        write(files);
        CountDownLatch goOn = new CountDownLatch(1);
        List<Record> slow = new AbstractList<>() {
            @Override
            public Record get(int index) {
                try {
                    goOn.await();
                } catch (InterruptedException error) {
                    throw new IllegalStateException(error);
                }
                return ROW;
            }

            @Override
            public int size() {
                return 1;
            }
        };
        Thread query = new Thread(() -> files.writePage("space", "table", 2, slow));
        query.start();
        Await.until("it writes", LIMIT, () -> query.getState() == Thread.State.WAITING);
        Thread checkpoint = new Thread(() -> files.tableCheckpoint("space", "table", status(new LogSequenceNumber(1, 2)), false));
        checkpoint.start();
        Await.until("it waits, or has ended", LIMIT,
                () -> checkpoint.getState() == Thread.State.WAITING || checkpoint.getState() == Thread.State.TERMINATED);
        assertTrue(Files.notExists(folder.resolve("space.tablespace/table.table/1.2.checkpoint")));
        goOn.countDown();
        query.join();
        checkpoint.join();
        assertTrue(Files.exists(folder.resolve("space.tablespace/table.table/1.2.checkpoint")));
    }

    @Test
    void aTablesCheckpointWaitsForAPageThatIsAboutToBeWritten() throws Exception {
        CheckpointFiles files = ours(folder);
        write(files);
        TableStatus named = status(new LogSequenceNumber(1, 2), 1, 2);
        Thread checkpoint = new Thread(() -> files.tableCheckpoint("space", "table", named, false));
        checkpoint.start();
        Await.until("it waits, or has ended", LIMIT,
                () -> checkpoint.getState() == Thread.State.TIMED_WAITING || checkpoint.getState() == Thread.State.TERMINATED);
        assertTrue(Files.notExists(folder.resolve("space.tablespace/table.table/1.2.checkpoint")));
        files.writePage("space", "table", 2, List.of(ROW));
        checkpoint.join();
        assertTrue(Files.exists(folder.resolve("space.tablespace/table.table/1.2.checkpoint")));
    }

    @Test
    void aDownloadKeepsNoPageOfAnIndex() {
        CheckpointFiles files = ours(folder);
        write(files);
        files.indexCheckpoint("space", "index", index(new LogSequenceNumber(1, 2), 1), true);
        files.writeIndexPage("space", "index", 2, out -> out.writeVLong(7));
        files.indexCheckpoint("space", "index", index(new LogSequenceNumber(1, 3), 2), false).forEach(PostCheckpointAction::run);
        assertTrue(Files.notExists(folder.resolve("space.tablespace/index.index/1.page")));
        assertTrue(Files.notExists(folder.resolve("space.tablespace/index.index/1.2.checkpoint")));
    }

    @Test
    void aTruncatedIndexKeepsItsFilesUntilItsNextCheckpoint() {
        CheckpointFiles files = ours(folder);
        write(files);
        files.indexCheckpoint("space", "index", index(new LogSequenceNumber(1, 2), 1), false);
        files.truncateIndex("space", "index");
        assertTrue(Files.exists(folder.resolve("space.tablespace/index.index/1.page")), "a boot from its checkpoint needs it");
        files.writeIndexPage("space", "index", 2, out -> out.writeVLong(7));
        files.indexCheckpoint("space", "index", index(new LogSequenceNumber(1, 3), 2), false).forEach(PostCheckpointAction::run);
        assertTrue(Files.notExists(folder.resolve("space.tablespace/index.index/1.page")));
    }

    @Test
    void anIndexWhoseDeletionIsInterruptedHasNoCheckpoint() {
        LogSequenceNumber position = new LogSequenceNumber(9, 2);
        CheckpointFiles files = ours(folder);
        write(files);
        files.indexCheckpoint("space", "index", index(position, 1), false);
        FileDataStorageManager dropping = ours(failingAt("delete N.page by FileDataStorageManager.deleteDirectoryContent"));
        assertThrows(DataStorageManagerException.class, () -> dropping.dropIndex("space", "index"));
        assertThrows(DataStorageManagerException.class, () -> files.getIndexStatus("space", "index", position), "so a boot makes it anew");
    }

    @Test
    void aBootDeletesWhatTheNewestCheckpointDoesNotHave() {
        CheckpointFiles files = ours(folder);
        write(files);
        LogSequenceNumber position = new LogSequenceNumber(1, 2);
        Table table = Table.builder().tablespace("space").name("t").uuid("kept").column("k", ColumnTypes.INTEGER).primaryKey("k").build();
        files.initTable("space", "kept");
        files.initIndex("space", "kept_primary");
        files.writeTransactionsAtCheckpoint("space", position, List.of());
        files.writeTables("space", position, List.of(table), List.of(), true);
        ours(folder).initTablespace("space");
        assertTrue(Files.exists(folder.resolve("space.tablespace/table.table")), "no checkpoint is written yet");
        files.writeCheckpointSequenceNumber("space", position);
        ours(folder).initTablespace("space");
        for (String name : List.of("table.table", "index.index")) {
            assertTrue(Files.notExists(folder.resolve("space.tablespace/" + name)), name);
        }
        for (String name : List.of("kept.table", "kept_primary.index", "tables.1.2.tablesmetadata")) {
            assertTrue(Files.exists(folder.resolve("space.tablespace/" + name)), name);
        }
    }

    /** As the boot of an idle tablespace does, or a download from its leader. */
    @Test
    void aTableThatIsKilledWhileItIsCheckpointedAgainAtItsPositionBootsWithThePagesOfItsKeys() throws Exception {
        LogSequenceNumber position = new LogSequenceNumber(1, 2);
        CheckpointFiles files = ours(folder);
        write(files);
        files.initIndex("space", "table_primary");
        files.writePage("space", "table", 2, List.of(ROW));
        files.indexCheckpoint("space", "table_primary", index(position, 1), false);
        files.tableCheckpoint("space", "table", status(position, 1), false);
        files.indexCheckpoint("space", "table_primary", index(position, 2), false);
        Path elsewhere = Files.createDirectory(folder.resolve("elsewhere"));
        List<Path> beside;
        try (Stream<Path> found = Files.list(folder.resolve("space.tablespace/table_primary.index"))) {
            beside = found.filter(file -> !file.toString().endsWith(".checkpoint")).toList();
        }
        for (Path file : beside) {
            Files.copy(file, elsewhere.resolve(file.getFileName()));
        }
        assertEquals(Set.of(1L), pagesOfTheKeysAtABoot(position), "only the keys were replaced");

        files.indexCheckpoint("space", "table_primary", index(position, 2), false);
        files.tableCheckpoint("space", "table", status(position, 2), false);
        assertEquals(Set.of(2L), pagesOfTheKeysAtABoot(position), "both were replaced");
        for (Path file : beside) {
            Files.copy(elsewhere.resolve(file.getFileName()), file);
        }
        assertEquals(Set.of(2L), pagesOfTheKeysAtABoot(position), "a moment before");
    }

    private Set<Long> pagesOfTheKeysAtABoot(LogSequenceNumber position) {
        CheckpointFiles files = ours(folder);
        files.initTable("space", "table");
        return files.getIndexStatus("space", "table_primary", position).activePages;
    }

    private static IndexStatus index(LogSequenceNumber position, long page) {
        return new IndexStatus("index", position, page + 1, Set.of(page), new byte[] {(byte) page});
    }

    @Test
    void aCopyWhoseErasureIsInterruptedHasNoCheckpoint() {
        CheckpointFiles files = ours(folder);
        files.initTable("space", "a");
        files.writePage("space", "a", 1, List.of(ROW));
        files.writeCheckpointSequenceNumber("space", new LogSequenceNumber(1, 2));
        FileDataStorageManager erasing = ours(failingAt("delete N.page by FileDataStorageManager.eraseTablespaceData"));
        assertThrows(DataStorageManagerException.class, () -> erasing.eraseTablespaceData("space"));
        assertEquals(LogSequenceNumber.START_OF_TIME, files.getLastcheckpointSequenceNumber("space"));
    }

    @Test
    void aCopyThatIsDownloadedAgainIsTheOldOneOrTheNewOneWheneverThePowerIsCut() {
        List<Point> points = downloadAgain(folder.resolve("whole"), List.of());
        assertEquals(new LogSequenceNumber(1, 3), ours(folder.resolve("whole")).getLastcheckpointSequenceNumber("space"));
        assertTrue(Files.notExists(folder.resolve("whole/space.replaced")), "it goes with the first checkpoint of the new one");
        List<Point> cuts = points.stream().filter(point -> Fault.at(point.call(), point.moment()).contains(Fault.KILL)).toList();
        assertTrue(cuts.size() > 10, cuts.toString());
        for (Point cut : cuts) {
            Path disk = folder.resolve("cut" + cuts.indexOf(cut));
            downloadAgain(disk, List.of(new Strike(cut.name(), Fault.KILL)));
            CheckpointFiles next = ours(disk);
            next.initTablespace("space");
            LogSequenceNumber position = next.getLastcheckpointSequenceNumber("space");
            assertTrue(Set.of(new LogSequenceNumber(1, 2), new LogSequenceNumber(1, 3)).contains(position), () -> cut.name() + ": " + position);
            assertEquals(List.of(position.offset == 2 ? ROW : ANOTHER), next.readPage("space", "table", 1L), cut.name());
            assertTrue(Files.notExists(disk.resolve("space.replaced")), cut.name());
        }
    }

    /** What is written to a disk with a copy at 1,2 that is replaced by one at 1,3. */
    private List<Point> downloadAgain(Path disk, List<Strike> strikes) {
        checkpointed(ours(disk), ROW, new LogSequenceNumber(1, 2));
        Nemesis nemesis = new Nemesis(strikes, NOBODY);
        nemesis.open();
        CheckpointFiles files = ours(new Disk(new Life(nemesis, "n0", 0)).seen(disk));
        try {
            files.initTablespace("space");
            files.setAside("space");
            checkpointed(files, ANOTHER, new LogSequenceNumber(1, 3));
        } catch (PowerCut cut) {
            // as was asked for
        }
        return nemesis.seen();
    }

    private static void checkpointed(CheckpointFiles files, Record row, LogSequenceNumber position) {
        Table table = Table.builder().tablespace("space").name("t").uuid("table").column("k", ColumnTypes.INTEGER).primaryKey("k").build();
        files.initTable("space", "table");
        files.writePage("space", "table", 1, List.of(row));
        files.writeTransactionsAtCheckpoint("space", position, List.of());
        files.writeTables("space", position, List.of(table), List.of(), true);
        files.tableCheckpoint("space", "table", status(position, 1), false);
        files.writeCheckpointSequenceNumber("space", position).forEach(PostCheckpointAction::run);
    }

    private static void begin(CheckpointFiles files, long entry) {
        files.writeTransactionsAtCheckpoint("space", new LogSequenceNumber(1, entry), List.of());
        files.writeTables("space", new LogSequenceNumber(1, entry), List.of(), List.of(), true);
    }

    private static TableStatus status(LogSequenceNumber position, long... pages) {
        DataPageMetaData meta = meta();
        return new TableStatus("table", position, Bytes.longToByteArray(1), 1,
                LongStream.of(pages).boxed().collect(Collectors.toMap(page -> page, page -> meta)));
    }

    private static DataPageMetaData meta() {
        try (ExtendedDataInputStream three = new ExtendedDataInputStream(new ByteArrayInputStream(new byte[] {1, 1, 0}))) {
            return DataPageMetaData.deserialize(three);
        } catch (IOException impossible) {
            throw new UncheckedIOException(impossible);
        }
    }

    private static List<Long> transactions(FileDataStorageManager files, LogSequenceNumber position) {
        List<Long> found = new ArrayList<>();
        files.loadTransactions(position, "space", transaction -> found.add(transaction.transactionId));
        return found;
    }

    /** The folder on a disk on which a step fails for the first time. */
    private Path failingAt(String step) {
        String point = "n0 disk " + step + " #1 before";
        Nemesis nemesis = new Nemesis(List.of(new Strike(point, Fault.FAIL)), NOBODY);
        nemesis.open();
        return new Disk(new Life(nemesis, "n0", 0)).seen(folder);
    }

    private static void write(FileDataStorageManager files) {
        files.initTablespace("space");
        files.initTable("space", "table");
        files.initIndex("space", "index");
        files.writePage("space", "table", 1, List.of(ROW));
        files.writeIndexPage("space", "index", 1, out -> out.writeVLong(7));
    }

    private CheckpointFiles ours(Path files) {
        return new CheckpointFiles(files, folder.resolve("tmp"), new ServerConfiguration(), NullStatsLogger.INSTANCE);
    }

    private static Life life() {
        return new Life(new Nemesis(List.of(), null), "n0", 0);
    }
}
