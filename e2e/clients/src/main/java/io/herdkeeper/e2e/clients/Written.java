package io.herdkeeper.e2e.clients;

import java.util.ArrayList;
import java.util.BitSet;
import java.util.List;
import java.util.Locale;
import java.util.function.DoubleSupplier;

/**
 * What a writer tried and what was acknowledged, by sequence numbers that are never used twice, and the gaps between acknowledgements.
 */
final class Written {

    private final DoubleSupplier clock;
    private final BitSet acknowledged = new BitSet();
    private final List<Mark> marks = new ArrayList<>();
    private int next;
    private double lastAt;

    /** {@code clock} tells seconds that never go back. */
    Written(DoubleSupplier clock) {
        this.clock = clock;
        this.lastAt = clock.getAsDouble();
    }

    /** A number for the next try. */
    synchronized long attempt() {
        return next++;
    }

    /** The log promised to keep this one. */
    synchronized void acknowledged(long sequence) {
        acknowledged.set(Math.toIntExact(sequence));
        double now = clock.getAsDouble();
        if (!marks.isEmpty()) {
            Mark mark = marks.get(marks.size() - 1);
            mark.longest = Math.max(mark.longest, now - lastAt);
            mark.answered = true;
        }
        lastAt = now;
    }

    /** Somebody outside does something to the cluster. */
    synchronized void mark(String fault) {
        marks.add(new Mark(fault, next));
    }

    /** How many were acknowledged. */
    synchronized long acknowledged() {
        return acknowledged.cardinality();
    }

    /** The highest that was acknowledged, -1 before the first. */
    synchronized long lastAcknowledged() {
        return acknowledged.length() - 1L;
    }

    /** Those that were acknowledged, as they are now. */
    synchronized BitSet acknowledgedOnes() {
        return (BitSet) acknowledged.clone();
    }

    /**
     * For each mark the longest time without an acknowledgement that ends after it, until the next mark, as herdkeeper_e2e/history.py tells
     * it: it begins with the last success, not with the fault. One that has not ended lasts until now.
     */
    synchronized String gaps() {
        List<String> found = new ArrayList<>();
        for (int i = 0; i < marks.size(); i++) {
            Mark mark = marks.get(i);
            int until = i + 1 < marks.size() ? marks.get(i + 1).firstSequence : next;
            double seconds = mark.answered ? mark.longest : clock.getAsDouble() - lastAt;
            long unknown = until - mark.firstSequence - (long) acknowledged.get(mark.firstSequence, until).cardinality();
            found.add(String.format(Locale.ROOT, "{\"fault\": %s, \"seconds\": %.3f, \"unknown_rows\": %d}", Json.text(mark.fault), seconds, unknown));
        }
        return "[" + String.join(", ", found) + "]";
    }

    private static final class Mark {
        private final String fault;
        private final int firstSequence;
        private double longest;
        private boolean answered;

        private Mark(String fault, int firstSequence) {
            this.fault = fault;
            this.firstSequence = firstSequence;
        }
    }
}
