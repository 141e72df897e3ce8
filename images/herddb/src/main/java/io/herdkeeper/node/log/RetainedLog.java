package io.herdkeeper.node.log;

import java.util.List;

/**
 * Ledgers that are past the retention and were not dropped, since they are still needed.
 *
 * @param ledgers     how many
 * @param sinceMillis when the oldest of them ended, in ms since 1970
 * @param keptFor     who needs that one, for people
 */
public record RetainedLog(int ledgers, long sinceMillis, List<String> keptFor) {
}
