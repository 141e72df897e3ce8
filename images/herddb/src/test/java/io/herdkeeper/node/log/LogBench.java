package io.herdkeeper.node.log;

import herddb.cluster.BookkeeperCommitLog;
import herddb.cluster.BookkeeperCommitLogManager;
import herddb.cluster.LedgersInfo;
import herddb.cluster.ZookeeperMetadataStorageManager;
import herddb.log.CommitLog.FollowerContext;
import herddb.log.LogEntry;
import herddb.log.LogEntryFactory;
import herddb.log.LogEntryType;
import herddb.log.LogSequenceNumber;
import herddb.model.Table;
import herddb.server.ServerConfiguration;
import herddb.utils.Bytes;
import io.herdkeeper.node.internals.HerdInternals;
import io.herdkeeper.node.log.StuckReplays.StuckReplay;
import io.herdkeeper.node.testing.BookKeeperForTests;
import java.lang.reflect.Field;
import java.lang.reflect.Proxy;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicBoolean;
import org.apache.bookkeeper.client.BKException.BKNoSuchLedgerExistsOnMetadataServerException;
import org.apache.bookkeeper.client.BookKeeper;
import org.apache.bookkeeper.client.BookKeeper.DigestType;
import org.apache.bookkeeper.client.LedgerHandle;
import org.apache.bookkeeper.client.LedgersWithOwnPasswords;
import org.apache.bookkeeper.client.api.LedgerMetadata;
import org.apache.bookkeeper.meta.LedgerManager;
import org.apache.bookkeeper.proto.BookieClient;
import org.apache.bookkeeper.proto.BookkeeperInternalCallbacks.WriteCallback;
import org.apache.bookkeeper.stats.NullStatsLogger;
import org.apache.bookkeeper.util.StringUtils;

/**
 * One tablespace's log on a real bookie, opened by as many nodes as a test wants, with this program's log or, for control,
 * with HerdDB's own.
 */
final class LogBench implements AutoCloseable {

    /** Whose log a node opens. */
    enum Program { OURS, PLAIN_HERDDB }

    private static final Table TABLE = Table.builder().tablespace("app").name("t").uuid("t").primaryKey("k")
            .column("k", herddb.model.ColumnTypes.STRING).build();

    private final ZookeeperMetadataStorageManager metadata;
    private final BookkeeperCommitLogManager manager;
    private final String uuid = UUID.randomUUID().toString().replace("-", "");

    LogBench(Program program) throws Exception {
        BookKeeperForTests servers = BookKeeperForTests.running();
        metadata = new ZookeeperMetadataStorageManager(servers.zooKeeperAddress(), 20_000, servers.newRoot());
        metadata.start();
        ServerConfiguration configuration = new ServerConfiguration()
                .set(ServerConfiguration.PROPERTY_BOOKKEEPER_LEDGERS_PATH, BookKeeperForTests.LEDGERS_PATH);
        manager = program == Program.OURS
                ? new NodeCommitLogManager(metadata, configuration, NullStatsLogger.INSTANCE)
                : new BookkeeperCommitLogManager(metadata, configuration, NullStatsLogger.INSTANCE);
        // HerdDB's own default overflows to 0, with which every row would get a ledger of its own.
        manager.setMaxLedgerSizeBytes(1 << 30);
        manager.start();
    }

    BookkeeperCommitLog open(String node) {
        return manager.createCommitLog(uuid, "app", node);
    }

    /** The same log by HerdDB's own program, as an earlier version of this one writes it. */
    BookkeeperCommitLog openPlain(String node) {
        return openPlain(uuid, "app", node);
    }

    /** Another tablespace's. */
    BookkeeperCommitLog openPlain(String tableSpaceUuid, String name, String node) {
        BookkeeperCommitLog log = new BookkeeperCommitLog(tableSpaceUuid, name, node, metadata, manager.getBookKeeper(), manager);
        log.setMaxLedgerSizeBytes(1 << 30);
        return log;
    }

    /** What is in the metadata of each of the log's ledgers. */
    List<LedgerMetadata> ledgers() throws Exception {
        List<LedgerMetadata> ledgers = new ArrayList<>();
        for (long ledger : listed()) {
            ledgers.add(manager.getBookKeeper().getLedgerManager().readLedgerMetadata(ledger).get().getValue());
        }
        return ledgers;
    }

