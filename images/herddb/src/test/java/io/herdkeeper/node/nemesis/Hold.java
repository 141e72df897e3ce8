package io.herdkeeper.node.nemesis;

import java.util.ArrayList;
import java.util.List;

/** What stands still at a point until it is let go, or its process is killed. */
final class Hold {

    private final Life life;
    private final List<Runnable> behind = new ArrayList<>();
    private boolean over;

    Hold(Life life) {
        this.life = life;
        life.onKill(this::let);
    }

    /** Holds this thread. */
    synchronized void await() {
        boolean interrupted = false;
        while (!over) {
            try {
                wait();
            } catch (InterruptedException error) {
                interrupted = true; // a process that is stopped is not woken by its own threads either
            }
        }
        if (interrupted) {
            Thread.currentThread().interrupt();
        }
    }

    /** Does something once this is over: now, or in the thread that lets it go. */
    void then(Runnable next) {
        synchronized (this) {
            if (!over) {
                behind.add(next);
                return;
            }
        }
        next.run();
    }

    void let() {
        List<Runnable> next;
        synchronized (this) {
            if (over) {
                return;
            }
            over = true;
            notifyAll();
            next = List.copyOf(behind);
        }
        next.forEach(Runnable::run);
    }

    Life life() {
        return life;
    }
}
