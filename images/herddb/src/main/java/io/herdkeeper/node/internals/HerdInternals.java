package io.herdkeeper.node.internals;

import herddb.client.ClientSideConnectionPeer;
import herddb.client.HDBConnection;
import herddb.cluster.BookkeeperCommitLog;
import herddb.cluster.BookkeeperCommitLog.CommitFileWriter;
import herddb.cluster.BookkeeperCommitLogManager;
import herddb.core.AbstractIndexManager;
import herddb.core.AbstractTableManager;
import herddb.core.DBManager;
import herddb.core.MemoryManager;
import herddb.core.PageReplacementPolicy;
import herddb.core.RunningStatementsStats;
import herddb.core.TableManager;
import herddb.core.TableSpaceManager;
import herddb.core.stats.ConnectionsInfoProvider;
import herddb.file.FileDataStorageManager;
import herddb.index.MemoryHashIndexManager;
import herddb.index.brin.MergedBlocks;
import herddb.log.CommitLog.FollowerContext;
import herddb.log.CommitLogManager;
import herddb.log.LogEntry;
import herddb.log.LogSequenceNumber;
import herddb.metadata.MetadataStorageManager;
import herddb.model.ColumnTypes;
import herddb.model.Table;
import herddb.network.Channel;
import herddb.server.Server;
import herddb.server.ServerSideConnectionPeer;
import herddb.server.ServerSidePreparedStatementCache;
import herddb.sql.AbstractSQLPlanner;
import herddb.sql.CalcitePlanner;
import herddb.storage.DataStorageManagerException;
import herddb.storage.FullTableScanConsumer;
import herddb.utils.Bytes;
import java.lang.reflect.Field;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.nio.file.Path;
import java.security.CodeSource;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReference;
import java.util.concurrent.locks.ReentrantReadWriteLock;
import java.util.concurrent.locks.StampedLock;
import java.util.function.BiConsumer;
import java.util.function.BiFunction;
import java.util.logging.Level;
import java.util.logging.Logger;
import java.util.stream.Stream;
import org.apache.bookkeeper.client.api.ReadHandle;
import org.apache.calcite.schema.SchemaPlus;
import org.apache.calcite.sql.parser.SqlParser;

/**
 * Every private field, and the two private methods, of HerdDB that this program touches, in one place.
 *
 * <p>They belong to HerdDB {@value #HERDDB_VERSION}. {@link #verify} finds them all before the server starts, so that
 * another version fails at once and by name, never in the middle of a leader change.
 */
public final class HerdInternals {

    private static final Logger LOGGER = Logger.getLogger(HerdInternals.class.getName());

    /** The version whose fields these are; the pom pins the same one. */
    public static final String HERDDB_VERSION = "0.29.0";

