package io.herdkeeper.node.log;

import herddb.log.LogEntry;
import herddb.log.LogEntryType;
import herddb.log.LogNotAvailableException;
import herddb.log.LogSequenceNumber;
import java.io.EOFException;
import java.io.IOException;
import java.io.UTFDataFormatException;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;

/**
 * The entries at which this node's tablespaces are stuck: each was tried twice or more, and could not be applied. And listed ledgers that
 * are not theirs, or are lost.
 */
public final class StuckReplays {

    /** HerdDB boots such a tablespace again each second, and its other tablespaces wait meanwhile. */
    private static final long PAUSE_SECONDS = 30;
    private static final int TRIES = 2;

    /** In place of an entry's type: the ledger is not the tablespace's own. */
    public static final String FOREIGN_LEDGER = "FOREIGN_LEDGER";
    /** In place of an entry's type: a listed ledger is gone from BookKeeper, or the list of all of them from ZooKeeper. */
    public static final String LOST_LEDGER = "LOST_LEDGER";
    /** In place of the ledger's id, when the list is gone. */
    static final long ALL_LEDGERS = -1;
    private static final long BEFORE_THE_FIRST = -1;

    /** By the tablespace's uuid. */
    private final Map<String, Tried> tried = new ConcurrentHashMap<>();

    /**
     * An entry that can't be applied, or a ledger that is listed and not opened.
     *
     * @param ledgerId  -1 when the list of all ledgers is gone
     * @param offset    of the entry; -1 for a ledger
     * @param entryType one of HerdDB's types of entries, in words, e.g. TRUNCATE; or {@link #FOREIGN_LEDGER}, {@link #LOST_LEDGER}
     * @param table     null when the entry has none
     * @param message   what HerdDB says
     * @param disk      whether this node's disk is the cause, e.g. when it is full: the entry may be good
     */
    public record StuckReplay(long ledgerId, long offset, String entryType, String table, String message, boolean disk) {
    }

    private record Tried(StuckReplay at, int times, long lastNanos) {

        boolean isAt(StuckReplay other) {
            return at.ledgerId() == other.ledgerId() && at.offset() == other.offset();
        }

        boolean isAtLedger() {
            return at.offset() == BEFORE_THE_FIRST;
        }
    }

    /** Where the tablespace of this uuid does not get on; null when it does. */
    public StuckReplay of(String uuid) {
        Tried last = tried.get(uuid);
        return last == null || last.times() < TRIES ? null : last.at();
    }

    /** An entry could not be applied. */
    void failed(String uuid, LogSequenceNumber position, LogEntry entry, Throwable error) {
        Throwable root = LogFailures.rootOf(error);
        tried(uuid, new StuckReplay(position.ledgerId, position.offset, name(entry.type),
                entry.tableName == null || entry.tableName.isEmpty() ? null : entry.tableName, String.valueOf(root), isOfDisk(root)));
    }

    private void tried(String uuid, StuckReplay at) {
        tried.compute(uuid, (key, before) -> new Tried(at, before != null && before.isAt(at) ? before.times() + 1 : 1, System.nanoTime()));
    }

    /** Entries and pages are parsed from memory: bytes that end too soon are their fault. */
    private static boolean isOfDisk(Throwable root) {
        return root instanceof IOException && !(root instanceof EOFException || root instanceof UTFDataFormatException);
    }

    /** A listed ledger was not opened, since it is not the tablespace's own. Another try finds the same, so one is enough. */
    void foreign(String uuid, long ledger, String why) {
        tried.put(uuid, new Tried(new StuckReplay(ledger, BEFORE_THE_FIRST, FOREIGN_LEDGER, null, why, false), TRIES, System.nanoTime()));
    }

    /** A listed ledger is gone, or with {@link #ALL_LEDGERS} their list. One try is not enough: a ZooKeeper server that lags may not have it yet. */
    void lost(String uuid, long ledger, String why) {
        tried(uuid, new StuckReplay(ledger, BEFORE_THE_FIRST, LOST_LEDGER, null, why, false));
    }

    /** All listed ledgers were opened. */
    void opened(String uuid) {
        tried.computeIfPresent(uuid, (key, last) -> last.isAtLedger() ? null : last);
    }

    /** An entry was applied: the replay is past the one that failed, or at it. */
    void applied(String uuid, LogSequenceNumber position) {
        if (!tried.isEmpty()) {
            tried.computeIfPresent(uuid, (key, last) ->
                    position.after(new LogSequenceNumber(last.at().ledgerId(), last.at().offset() - 1)) ? null : last);
        }
    }

    /** @throws LogNotAvailableException for half a minute after a try that ended where the one before it did */
    void refuseTooSoon(String uuid) {
        Tried last = tried.get(uuid);
        if (last != null && last.times() >= TRIES && System.nanoTime() - last.lastNanos() < TimeUnit.SECONDS.toNanos(PAUSE_SECONDS)) {
            throw new LogNotAvailableException("the log can't be replayed: " + last.at());
        }
    }

    private static String name(short type) {
        return switch (type) {
            case LogEntryType.CREATE_TABLE -> "CREATE_TABLE";
            case LogEntryType.INSERT -> "INSERT";
            case LogEntryType.UPDATE -> "UPDATE";
            case LogEntryType.DELETE -> "DELETE";
            case LogEntryType.BEGINTRANSACTION -> "BEGIN";
            case LogEntryType.COMMITTRANSACTION -> "COMMIT";
            case LogEntryType.ROLLBACKTRANSACTION -> "ROLLBACK";
            case LogEntryType.ALTER_TABLE -> "ALTER_TABLE";
            case LogEntryType.DROP_TABLE -> "DROP_TABLE";
            case LogEntryType.CREATE_INDEX -> "CREATE_INDEX";
            case LogEntryType.DROP_INDEX -> "DROP_INDEX";
            case LogEntryType.TRUNCATE_TABLE -> "TRUNCATE";
            case LogEntryType.NOOP -> "NOOP";
            case LogEntryType.TABLE_CONSISTENCY_CHECK -> "CONSISTENCY_CHECK";
            default -> String.valueOf(type);
        };
    }
}
