"""Decides who leads a tablespace from its replicas' state: keep the leader, move it, wait, or refuse a request.

A move is always safe, since the new leader fences the old one's ledgers before it writes: no row can be lost. But it may not help. So a
leader is demoted only if a replica can lead at once and could write.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from herdkeeper.codecs.herddb.tablespace import TablespaceRecord
from herdkeeper.herddb.state.cluster import NodeTablespace
from herdkeeper.protocol.self_report import SelfReport
from herdkeeper.shared.unknown import NotListening, Unknown

PAUSE_SECONDS = 5.0
"""No failover so soon after a change of the record: the new leader is booting, and two crashing nodes must not pass the leadership back and
forth."""
HEALTHY_SECONDS = 60.0
"""A preferred leader gets the leadership back after the record was unchanged for so long."""
HEARTBEAT_SECONDS = 2.0
"""Maximum difference between the heartbeats of two live nodes, which send one each second."""
CLOCKS_SECONDS = 3.0
"""How far a SQL node's clock may be ahead of ZooKeeper's."""
FAR_BEHIND = 10_000
"""Entries that a follower may lack to take over from a serving leader."""
SELF_HELP_SECONDS = 7.0
"""Time for a leader to recover by itself from the loss of a ZooKeeper member or a bookie. ZooKeeper's client reconnects within its session
of 6 s. BookKeeper's, which checks once a second, switches to another bookie after 5 s without an answer."""
STORAGE_PAUSE_SECONDS = 30.0
"""No failover because of bookies so soon after a change of the record: if they answer nobody, a move does not help."""
SWITCHOVER_WAITS_SECONDS = 20.0
"""A requested switchover waits for a node that fell silent, started or changed its role within this time. The liveness probe restarts a
node that hangs, but later."""
WAITING_SECONDS = 2.0
"""A node whose own log has waited for so long gets no further leadership, unless a leader ends. Then any node that takes over is better
than none, and the bookie may have been on the old leader's machine."""
TOO_FEW_BOOKIES = "BKNotEnoughBookiesException"
"""What BookKeeper's client throws if fewer bookies are writable than a ledger needs, as in a node's last failure."""
SELF_REPORT_SECONDS = 60.0
"""For so long, a leader with a failed log is believed that there are too few bookies, even if enough are counted: only it may be cut off.
"""
MUCH_TO_REPLAY = 500
"""Entries since the last local checkpoint from which on a follower checkpoints before it takes over from a serving leader."""


@dataclass(frozen=True)
class Node:
    """State of one replica's node.

    `gone`: why its process has ended; `leaving`: why it is about to; `relieved`: why it must lead nothing although it goes on; `held_back`:
    why it gets no leadership unless needed; each None otherwise. `late`: it does not lead yet what it just got
    (herddb/leadership/take_over.py).

    `copy` is its view of the tablespace, None if it does not hold it. `running_since` is its process's start, by ZooKeeper's clock.
    `silent_seconds` is how long the operator has not heard from the process, None if never. `heartbeat` is its last one in ZooKeeper, by
    ZooKeeper's clock, or None. `report` is its view of its own connections, None if it is silent or reports none.
    """

    gone: str | None = None
    leaving: str | None = None
    relieved: str | None = None
    held_back: str | None = None
    late: bool = False
    copy: NodeTablespace | Unknown | None = None
    running_since: float | None = None
    silent_seconds: float | None = None
    heartbeat: float | None = None
    report: SelfReport | None = None


@dataclass(frozen=True)
class Situation:
    """State of one tablespace.

    `why_no_writing`: why no new leader could write now, None if one could. Unknown keeps a leader that can continue, but not one that ends
    or has ended: then nobody would write anyway. `changed_at` and `now` are Unix seconds by ZooKeeper's clock; if that is unknown, `now` is
    by the operator's.

    `requested` is the node that a person wants as leader now, `preferred` the one that leads when healthy. `hung_seconds` is how long a
    leader may be silent. `relieve`: whether to relieve a leader whose rows differ from the log.
    """

    record: TablespaceRecord
    nodes: Mapping[str, Node]
    why_no_writing: str | Unknown | None
    changed_at: float | None
    now: float
    requested: str | None = None
    preferred: str | None = None
    hung_seconds: float = 5.0
    relieve: bool = True


