package io.herdkeeper.node.check;

import io.herdkeeper.node.log.Position;

/**
 * What a follower found when the check of a table came by in its log.
 *
 * @param pass     whether its rows were the leader's, in all parts of the table
 * @param leader   the node that led, and wrote the check
 * @param atMillis when, in ms since 1970
 * @param position the entry of the part that differed, the last one of these; or of the last part
 */
public record Verdict(boolean pass, String leader, long atMillis, Position position) {
}
