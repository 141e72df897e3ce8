package io.herdkeeper.node.status;

import io.herdkeeper.node.check.FullCheck;
import io.herdkeeper.node.check.Verdict;
import io.herdkeeper.node.log.Position;
import io.herdkeeper.node.log.RetainedLog;
import io.herdkeeper.node.log.StuckReplays.StuckReplay;
import java.util.List;
import java.util.Map;

/**
 * One tablespace of this node, as {@code GET /tablespaces} shows it.
 *
 * @param name             lower case
 * @param uuid             of this generation; a tablespace that is dropped and made again gets another one
 * @param leaderInMetadata the node that ZooKeeper names as leader
 * @param replicas         the nodes that ZooKeeper names as replicas, the leader among them
 * @param role             what this node does for it now
 * @param ready            whether that is the role which the metadata gives to this node
 * @param applied          the last entry whose effect is in this node's tables, of a leader the last acknowledged; null while booting
 * @param log              the same, for jobs of earlier versions
 * @param checkpoint       up to where this node's tables are on its own disk: a boot replays what follows; null while booting, and when the
 *                         disk does not tell
 * @param recoverable      whether the log still has everything after {@code checkpoint}; null when that is null
 * @param barred           whether this node must not make itself the leader; true also when its disk does not say
 * @param barredUntil      the LSN that a verdict must exceed to lift the bar; null if there is none, or the disk does not say
 * @param retainedLog      on a leader, what is past the retention and was not dropped, since somebody needs it; else null
 * @param openTransactions transactions that began and did not end, up to {@code applied}
 * @param blockedSeconds   on a leader, for how many seconds nobody who waits for the tablespace's lock has got it: statements hang; else 0
 * @param rows             committed rows of each table
 * @param counts           the same with the position that they belong to; null while booting
 * @param unreplayable     the entry of the log that this node can't apply, or the ledger that is lost or not the log's own; null when there is none
 * @param checks           the last verdict on each table, empty until a check came by
 * @param fullCheck        the check of all tables that this node runs, or ran last as the leader since its process started; else null
 * @param lastError        the last failure of its boot or of its follower since this process started, or null
 */
public record TablespaceStatus(
        String name,
        String uuid,
        String leaderInMetadata,
        List<String> replicas,
        Role role,
        boolean ready,
        Position applied,
        Position log,
        Position checkpoint,
        Boolean recoverable,
        boolean barred,
        Position barredUntil,
        RetainedLog retainedLog,
        int openTransactions,
        long blockedSeconds,
        Map<String, Long> rows,
        RowCounts counts,
        StuckReplay unreplayable,
        Map<String, Verdict> checks,
        FullCheck fullCheck,
        String lastError) {
}