@dataclass(frozen=True)
class Keep:
    """The leader stays. `settled`: it leads; otherwise decide again soon."""

    why: str
    settled: bool = True


@dataclass(frozen=True)
class Move:
    """`to` must lead.

    `checkpoint_first`: the leader still serves, and `to` has much to replay. `leader_lost`: nobody writes until then. `in_turn`: the leader
    serves until relieved and `to` was not requested, so others may go first (herddb/leadership/hand_over.py).
    """

    to: str
    why: str
    checkpoint_first: bool = False
    leader_lost: bool = False
    in_turn: bool = False


@dataclass(frozen=True)
class Blocked:
    """The leader should be replaced, but can't be yet."""

    why: str


@dataclass(frozen=True)
class Refused:
    """The request is refused, which ends it."""

    why: str


@dataclass(frozen=True)
class Postponed:
    """The request waits: its node can't lead yet, but may within seconds."""


Decision = Keep | Move | Blocked | Refused | Postponed


def decide(seen: Situation) -> Decision:
    """Returns the decision for a tablespace."""
    leader = seen.nodes.get(seen.record.leader, Node(gone="it is not a node of this cluster"))
    gone = _why_gone(seen, leader)
    if gone is not None:
        return _fail_over(seen, gone)
    if leader.leaving is not None:
        return _demote_now(seen, leader.leaving)
    failing = _why_log_fails(seen, leader)
    if failing is not None:
        return _fail_over(seen, failing, storage=True)
    if leader.relieved is not None:
        return _demote_once_caught_up(seen, leader.relieved)
    if seen.requested is not None:
        return _switch_over(seen, seen.requested)
    return _keep_leader(seen, leader)


def cannot_lead(node: Node, record: TablespaceRecord) -> str | None:
    """Returns why a replica can't become the leader now, or None."""
    copy = node.copy
    if stops := node.gone or node.leaving or node.relieved:
        return stops
    if isinstance(copy, Unknown):
        return f"it does not answer ({copy.why})"
    if copy is None or copy.uuid != record.uuid:
        return "it does not hold the tablespace"
    return _why_not_promotable(copy)


def why_not_verified(copy: NodeTablespace) -> str | None:
    """Returns why a replica's rows can't be trusted, or None if it passed all checks."""
    return copy.why_wrong or (copy.differs.why if isinstance(copy.differs, Unknown) else None)


def why_not_leading(leader: Node, record: TablespaceRecord) -> str | None:
    """Returns why the recorded leader does not lead now, by its own report, or None."""
    copy = leader.copy
    if isinstance(copy, Unknown):
        return f"does not answer ({copy.why})"
    if copy is None or copy.uuid != record.uuid:
        return "does not hold the tablespace yet"
    return None if copy.role == "leader" else f"is {copy.role}"


def why_no_ledger(seen: Situation) -> str | None:
    """Returns why no ledger can be opened now, by the count of bookies or the leader's last failure, or None.

    A boot fails again each second, so an older failure means nothing. A failure of a log is not believed forever: a node that alone can't
    reach the bookies finds too few, too. If its successor also finds too few, that one stays.
    """
    leader = seen.nodes.get(seen.record.leader)
    copy = leader.copy if leader is not None else None
    if isinstance(copy, NodeTablespace) and (copy.uuid, copy.role) in ((seen.record.uuid, "failed"), (seen.record.uuid, "booting")):
        failed_at = _time_of(copy.last_error or "")
        believed = SELF_REPORT_SECONDS if copy.role == "failed" else STORAGE_PAUSE_SECONDS
        recent = copy.role == "failed" if failed_at is None else seen.now - failed_at < believed
        if recent and TOO_FEW_BOOKIES in (copy.last_error or ""):
            return "it finds fewer writable bookies than a ledger needs, and so would the others"
    return _known_reason(seen.why_no_writing)


