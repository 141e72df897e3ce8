package io.herdkeeper.node.nemesis;

/**
 * What a node does at its rim.
 *
 * @param what    without anything that differs between two runs, as names of tablespaces and numbers of ledgers do
 * @param changes whether it changes anything outside of the process, or the tables
 * @param polled  whether it is repeated in time, so that only its first time in a run can be told from others
 */
public record Call(Kind kind, String what, boolean changes, boolean polled) {

    Call(Kind kind, String what, boolean changes) {
        this(kind, what, changes, false);
    }
}
