package io.herdkeeper.node.nemesis;

/**
 * What a thread of a node meets whose power is cut: it does nothing more.
 *
 * <p>A {@link ThreadDeath}, since no {@code catch} of HerdDB's goes on from that, and the JVM ends the thread without a word.
 */
public final class PowerCut extends ThreadDeath {

    private static final long serialVersionUID = 1L;
}