    private static final Field READER =
            field("herddb.cluster.BookkeeperCommitLog$BKFollowerContext", "currentLedger", ReadHandle.class);
    private static final Field LEDGER_TO_TAIL =
            field("herddb.cluster.BookkeeperCommitLog$BKFollowerContext", "ledgerToTail", long.class);
    private static final Field ACTIVE_LOGS = field(BookkeeperCommitLogManager.class, "activeLogs", ConcurrentHashMap.class);
    private static final Field RECOVERING_TABLESPACE =
            field("herddb.core.TableSpaceManager$ApplyEntryOnRecovery", "this$0", TableSpaceManager.class);
    private static final Field LAST_TRANSACTION_ID = field(TableSpaceManager.class, "newTransactionId", AtomicLong.class);
    private static final Field TABLES = field(TableSpaceManager.class, "tables", ConcurrentHashMap.class);
    private static final Field INDEXES = field(TableSpaceManager.class, "indexes", ConcurrentHashMap.class);
    private static final Field INDEXES_BY_TABLE = field(TableSpaceManager.class, "indexesByTable", ConcurrentHashMap.class);
    private static final Field CHILDREN = field(TableManager.class, "childrenTables", Table[].class);
    /** HerdDB's statements for foreign keys that lead to a table, by the names of child and key, and for those of a table, by their names. */
    private static final List<Field> REFERENCE_QUERIES = List.of(
            field(TableManager.class, "parentForeignKeyQueries", ConcurrentHashMap.class),
            field(TableManager.class, "childForeignKeyQueries", ConcurrentHashMap.class));
    private static final Field NEXT_KEY = field(TableManager.class, "nextPrimaryKeyValue", AtomicLong.class);
    private static final Method RELEASE_ROW = method(TableManager.class.getName(), "releasePendingLogEntryWorkLocks",
            TableManager.class.getName() + "$PendingLogEntryWork");
    private static final Method SEND_ROWS = method("herddb.core.SingleTableDumper", "sendBatch");
    private static final Field TRANSACTIONS = field(TableSpaceManager.class, "transactions", ConcurrentHashMap.class);
    private static final Field POSITION =
            field(TableSpaceManager.class, "actualLogSequenceNumber", LogSequenceNumber.class);
    private static final Field STATEMENT_LOCK = field(TableSpaceManager.class, "generalLock", StampedLock.class);
    private static final Field ACTIVATOR = field(DBManager.class, "activator", Thread.class);
    private static final Field GENERAL_LOCK = field(DBManager.class, "generalLock", ReentrantReadWriteLock.class);
    private static final Field DATA_FOLDER = field(FileDataStorageManager.class, "baseDirectory", Path.class);
    private static final Field PENDING_ADDS = field(CommitFileWriter.class, "pendingAdds", AtomicLong.class);
    private static final Field WRITE_ERROR = field(CommitFileWriter.class, "writeError", AtomicReference.class);
    private static final Field CONNECTIONS = field(Server.class, "connections", Map.class);
    private static final Field CHANNEL = field(ServerSideConnectionPeer.class, "channel", Channel.class);
    private static final Field USERNAME = field(ServerSideConnectionPeer.class, "username", String.class);
    private static final Field METADATA = field(Server.class, "metadataStorageManager", MetadataStorageManager.class);
    private static final Field MANAGER = field(Server.class, "manager", DBManager.class);
    /** What a server tells its database behind its constructor, and the running statements, whose gauge has been registered. */
    private static final List<Field> SETTINGS = List.of(
            field(DBManager.class, "clearAtBoot", boolean.class),
            field(DBManager.class, "haltOnTableSpaceBootError", boolean.class),
            field(DBManager.class, "connectionsInfoProvider", ConnectionsInfoProvider.class),
            field(DBManager.class, "serverToServerUsername", String.class),
            field(DBManager.class, "serverToServerPassword", String.class),
            field(DBManager.class, "checkpointPeriod", long.class),
            field(DBManager.class, "abandonedTransactionsTimeout", long.class),
            field(DBManager.class, "errorIfNotLeader", boolean.class),
            field(DBManager.class, "runningStatements", RunningStatementsStats.class));
    private static final Field LOG_FAILED = field(BookkeeperCommitLog.class, "failed", boolean.class);
    private static final Field CALLBACKS = field(DBManager.class, "callbacksExecutor", ExecutorService.class);
    private static final Field PLANNER = field(DBManager.class, "planner", AbstractSQLPlanner.class);
    private static final Field SYNTAX = field(CalcitePlanner.class, "SQL_PARSER_CONFIG", SqlParser.Config.class);
    private static final Field SCHEMA = field(CalcitePlanner.class, "rootSchema", SchemaPlus.class);
    private static final Field LOGS = field(DBManager.class, "commitLogManager", CommitLogManager.class);
    private static final Field STATEMENT_NUMBER = field(ServerSidePreparedStatementCache.class, "idGenerator", AtomicLong.class);

    private static final Field INDEX_PAGES =
            field(MemoryManager.class, "indexPageReplacementPolicy", PageReplacementPolicy.class);
    private static final Field TABLE_PAGES =
            field(MemoryManager.class, "dataPageReplacementPolicy", PageReplacementPolicy.class);
    private static final Field CLOSED = field(TableManager.class, "closed", boolean.class);
    private static final Field HASHED = field(MemoryHashIndexManager.class, "data", ConcurrentHashMap.class);

    private static final Field ROUTES = field(HDBConnection.class, "routes", Map.class);

    private HerdInternals() {
    }