def behind(leader: NodeTablespace | Unknown | None, follower: NodeTablespace | Unknown | None) -> str | None:
    """Returns why a follower is too far behind a serving leader, or None."""
    if not isinstance(leader, NodeTablespace) or not isinstance(follower, NodeTablespace) or leader.lsn is None or follower.lsn is None:
        return "its lag is unknown"
    if follower.lsn[0] < leader.lsn[0] and leader.lsn[1] > FAR_BEHIND:
        return f"it is at {follower.lsn} and the leader at {leader.lsn}"
    if follower.lsn[0] == leader.lsn[0] and leader.lsn[1] - follower.lsn[1] > FAR_BEHIND:
        return f"it is {leader.lsn[1] - follower.lsn[1]} entries behind"
    return None


def _keep_leader(seen: Situation, leader: Node) -> Decision:
    """No replica has to take over, but one may."""
    if trouble := why_not_leading(leader, seen.record):
        return Keep(f"{seen.record.leader} {trouble}: HerdDB's own failover decides whether it is alive", settled=False)
    if seen.relieve and isinstance(leader.copy, NodeTablespace) and (wrong := leader.copy.why_wrong) is not None:
        return _demote_if_possible(seen, wrong)
    return _fail_back(seen)


def _why_not_promotable(copy: NodeTablespace) -> str | None:
    if copy.role != "follower" or not copy.ready:
        return f"it is {copy.role}" if copy.role != "follower" else "it is not settled"
    if not_passed := why_not_verified(copy):
        return not_passed
    if copy.recoverable is None:
        return "it does not report whether its disk and the log are complete"
    return None if copy.recoverable else "the log no longer has entries that its disk lacks"


def _why_gone(seen: Situation, leader: Node) -> str | None:
    """Returns why the leader is gone, by signs that slowness can't explain."""
    if leader.gone is not None:
        return leader.gone
    if isinstance(leader.copy, NotListening):
        return "its process does not listen"
    booting = isinstance(leader.copy, NodeTablespace) and leader.copy.role == "booting"
    if booting and leader.running_since is not None and seen.changed_at is not None and leader.running_since > seen.changed_at:
        return "its process has restarted"
    return _why_hung(seen, leader) or _why_cut_off(seen, leader)


def _why_hung(seen: Situation, leader: Node) -> str | None:
    """Returns that neither the operator nor ZooKeeper hears from the leader.

    One of them alone may be cut off from a serving leader, and a long local checkpoint delays heartbeats. A newer heartbeat of another
    replica shows that ZooKeeper accepts them.
    """
    if leader.silent_seconds is None or leader.silent_seconds < seen.hung_seconds or leader.heartbeat is None:
        return None
    others = [node for name, node in seen.nodes.items() if name != seen.record.leader]
    late = _seconds_behind(leader.heartbeat, others)
    return "its process answers neither the operator nor ZooKeeper" if late >= seen.hung_seconds - HEARTBEAT_SECONDS else None


def _why_cut_off(seen: Situation, leader: Node) -> str | None:
    """Returns that ZooKeeper does not answer the leader, by its own report, and has no newer heartbeat of it.

    Replicas with heartbeats must have had answers all the time: after an outage for everybody the leader may just be the last to reconnect.
    """
    limit = max(seen.hung_seconds, SELF_HELP_SECONDS)
    if leader.report is None or leader.report.zookeeper_silent < limit or leader.heartbeat is None:
        return None
    others = [node for name, node in seen.nodes.items() if name != seen.record.leader]
    served = [node for node in others if node.report is not None and node.report.zookeeper_steady >= limit]
    late = _seconds_behind(leader.heartbeat, served)
    return "ZooKeeper answers others, but not it" if late >= limit - HEARTBEAT_SECONDS else None


