package io.herdkeeper.node.nemesis;

/** One statement of a client, and what became of it. Times are those of {@link System#nanoTime}. */
final class Attempt {

    /** What a client knows of it. */
    enum Outcome { UNKNOWN, ACKNOWLEDGED, REFUSED }

    private final String what;
    private final String node;
    private final int key;
    private final long asked;
    private volatile Outcome outcome = Outcome.UNKNOWN;
    private volatile long answered;
    private volatile Throwable error;
    private volatile boolean over;

    Attempt(String what, String node, int key) {
        this(what, node, key, System.nanoTime());
    }

    private Attempt(String what, String node, int key, long asked) {
        this.asked = asked;
        this.what = what;
        this.node = node;
        this.key = key;
    }

    void acknowledged() {
        answered = System.nanoTime();
        outcome = Outcome.ACKNOWLEDGED;
        over = true;
    }

    /** Ends with an error, of which it is known, or not, that nothing was done. */
    void failed(Throwable why, boolean isRefusal) {
        answered = System.nanoTime();
        error = why;
        outcome = isRefusal ? Outcome.REFUSED : Outcome.UNKNOWN;
        over = true;
    }

    /** What is known of it at this moment. */
    Attempt now() {
        Attempt copy = new Attempt(what, node, key, asked);
        copy.outcome = outcome;
        copy.answered = answered;
        copy.error = error;
        return copy;
    }

    boolean isOver() {
        return over;
    }

    String node() {
        return node;
    }

    int key() {
        return key;
    }

    long asked() {
        return asked;
    }

    long answered() {
        return answered;
    }

    Outcome outcome() {
        return outcome;
    }

    @Override
    public String toString() {
        return what + " of row " + key + " on " + node + " (" + outcome + (error == null ? "" : ", " + error) + ")";
    }
}
