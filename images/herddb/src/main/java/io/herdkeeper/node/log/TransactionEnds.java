package io.herdkeeper.node.log;

import herddb.core.TableSpaceManager;
import herddb.log.LogEntry;
import herddb.log.LogEntryType;
import herddb.log.LogNotAvailableException;
import herddb.model.TableDoesNotExistException;
import herddb.model.Transaction;
import io.herdkeeper.node.internals.HerdInternals;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;

/**
 * The transactions that have ended in a leader's log, and the tables that they dropped or made. HerdDB's own tables show that only after the
 * bookies have answered. Until then it accepts what a replay of the log could not apply: a second COMMIT, a row of the transaction, or a row
 * of the table.
 *
 * <p>A table that a transaction has made is written to the disk while its COMMIT is applied, at the last position that was acknowledged. HerdDB
 * gives it to others a moment before. A row of them may be committed at that position and not be in the table yet: the next boot of this copy
 * would leave it out. So they don't get the table before it is written.
 */
final class TransactionEnds {

    private final Set<Long> ended = ConcurrentHashMap.newKeySet();
    private final Set<String> dropped = ConcurrentHashMap.newKeySet();
    /** The tables that COMMITs under way make. */
    private final Map<LogEntry, Set<String>> made = new ConcurrentHashMap<>();

    /** Why the log can't take this entry behind what it has; null when it can. */
    Exception refusal(LogEntry entry, TableSpaceManager tablespace) {
        if (tablespace == null || entry.type == LogEntryType.BEGINTRANSACTION) {
            return null;
        }
        if (entry.transactionId > 0 && (ended.contains(entry.transactionId) || tablespace.getTransaction(entry.transactionId) == null)) {
            return new LogNotAvailableException("transaction " + entry.transactionId + " has ended");
        }
        if (isRow(entry) && made.values().stream().anyMatch(tables -> tables.contains(entry.tableName))) {
            return new TableDoesNotExistException("no table " + entry.tableName + " yet: the transaction that makes it is being committed");
        }
        return isRow(entry) && dropped.contains(entry.tableName) ? new LogNotAvailableException("table " + entry.tableName + " is dropped") : null;
    }

    /** Notes what an entry ends that is about to be written, under the lock under which it is. */
    void note(LogEntry entry, Transaction open, TableSpaceManager tablespace) {
        switch (entry.type) {
            case LogEntryType.COMMITTRANSACTION, LogEntryType.ROLLBACKTRANSACTION -> {
                if (drops(entry, open)) {
                    dropped.addAll(tables(open));
                    // Rows behind this entry don't need them, nor do plans, and HerdDB closes them beside both.
                    HerdInternals.forgetIndexes(tablespace, indexes(open));
                    tablespace.getDbmanager().getPlanner().clearCache();
                }
                if (entry.type == LogEntryType.COMMITTRANSACTION && !madeBy(open).isEmpty()) {
                    made.put(entry, Set.copyOf(madeBy(open)));
                }
                if (tablespace != null) {
                    ended.removeIf(transaction -> tablespace.getTransaction(transaction) == null);
                    ended.add(entry.transactionId);
                }
            }
            case LogEntryType.CREATE_TABLE, LogEntryType.ALTER_TABLE -> dropped.remove(entry.tableName);
            default -> { }
        }
    }

    /** The entry is applied, or never will be. */
    void over(LogEntry entry) {
        made.remove(entry);
    }

    /** Whether an entry closes tables or indexes that others may use. */
    static boolean drops(LogEntry entry, Transaction open) {
        return entry.type == LogEntryType.COMMITTRANSACTION && open != null && !(tables(open).isEmpty() && indexes(open).isEmpty());
    }

    /** The tables that an entry takes away, which others may refer to or be referred to by: a COMMIT those it drops, a ROLLBACK those it made. */
    static Set<String> takenAway(LogEntry entry, Transaction open) {
        if (open == null) {
            return Set.of();
        }
        return Set.copyOf(entry.type == LogEntryType.ROLLBACKTRANSACTION ? madeBy(open)
                : entry.type == LogEntryType.COMMITTRANSACTION ? tables(open) : Set.of());
    }

    private static Set<String> madeBy(Transaction open) {
        return open == null || open.newTables == null ? Set.of() : open.newTables.keySet();
    }

    private static Set<String> tables(Transaction open) {
        return open.droppedTables == null ? Set.of() : open.droppedTables;
    }

    private static Set<String> indexes(Transaction open) {
        return open.droppedIndexes == null ? Set.of() : open.droppedIndexes;
    }

    /** Whether an entry changes definitions, or a whole table: those that have the tablespace to themselves. */
    static boolean isDefinition(LogEntry entry) {
        return switch (entry.type) {
            case LogEntryType.CREATE_TABLE, LogEntryType.ALTER_TABLE, LogEntryType.DROP_TABLE, LogEntryType.CREATE_INDEX,
                    LogEntryType.DROP_INDEX, LogEntryType.TRUNCATE_TABLE -> true;
            default -> false;
        };
    }

    static boolean isRow(LogEntry entry) {
        return entry.type == LogEntryType.INSERT || entry.type == LogEntryType.UPDATE || entry.type == LogEntryType.DELETE;
    }
}
