package io.herdkeeper.node.status;

/**
 * What a follower found when HerdDB's consistency check of one table came by in the log.
 *
 * @param pass     whether this node's rows gave the leader's digest
 * @param digest   this node's digest, as HerdDB prints it
 * @param atMillis when, in ms since 1970
 * @param position the check's entry in the log; null when that is not known
 */
public record Verdict(boolean pass, String digest, long atMillis, Position position) {
}
