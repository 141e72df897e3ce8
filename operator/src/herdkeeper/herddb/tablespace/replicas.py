"""The next change of a tablespace's replica list: add or remove a replica, or why not now.

The log has every entry, so a replica is never the only place of a row; replicas make failover fast. So one is removed only if the others
are as many as declared, settled, and as good as the leader.

A replica that differs from the log is the exception: it must not lead, so it is worthless. It is removed as soon as the leader is healthy,
after another node got one if possible, and is rebuilt.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from herdkeeper.codecs.herddb.tablespace import TablespaceRecord
from herdkeeper.herddb.leadership.decision import Node, behind, cannot_lead
from herdkeeper.herddb.state.cluster import NodeTablespace, Place
from herdkeeper.herddb.tablespace.verdicts import Verdict
from herdkeeper.planning.actions import Wait
from herdkeeper.shared.counted import counted
from herdkeeper.shared.reason import Reason
from herdkeeper.shared.unknown import Unknown


@dataclass(frozen=True)
class ReplicaState:
    """State of one tablespace.

    `wanted`: declared replicas; `leaving`: nodes that must not keep one; `preferred`: the node that must. `copies` are the replicas' views
    (None: nothing); `free` the reachable nodes that stay and have none, the least busy first. `places` tells where nodes run. `different`
    are verdicts of present or former replicas that differ from the log.
    """

    record: TablespaceRecord
    wanted: int
    leaving: frozenset[str]
    copies: Mapping[str, NodeTablespace | Unknown | None]
    free: Sequence[str]
    preferred: str | None = None
    places: Mapping[str, Place] = field(default_factory=dict)
    different: Mapping[str, Verdict] = field(default_factory=dict)


@dataclass(frozen=True)
class AddReplica:
    """`node` gets a replica."""

    node: str


@dataclass(frozen=True)
class RemoveReplica:
    """`node` loses its replica."""

    node: str
    why: str
    differs: bool = False


@dataclass(frozen=True)
class SetAside:
    """The files that `node` still has are set aside: they differ, and the next replica would start from them."""

    node: str
    verdict: Verdict


Step = AddReplica | RemoveReplica | SetAside


def next_replica(seen: ReplicaState) -> Step | Wait | None:
    """Returns the next change, or None if the list is as declared."""
    suspects = _suspects(seen)
    grow = _grow(seen, suspects)
    # before steps that a node with an older program may refuse for long
    added = grow if isinstance(grow, AddReplica) else None
    return added or _set_aside(seen) or grow or _rebuild(seen, suspects) or _shrink(seen) or _unhandled(seen)


def _suspects(seen: ReplicaState) -> list[str]:
    """Returns the followers to rebuild. One that was rebuilt and differs again is left for a person."""
    on_list = (node for node in sorted(seen.record.replicas) if node != seen.record.leader and node in seen.different)
    return [node for node in on_list if not seen.different[node].made_anew]


def _set_aside(seen: ReplicaState) -> SetAside | None:
    """For a node that is no replica, answers, and no longer runs the tablespace."""
    node = next((node for node in _off_list(seen) if node in seen.copies and seen.copies[node] is None), None)
    return SetAside(node, seen.different[node]) if node is not None else None


def _grow(seen: ReplicaState, suspects: Sequence[str]) -> AddReplica | Wait | None:
    kept = [node for node in seen.record.replicas if node not in seen.leaving and node not in suspects]
    if len(kept) >= seen.wanted or (suspects and not seen.free):
        return None
    return _add(seen, kept)


def _rebuild(seen: ReplicaState, suspects: Sequence[str]) -> RemoveReplica | Wait | None:
    """One after the other: while a replica is stopping or being added, the next one stays. An unreachable node blocks nobody."""
    leader = seen.record.leader
    if suspects:
        node = suspects[0]
        why = f"it {seen.different[node].sentence}"
        others = [other for other in seen.record.replicas if other != leader and other not in seen.different]
        if trouble := why_not_caught_up(seen, leader):
            return Wait(Reason.REPLICA_DIFFERS, f"{node} remains a replica, although {why}, until {leader} leads with all rows ({trouble})")
        if unsettled := [other for other in others if not is_settled(seen.copies.get(other))]:
            return Wait(Reason.REPLICA_DIFFERS, f"{node} remains a replica, although {why}, until {', '.join(unsettled)} is settled")
        if stopping := [other for other in _off_list(seen) if isinstance(seen.copies.get(other), NodeTablespace)]:
            return Wait(
                Reason.REPLICA_DIFFERS, f"{node} remains a replica, although {why}, until {', '.join(stopping)} has stopped its own"
            )
        return RemoveReplica(node, why, differs=True)
    if leader in seen.different:
        return Wait(Reason.LEADER_DIFFERS, f"{leader} leads until another replica can, although it {seen.different[leader].sentence}")
    return None


def _unhandled(seen: ReplicaState) -> Wait | None:
    """Returns a wait about differing replicas that can't be handled now."""
    if off := _off_list(seen):
        return Wait(
            Reason.REPLICA_DIFFERS,
            f"the files on {' and '.join(off)} differ: they are set aside once the node answers and runs no replica",
        )
    again = [node for node in sorted(seen.record.replicas) if node in seen.different]
    shown = "; ".join(f"{node} {seen.different[node].sentence}, after a rebuild" for node in again)
    return Wait(Reason.REBUILT_IN_VAIN, shown) if again else None


