package io.herdkeeper.node.check;

import herddb.core.AbstractTableManager;
import herddb.core.DBManager;
import herddb.core.TableSpaceManager;
import herddb.log.LogEntry;
import herddb.log.LogSequenceNumber;
import herddb.utils.Bytes;
import io.herdkeeper.node.digest.RowDigest;
import io.herdkeeper.node.digest.StoredRows;
import io.herdkeeper.node.log.FollowerCheck;
import io.herdkeeper.node.log.NodeCommitLogManager;
import io.herdkeeper.node.log.Position;
import java.util.HexFormat;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.BooleanSupplier;
import java.util.logging.Level;
import java.util.logging.Logger;

/**
 * Compares the rows of this node's followers with their leaders' digests in the log, and keeps the verdicts.
 *
 * <p>A table passes if all of its parts arrived in order and none differed. A part that differs is a verdict at once, even if earlier
 * parts were missed.
 */
public final class FollowerChecks implements FollowerCheck {

    private static final Logger LOGGER = Logger.getLogger(FollowerChecks.class.getName());
    private static final int SHOWN_KEY_BYTES = 32;

    /** By the tablespace's uuid, and the table's name. */
    private final Map<String, Map<String, Verdict>> verdicts = new ConcurrentHashMap<>();
    /** How far the check of a table is that goes on; by the tablespace's uuid and the table's. Used by one thread for each tablespace. */
    private final Map<String, Progress> progress = new ConcurrentHashMap<>();

    /** What a follower came to, and where. */
    private record Entry(TableSpaceManager copy, LogSequenceNumber position, String table, CheckEntry content) {
    }

    /** Of the parts of a table all up to {@code part} came by, and none differed. */
    private record Progress(String check, int part) {

        boolean isFollowedBy(CheckEntry entry) {
            return check.equals(entry.check()) && part + 1 == entry.part();
        }
    }

    /** The one that a node of this program was made with. */
    public static FollowerChecks of(DBManager node) {
        return (FollowerChecks) NodeCommitLogManager.of(node).followerCheck();
    }

    /** The last verdict on each table of a tablespace since this process started. */
    public Map<String, Verdict> verdicts(String tablespaceUuid) {
        return new TreeMap<>(verdicts.getOrDefault(tablespaceUuid, Map.of()));
    }

    @Override
    public void compare(TableSpaceManager copy, LogSequenceNumber position, LogEntry entry, BooleanSupplier hurried) {
        CheckEntry theirs = CheckEntry.read(entry);
        if (theirs == null) {
            LOGGER.log(Level.INFO, "tablespace {0}: the check of table {1} at {2} has the format of another version and is skipped",
                    new Object[]{copy.getTableSpaceName(), entry.tableName, position});
            return;
        }
        try {
            compare(new Entry(copy, position, entry.tableName, theirs), hurried);
        } catch (RuntimeException failed) {
            LOGGER.log(Level.WARNING, "tablespace " + copy.getTableSpaceName() + ": table " + entry.tableName
                    + " could not be compared with the leader's at " + position, failed);
        }
    }

    private void compare(Entry entry, BooleanSupplier hurried) {
        CheckEntry theirs = entry.content();
        String key = entry.copy().getTableSpaceUUID() + "/" + theirs.tableUuid();
        Progress before = progress.remove(key);
        AbstractTableManager table = entry.copy().getTableManager(entry.table());
        if (table == null || !table.getTable().uuid.equals(theirs.tableUuid()) || table.getCreatedInTransaction() != 0) {
            differs(entry, "this replica has no such table");
            return;
        }
        RowDigest ours = new RowDigest();
        boolean complete = StoredRows.visit(table, theirs.after(), theirs.upTo(), row -> {
            ours.add(row);
            return !hurried.getAsBoolean();
        });
        if (!complete) {
            return;
        }
        if (ours.rows() != theirs.rows() || !ours.hex().equals(theirs.digest())) {
            differs(entry, ours.rows() + " rows here, digest " + ours.hex());
        } else if (theirs.part() == 0 || before != null && before.isFollowedBy(theirs)) {
            progress.put(key, new Progress(theirs.check(), theirs.part()));
            if (theirs.isLast()) {
                LOGGER.log(Level.INFO, "tablespace {0} at {1}: table {2} has the rows of leader {3}",
                        new Object[]{entry.copy().getTableSpaceName(), entry.position(), entry.table(), theirs.leader()});
                put(entry, true);
            }
        }
    }

    private void differs(Entry entry, String here) {
        CheckEntry theirs = entry.content();
        LOGGER.log(Level.SEVERE, "tablespace {0} at {1}: table {2} differs from leader {3}''s in its keys after {4} up to {5}: {6} rows there,"
                + " digest {7}; {8}", new Object[]{entry.copy().getTableSpaceName(), entry.position(), entry.table(), theirs.leader(),
                        shown(theirs.after(), "the beginning"), shown(theirs.upTo(), "the end"), String.valueOf(theirs.rows()), theirs.digest(), here});
        put(entry, false);
    }

    private void put(Entry entry, boolean pass) {
        verdicts.computeIfAbsent(entry.copy().getTableSpaceUUID(), uuid -> new ConcurrentHashMap<>()).put(entry.table(),
                new Verdict(pass, entry.content().leader(), System.currentTimeMillis(), Position.of(entry.position())));
    }

    private static String shown(Bytes key, String none) {
        return key == null ? none : HexFormat.of().formatHex(key.to_array(), 0, Math.min(SHOWN_KEY_BYTES, key.getLength()));
    }
}
