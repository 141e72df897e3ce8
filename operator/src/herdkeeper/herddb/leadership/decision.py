"""Decides who leads a tablespace: from its replicas' state, keep the leader, move it, wait, or refuse a request.

A move is always safe: the new leader fences the old one's ledgers before it writes. A move can't lose a row, but it may not help. So a
leader is demoted only when a replica can lead at once and could write.
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
"""After a change of the record nobody is failed over again: the new leader boots meanwhile, and two that crash don't pass it to and fro."""
HEALTHY_SECONDS = 60.0
"""A preferred leader gets the leadership back when the record was left alone for so long."""
HEARTBEAT_SECONDS = 2.0
"""By so much two live nodes' heartbeats may differ: each sends one a second."""
CLOCKS_SECONDS = 3.0
"""By so much a SQL node's clock may be ahead of ZooKeeper's."""
FAR_BEHIND = 10_000
"""Entries that a follower may lack when it is to take over from a leader that serves."""
SELF_HELP_SECONDS = 7.0
"""So long a leader that loses a member of ZooKeeper, or a bookie, may take to help itself: ZooKeeper's client is connected to another
member within its session of 6 s, and BookKeeper's, which looks once a second, turns to another bookie after 5 s without an answer."""
STORAGE_PAUSE_SECONDS = 30.0
"""After a change of the record nobody is failed over for what its bookies do: when they answer nobody, moving does not help."""
WAITING_SECONDS = 2.0
"""A node whose own log has waited for so long gets no other to lead, unless its leader ends: whoever takes over then is better than nobody,
and the bookie that it waits for may have gone with the leader's machine."""
TOO_FEW_BOOKIES = "BKNotEnoughBookiesException"
"""What BookKeeper's client throws when fewer bookies are writable than a ledger needs, as a node's last failure names it."""
SELF_REPORT_SECONDS = 60.0
"""So long a leader whose log has failed is believed that nobody finds enough bookies, where enough are counted: it alone may be cut off."""
MUCH_TO_REPLAY = 500
"""Entries since the last local checkpoint, from which on a follower checkpoints before it takes over from a leader that serves."""


@dataclass(frozen=True)
class Node:
    """What is known of one replica's node. `gone`: why its process has ended, `leaving`: why it is about to, `relieved`: why it
    shall lead nothing though it goes on, `held_back`: why it is given nothing without need; None when not so. `late`: whether it does not
    lead yet what it got a moment ago (herddb/leadership/take_over.py).

    `copy` is what it says of the tablespace, None when it does not hold it. `running_since` is when its process started, by ZooKeeper's
    clock.
    `silent_seconds` is for how long the operator has not heard of its process, None when it never has. `heartbeat` is when it last told
    ZooKeeper that it lives, by ZooKeeper's clock; None when none is known. `report` is what it says of its own connections, None
    when it is silent or says nothing of them.
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
    """One tablespace. `why_no_writing`: why no new leader could write now, None when one could; Unknown keeps a leader that can go on, and
    none that ends or has ended: with it nobody would write either. `changed_at` and `now` are in seconds since 1970, both by ZooKeeper's
    clock; where that is not known, `now` is by the operator's.

    `requested` is the node that a person wants to lead now, `preferred` the one that shall lead when it is healthy. `hung_seconds` is how
    long a leader may give no sign of life. `relieve`: whether a leader is left that serves other rows than the log says.
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
    """The leader stays. `settled`: it leads; else it is looked at again soon."""

    why: str
    settled: bool = True


@dataclass(frozen=True)
class Move:
    """`to` shall lead. `checkpoint_first`: the leader still serves, and `to` has much to replay. `leader_lost`: nobody writes before.
    `in_turn`: the leader serves until it is left, and nobody asked for `to`, so others may go first (herddb/leadership/hand_over.py)."""

    to: str
    why: str
    checkpoint_first: bool = False
    leader_lost: bool = False
    in_turn: bool = False


@dataclass(frozen=True)
class Blocked:
    """The leader should be left, and can't be yet."""

    why: str