def _seconds_behind(heartbeat: float, others: Sequence[Node]) -> float:
    return max((node.heartbeat for node in others if node.heartbeat is not None), default=heartbeat) - heartbeat


def _why_log_fails(seen: Situation, leader: Node) -> str | None:
    """Returns why a live leader can't write its log, by its own report."""
    copy = leader.copy
    if isinstance(copy, NodeTablespace) and copy.uuid == seen.record.uuid and copy.role == "failed":
        return f"it has failed: {copy.last_error or 'without a reason'}"
    if _unacknowledged(leader, seen.record) >= max(seen.hung_seconds, SELF_HELP_SECONDS):
        return "its bookies no longer acknowledge"
    return _why_not_booted(seen, leader)


def _why_not_booted(seen: Situation, leader: Node) -> str | None:
    """Returns that the leader's boot fails repeatedly. HerdDB retries once a second and reports the last failure with its time, by the
    node's clock. A boot that is merely slow has no failure since the node got the leadership.
    """
    copy = leader.copy
    if not isinstance(copy, NodeTablespace) or (copy.uuid, copy.role) != (seen.record.uuid, "booting") or seen.changed_at is None:
        return None
    failed_at = _time_of(copy.last_error or "")
    return f"its boot fails: {copy.last_error}" if failed_at is not None and failed_at > seen.changed_at + CLOCKS_SECONDS else None


def _time_of(failure: str) -> float | None:
    """Returns the Unix seconds of a failure that begins with its time (RFC 3339)."""
    try:
        return datetime.datetime.fromisoformat(failure.partition(" ")[0]).timestamp()
    except ValueError:
        return None


def _unacknowledged(leader: Node, record: TablespaceRecord) -> float:
    return leader.report.unacknowledged.get(record.name, 0.0) if leader.report is not None else 0.0


def _fail_over(seen: Situation, why: str, *, storage: bool = False) -> Decision:
    """`storage`: the leader's node is alive, and its trouble with the bookies may affect every node."""
    lost = f"{seen.record.leader} can't lead any more ({why})"
    why_no_writing = why_no_ledger(seen) or (_reason_or_unknown(seen.why_no_writing) if storage else None)
    if why_no_writing is not None:
        return Blocked(f"{lost}, and no other replica could lead: {why_no_writing}")
    pause = STORAGE_PAUSE_SECONDS if storage else PAUSE_SECONDS
    # a change in the future happened just now, by a clock that is slightly ahead
    if seen.changed_at is not None and abs(age := seen.now - seen.changed_at) < pause:
        cause = "the storage may be the cause, " if storage else ""
        return Blocked(
            f"{lost}, but the leader was changed {max(age, 0.0):.0f} s ago: {cause}the next change is possible after {pause:.0f} s"
        )
    why_not = _why_not_while_leader_lives if storage else _why_not_eligible
    # a relieved node is better than no leader
    best = _best_replica(seen, why_not) or _best_replica(_including_relieved(seen), why_not)
    if best is None:
        return Blocked(f"{lost}, and no other replica can lead: {_why_no_candidate(seen, why_not)}")
    return Move(best, lost, leader_lost=True)


def _known_reason(why_no_writing: str | Unknown | None) -> str | None:
    """Returns why no node could write, if known."""
    return None if isinstance(why_no_writing, Unknown) else why_no_writing


def _reason_or_unknown(why_no_writing: str | Unknown | None) -> str | None:
    """Returns why no node could write, or why that is unknown."""
    return why_no_writing.why if isinstance(why_no_writing, Unknown) else why_no_writing


