package io.herdkeeper.node.log;

import herddb.codec.RecordSerializer;
import herddb.core.AbstractIndexManager;
import herddb.core.AbstractTableManager;
import herddb.core.TableSpaceManager;
import herddb.log.LogEntry;
import herddb.log.LogEntryType;
import herddb.model.Record;
import herddb.model.Table;
import herddb.model.Transaction;
import herddb.model.UniqueIndexContraintViolationException;
import herddb.utils.Bytes;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/**
 * The values of unique indexes that each open transaction has given to its rows. HerdDB compares a row with committed ones only, so it
 * would give one value to two rows of a transaction.
 *
 * <p>Of each value the last row to get it is known. Whether that row still has it is asked of the transaction: it may have been changed or
 * deleted since, or its statement was refused. A row of a statement under way is not in the transaction yet, and has its value.
 */
final class UniqueValues {

    private static final Runnable NOTHING = () -> { };

    private final Map<Long, Map<AbstractIndexManager, Map<Bytes, Taker>>> ofTransactions = new ConcurrentHashMap<>();

    /** The row that was the last one to get a value. */
    private static final class Taker {

        private final Bytes key;
        private volatile boolean underWay;

        Taker(Bytes key, boolean underWay) {
            this.key = key;
            this.underWay = underWay;
        }
    }

    /**
     * Gives a row of a transaction its values, before it is logged. HerdDB has locked them for the transaction.
     *
     * @return to be called once the row is in its transaction, or never will be
     * @throws UniqueIndexContraintViolationException when another row of the transaction has one of them
     */
    Runnable take(LogEntry row, TableSpaceManager tablespace) {
        boolean valued = row.type == LogEntryType.INSERT || row.type == LogEntryType.UPDATE;
        Transaction open = valued && tablespace != null ? tablespace.getTransaction(row.transactionId) : null;
        AbstractTableManager table = open == null ? null : tablespace.getTableManager(row.tableName);
        Map<String, AbstractIndexManager> indexes = table == null ? null : tablespace.getIndexesOnTable(row.tableName);
        if (indexes == null) {
            return NOTHING;
        }
        List<AbstractIndexManager> unique = indexes.values().stream().filter(AbstractIndexManager::isUnique).toList();
        return unique.isEmpty() ? NOTHING : take(new Record(row.key, row.value), unique, table.getTable(), open);
    }

    private Runnable take(Record row, List<AbstractIndexManager> indexes, Table table, Transaction open) {
        Taker taker = new Taker(row.key, true);
        synchronized (open) {
            for (AbstractIndexManager index : indexes) {
                Map<Bytes, Taker> takers = takers(index, table, open);
                Bytes value = value(row, index, table);
                if (value == null) {
                    continue;
                }
                Bytes other = holder(takers.get(value), value, index, table, open);
                // Rows that already were equal when the index was made may stay so: HerdDB refuses a committed value to others.
                if (other != null && !other.equals(row.key) && !index.valueAlreadyMapped(value, null)) {
                    taker.underWay = false; // it may have got a value of another index
                    throw new UniqueIndexContraintViolationException(index.getIndexName(), value, "another row of transaction "
                            + open.transactionId + " has this value in UNIQUE index " + index.getIndexName() + " of table " + table.name);
                }
                takers.put(value, taker);
            }
        }
        return () -> taker.underWay = false;
    }

    /** Whether a row that the transaction has made or changed has the value. */
    boolean isTaken(Bytes value, AbstractIndexManager index, Table table, Transaction open) {
        synchronized (open) {
            return holder(takers(index, table, open).get(value), value, index, table, open) != null;
        }
    }

    /** Forgets the transactions that have ended. */
    void forgetEnded(TableSpaceManager tablespace) {
        ofTransactions.keySet().removeIf(transaction -> tablespace.getTransaction(transaction) == null);
    }

    /** With the rows that the transaction has already: it may have made the index after them. */
    private Map<Bytes, Taker> takers(AbstractIndexManager index, Table table, Transaction open) {
        return ofTransactions.computeIfAbsent(open.transactionId, begun -> new HashMap<>()).computeIfAbsent(index, first -> {
            Map<Bytes, Taker> takers = new HashMap<>();
            for (Map<String, Map<Bytes, Record>> rows : List.of(open.newRecords, open.changedRecords)) {
                for (Record row : rows.getOrDefault(table.name, Map.of()).values()) {
                    takers.put(value(row, index, table), new Taker(row.key, false));
                }
            }
            return takers;
        });
    }

    /** The key of the row that got the value last, if it still has it; else null. */
    private static Bytes holder(Taker last, Bytes value, AbstractIndexManager index, Table table, Transaction open) {
        return last != null && (last.underWay || value.equals(value(inTransaction(open, table, last.key), index, table))) ? last.key : null;
    }

    /** A row as its transaction has made or changed it; null when it has not, or has deleted it. */
    private static Record inTransaction(Transaction open, Table table, Bytes key) {
        Record made = open.recordInserted(table.name, key);
        return made == null ? open.recordUpdated(table.name, key) : made;
    }

    private static Bytes value(Record row, AbstractIndexManager index, Table table) {
        return row == null ? null
                : RecordSerializer.serializeIndexKey(row.getDataAccessor(table), index.getIndex(), index.getColumnNames());
    }
}