@dataclass(frozen=True)
class Refused:
    """What was requested is not done; the request is over."""

    why: str


Decision = Keep | Move | Blocked | Refused


def decide(seen: Situation) -> Decision:
    """What to do now."""
    leader = seen.nodes.get(seen.record.leader, Node(gone="it is not a node of this cluster"))
    gone = _why_gone(leader, seen)
    if gone is not None:
        return _fail_over(seen, gone)
    if leader.leaving is not None:
        return _demote_now(seen, leader.leaving)
    failing = _why_not_writing(leader, seen)
    if failing is not None:
        return _fail_over(seen, failing, storage=True)
    if leader.relieved is not None:
        return _demote_once_caught_up(seen, leader.relieved)
    if seen.requested is not None:
        return _switch_over(seen, seen.requested)
    return _keep_leader(seen, leader)


def cannot_lead(node: Node, record: TablespaceRecord) -> str | None:
    """Why a replica can't become the leader now; None when it can."""
    copy = node.copy
    if stops := node.gone or node.leaving or node.relieved:
        return stops
    if isinstance(copy, Unknown):
        return f"it does not answer ({copy.why})"
    if copy is None or copy.uuid != record.uuid:
        return "it does not hold the tablespace"
    return _why_not_promotable(copy)


def why_not_verified(copy: NodeTablespace) -> str | None:
    """Why a replica's rows can't be trusted; None when it passed all checks."""
    return copy.why_wrong or (copy.differs.why if isinstance(copy.differs, Unknown) else None)


def why_not_leading(leader: Node, record: TablespaceRecord) -> str | None:
    """Why the recorded leader does not lead now, by its own report; None when it does."""
    copy = leader.copy
    if isinstance(copy, Unknown):
        return f"does not answer ({copy.why})"
    if copy is None or copy.uuid != record.uuid:
        return "does not hold the tablespace yet"
    return None if copy.role == "leader" else f"is {copy.role}"


def why_no_ledger(seen: Situation) -> str | None:
    """Why nobody can open a ledger now, by the bookies that are counted or by the leader's last failure; None when neither says so. A boot
    fails again each second, so that an older failure tells nothing. Nor does that of a log for ever: a node that alone does not reach the
    bookies finds too few of them, too. Whoever takes over then and finds too few stays."""
    leader = seen.nodes.get(seen.record.leader)
    copy = leader.copy if leader is not None else None
    if isinstance(copy, NodeTablespace) and (copy.uuid, copy.role) in ((seen.record.uuid, "failed"), (seen.record.uuid, "booting")):
        failed_at = _time_of(copy.last_error or "")
        believed = SELF_REPORT_SECONDS if copy.role == "failed" else STORAGE_PAUSE_SECONDS
        recent = copy.role == "failed" if failed_at is None else seen.now - failed_at < believed
        if recent and TOO_FEW_BOOKIES in (copy.last_error or ""):
            return "it finds fewer writable bookies than a ledger needs, and so would they"
    return _known_reason(seen.why_no_writing)


def behind(leader: NodeTablespace | Unknown | None, follower: NodeTablespace | Unknown | None) -> str | None:
    """Why a follower is too far behind a leader that serves; None when it is not."""
    if not isinstance(leader, NodeTablespace) or not isinstance(follower, NodeTablespace) or leader.lsn is None or follower.lsn is None:
        return "its lag is unknown"
    if follower.lsn[0] < leader.lsn[0] and leader.lsn[1] > FAR_BEHIND:
        return f"it is at {follower.lsn} and the leader at {leader.lsn}"
    if follower.lsn[0] == leader.lsn[0] and leader.lsn[1] - follower.lsn[1] > FAR_BEHIND:
        return f"it is {leader.lsn[1] - follower.lsn[1]} entries behind"
    return None


def _keep_leader(seen: Situation, leader: Node) -> Decision:
    """Nobody has to take over; somebody may."""
    if trouble := why_not_leading(leader, seen.record):
        return Keep(f"{seen.record.leader} {trouble}: whether it lives is for HerdDB's own failover to find out", settled=False)
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
    return None if copy.recoverable else "the log no longer has the entries that its disk lacks"


