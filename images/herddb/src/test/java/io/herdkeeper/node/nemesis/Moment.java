package io.herdkeeper.node.nemesis;

import java.util.Locale;

/** Of a call: before its effect, or between its effect and its answer. */
public enum Moment {
    BEFORE, AFTER;

    @Override
    public String toString() {
        return name().toLowerCase(Locale.ROOT);
    }
}
