package io.herdkeeper.node.status;

import io.herdkeeper.node.log.Position;
import java.util.Map;

/**
 * Committed rows of each table at one position.
 *
 * @param exact    whether nothing was applied, and nothing was being applied, while they were counted; else they belong to no one position
 * @param position the last entry whose effect they have; a leader's leaves the entries out that an idle log gets by itself
 */
public record RowCounts(boolean exact, Position position, Map<String, Long> tables) {
}