def _why_gone(leader: Node, seen: Situation) -> str | None:
    """Why the leader is not there any more, by signs that can't be mistaken for slowness."""
    if leader.gone is not None:
        return leader.gone
    if isinstance(leader.copy, NotListening):
        return "its process does not listen"
    booting = isinstance(leader.copy, NodeTablespace) and leader.copy.role == "booting"
    if booting and leader.running_since is not None and seen.changed_at is not None and leader.running_since > seen.changed_at:
        return "its process has restarted"
    return _why_hung(leader, seen) or _why_cut_off(leader, seen)


def _why_hung(leader: Node, seen: Situation) -> str | None:
    """Neither the operator nor ZooKeeper hears of the leader. One of them alone may be cut off from a leader that serves, and a long local
    checkpoint keeps heartbeats back; a newer one of another replica tells that ZooKeeper takes them.
    """
    if leader.silent_seconds is None or leader.silent_seconds < seen.hung_seconds or leader.heartbeat is None:
        return None
    others = [node for name, node in seen.nodes.items() if name != seen.record.leader]
    late = _seconds_behind(leader.heartbeat, others)
    return "neither the operator nor ZooKeeper hears of its process" if late >= seen.hung_seconds - HEARTBEAT_SECONDS else None


def _why_cut_off(leader: Node, seen: Situation) -> str | None:
    """The leader says that ZooKeeper does not answer it, and ZooKeeper has not heard of it for as long. The others that ZooKeeper hears
    must have had its answers all the while: after an outage for everybody the leader may only be the last to be connected again.
    """
    limit = max(seen.hung_seconds, SELF_HELP_SECONDS)
    if leader.report is None or leader.report.zookeeper_silent < limit or leader.heartbeat is None:
        return None
    others = [node for name, node in seen.nodes.items() if name != seen.record.leader]
    served = [node for node in others if node.report is not None and node.report.zookeeper_steady >= limit]
    late = _seconds_behind(leader.heartbeat, served)
    return "ZooKeeper answers others, and not it" if late >= limit - HEARTBEAT_SECONDS else None


def _seconds_behind(heartbeat: float, others: Sequence[Node]) -> float:
    return max((node.heartbeat for node in others if node.heartbeat is not None), default=heartbeat) - heartbeat


def _why_not_writing(leader: Node, seen: Situation) -> str | None:
    """Why a leader that lives can't write its log, as its own node says."""
    copy = leader.copy
    if isinstance(copy, NodeTablespace) and copy.uuid == seen.record.uuid and copy.role == "failed":
        return f"it has failed: {copy.last_error or 'without a reason'}"
    if _unacknowledged(leader, seen.record) >= max(seen.hung_seconds, SELF_HELP_SECONDS):
        return "its bookies no longer acknowledge"
    return _why_not_booted(leader, seen)


def _why_not_booted(leader: Node, seen: Situation) -> str | None:
    """Its boot fails, again and again: HerdDB tries once a second, and tells the last failure with its time, by the node's own clock. One
    that merely takes long has not failed since the node was given the leadership."""
    copy = leader.copy
    if not isinstance(copy, NodeTablespace) or (copy.uuid, copy.role) != (seen.record.uuid, "booting") or seen.changed_at is None:
        return None
    failed_at = _time_of(copy.last_error or "")
    return f"its boot fails: {copy.last_error}" if failed_at is not None and failed_at > seen.changed_at + CLOCKS_SECONDS else None


def _time_of(failure: str) -> float | None:
    """Seconds since 1970, of a failure that begins with its time (RFC 3339)."""
    try:
        return datetime.datetime.fromisoformat(failure.partition(" ")[0]).timestamp()
    except ValueError:
        return None


def _unacknowledged(leader: Node, record: TablespaceRecord) -> float:
    return leader.report.unacknowledged.get(record.name, 0.0) if leader.report is not None else 0.0


