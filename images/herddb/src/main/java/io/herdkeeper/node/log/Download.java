package io.herdkeeper.node.log;

import herddb.backup.DumpedLogEntry;
import herddb.client.ClientConfiguration;
import herddb.client.ClientSideMetadataProvider;
import herddb.client.HDBClient;
import herddb.client.HDBConnection;
import herddb.core.DBManager;
import herddb.core.ReplicaFullTableDataDumpReceiver;
import herddb.core.TableSpaceManager;
import herddb.log.CommitLogListener;
import herddb.log.FullRecoveryNeededException;
import herddb.log.LogEntry;
import herddb.log.LogEntryFactory;
import herddb.log.LogEntryType;
import herddb.log.LogNotAvailableException;
import herddb.log.LogSequenceNumber;
import herddb.metadata.MetadataStorageManagerException;
import herddb.model.NodeMetadata;
import herddb.model.TableSpace;
import herddb.model.Transaction;
import herddb.network.ServerHostData;
import herddb.utils.Bytes;
import io.herdkeeper.node.disk.CheckpointFiles;
import io.herdkeeper.node.internals.HerdInternals;
import java.io.EOFException;
import java.io.UncheckedIOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicLong;
import java.util.logging.Level;
import java.util.logging.Logger;

/**
 * A leader's copy of a tablespace at one position of its log: the committed rows of all tables, the next keys of those with
 * auto-increment, and the open transactions.
 *
 * <p>HerdDB's own download omits these transactions. The log after the position has the rest of each, which can't be applied without its
 * beginning. So each transaction is sent as entries with its changes so far. They are applied before the log is, and change no committed
 * row: a COMMIT or ROLLBACK after the position decides on the whole transaction.
 *
 * <p>It omits the next keys, too: a copy would compute them from its rows, and give the key of a deleted row again. Here they are sent as
 * entries that change nothing, which another version ignores.
 */
final class Download extends ReplicaFullTableDataDumpReceiver {

    private static final Logger LOGGER = Logger.getLogger(Download.class.getName());
    private static final int ROWS_PER_MESSAGE = 10_000;
    private static final long LONGEST_HOURS = 1;

    private final List<LogEntry> open = new ArrayList<>();
    private final TableSpaceManager copy;

    private Download(TableSpaceManager copy) {
        super(copy);
        this.copy = copy;
    }

    /** Tells the next keys of a leader's tables, while nobody writes. */
    static void tellNextKeys(TableSpaceManager led, LogSequenceNumber position, CommitLogListener download) {
        HerdInternals.nextKeys(led).forEach((table, next) -> download.logEntry(position, new LogEntry(System.currentTimeMillis(),
                LogEntryType.TABLE_CONSISTENCY_CHECK, 0, table, null, Bytes.from_long(next.get()))));
    }

    /**
     * Empties a copy and fills it with what its leader sends. Its files stay aside until all has come ({@link CheckpointFiles#setAside}).
     *
     * @param copy   null when somebody else reads the log
     * @param reason why the log is not enough; thrown when nobody else leads
     * @throws LogNotAvailableException when the leader does not send all of it
     */
    static Download into(TableSpaceManager copy, FullRecoveryNeededException reason) {
        NodeMetadata leader = copy == null ? null : leaderOf(copy);
        if (leader == null || leader.nodeId.equals(copy.getDbmanager().getNodeId())) {
            throw reason;
        }
        LOGGER.log(Level.WARNING, "tablespace {0} is downloaded from {1}: {2}",
                new Object[]{copy.getTableSpaceName(), leader.nodeId, reason.getMessage()});
        HerdInternals.clear(copy);
        DBManager node = copy.getDbmanager();
        ((CheckpointFiles) node.getDataStorageManager()).setAside(copy.getTableSpaceUUID());
        Download download = new Download(copy);
        try (HDBClient client = new HDBClient(login(node))) {
            client.setClientSideMetadataProvider(only(leader));
            try (HDBConnection connection = client.openConnection()) {
                connection.dumpTableSpace(copy.getTableSpaceName(), download, ROWS_PER_MESSAGE, false);
                download.await(connection, leader.nodeId, copy);
            }
        } catch (InterruptedException error) {
            Thread.currentThread().interrupt();
            throw new LogNotAvailableException(error);
        } catch (Exception error) {
            throw new LogNotAvailableException("tablespace " + copy.getTableSpaceName() + " can't be downloaded from its leader "
                    + leader.nodeId, error);
        }
        HerdInternals.position(copy, download.getLogSequenceNumber());
        return download;
    }

