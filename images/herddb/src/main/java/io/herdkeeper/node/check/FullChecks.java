package io.herdkeeper.node.check;

import herddb.core.AbstractTableManager;
import herddb.core.TableSpaceManager;
import herddb.log.LogSequenceNumber;
import herddb.model.StatementEvaluationContext;
import herddb.model.StatementExecutionException;
import herddb.model.Table;
import io.herdkeeper.node.log.HerdInternals;
import io.herdkeeper.node.log.NodeCommitLog;
import io.herdkeeper.node.status.Position;
import java.time.Duration;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.locks.StampedLock;
import java.util.logging.Level;
import java.util.logging.Logger;

/**
 * Runs HerdDB's consistency check of a tablespace's tables in the background, one tablespace at most once at a time.
 *
 * <p>HerdDB scans each table under the tablespace's write lock: who began to wait for that lock keeps new statements waiting too.
 * A statement may wait for a row of a transaction whose COMMIT then waits for the check, so the lock is waited for only so long.
 */
public final class FullChecks {

    private static final Logger LOGGER = Logger.getLogger(FullChecks.class.getName());
    private static final Duration LONGEST_WAIT = Duration.ofSeconds(5);
    /** For the bookies' answer, with the lock released. */
    private static final Duration LONGEST_WRITE = Duration.ofSeconds(30);

    private final Map<String, FullCheck> byUuid = new ConcurrentHashMap<>();

    /**
     * What an order came to.
     *
     * @param check   the check that runs now
     * @param started whether it was this order that started it
     */
    public record Order(FullCheck check, boolean started) {
    }

    /** The tablespace is not led by this node, or the tables could not be locked; the message says so. */
    public static final class NotCheckedException extends Exception {

        private static final long serialVersionUID = 1L;

        NotCheckedException(String message) {
            super(message);
        }
    }

    /** The check of the tablespace with this uuid that runs, or was the last one since this process started; null when there was none. */
    public FullCheck last(String uuid) {
        return byUuid.get(uuid);
    }

    /**
     * Starts a check, unless one runs, and does not wait for it.
     *
     * @throws NotCheckedException this node does not lead the tablespace
     */
    public synchronized Order start(TableSpaceManager tablespace) throws NotCheckedException {
        refuseUnlessLed(tablespace);
        String uuid = tablespace.getTableSpaceUUID();
        FullCheck last = byUuid.get(uuid);
        if (last != null && last.endedAtMillis() == null) {
            return new Order(last, false);
        }
        FullCheck begun = FullCheck.begun(System.currentTimeMillis(), position(tablespace));
        byUuid.put(uuid, begun);
        Thread thread = new Thread(() -> run(tablespace, begun), "full-check");
        thread.setDaemon(true);
        thread.start();
        return new Order(begun, true);
    }

    private void run(TableSpaceManager tablespace, FullCheck begun) {
        FullCheck check = begun;
        String error = "it ended before its time";
        try {
            for (String table : tables(tablespace)) {
                check = checked(tablespace, table, check);
                byUuid.put(tablespace.getTableSpaceUUID(), check);
                if (check.error() != null) {
                    break;
                }
            }
            error = check.error();
        } catch (RuntimeException failed) {
            error = failed.toString();
        } finally {
            FullCheck ended = check.ended(System.currentTimeMillis(), error);
            byUuid.put(tablespace.getTableSpaceUUID(), ended);
            LOGGER.log(Level.INFO, "the full check of tablespace {0} has ended; writes could have been stopped for {1} ms; error: {2}",
                    new Object[]{tablespace.getTableSpaceName(), String.valueOf(ended.writesStoppedMillis()), error});
        }
    }

    private static List<String> tables(TableSpaceManager tablespace) {
        return tablespace.getAllCommittedTables().stream().map((Table table) -> table.name)
                .filter(name -> isThere(tablespace, name)).sorted(Comparator.naturalOrder()).toList();
    }

    private static boolean isThere(TableSpaceManager tablespace, String table) {
        AbstractTableManager manager = tablespace.getTableManager(table);
        return manager != null && !manager.isSystemTable() && manager.getCreatedInTransaction() == 0;
    }

