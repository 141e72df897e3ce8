package io.herdkeeper.node.statement;

import herddb.core.DBManager;
import herddb.core.TableSpaceManager;
import io.herdkeeper.node.background.Repeated;
import io.herdkeeper.node.internals.HerdInternals;
import io.netty.util.concurrent.DefaultThreadFactory;
import java.time.Duration;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.StampedLock;

/**
 * How long no waiter has got the lock of a tablespace that this node leads.
 *
 * <p>A statement that changes rows holds that lock for reading. A change of definitions, a checkpoint and a part of a full check wait
 * until it is free, and hold it for writing. A write lock that is not released stops every statement. One endless statement, with a change
 * of definitions waiting for it, stops them one after the other: a statement passes the waiting one, unless it meets another at the same
 * moment; then it queues as well. The node leads the tablespace all the while, and answers everything else.
 *
 * <p>Every few seconds this class queues for the lock, and releases it at once. A lock request with a time limit always queues; {@link
 * StampedLock#readLock} would pass. The limit is long, since a request that gives up moves those that queued with it to the end of the
 * queue.
 */
public final class BlockedTablespaces {

    public static final Duration PERIOD = Duration.ofSeconds(5);
    private static final Duration LIMIT = Duration.ofDays(1);

    private final DBManager manager;
    /** Since when the lock of each is waited for, by {@link System#nanoTime}. */
    private final Map<TableSpaceManager, Long> waits = new ConcurrentHashMap<>();
    private final ExecutorService waiting = Executors.newCachedThreadPool(new DefaultThreadFactory("blocked-tablespace", true));

    public BlockedTablespaces(DBManager manager) {
        this.manager = manager;
    }

    /** Looks from now on, until the thread that it returns is interrupted; the server has been started. */
    public Thread start(Duration period) {
        return Repeated.start("blocked-tablespaces", period, this::look);
    }

    /** For how many seconds nobody who waits has got the lock; 0 when nobody waits for long, and on a node that does not lead. */
    public long seconds(TableSpaceManager tablespace) {
        Long since = waits.get(tablespace);
        return since == null ? 0 : Duration.ofNanos(System.nanoTime() - since).toSeconds();
    }

    /** The same by name; a tablespace with 0 is left out. */
    public Map<String, Long> seconds() {
        Map<String, Long> blocked = new TreeMap<>();
        waits.keySet().forEach(tablespace -> {
            long seconds = seconds(tablespace);
            if (seconds > 0) {
                blocked.put(tablespace.getTableSpaceName(), seconds);
            }
        });
        return blocked;
    }

    void look() {
        Set<TableSpaceManager> led = led();
        waits.keySet().retainAll(led);
        led.forEach(this::await);
    }

    /** Whether its turn has not come yet. */
    boolean waitsFor(TableSpaceManager tablespace) {
        return waits.containsKey(tablespace);
    }

    private Set<TableSpaceManager> led() {
        Set<TableSpaceManager> led = new HashSet<>();
        for (String name : manager.getLocalTableSpaces()) {
            TableSpaceManager tablespace = manager.getTableSpaceManager(name);
            if (tablespace != null && tablespace.isLeader() && !tablespace.isClosed() && !tablespace.isFailed()) {
                led.add(tablespace);
            }
        }
        return led;
    }

    private void await(TableSpaceManager tablespace) {
        if (waits.putIfAbsent(tablespace, System.nanoTime()) != null) {
            return;
        }
        try {
            waiting.execute(() -> {
                try {
                    queueUp(HerdInternals.statementLock(tablespace));
                } finally {
                    waits.remove(tablespace);
                }
            });
        } catch (RuntimeException | Error error) {
            waits.remove(tablespace); // no thread waits
            throw error;
        }
    }

    private static void queueUp(StampedLock lock) {
        try {
            long stamp = 0;
            while (stamp == 0) {
                stamp = lock.tryReadLock(LIMIT.toSeconds(), TimeUnit.SECONDS);
            }
            lock.unlockRead(stamp);
        } catch (InterruptedException ended) {
            Thread.currentThread().interrupt();
        }
    }
}
