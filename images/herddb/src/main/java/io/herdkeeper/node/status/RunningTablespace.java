package io.herdkeeper.node.status;

import herddb.log.LogSequenceNumber;

/**
 * A tablespace that runs on this node, as the node itself knows it.
 *
 * @param leads            whether the node leads it
 * @param applied          the last entry whose effect is in this node's tables
 * @param openTransactions transactions that began and did not end, up to {@code applied}
 * @param blockedSeconds   on a leader, for how many seconds nobody who waits for the tablespace's lock has got it: statements hang; else 0
 */
public record RunningTablespace(String name, boolean leads, LogSequenceNumber applied, int openTransactions, long blockedSeconds) {
}