    /**
     * Finds every field by name and type, and that this program's classes were loaded in place of HerdDB's.
     *
     * @param replacing one of this program's classes whose name is also one of HerdDB's
     * @throws ExceptionInInitializerError when HerdDB on the class path is not the version that this program knows
     */
    public static void verify(Class<?> replacing) {
        // Loading this class has found the fields already; the call only says when that happens.
        CodeSource own = HerdInternals.class.getProtectionDomain().getCodeSource();
        CodeSource loaded = replacing.getProtectionDomain().getCodeSource();
        if (!own.getLocation().equals(loaded.getLocation())) {
            throw new IllegalStateException("HerdDB's own " + replacing.getName() + " was loaded, from " + loaded.getLocation()
                    + ", which gives wrong results: put " + own.getLocation() + " before it on the class path");
        }
    }

    /** The reader that a follower tails with, or null when it has none yet. */
    public static ReadHandle reader(FollowerContext context) {
        return (ReadHandle) get(READER, context);
    }

    public static void reader(FollowerContext context, ReadHandle reader) {
        set(READER, context, reader);
    }

    /** The ledger that a follower wants to tail next, or -1 when it starts from the first one of all. */
    public static long ledgerToTail(FollowerContext context) {
        return (long) get(LEDGER_TO_TAIL, context);
    }

    public static void ledgerToTail(FollowerContext context, long ledgerId) {
        set(LEDGER_TO_TAIL, context, ledgerId);
    }

    /** Makes a log known to its manager, which pushes the LAC of the logs that it knows while they are idle. */
    @SuppressWarnings("unchecked")
    public static void register(BookkeeperCommitLogManager manager, String tableSpaceUuid, BookkeeperCommitLog log) {
        ((Map<String, BookkeeperCommitLog>) get(ACTIVE_LOGS, manager)).put(tableSpaceUuid, log);
    }

    /** The log of a tablespace that runs on this node, or null. */
    @SuppressWarnings("unchecked")
    public static BookkeeperCommitLog log(BookkeeperCommitLogManager manager, String tableSpaceUuid) {
        return ((Map<String, BookkeeperCommitLog>) get(ACTIVE_LOGS, manager)).get(tableSpaceUuid);
    }

    /** The counter of a tablespace; its next transaction gets the counter's value plus one. */
    public static AtomicLong lastTransactionId(TableSpaceManager tablespace) {
        return (AtomicLong) get(LAST_TRANSACTION_ID, tablespace);
    }

    /** What each statement that changes a tablespace holds for reading; a checkpoint and a part of a full check hold it for writing. */
    public static StampedLock statementLock(TableSpaceManager tablespace) {
        return (StampedLock) get(STATEMENT_LOCK, tablespace);
    }

    /** The thread that boots, stops and checkpoints tablespaces; nothing replaces it once it died. */
    public static Thread activator(DBManager manager) {
        return (Thread) get(ACTIVATOR, manager);
    }

    /** What the activator holds, for writing, while it boots and stops tablespaces. */
    public static ReentrantReadWriteLock generalLock(DBManager manager) {
        return (ReentrantReadWriteLock) get(GENERAL_LOCK, manager);
    }

    /** The folder that has a folder {@code <uuid>.tablespace} for each tablespace of which the node has, or had, a copy. */
    public static Path dataFolder(FileDataStorageManager storage) {
        return (Path) get(DATA_FOLDER, storage);
    }

    /** How many entries a ledger's writer has sent and has not been answered for. */
    public static long pendingAdds(CommitFileWriter writer) {
        return ((AtomicLong) get(PENDING_ADDS, writer)).get();
    }

    /** What the bookies' client said of the last entry that it could not write, or null. */
    public static Throwable writeError(CommitFileWriter writer) {
        return (Throwable) ((AtomicReference<?>) get(WRITE_ERROR, writer)).get();
    }

    /** Puts another way to the metadata in place of a server's own, which no method of it can be overridden to make; before it starts. */
    public static void metadata(Server server, MetadataStorageManager metadata) {
        set(METADATA, server, metadata);
    }

    /** Puts another database in place of a server's own, with the settings of that; before it starts. */
    public static void manager(Server server, DBManager manager) {
        SETTINGS.forEach(setting -> set(setting, manager, get(setting, server.getManager())));
        set(MANAGER, server, manager);
    }