    /** The check after one table more; a table that was dropped meanwhile is left out. */
    private static FullCheck checked(TableSpaceManager tablespace, String table, FullCheck before) {
        long start = System.nanoTime();
        CompletableFuture<LogSequenceNumber> written;
        try {
            written = checkLocked(tablespace, table);
        } catch (StatementExecutionException refused) {
            return before.without(table, firstLine(refused.getMessage()), millisSince(start));
        } catch (InterruptedException ended) {
            Thread.currentThread().interrupt();
            return before.stopped(millisSince(start), "table " + table + ": it was interrupted");
        } catch (NotCheckedException failed) {
            return before.stopped(millisSince(start), "table " + table + ": " + failed.getMessage());
        } catch (Exception failed) {
            LOGGER.log(Level.WARNING, "table " + table + " of tablespace " + tablespace.getTableSpaceName() + " was not checked", failed);
            return before.stopped(millisSince(start), "table " + table + ": " + firstLine(failed.toString()));
        }
        long millis = millisSince(start);
        return written == null ? before.stopped(millis, null) : confirmed(before, table, millis, written);
    }

    /** The check with a table of which the entry is {@code written}, once the bookies have it. No write waits for that. */
    static FullCheck confirmed(FullCheck before, String table, long millis, Future<LogSequenceNumber> written) {
        try {
            return before.withTable(table, millis, Position.of(written.get(LONGEST_WRITE.toSeconds(), TimeUnit.SECONDS)));
        } catch (InterruptedException ended) {
            Thread.currentThread().interrupt();
            return before.stopped(millis, "table " + table + ": it was interrupted");
        } catch (TimeoutException silence) {
            return before.stopped(millis,
                    "table " + table + ": the bookies have not answered for its entry in " + LONGEST_WRITE.toSeconds() + " s");
        } catch (ExecutionException failed) {
            return before.stopped(millis, "table " + table + ": its entry was not written: " + firstLine(failed.getCause().toString()));
        }
    }

    private static CompletableFuture<LogSequenceNumber> checkLocked(TableSpaceManager tablespace, String table) throws Exception {
        StampedLock lock = HerdInternals.statementLock(tablespace);
        long stamp = lock.tryWriteLock(LONGEST_WAIT.toMillis(), TimeUnit.MILLISECONDS);
        if (stamp == 0) {
            throw new NotCheckedException("statements were under way for " + LONGEST_WAIT.toSeconds() + " s");
        }
        try {
            return check(tablespace, table, stamp);
        } finally {
            lock.unlockWrite(stamp);
        }
    }

    /** With the lock held. Where in the log the check is going to be; null when there was no table. */
    private static CompletableFuture<LogSequenceNumber> check(TableSpaceManager tablespace, String table, long stamp) throws Exception {
        refuseUnlessLed(tablespace);
        if (!isThere(tablespace, table)) {
            return null;
        }
        StatementEvaluationContext locked = StatementEvaluationContext.DEFAULT_EVALUATION_CONTEXT();
        locked.setTableSpaceLock(stamp);
        tablespace.createAndWriteTableCheksum(tablespace, tablespace.getTableSpaceName(), table, locked);
        return ((NodeCommitLog) tablespace.getLog()).lastCheck();
    }

    private static void refuseUnlessLed(TableSpaceManager tablespace) throws NotCheckedException {
        if (!tablespace.isLeader() || tablespace.isClosed() || tablespace.isFailed()) {
            throw new NotCheckedException("this node does not lead tablespace " + tablespace.getTableSpaceName() + ": ask the leader");
        }
    }

    private static Position position(TableSpaceManager tablespace) {
        return Position.of(tablespace.getLog().getLastSequenceNumber());
    }

    private static String firstLine(String text) {
        return text == null ? "HerdDB does not say why" : text.lines().findFirst().orElse("");
    }

    private static long millisSince(long start) {
        return (System.nanoTime() - start) / 1_000_000;
    }
}