def _demote_now(seen: Situation, why: str) -> Decision:
    """The leader is about to end: any replica that can lead is better than none, however far behind."""
    leaves = f"{seen.record.leader} must not lead any more ({why})"
    if (why_no_writing := _known_reason(seen.why_no_writing)) is not None:
        return Blocked(f"{leaves}, but it stays: {why_no_writing}")
    best = _best_replica(seen)
    if best is None:
        return Blocked(f"{leaves}, and no other replica can lead: {_why_no_candidate(seen)}")
    return Move(best, leaves, _much_to_replay(seen.nodes[best]), in_turn=_serves(seen) and seen.requested is None)


def _serves(seen: Situation) -> bool:
    leader = seen.nodes[seen.record.leader]
    return why_not_leading(leader, seen.record) is None and _why_log_fails(seen, leader) is None


def _demote_once_caught_up(seen: Situation, why: str) -> Decision:
    """The leader serves but must be relieved: writes don't pause while it waits for a replica that has caught up."""
    leaves = f"{seen.record.leader} must not lead any more ({why})"
    if (why_no_writing := _reason_or_unknown(seen.why_no_writing)) is not None:
        return Blocked(f"{leaves}, but it stays: {why_no_writing}")
    best = _best_replica(_without_lagging_followers(seen), _why_not_voluntarily)
    if best is None:
        return Blocked(f"{leaves}, and no other replica can lead: {_why_no_candidate(seen, _why_not_voluntarily)}")
    return Move(best, leaves, _much_to_replay(seen.nodes[best]), in_turn=_serves(seen) and seen.requested is None)


def _demote_if_possible(seen: Situation, why: str) -> Decision:
    """The leader serves rows that the log does not have: replace it as soon as a replica can take over, without turns. It needs no second
    request: an event reports the change.
    """
    decision = _demote_once_caught_up(seen, why)
    if isinstance(decision, Move):
        return replace(decision, in_turn=False)
    cause = _reason_or_unknown(seen.why_no_writing) or f"no other replica can lead ({_why_no_candidate(seen, _why_not_voluntarily)})"
    return Keep(f"{seen.record.leader} still leads, although {why}: {cause}")


def _without_lagging_followers(seen: Situation) -> Situation:
    """Returns the situation without replicas that are too far behind a serving leader."""
    return replace(seen, record=replace(seen.record, replicas=tuple(name for name in seen.record.replicas if not _lags(seen, name))))


def _including_relieved(seen: Situation) -> Situation:
    """Returns the situation with relieved nodes included."""
    return replace(seen, nodes={name: replace(node, relieved=None) for name, node in seen.nodes.items()})


def _switch_over(seen: Situation, target: str) -> Decision:
    if target == seen.record.leader:
        trouble = why_not_leading(seen.nodes[target], seen.record)
        return Keep(f"{target} already leads") if trouble is None else Keep(f"{target} is the leader already, but {trouble}", settled=False)
    if target not in seen.record.replicas or target not in seen.nodes:
        return Refused(f"{target} holds no replica; replicas are on {', '.join(sorted(seen.record.replicas))}")
    if trouble := why_not_leading(seen.nodes[seen.record.leader], seen.record):
        return Refused(f"there is no leader to take over from: {seen.record.leader} {trouble}")
    if why := _why_not_while_leader_lives(seen, target) or _behind(seen, target) or _reason_or_unknown(seen.why_no_writing):
        return Postponed() if _may_lead_soon(seen, seen.nodes[target]) else Refused(f"{target} can't lead now: {why}")
    return Move(target, f"{target} was requested", _much_to_replay(seen.nodes[target]))


def _may_lead_soon(seen: Situation, node: Node) -> bool:
    """Returns whether a node has just fallen silent, or is not settled since it has just started, led or become a replica."""
    if node.gone or node.leaving or node.relieved:
        return False
    if isinstance(node.copy, Unknown):
        return HEARTBEAT_SECONDS <= (node.silent_seconds or 0.0) < SWITCHOVER_WAITS_SECONDS
    if node.copy is not None and node.copy.ready:
        return False
    return any(at is not None and abs(seen.now - at) < SWITCHOVER_WAITS_SECONDS for at in (seen.changed_at, node.running_since))