    /** Has a leader's log refuse every further entry; the activator stops its tablespace then, and boots it again. */
    public static void fail(BookkeeperCommitLog log) {
        set(LOG_FAILED, log, true);
    }

    /** The tablespace that recovers through {@code consumer}, or null when that is not a tablespace's own (a tool or a test reads the log). */
    public static TableSpaceManager recovering(BiConsumer<LogSequenceNumber, LogEntry> consumer) {
        return RECOVERING_TABLESPACE.getDeclaringClass().isInstance(consumer)
                ? (TableSpaceManager) get(RECOVERING_TABLESPACE, consumer) : null;
    }

    /** Drops all tables that a recovering copy has, with their rows and indexes, and all its transactions; its files stay. */
    @SuppressWarnings("unchecked")
    public static void clear(TableSpaceManager copy) {
        Map<String, AbstractTableManager> tables = (Map<String, AbstractTableManager>) get(TABLES, copy);
        tables.values().stream().filter(table -> !table.isSystemTable()).forEach(table -> {
            table.dropTableData();
            table.close();
        });
        tables.values().removeIf(table -> !table.isSystemTable());
        Map<String, AbstractIndexManager> indexes = (Map<String, AbstractIndexManager>) get(INDEXES, copy);
        indexes.values().forEach(index -> {
            index.dropIndexData();
            index.close();
        });
        indexes.clear();
        ((Map<?, ?>) get(INDEXES_BY_TABLE, copy)).clear();
        ((Map<?, ?>) get(TRANSACTIONS, copy)).clear();
    }

    /** Hides indexes, by their names, from entries that are applied from now on. Rows that are being applied still use the earlier map. */
    @SuppressWarnings("unchecked")
    public static void forgetIndexes(TableSpaceManager tablespace, Set<String> names) {
        ((Map<String, Map<String, AbstractIndexManager>>) get(INDEXES_BY_TABLE, tablespace)).replaceAll((table, indexes) -> {
            Map<String, AbstractIndexManager> left = new HashMap<>(indexes);
            left.keySet().removeAll(names);
            return left;
        });
    }

    /** Releases the locks that a statement outside of a transaction has for a row that it won't change; null for a table that is gone. */
    public static void letGo(AbstractTableManager table, Object row) {
        if (table == null) {
            return;
        }
        try {
            RELEASE_ROW.invoke(table, row);
        } catch (IllegalAccessException impossible) {
            throw new IllegalStateException(RELEASE_ROW + " was made accessible, yet is not", impossible);
        } catch (InvocationTargetException error) {
            LOGGER.log(Level.WARNING, "a lock of table " + table.getTable().name + " could not be released", error.getCause());
        }
    }

    /**
     * Has each table know, of the tables that refer to it, only the foreign keys that lead to it. HerdDB follows all that such a table has: a
     * DELETE would delete the children of another table's row, too, if that one's key has the same value.
     *
     * <p>Forgets the statements of keys, of which one may have been made anew under its name.
     *
     * @param gone the names of tables that nobody uses any more, and that are about to be taken away
     */
    public static synchronized void renewReferences(TableSpaceManager tablespace, Set<String> gone) {
        for (Table parent : tablespace.getAllTablesForPlanner()) {
            if (tablespace.getTableManager(parent.name) instanceof TableManager manager) {
                Table[] children = tablespace.collectChildrenTables(parent);
                Table[] left = children == null ? new Table[0] : Arrays.stream(children).filter(child -> !gone.contains(child.name))
                        .map(child -> referringTo(parent, child)).toArray(Table[]::new);
                set(CHILDREN, manager, left.length == 0 ? null : left);
                REFERENCE_QUERIES.forEach(queries -> ((Map<?, ?>) get(queries, manager)).clear());
            }
        }
    }

    private static Table referringTo(Table parent, Table child) {
        Table.Builder referring = Table.builder().uuid(child.uuid).name(child.name).tablespace(child.tablespace);
        Arrays.stream(child.columns).forEach(column -> referring.column(column.name, column.type, column.serialPosition, column.defaultValue));
        Arrays.stream(child.primaryKey).forEach(referring::primaryKey);
        Arrays.stream(child.foreignKeys).filter(key -> key.parentTableId.equals(parent.uuid)).forEach(referring::foreingKey);
        return referring.build();
    }

