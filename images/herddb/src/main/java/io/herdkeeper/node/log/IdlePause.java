package io.herdkeeper.node.log;

/**
 * For how long a follower waits that has found no entry. HerdDB's followers don't wait, and each of their questions also costs every bookie of
 * the ledger an answer. So each pause is twice as long as the one before it, until an entry comes.
 *
 * <p>Used by the follower's thread only.
 */
final class IdlePause {

    static final long SHORTEST_MILLIS = 20;
    static final long LONGEST_MILLIS = 160;

    private long millis = SHORTEST_MILLIS;

    /** Returns the pause after a round without an entry. */
    long next() {
        long now = millis;
        millis = Math.min(2 * millis, LONGEST_MILLIS);
        return now;
    }

    /** An entry has come. */
    void begin() {
        millis = SHORTEST_MILLIS;
    }
}
