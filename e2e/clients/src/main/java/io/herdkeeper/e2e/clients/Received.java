package io.herdkeeper.e2e.clients;

import java.util.BitSet;

/**
 * What a reader got: each content is checked, and its place among the others. Sequences only rise; what is left out must be something that
 * was never acknowledged.
 */
final class Received {

    private final BitSet sequences = new BitSet();
    private String fault;

    /** The next entry of {@code log}, found at {@code place}. */
    synchronized void next(byte[] bytes, long log, String place) {
        String wrong = Content.fault(bytes, log);
        if (wrong != null) {
            failed(place + ": " + wrong);
            return;
        }
        int sequence = Math.toIntExact(Content.sequence(bytes));
        if (sequence < sequences.length()) {
            failed(place + ": sequence " + sequence + " comes after " + (sequences.length() - 1));
        }
        sequences.set(sequence);
    }

    /** Something that must not be; the first one is kept. */
    synchronized void failed(String what) {
        fault = fault == null ? what : fault;
    }

    /** How many came. */
    synchronized long count() {
        return sequences.cardinality();
    }

    /** Whether the last one that was acknowledged has come, or nothing more needs to be read since a fault was found. */
    synchronized boolean reaches(Written written) {
        return fault != null || sequences.length() > written.lastAcknowledged();
    }

    /** Why what came contradicts what was acknowledged; null when it does not. Asked when the writer has ended. */
    synchronized String violation(Written written) {
        if (fault != null) {
            return fault;
        }
        BitSet lost = written.acknowledgedOnes();
        lost.andNot(sequences);
        return lost.isEmpty() ? null
                : lost.cardinality() + " of " + written.acknowledged() + " acknowledged entries are missing, the first is sequence " + lost.nextSetBit(0);
    }
}
