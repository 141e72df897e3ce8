package io.herdkeeper.node.status;

import herddb.log.LogSequenceNumber;

/**
 * A tablespace that runs on this node, as the node itself knows it.
 *
 * @param leads            whether the node leads it
 * @param applied          the last entry whose effect is in this node's tables
 * @param openTransactions transactions that began and did not end, up to {@code applied}
 * @param blockedSeconds   on a leader, for how many seconds no statement that changes rows could begin; 0 when statements run
 */
public record RunningTablespace(String name, boolean leads, LogSequenceNumber applied, int openTransactions, long blockedSeconds) {
}
