package io.herdkeeper.node.nemesis;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.locks.ReadWriteLock;
import java.util.concurrent.locks.ReentrantReadWriteLock;
import java.util.function.Consumer;

/** One process of a node, as its rims see it: everything that it does to the world passes here. */
public final class Life {

    private final Nemesis nemesis;
    private final String node;
    private final String name;
    /** Shared by effects that are under way, which the power cut waits for. */
    private final ReadWriteLock effects = new ReentrantReadWriteLock();
    private final List<Runnable> onKill = new ArrayList<>();
    private volatile boolean dead;

    /** The process of this number, from 0 on. */
    Life(Nemesis nemesis, String node, int number) {
        this.nemesis = nemesis;
        this.node = node;
        this.name = node + "'".repeat(number);
    }

    String node() {
        return node;
    }

    String name() {
        return name;
    }

    public boolean isDead() {
        return dead;
    }

    /** A ledger's number in this run. */
    int ledger(long id) {
        return nemesis.ledger(id);
    }

    /** What the verdict needs of a ledger that may be gone by then. */
    void keep(long ledger) {
        nemesis.keep(ledger);
    }

    /** Cuts the power; returns once nothing of this process is under way any more. */
    void kill() {
        List<Runnable> tell;
        effects.writeLock().lock();
        try {
            if (dead) {
                return;
            }
            dead = true;
            synchronized (onKill) {
                tell = List.copyOf(onKill);
            }
        } finally {
            effects.writeLock().unlock();
        }
        tell.forEach(Runnable::run);
    }

    /** Has something done when the power is cut, or now when it is already. */
    void onKill(Runnable work) {
        synchronized (onKill) {
            onKill.add(work);
        }
        if (dead) {
            work.run();
        }
    }

    /** Begins a call of this thread, which may be held here, or die. */
    public Visit begin(Call call) {
        live();
        Visit visit = new Visit(call, nemesis.count(this, call));
        visit.failed = visit.come(Moment.BEFORE);
        return visit;
    }

    /** Begins a call whose answer comes in another thread: {@code next} is run here, or later where the call is held. */
    void begin(Call call, Consumer<Visit> next) {
        Visit visit = new Visit(call, nemesis.count(this, call));
        visit.later(Moment.BEFORE, failed -> {
            visit.failed = failed;
            next.accept(visit);
        });
    }

    /** Something at which nothing is ever held, and that the dead don't do. */
    <T, E extends Exception> T idle(Effect<T, E> effect) throws E {
        live();
        return effect.of();
    }

    private void live() {
        if (dead) {
            throw new PowerCut();
        }
    }

    /** What a call does to the world. */
    @FunctionalInterface
    public interface Effect<T, E extends Exception> {

        T of() throws E;
    }

    /** A call that is under way. */
    public final class Visit {

        private final Call call;
        private final int count;
        private boolean failed;

        private Visit(Call call, int count) {
            this.call = call;
            this.count = count;
        }

        /** Whether it must not have its effect, and ends with an error. */
        public boolean fails() {
            return failed;
        }

        /** Its effect, during which the power stays on. */
        public <T, E extends Exception> T effect(Effect<T, E> effect) throws E {
            effects.readLock().lock();
            try {
                live();
                return effect.of();
            } finally {
                effects.readLock().unlock();
            }
        }

        /** Its end; whether it ends with an error though it had its effect. */
        public boolean isLost() {
            return come(Moment.AFTER);
        }

        private boolean come(Moment moment) {
            Nemesis.Struck struck = nemesis.come(Life.this, call, count, moment);
            if (struck != null && struck.hold() != null) {
                struck.hold().await();
            }
            live();
            return isError(struck);
        }

        /** The same for a call whose answer comes in another thread; a dead process is told of an error, and can do nothing with it. */
        void later(Moment moment, Consumer<Boolean> next) {
            Nemesis.Struck struck = dead ? null : nemesis.come(Life.this, call, count, moment);
            if (struck != null && struck.hold() != null) {
                struck.hold().then(() -> next.accept(dead));
            } else {
                next.accept(dead || isError(struck));
            }
        }

        private static boolean isError(Nemesis.Struck struck) {
            return struck != null && (struck.fault() == Fault.FAIL || struck.fault() == Fault.LOSE);
        }
    }
}