    /** The counters of the next keys, by the names of the tables with auto-increment. */
    @SuppressWarnings("unchecked")
    public static Map<String, AtomicLong> nextKeys(TableSpaceManager tablespace) {
        Map<String, AtomicLong> counters = new HashMap<>();
        ((Map<String, AbstractTableManager>) get(TABLES, tablespace)).forEach((name, table) -> {
            if (table.getTable().auto_increment) {
                counters.put(name, (AtomicLong) get(NEXT_KEY, table));
            }
        });
        return counters;
    }

    /** Has a table that gives keys give none up to this one. */
    @SuppressWarnings("unchecked")
    public static void keyWasGiven(TableSpaceManager tablespace, String name, Bytes key) {
        AbstractTableManager table = ((Map<String, AbstractTableManager>) get(TABLES, tablespace)).get(name);
        if (table == null || !table.getTable().auto_increment || table.getTable().primaryKey.length > 1) {
            return;
        }
        int type = table.getTable().getColumn(table.getTable().primaryKey[0]).type;
        boolean whole = ColumnTypes.sameRawDataType(type, ColumnTypes.INTEGER);
        if (whole || ColumnTypes.sameRawDataType(type, ColumnTypes.LONG)) {
            ((AtomicLong) get(NEXT_KEY, table)).accumulateAndGet((whole ? key.to_int() : key.to_long()) + 1L, Math::max);
        }
    }

    /**
     * Sends the rows of a table that were read for who downloads it, and are not sent yet.
     *
     * @param download what reads them ({@code SingleTableDumper})
     */
    public static void sendRows(FullTableScanConsumer download) {
        try {
            SEND_ROWS.invoke(download);
        } catch (IllegalAccessException impossible) {
            throw new IllegalStateException(SEND_ROWS + " was made accessible, yet is not", impossible);
        } catch (InvocationTargetException error) {
            throw new DataStorageManagerException(error.getCause());
        }
    }

    /** Says where a recovering copy is in the log, from where it follows when no entry comes behind. */
    public static void position(TableSpaceManager copy, LogSequenceNumber position) {
        set(POSITION, copy, position);
    }

    /** Puts other threads in place of those that apply what is logged, and go on with statements behind it; before the database starts. */
    public static void callbacks(DBManager manager, ExecutorService threads) {
        manager.getCallbacksExecutor().shutdown();
        set(CALLBACKS, manager, threads);
    }

    /**
     * Has the memory for indexes mend what checkpoints do to them ({@link MergedBlocks}), and that for tables keep none of a closed one
     * ({@link TablePages}); before a tablespace boots.
     */
    public static MemoryManager mend(MemoryManager memory) {
        PageReplacementPolicy pages = memory.getIndexPageReplacementPolicy();
        if (!(pages instanceof MergedBlocks)) {
            set(INDEX_PAGES, memory, new MergedBlocks(pages));
            set(TABLE_PAGES, memory, new TablePages(memory.getDataPageReplacementPolicy(), table -> (boolean) get(CLOSED, table)));
        }
        return memory;
    }

    /**
     * Has the hash indexes of a tablespace keep the list of a value's rows as it is for who reads it; while nobody uses them. HerdDB takes a row
     * out of the list itself: a query that goes through it fails, and a change that does ends the leader's log.
     */
    @SuppressWarnings("unchecked")
    public static void keepLists(TableSpaceManager tablespace) {
        ((Map<String, AbstractIndexManager>) get(INDEXES, tablespace)).values().forEach(index -> {
            if (index instanceof MemoryHashIndexManager && !(get(HASHED, index) instanceof CopiedLists)) {
                set(HASHED, index, new CopiedLists((Map<Bytes, List<Bytes>>) get(HASHED, index)));
            }
        });
    }

    /** The rows by their values. A list is copied, and then changed. */
    private static final class CopiedLists extends ConcurrentHashMap<Bytes, List<Bytes>> {

        private static final long serialVersionUID = 1L;

        CopiedLists(Map<Bytes, List<Bytes>> rows) {
            super(rows);
        }