    /**
     * Waits for the end. A leader that stops meanwhile, or is replaced, does not say so; and while this node waits, it boots and stops
     * no other tablespace.
     */
    private void await(HDBConnection connection, String leader, TableSpaceManager copy)
            throws ExecutionException, InterruptedException, TimeoutException {
        long begun = System.nanoTime();
        while (true) {
            try {
                getLatch().get(1, TimeUnit.SECONDS);
                return;
            } catch (TimeoutException goesOn) {
                if (isReplaced(leader, copy)) {
                    throw new LogNotAvailableException("another node leads it by now");
                }
                if (!HerdInternals.isConnected(connection)) {
                    throw new LogNotAvailableException("the connection has ended");
                }
                if (System.nanoTime() - begun > TimeUnit.HOURS.toNanos(LONGEST_HOURS)) {
                    throw goesOn;
                }
            }
        }
    }

    /** False also when ZooKeeper can't be read now: a long download is not given up for that. */
    private static boolean isReplaced(String leader, TableSpaceManager copy) {
        try {
            TableSpace record = copy.getMetadataStorageManager().describeTableSpace(copy.getTableSpaceName());
            return record == null || !record.leaderId.equals(leader);
        } catch (MetadataStorageManagerException unknown) {
            return false;
        }
    }

    /** What the transactions have done that were open, in an order in which it can be applied. */
    List<LogEntry> open() {
        return open;
    }

    /** Comes behind the rows of all tables. */
    @Override
    public void receiveTransactionLogChunk(List<DumpedLogEntry> nextKeys) {
        Map<String, AtomicLong> counters = HerdInternals.nextKeys(copy);
        for (DumpedLogEntry told : nextKeys) {
            try {
                LogEntry entry = LogEntry.deserialize(told.entryData);
                AtomicLong counter = counters.get(entry.tableName);
                if (entry.type == LogEntryType.TABLE_CONSISTENCY_CHECK && counter != null) {
                    counter.accumulateAndGet(entry.value.to_long(), Math::max);
                }
            } catch (EOFException error) {
                throw new UncheckedIOException("the next key of a table came in part", error);
            }
        }
    }

    @Override
    public void receiveTransactionsAtDump(List<Transaction> transactions) {
        transactions.forEach(this::tell);
    }

    /** No row is in two of a transaction's maps. Tables that it drops come first: one that it has made may have the same name. */
    private void tell(Transaction transaction) {
        open.add(LogEntryFactory.beginTransaction(transaction.transactionId));
        if (transaction.droppedIndexes != null) {
            transaction.droppedIndexes.forEach(index -> open.add(LogEntryFactory.dropIndex(index, transaction)));
        }
        if (transaction.droppedTables != null) {
            transaction.droppedTables.forEach(table -> open.add(LogEntryFactory.dropTable(table, transaction)));
        }
        if (transaction.newTables != null) {
            transaction.newTables.values().forEach(table -> open.add(LogEntryFactory.createTable(table, transaction)));
        }
        if (transaction.newIndexes != null) {
            transaction.newIndexes.values().forEach(index -> open.add(LogEntryFactory.createIndex(index, transaction)));
        }
        transaction.newRecords.forEach((table, rows) ->
                rows.values().forEach(row -> tell(transaction, LogEntryType.INSERT, table, row.key, row.value)));
        transaction.changedRecords.forEach((table, rows) ->
                rows.values().forEach(row -> tell(transaction, LogEntryType.UPDATE, table, row.key, row.value)));
        transaction.deletedRecords.forEach((table, keys) ->
                keys.forEach(key -> tell(transaction, LogEntryType.DELETE, table, key, null)));
    }

    private void tell(Transaction transaction, short type, String table, Bytes key, Bytes value) {
        if (!transaction.isTableDropped(table)) {
            open.add(new LogEntry(System.currentTimeMillis(), type, transaction.transactionId, table, key, value));
        }
    }

    private static NodeMetadata leaderOf(TableSpaceManager copy) {
        try {
            String leader = copy.getMetadataStorageManager().describeTableSpace(copy.getTableSpaceName()).leaderId;
            return copy.getMetadataStorageManager().listNodes().stream().filter(node -> node.nodeId.equals(leader)).findAny().orElse(null);
        } catch (MetadataStorageManagerException error) {
            throw new LogNotAvailableException("the leader of tablespace " + copy.getTableSpaceName() + " can't be read", error);
        }
    }

    private static ClientConfiguration login(DBManager node) {
        return new ClientConfiguration(node.getTmpDirectory())
                .set(ClientConfiguration.PROPERTY_CLIENT_USERNAME, node.getServerToServerUsername())
                .set(ClientConfiguration.PROPERTY_CLIENT_PASSWORD, node.getServerToServerPassword())
                .set(ClientConfiguration.PROPERTY_CLIENT_CONNECT_LOCALVM_SERVER, false);
    }

    private static ClientSideMetadataProvider only(NodeMetadata leader) {
        return new ClientSideMetadataProvider() {
            @Override
            public String getTableSpaceLeader(String tablespace) {
                return leader.nodeId;
            }

            @Override
            public ServerHostData getServerHostData(String node) {
                return new ServerHostData(leader.host, leader.port, "?", leader.ssl, Map.of());
            }
        };
    }
}