def _fail_back(seen: Situation) -> Decision:
    leads = f"{seen.record.leader} leads"
    if _unacknowledged(seen.nodes[seen.record.leader], seen.record) > 0:
        return Keep(f"{leads}, and waits for its bookies", settled=False)
    target = seen.preferred
    if target is None or target == seen.record.leader:
        return Keep(leads)
    if target not in seen.record.replicas or target not in seen.nodes:
        return Keep(f"{leads}; the preferred {target} holds no replica")
    if why := _why_not_voluntarily(seen, target) or _behind(seen, target) or _reason_or_unknown(seen.why_no_writing):
        return Keep(f"{leads}; the preferred {target} can't lead: {why}")
    if seen.changed_at is None or seen.now - seen.changed_at < HEALTHY_SECONDS:
        return Keep(f"{leads}; the preferred {target} takes over {HEALTHY_SECONDS:.0f} s after the last leader change")
    return Move(target, f"{target} is preferred and healthy", _much_to_replay(seen.nodes[target]), in_turn=True)


def _why_not_eligible(seen: Situation, name: str) -> str | None:
    return cannot_lead(seen.nodes[name], seen.record) if name in seen.nodes else "it is not a node of this cluster"


def _why_not_while_leader_lives(seen: Situation, name: str) -> str | None:
    """Like `_why_not_eligible`, while the leader lives: waiting is better than moving to a node whose storage does not answer either."""
    return _why_not_eligible(seen, name) or ("its bookies don't answer it" if _waits_for_bookies(seen.nodes[name]) else None)


def _why_not_voluntarily(seen: Situation, name: str) -> str | None:
    """Like `_why_not_while_leader_lives`, if the leader could as well stay: a node that just failed to take over is not tried again at
    once.
    """
    return _why_not_while_leader_lives(seen, name) or seen.nodes[name].held_back


def _waits_for_bookies(node: Node) -> bool:
    return node.report is not None and any(waited >= WAITING_SECONDS for waited in node.report.unacknowledged.values())


def _best_replica(seen: Situation, why_not: Callable[[Situation, str], str | None] = _why_not_eligible) -> str | None:
    """Returns the best replica that can lead. It took over its last leadership, its bookies answer it, and it has the least to replay. Ties
    are broken by name, so that the choice is stable.
    """
    able = [name for name in sorted(seen.record.replicas) if name != seen.record.leader and why_not(seen, name) is None]
    return max(able, key=lambda name: _rank(seen.nodes[name]), default=None)


def _rank(node: Node) -> tuple[bool, bool, bool, tuple[tuple[int, int], tuple[int, int]]]:
    """Higher is better."""
    return node.held_back is None, not node.late, not _waits_for_bookies(node), _progress(node)


def _progress(node: Node) -> tuple[tuple[int, int], tuple[int, int]]:
    """A boot starts at the local checkpoint, whatever was applied in memory. The rest of the log is the same for all."""
    copy = node.copy
    if not isinstance(copy, NodeTablespace):
        return (-1, -1), (-1, -1)
    return copy.checkpoint or (-1, -1), copy.lsn or (-1, -1)


def _why_no_candidate(seen: Situation, why_not: Callable[[Situation, str], str | None] = _why_not_eligible) -> str:
    others = [name for name in sorted(seen.record.replicas) if name != seen.record.leader]
    return "; ".join(f"{name}: {why_not(seen, name) or _behind(seen, name)}" for name in others) or "there is none"


def _lags(seen: Situation, name: str) -> bool:
    return name != seen.record.leader and name in seen.nodes and _behind(seen, name) is not None


def _behind(seen: Situation, target: str) -> str | None:
    return behind(seen.nodes[seen.record.leader].copy, seen.nodes[target].copy)


def _much_to_replay(node: Node) -> bool:
    checkpoint, applied = _progress(node)
    return checkpoint[0] != applied[0] or applied[1] - checkpoint[1] > MUCH_TO_REPLAY
