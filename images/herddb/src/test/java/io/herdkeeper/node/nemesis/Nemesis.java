package io.herdkeeper.node.nemesis;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.SortedMap;
import java.util.TreeMap;

/**
 * Notes each point that a run's nodes come to, and strikes at those of its case.
 *
 * <p>The rims of the nodes call it ({@link Life}); the story opens and closes the time in which points count.
 */
final class Nemesis {

    /** Hears of each strike, in the thread that is struck. */
    interface Listener {

        /** There will be one; told before anybody can be told that no point counts any more. */
        void strikes();

        /** There was one. */
        void struck(Strike strike, Life life, Hold hold);
    }

    private final Map<String, Strike> waiting = new HashMap<>();
    private final Map<String, Integer> counts = new HashMap<>();
    private final List<Point> seen = new ArrayList<>();
    private final List<Hold> holds = new ArrayList<>();
    private final Map<Long, Integer> ledgers = new HashMap<>();
    private final SortedMap<Long, LoggedRows> dropped = new TreeMap<>();
    private final Listener listener;
    private boolean open;

    Nemesis(List<Strike> strikes, Listener listener) {
        strikes.forEach(strike -> waiting.put(strike.point(), strike));
        this.listener = listener;
    }

    /** Points count from now on. */
    synchronized void open() {
        open = true;
    }

    /** No point counts any more, and nothing is held. */
    void close() {
        List<Hold> left;
        synchronized (this) {
            open = false;
            left = List.copyOf(holds);
        }
        left.forEach(Hold::let);
    }

    /** The points so far, in their order. */
    synchronized List<Point> seen() {
        return List.copyOf(seen);
    }

    /** The strikes whose points nobody came to. */
    synchronized List<Strike> missed() {
        return List.copyOf(waiting.values());
    }

    /** A ledger's number in this run, from 1 on. */
    int ledger(long id) {
        synchronized (ledgers) {
            return ledgers.computeIfAbsent(id, first -> ledgers.size() + 1);
        }
    }

    /** Keeps what a ledger has that a leader is about to drop; another one may have done so before. */
    void keep(long ledger) {
        LoggedRows rows = LoggedRows.of(ledger);
        synchronized (dropped) {
            if (rows != null) {
                dropped.put(ledger, rows);
            }
        }
    }

    /** What the ledgers have, or had, that leaders wanted to drop. */
    Map<Long, LoggedRows> dropped() {
        synchronized (dropped) {
            return new TreeMap<>(dropped);
        }
    }

    /** Which of its kind a call is; 0 when no point belongs to it. */
    synchronized int count(Life life, Call call) {
        if (!open) {
            return 0;
        }
        int count = counts.merge(life.node() + call, 1, Integer::sum);
        return call.polled() && count > 1 ? 0 : count;
    }

    /** What happens here and now, and where it waits for that; null for nothing. */
    Struck come(Life life, Call call, int count, Moment moment) {
        Point point = new Point(life.node(), call, count, moment);
        Strike strike;
        Hold hold;
        synchronized (this) {
            if (!open || count == 0 || Fault.at(call, moment).isEmpty()) {
                return null;
            }
            seen.add(point);
            strike = waiting.remove(point.name());
            if (strike == null) {
                return null;
            }
            hold = Set.of(Fault.STOP, Fault.DELAY, Fault.EXPIRE).contains(strike.fault()) ? new Hold(life) : null;
            if (hold != null) {
                holds.add(hold);
            }
            listener.strikes();
        }
        if (strike.fault() == Fault.KILL) {
            life.kill();
        }
        listener.struck(strike, life, hold);
        return new Struck(strike.fault(), hold);
    }

    /** A fault, and what is waited for until it is over; null where nothing is. */
    record Struck(Fault fault, Hold hold) {
    }
}