def _fail_over(seen: Situation, why: str, *, storage: bool = False) -> Decision:
    """`storage`: the leader's node lives, and what its bookies do may be what they do to everybody."""
    lost = f"{seen.record.leader} can't lead any more ({why})"
    why_no_writing = why_no_ledger(seen) or (_reason_or_unknown(seen.why_no_writing) if storage else None)
    if why_no_writing is not None:
        return Blocked(f"{lost}, and no other replica could: {why_no_writing}")
    pause = STORAGE_PAUSE_SECONDS if storage else PAUSE_SECONDS
    # a change that seems to be still to come is one of just now, by a clock that is a little ahead
    if seen.changed_at is not None and abs(age := seen.now - seen.changed_at) < pause:
        cause = "the storage may be the cause, " if storage else ""
        return Blocked(f"{lost}, but it was changed {max(age, 0.0):.0f} s ago: {cause}looked at again after {pause:.0f} s")
    why_not = _why_not_while_leader_lives if storage else _why_not_eligible
    # one that shall lead nothing leads better than nobody
    best = _best_replica(seen, why_not) or _best_replica(_including_relieved(seen), why_not)
    if best is None:
        return Blocked(f"{lost}, and no other replica can: {_why_no_candidate(seen, why_not)}")
    return Move(best, lost, leader_lost=True)


def _known_reason(why_no_writing: str | Unknown | None) -> str | None:
    """Why nobody could write, as far as that is known."""
    return None if isinstance(why_no_writing, Unknown) else why_no_writing


def _reason_or_unknown(why_no_writing: str | Unknown | None) -> str | None:
    """Why nobody could write, or why that is not known."""
    return why_no_writing.why if isinstance(why_no_writing, Unknown) else why_no_writing


def _demote_now(seen: Situation, why: str) -> Decision:
    """A leader that is about to end: any replica that can lead is better than nobody, however far behind it is."""
    leaves = f"{seen.record.leader} must not lead any more ({why})"
    if (why_no_writing := _known_reason(seen.why_no_writing)) is not None:
        return Blocked(f"{leaves}, but it stays: {why_no_writing}")
    best = _best_replica(seen)
    if best is None:
        return Blocked(f"{leaves}, and no other replica can: {_why_no_candidate(seen)}")
    return Move(best, leaves, _much_to_replay(seen.nodes[best]), in_turn=_serves(seen) and seen.requested is None)


def _serves(seen: Situation) -> bool:
    leader = seen.nodes[seen.record.leader]
    return why_not_leading(leader, seen.record) is None and _why_not_writing(leader, seen) is None


def _demote_once_caught_up(seen: Situation, why: str) -> Decision:
    """A leader that serves and shall not any more: nobody stands still while it waits for one that has caught up."""
    leaves = f"{seen.record.leader} must not lead any more ({why})"
    if (why_no_writing := _reason_or_unknown(seen.why_no_writing)) is not None:
        return Blocked(f"{leaves}, but it stays: {why_no_writing}")
    best = _best_replica(_close_followers(seen), _why_not_voluntarily)
    if best is None:
        return Blocked(f"{leaves}, and no other replica can: {_why_no_candidate(seen, _why_not_voluntarily)}")
    return Move(best, leaves, _much_to_replay(seen.nodes[best]), in_turn=_serves(seen) and seen.requested is None)


def _demote_if_possible(seen: Situation, why: str) -> Decision:
    """A leader that serves, with rows that the log does not have: left as soon as somebody can take over, whosever turn it is. Nobody has
    to be asked twice: what changes that is told by an event."""
    decision = _demote_once_caught_up(seen, why)
    if isinstance(decision, Move):
        return replace(decision, in_turn=False)
    cause = _reason_or_unknown(seen.why_no_writing) or f"no other replica can ({_why_no_candidate(seen, _why_not_voluntarily)})"
    return Keep(f"{seen.record.leader} leads on, though {why}: {cause}")