def _off_list(seen: ReplicaState) -> list[str]:
    return [node for node in sorted(seen.different) if node not in {seen.record.leader, *seen.record.replicas}]


def _shrink(seen: ReplicaState) -> RemoveReplica | Wait | None:
    """Remove replicas of leaving nodes, and surplus ones."""
    leaving = [node for node in seen.record.replicas if node in seen.leaving]
    kept = [node for node in seen.record.replicas if node not in leaving]
    if leaving:
        return _remove(seen, [node for node in leaving if node != seen.record.leader], kept, "it leaves")
    if len(kept) > seen.wanted:
        declared = counted(seen.wanted, "replica is", "replicas are")
        return _remove(seen, [node for node in kept if node != seen.record.leader], kept, f"{declared} declared")
    return None


def why_not_caught_up(seen: ReplicaState, node: str) -> str | None:
    """Returns why a node's replica can't be relied on if another is removed. None if it leads, or could lead at once."""
    copy, record = seen.copies.get(node), seen.record
    if node == record.leader:
        if not isinstance(copy, NodeTablespace) or (copy.role, copy.ready) != ("leader", True):
            return "it does not lead yet"
        return copy.why_wrong
    leader = seen.copies.get(record.leader)
    return cannot_lead(Node(copy=copy), record) or behind(leader, copy)


def _add(seen: ReplicaState, kept: Sequence[str]) -> AddReplica | Wait:
    """A leaving node may be dead already: the new replica is built from the log, or by the leader."""
    unsettled = sorted(node for node in {seen.record.leader, *kept} if not is_settled(seen.copies.get(node)))
    if unsettled:
        return Wait(Reason.WAITING_FOR_FOLLOWER, f"the next replica is added once those on {', '.join(unsettled)} are settled")
    if not seen.free:
        off = _off_list(seen)
        first = f"; the files on {' and '.join(off)} differ, and are set aside first, once the node answers" if off else ""
        return Wait(Reason.WAITING_FOR_HERDDB, f"no further SQL node for a replica answers{first}")
    return AddReplica(min(seen.free, key=lambda node: _crowding(seen, node, kept)))


def _remove(seen: ReplicaState, removable: Sequence[str], kept: Sequence[str], why: str) -> RemoveReplica | Wait:
    """Remove a bad one first, then one that shares its zone or node with most others, then the highest number."""
    if not removable:
        return Wait(Reason.WAITING_FOR_OTHERS, f"{seen.record.leader} is removed: its leadership moves to another node first")

    def order(node: str) -> tuple[bool, bool, tuple[int, int], int, str]:
        return node != seen.preferred, why_not_caught_up(seen, node) is not None, _crowding(seen, node, kept), len(node), node

    node = max(removable, key=order)
    weak = {other: trouble for other in kept if other != node and (trouble := why_not_caught_up(seen, other))}
    if weak:
        shown = "; ".join(f"{other}: {trouble}" for other, trouble in sorted(weak.items()))
        return Wait(Reason.WAITING_FOR_FOLLOWER, f"the replica on {node} is removed once the others have caught up ({shown})")
    return RemoveReplica(node, why)


def _crowding(seen: ReplicaState, node: str, kept: Sequence[str]) -> tuple[int, int]:
    """Returns how many other replicas are in its zone, and on its Kubernetes node. Without zones, only nodes count."""
    place, others = seen.places.get(node, Place()), [seen.places.get(other, Place()) for other in kept if other != node]
    machines = sum(place.machine is not None and other.machine == place.machine for other in others)
    return sum(place.zone is not None and other.zone == place.zone for other in others), machines


def is_settled(copy: NodeTablespace | Unknown | None) -> bool:
    """Whether a node has the tablespace and can serve it."""
    return isinstance(copy, NodeTablespace) and copy.ready
