package io.herdkeeper.node.users;

import java.util.LinkedHashSet;
import java.util.Set;

/**
 * The connections of a SQL port that are not logged in: only so many. The one that has waited for longest makes room for the next.
 *
 * <p>Each costs memory, and anybody can open as many as ports are free. A client that logs in is through in a moment, so it does not notice
 * those who never do.
 */
public final class Strangers {

    /** More than the clients that come back at once when a leader changes. */
    static final int MOST = 1000;

    private final Set<BeforeLogin> waiting = new LinkedHashSet<>();

    void enter(BeforeLogin connection) {
        BeforeLogin left;
        synchronized (waiting) {
            waiting.add(connection);
            if (waiting.size() > MOST) {
                waiting.removeIf(BeforeLogin::isLoggedIn); // those that have logged in and asked for nothing since
            }
            left = waiting.size() > MOST ? waiting.iterator().next() : null;
            waiting.remove(left);
        }
        if (left != null) {
            left.makeRoom();
        }
    }

    void leave(BeforeLogin connection) {
        synchronized (waiting) {
            waiting.remove(connection);
        }
    }
}