        @Override
        public List<Bytes> merge(Bytes value, List<Bytes> rows, BiFunction<? super List<Bytes>, ? super List<Bytes>, ? extends List<Bytes>> change) {
            return super.merge(value, rows, (present, others) -> change.apply(new ArrayList<>(present), others));
        }
    }

    /** Has the numbers of prepared statements begin behind one; before the database starts. */
    public static void numberStatementsFrom(DBManager manager, long number) {
        ((AtomicLong) get(STATEMENT_NUMBER, manager.getPreparedStatementsCache())).set(number);
    }

    /** Puts another planner in place of a database's own. */
    public static void planner(DBManager manager, AbstractSQLPlanner planner) {
        set(PLANNER, manager, planner);
    }

    /** How HerdDB's planner reads queries and changes of rows. */
    public static SqlParser.Config syntax() {
        return (SqlParser.Config) get(SYNTAX, null);
    }

    /** A planner makes its schema, the tables of all tablespaces, anew when it plans next. */
    public static void forgetSchema(AbstractSQLPlanner planner) {
        set(SCHEMA, planner, null);
    }

    /** What makes the logs of a node's tablespaces. */
    public static CommitLogManager logs(DBManager manager) {
        return (CommitLogManager) get(LOGS, manager);
    }

    /** The open connections of clients and of other nodes, by their numbers. */
    @SuppressWarnings("unchecked")
    public static Map<Long, ServerSideConnectionPeer> connections(Server server) {
        return (Map<Long, ServerSideConnectionPeer>) get(CONNECTIONS, server);
    }

    /** Whom a connection has logged in as; empty before it has. */
    public static String username(ServerSideConnectionPeer connection) {
        return (String) get(USERNAME, connection);
    }

    /** What closes a connection. */
    public static Channel channel(ServerSideConnectionPeer connection) {
        return (Channel) get(CHANNEL, connection);
    }

    /** Whether any of a client's connections to its servers is open; false before it has asked for anything. */
    @SuppressWarnings("unchecked")
    public static boolean isConnected(HDBConnection connection) {
        return ((Map<String, ClientSideConnectionPeer[]>) get(ROUTES, connection)).values().stream()
                .flatMap(Stream::of).anyMatch(peer -> peer.getChannel() != null);
    }

    private static Method method(String className, String name, String... parameters) {
        try {
            Class<?>[] types = new Class<?>[parameters.length];
            for (int i = 0; i < types.length; i++) {
                types[i] = named(parameters[i]);
            }
            Method method = named(className).getDeclaredMethod(name, types);
            method.setAccessible(true);
            return method;
        } catch (ReflectiveOperationException | RuntimeException error) {
            throw new IllegalStateException("this node program needs the method " + name + " of " + className + ", as HerdDB "
                    + HERDDB_VERSION + " has it: run it with that version of herddb-core", error);
        }
    }

    private static Field field(Class<?> owner, String name, Class<?> type) {
        return field(owner.getName(), name, type);
    }

    private static Field field(String className, String name, Class<?> type) {
        try {
            Field field = named(className).getDeclaredField(name);
            if (field.getType() != type) {
                throw new IllegalStateException("its type is " + field.getType().getName() + ", not " + type.getName());
            }
            field.setAccessible(true);
            return field;
        } catch (ReflectiveOperationException | RuntimeException error) {
            throw new IllegalStateException("this node program needs the field " + name + " of " + className
                    + ", as HerdDB " + HERDDB_VERSION + " has it: run it with that version of herddb-core", error);
        }
    }

    /** Not initialized: Calcite reads its settings then, which NodeServer makes. */
    private static Class<?> named(String className) throws ClassNotFoundException {
        return Class.forName(className, false, HerdInternals.class.getClassLoader());
    }

    private static Object get(Field field, Object owner) {
        try {
            return field.get(owner);
        } catch (IllegalAccessException impossible) {
            throw new IllegalStateException(field + " was made accessible, yet is not", impossible);
        }
    }

    private static void set(Field field, Object owner, Object value) {
        try {
            field.set(owner, value);
        } catch (IllegalAccessException impossible) {
            throw new IllegalStateException(field + " was made accessible, yet is not", impossible);
        }
    }
}