    /** What the client of this log says to bookies, with the master keys that a test likes. */
    BookieClient bookies() throws Exception {
        Field field = BookKeeper.class.getDeclaredField("bookieClient");
        field.setAccessible(true);
        return (BookieClient) field.get(manager.getBookKeeper());
    }

    /** What a new leader does before it writes: fences and replays everything. Gives the rows that it replayed. */
    static List<String> fenceAndReplay(BookkeeperCommitLog log) {
        return fenceAndReplay(log, LogSequenceNumber.START_OF_TIME);
    }

    /** The same with a local checkpoint: what is after that is replayed. */
    static List<String> fenceAndReplay(BookkeeperCommitLog log, LogSequenceNumber checkpoint) {
        List<String> rows = new ArrayList<>();
        log.recovery(checkpoint, (position, entry) -> collect(rows, entry), true);
        return rows;
    }

    /** As a node boots that has no checkpoint: it reads without fencing first, and fences from where that ended. Gives all rows that it replayed. */
    static List<String> boot(BookkeeperCommitLog log) {
        List<String> rows = replay(log, LogSequenceNumber.START_OF_TIME);
        rows.addAll(fenceAndReplay(log, log.getLastSequenceNumber()));
        return rows;
    }

    /** What every node does first that boots: it replays what is behind its local checkpoint, and fences nothing. Gives the rows. */
    static List<String> replay(BookkeeperCommitLog log, LogSequenceNumber checkpoint) {
        List<String> rows = new ArrayList<>();
        log.recovery(checkpoint, (position, entry) -> collect(rows, entry), false);
        return rows;
    }

    /** The log that the manager knows for the tablespace. */
    BookkeeperCommitLog known() {
        return HerdInternals.log(manager, uuid);
    }

    /** A manager of logs beside this one, on a node of its own way to ZooKeeper. */
    BookkeeperCommitLog openThrough(ZookeeperMetadataStorageManager way) throws Exception {
        return new NodeCommitLog(new NodeCommitLog.LogIdentity(uuid, "app", "other"), way, (NodeCommitLogManager) manager);
    }

    ZookeeperMetadataStorageManager metadata() {
        return metadata;
    }

    String uuid() {
        return uuid;
    }

    NodeCommitLogManager manager() {
        return (NodeCommitLogManager) manager;
    }

    /** What the node tells of a log that it can't replay, or null. */
    StuckReplay stuck() {
        return manager().stuckReplays().of(uuid);
    }

    /** Has the list name these ledgers, whosever they are; no log writes it now. */
    void list(List<Long> ledgers) {
        LedgersInfo list = new LedgersInfo();
        list.setZkVersion(metadata.getActualLedgersList(uuid).getZkVersion());
        list.setFirstLedger(ledgers.isEmpty() ? -1 : ledgers.get(0));
        ledgers.forEach(list::addLedger);
        metadata.saveActualLedgersList(uuid, list);
    }

    /** The log's ledgers. */
    List<Long> listed() {
        return metadata.getActualLedgersList(uuid).getActiveLedgers();
    }

    /** Opens a ledger of the log, as a leader that is killed before it lists it. */
    long openUnlisted() throws Exception {
        LedgerHandle opened = manager.getBookKeeper().createLedger(1, 1, 1, DigestType.CRC32C, LedgersWithOwnPasswords.random(),
                Map.of("tablespaceuuid", uuid.getBytes(StandardCharsets.UTF_8)));
        opened.addEntry(LogEntryFactory.noop().serialize());
        return opened.getId();
    }

    boolean isClosed(long ledger) throws Exception {
        return manager.getBookKeeper().getLedgerManager().readLedgerMetadata(ledger).get().getValue().isClosed();
    }

    /** Makes a ledger's metadata something that nobody can read. */
    void spoilMetadata(long ledger) throws Exception {
        String path = BookKeeperForTests.LEDGERS_PATH + StringUtils.getHybridHierarchicalLedgerPath(ledger);
        metadata.getZooKeeper().setData(path, "spoilt".getBytes(StandardCharsets.UTF_8), -1);
    }