def _close_followers(seen: Situation) -> Situation:
    """The same without the replicas that are too far behind a leader that serves."""
    return replace(seen, record=replace(seen.record, replicas=tuple(name for name in seen.record.replicas if not _lags(seen, name))))


def _including_relieved(seen: Situation) -> Situation:
    """The same, with nodes that shall lead nothing though they go on."""
    return replace(seen, nodes={name: replace(node, relieved=None) for name, node in seen.nodes.items()})


def _switch_over(seen: Situation, target: str) -> Decision:
    if target == seen.record.leader:
        return Keep(f"{target} leads already")
    if target not in seen.record.replicas or target not in seen.nodes:
        return Refused(f"{target} holds no replica; replicas are on {', '.join(sorted(seen.record.replicas))}")
    if trouble := why_not_leading(seen.nodes[seen.record.leader], seen.record):
        return Refused(f"there is no leader to take over from: {seen.record.leader} {trouble}")
    if why := _why_not_while_leader_lives(seen, target) or _behind(seen, target) or _reason_or_unknown(seen.why_no_writing):
        return Refused(f"{target} can't lead now: {why}")
    return Move(target, f"{target} was asked for", _much_to_replay(seen.nodes[target]))


def _fail_back(seen: Situation) -> Decision:
    leads = f"{seen.record.leader} leads"
    if _unacknowledged(seen.nodes[seen.record.leader], seen.record) > 0:
        return Keep(f"{leads}, and its bookies let it wait", settled=False)
    target = seen.preferred
    if target is None or target == seen.record.leader:
        return Keep(leads)
    if target not in seen.record.replicas or target not in seen.nodes:
        return Keep(f"{leads}; the preferred {target} holds no replica")
    if why := _why_not_voluntarily(seen, target) or _behind(seen, target) or _reason_or_unknown(seen.why_no_writing):
        return Keep(f"{leads}; the preferred {target} can't: {why}")
    if seen.changed_at is None or seen.now - seen.changed_at < HEALTHY_SECONDS:
        return Keep(f"{leads}; the preferred {target} gets it back {HEALTHY_SECONDS:.0f} s after the last change")
    return Move(target, f"{target} is preferred and healthy", _much_to_replay(seen.nodes[target]), in_turn=True)


def _why_not_eligible(seen: Situation, name: str) -> str | None:
    return cannot_lead(seen.nodes[name], seen.record) if name in seen.nodes else "it is not a node of this cluster"


def _why_not_while_leader_lives(seen: Situation, name: str) -> str | None:
    """The same while the leader lives: there is something worse than to wait, which is to go where the storage does not answer either."""
    return _why_not_eligible(seen, name) or ("its bookies don't answer it" if _waits_for_bookies(seen.nodes[name]) else None)


def _why_not_voluntarily(seen: Situation, name: str) -> str | None:
    """The same where the leader could as well stay: a node that did not take over what it was given is not tried again at once."""
    return _why_not_while_leader_lives(seen, name) or seen.nodes[name].held_back


def _waits_for_bookies(node: Node) -> bool:
    return node.report is not None and any(waited >= WAITING_SECONDS for waited in node.report.unacknowledged.values())


def _best_replica(seen: Situation, why_not: Callable[[Situation, str], str | None] = _why_not_eligible) -> str | None:
    """Of the replicas that can: one that took over what it was given last, whose bookies answer it, and then the one that has the least to
    replay; the first by name among equals, so that the choice is the same each time."""
    able = [name for name in sorted(seen.record.replicas) if name != seen.record.leader and why_not(seen, name) is None]
    return max(able, key=lambda name: _rank(seen.nodes[name]), default=None)


def _rank(node: Node) -> tuple[bool, bool, bool, tuple[tuple[int, int], tuple[int, int]]]:
    """The higher the better."""
    return node.held_back is None, not node.late, not _waits_for_bookies(node), _progress(node)


def _progress(node: Node) -> tuple[tuple[int, int], tuple[int, int]]:
    """A boot begins at the local checkpoint, whatever was applied in memory; the rest of the log is the same for all."""
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
