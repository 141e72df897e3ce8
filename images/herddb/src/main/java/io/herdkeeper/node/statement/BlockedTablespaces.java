package io.herdkeeper.node.statement;

import herddb.core.DBManager;
import herddb.core.TableSpaceManager;
import io.herdkeeper.node.background.Repeated;
import io.herdkeeper.node.internals.HerdInternals;
import java.time.Duration;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.locks.StampedLock;

/**
 * For how long no statement has been able to begin on each tablespace that this node leads.
 *
 * <p>A statement that changes rows holds the tablespace's lock for reading. A change of definitions, a checkpoint and a part of a full
 * check wait until nobody has it, and every later statement waits behind them. So one statement that never ends, or a lock that is never
 * given back, stops the tablespace, while the node leads it and answers all else. Every few seconds this class waits for the lock as a
 * statement would, and gives it back at once. A wait has no limit: one that gives up would send those that queued up with it to the
 * queue's end.
 */
public final class BlockedTablespaces {

    public static final Duration PERIOD = Duration.ofSeconds(5);

    private final DBManager manager;
    /** Since when the lock of each is waited for, by {@link System#nanoTime}. */
    private final Map<TableSpaceManager, Long> waits = new ConcurrentHashMap<>();
    private final ExecutorService waiting = Executors.newCachedThreadPool(work -> {
        Thread thread = new Thread(work, "blocked-tablespace");
        thread.setDaemon(true);
        return thread;
    });

    public BlockedTablespaces(DBManager manager) {
        this.manager = manager;
    }

    /** Looks from now on; the server has been started. */
    public void start(Duration period) {
        Repeated.start("blocked-tablespaces", period, this::look);
    }

    /** For how many seconds no statement could begin; 0 when statements run, and on a node that does not lead. */
    public long seconds(TableSpaceManager tablespace) {
        Long since = waits.get(tablespace);
        return since == null ? 0 : Duration.ofNanos(System.nanoTime() - since).toSeconds();
    }

    /** The same by name; a tablespace whose statements run is left out. */
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
                StampedLock lock = HerdInternals.statementLock(tablespace);
                lock.unlockRead(lock.readLock());
                waits.remove(tablespace);
            });
        } catch (RuntimeException | Error error) {
            waits.remove(tablespace); // no thread waits
            throw error;
        }
    }
}