    /** Has the client see a ledger only once it has written to ZooKeeper: until then the member that it asks is behind. */
    void hideUntilAWrite(long ledger) throws Exception {
        BookKeeper client = manager.getBookKeeper();
        Field field = BookKeeper.class.getDeclaredField("ledgerManager");
        field.setAccessible(true);
        Object real = field.get(client);
        AtomicBoolean written = new AtomicBoolean();
        field.set(client, Proxy.newProxyInstance(LogBench.class.getClassLoader(), new Class<?>[]{LedgerManager.class}, (proxy, method, arguments) -> {
            if (method.getName().equals("readLedgerMetadata") && arguments[0].equals(ledger) && !written.get()) {
                return CompletableFuture.failedFuture(new BKNoSuchLedgerExistsOnMetadataServerException());
            }
            written.compareAndSet(false, method.getName().equals("removeLedgerMetadata"));
            return method.invoke(real, arguments);
        }));
    }

    /**
     * Has the client throw at the next entry once that is on its way to a bookie, as when Netty has no direct memory for the next bookie's
     * request. What it gives is counted down when the bookie has answered.
     */
    CountDownLatch runOutOfMemoryAtTheNextEntry() throws Exception {
        BookKeeper client = manager.getBookKeeper();
        Field field = BookKeeper.class.getDeclaredField("bookieClient");
        field.setAccessible(true);
        Object real = field.get(client);
        AtomicBoolean failed = new AtomicBoolean();
        CountDownLatch answered = new CountDownLatch(1);
        field.set(client, Proxy.newProxyInstance(LogBench.class.getClassLoader(), new Class<?>[]{BookieClient.class}, (proxy, method, arguments) -> {
            if (!method.getName().equals("addEntry") || !failed.compareAndSet(false, true)) {
                return method.invoke(real, arguments);
            }
            method.invoke(real, Arrays.stream(arguments).map(each -> each instanceof WriteCallback callback ? told(callback, answered) : each).toArray());
            throw new OutOfMemoryError("Cannot reserve direct buffer memory");
        }));
        return answered;
    }

    private static WriteCallback told(WriteCallback callback, CountDownLatch answered) {
        return (code, ledger, entry, bookie, context) -> {
            callback.writeComplete(code, ledger, entry, bookie, context);
            answered.countDown();
        };
    }

    static BookkeeperCommitLog lead(BookkeeperCommitLog log) {
        fenceAndReplay(log);
        log.startWriting(1);
        return log;
    }

    /** Writes a row and waits until it is acknowledged. */
    static LogSequenceNumber write(BookkeeperCommitLog leader, String row) {
        return leader.log(insert(row), true).getLogSequenceNumber();
    }

    static LogEntry insert(String row) {
        return LogEntryFactory.insert(TABLE, Bytes.from_string(row), Bytes.from_string(row), null);
    }

    private static void collect(List<String> rows, LogEntry entry) {
        if (entry.type == LogEntryType.INSERT) {
            rows.add(entry.key.to_string());
        }
    }

    /** A follower as HerdDB's TableSpaceManager runs it, but a round at a time. */
    static final class Follower implements AutoCloseable {

        private final BookkeeperCommitLog log;
        private final FollowerContext context;
        private final List<String> rows = new ArrayList<>();
        private LogSequenceNumber position = LogSequenceNumber.START_OF_TIME;

        Follower(BookkeeperCommitLog log) {
            this.log = log;
            this.context = log.startFollowing(position);
        }

        LogSequenceNumber round() {
            log.followTheLeader(position, (next, entry) -> {
                collect(rows, entry);
                position = next;
                return true;
            }, context);
            return position;
        }

        /** Rounds until {@code target} is applied, or none of many rounds brings anything. */
        void followTo(LogSequenceNumber target) {
            for (int idle = 0; idle < 100 && !position.equals(target);) {
                LogSequenceNumber before = position;
                idle = round().equals(before) ? idle + 1 : 0;
            }
        }

        LogSequenceNumber position() {
            return position;
        }

        List<String> rows() {
            return rows;
        }

        @Override
        public void close() throws Exception {
            context.close();
        }
    }

    @Override
    public void close() throws Exception {
        manager.close();
        metadata.close();
    }
}
