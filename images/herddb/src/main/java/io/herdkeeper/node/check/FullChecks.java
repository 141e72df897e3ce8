package io.herdkeeper.node.check;

import herddb.core.AbstractTableManager;
import herddb.core.TableSpaceManager;
import herddb.log.LogSequenceNumber;
import herddb.model.Table;
import io.herdkeeper.node.digest.StoredRows;
import io.herdkeeper.node.log.Position;
import io.herdkeeper.node.refusals.OrderRefusedException;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.function.LongSupplier;
import java.util.logging.Level;
import java.util.logging.Logger;

/**
 * Checks the tables of tablespaces that this node leads, in the background. A tablespace has at most one check at a time.
 *
 * <p>The leader writes digests of its rows to the log ({@link LedTable}), and followers compare theirs ({@link FollowerChecks}). After
 * each part it pauses for as long as it blocked writes. A statement may wait for a row of a transaction whose COMMIT then waits for the
 * check. So the check waits for statements only briefly, repeats that, and gives up after a minute.
 */
public final class FullChecks {

    private static final Logger LOGGER = Logger.getLogger(FullChecks.class.getName());
    private static final Duration PATIENCE = Duration.ofMinutes(1);
    /** In it statements go on that a try to lock the tablespace has kept waiting. */
    private static final Duration PAUSE = Duration.ofSeconds(1);
    /** For the bookies' answer, with the lock released. */
    private static final Duration LONGEST_WRITE = Duration.ofSeconds(30);

    private final Map<String, FullCheck> byUuid = new ConcurrentHashMap<>();
    private final LongSupplier nanos;
    private final Duration patience;

    public FullChecks() {
        this(System::nanoTime, PATIENCE);
    }

    FullChecks(LongSupplier nanos, Duration patience) {
        this.nanos = nanos;
        this.patience = patience;
    }

    /**
     * What an order came to.
     *
     * @param check   the check that runs now
     * @param started whether it was this order that started it
     */
    public record Order(FullCheck check, boolean started) {
    }

    /** The check of the tablespace with this uuid that runs, or was the last one since this process started; null when there was none. */
    public FullCheck last(String uuid) {
        return byUuid.get(uuid);
    }

    /**
     * Starts a check, unless one runs, and does not wait for it.
     *
     * @param longestStop for how long writes may stand still in one piece
     * @throws OrderRefusedException this node does not lead the tablespace
     */
    public synchronized Order start(TableSpaceManager tablespace, Duration longestStop) throws OrderRefusedException {
        refuseUnlessLed(tablespace);
        String uuid = tablespace.getTableSpaceUUID();
        FullCheck last = byUuid.get(uuid);
        if (last != null && last.endedAtMillis() == null) {
            return new Order(last, false);
        }
        FullCheck begun = FullCheck.begun(System.currentTimeMillis(), Position.of(tablespace.getLog().getLastSequenceNumber()));
        byUuid.put(uuid, begun);
        Thread thread = new Thread(new Run(tablespace, longestStop, begun), "full-check");
        thread.setDaemon(true);
        thread.start();
        return new Order(begun, true);
    }

    static void refuseUnlessLed(TableSpaceManager tablespace) throws OrderRefusedException {
        if (!tablespace.isLeader() || tablespace.isClosed() || tablespace.isFailed()) {
            throw new OrderRefusedException("this node does not lead tablespace " + tablespace.getTableSpaceName() + ": ask the leader");
        }
    }

    /** One check, as far as it has come. */
    private final class Run implements Runnable {

        private final TableSpaceManager tablespace;
        private final Duration longestStop;
        private final String id = UUID.randomUUID().toString();
        private FullCheck check;

        Run(TableSpaceManager tablespace, Duration longestStop, FullCheck begun) {
            this.tablespace = tablespace;
            this.longestStop = longestStop;
            this.check = begun;
        }

        @Override
        public void run() {
            String error = "it ended early";
            try {
                checkAll();
                error = null;
            } catch (InterruptedException ended) {
                error = "it was interrupted";
            } catch (OrderRefusedException | RuntimeException failed) {
                error = failed instanceof OrderRefusedException ? failed.getMessage() : failed.toString();
            } finally {
                tell(check.ended(System.currentTimeMillis(), error));
                LOGGER.log(Level.INFO, "the full check of tablespace {0} has ended; writes were blocked for at most {1} ms, and {2} ms at a"
                        + " time; error: {3}", new Object[]{tablespace.getTableSpaceName(), String.valueOf(check.writesStoppedMillis()),
                                String.valueOf(check.longestStopMillis()), error});
            }
        }

        private void checkAll() throws OrderRefusedException, InterruptedException {
            List<Table> tables = StoredRows.tables(tablespace).stream()
                    .filter(table -> table.getCreatedInTransaction() == 0).map(AbstractTableManager::getTable).toList();
            for (Table table : tables) {
                long before = check.writesStoppedMillis();
                try {
                    if (checkOne(table)) {
                        tell(check.with(table.name, check.writesStoppedMillis() - before));
                    }
                } catch (RuntimeException failed) {
                    LOGGER.log(Level.WARNING,
                            "table " + table.name + " of tablespace " + tablespace.getTableSpaceName() + " was not checked", failed);
                    tell(check.without(table.name, failed.toString().lines().findFirst().orElse("")));
                }
            }
        }

        /** Whether all of a table was checked; one that was dropped or renamed meanwhile is left out. */
        private boolean checkOne(Table table) throws OrderRefusedException, InterruptedException {
            LedTable parts = new LedTable(tablespace, table, id, longestStop, nanos);
            long lastProgress = System.nanoTime();
            while (!parts.isComplete() && !parts.isGone()) {
                long start = nanos.getAsLong();
                long millis;
                Future<LogSequenceNumber> entry;
                try {
                    entry = parts.next();
                } finally {
                    millis = (nanos.getAsLong() - start) / 1_000_000;
                    tell(check.stopped(millis));
                }
                if (entry != null) {
                    tell(check.at(written(table, entry)));
                    Thread.sleep(millis);
                    lastProgress = System.nanoTime();
                } else if (!parts.isGone()) {
                    giveUpAfter(lastProgress, table);
                    Thread.sleep(PAUSE.toMillis());
                }
            }
            return parts.isComplete();
        }

        private void giveUpAfter(long lastProgress, Table table) throws OrderRefusedException {
            if (System.nanoTime() - lastProgress >= patience.toNanos()) {
                throw new OrderRefusedException("table " + table.name + ": statements were running for " + patience.toSeconds() + " s");
            }
        }

        private void tell(FullCheck now) {
            check = now;
            byUuid.put(tablespace.getTableSpaceUUID(), now);
        }
    }

    /** The position of an entry, once the bookies have it. No write waits for that. */
    static Position written(Table table, Future<LogSequenceNumber> entry) throws OrderRefusedException, InterruptedException {
        try {
            return Position.of(entry.get(LONGEST_WRITE.toSeconds(), TimeUnit.SECONDS));
        } catch (TimeoutException silence) {
            throw new OrderRefusedException(
                    "table " + table.name + ": the bookies did not acknowledge its entry within " + LONGEST_WRITE.toSeconds() + " s");
        } catch (ExecutionException failed) {
            throw new OrderRefusedException("table " + table.name + ": its entry was not written: "
                    + failed.getCause().toString().lines().findFirst().orElse(""));
        }
    }
}
