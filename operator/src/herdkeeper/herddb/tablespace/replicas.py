"""The next change of a tablespace's replica list: a copy more, a copy less, or why not now.

The log has every entry, so a copy is never the only place of a row; what is kept here is how fast somebody else can lead. So a copy is
taken away only when the others are as many as declared, settled, and as good as the leader.

A copy that differs from the log is the exception: nobody may lead with it, so it is worth nothing. It goes as soon as the leader's is all
right, after another node has got one where there is such a node, and is made anew.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from herdkeeper.codecs.herddb.tablespace import TablespaceRecord
from herdkeeper.herddb.leadership.decision import Node, behind, cannot_lead
from herdkeeper.herddb.state.cluster import NodeTablespace
from herdkeeper.herddb.tablespace.place import Place
from herdkeeper.herddb.tablespace.verdicts import Verdict
from herdkeeper.planning.actions import Wait
from herdkeeper.shared.reason import Reason
from herdkeeper.shared.unknown import Unknown


@dataclass(frozen=True)
class ReplicaState:
    """One tablespace. `wanted`: how many copies are declared; `leaving`: nodes that shall hold none any more; `preferred`: the one that
    shall keep its copy.

    `copies` is what the nodes of the list say of it (None: nothing), `free` the answering nodes that stay and have none, the least busy
    first. `places` tells where nodes run. `different` are the verdicts of nodes, on the list or not any more, whose copies differ from
    the log.
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
    """`node` gets a copy."""

    node: str


@dataclass(frozen=True)
class RemoveReplica:
    """`node` holds none any more."""

    node: str
    why: str
    differs: bool = False


@dataclass(frozen=True)
class SetAside:
    """What `node` still has on its disk is moved aside: it differs, and the next copy would begin with it."""

    node: str
    verdict: Verdict


Step = AddReplica | RemoveReplica | SetAside


def next_replica(seen: ReplicaState) -> Step | Wait | None:
    """What to change now; None when the list is as declared."""
    suspects = _suspects(seen)
    grow = _grow(seen, suspects)
    # before what may be refused for as long as a node has an older program
    added = grow if isinstance(grow, AddReplica) else None
    return added or _set_aside(seen) or grow or _rebuild(seen, suspects) or _shrink(seen) or _left(seen)


def _suspects(seen: ReplicaState) -> list[str]:
    """The followers whose copies are to be made anew. One that was, and differs again, is left for a person to look at."""
    on_list = (node for node in sorted(seen.record.replicas) if node != seen.record.leader and node in seen.different)
    return [node for node in on_list if not seen.different[node].made_anew]


def _set_aside(seen: ReplicaState) -> SetAside | None:
    """Of a node that is off the list, answers, and does not run the copy any more."""
    node = next((node for node in _off_list(seen) if node in seen.copies and seen.copies[node] is None), None)
    return SetAside(node, seen.different[node]) if node is not None else None


def _grow(seen: ReplicaState, suspects: Sequence[str]) -> AddReplica | Wait | None:
    kept = [node for node in seen.record.replicas if node not in seen.leaving and node not in suspects]
    if len(kept) >= seen.wanted or (suspects and not seen.free):
        return None
    return _add(seen, kept)


def _rebuild(seen: ReplicaState, suspects: Sequence[str]) -> RemoveReplica | Wait | None:
    """One after the other: while a copy stops or is on its way, the next one stays. A node that does not answer holds nobody up."""
    leader = seen.record.leader
    if suspects:
        node = suspects[0]
        why = f"it {seen.different[node].sentence}"
        others = [other for other in seen.record.replicas if other != leader and other not in seen.different]
        if trouble := why_not_caught_up(seen, leader):
            return Wait(Reason.REPLICA_DIFFERS, f"{node} stays on the list, though {why}, until {leader} leads with all rows ({trouble})")
        if unsettled := [other for other in others if not _settled(seen.copies.get(other))]:
            return Wait(Reason.REPLICA_DIFFERS, f"{node} stays on the list, though {why}, until {', '.join(unsettled)} is settled")
        if stopping := [other for other in _off_list(seen) if isinstance(seen.copies.get(other), NodeTablespace)]:
            return Wait(Reason.REPLICA_DIFFERS, f"{node} stays on the list, though {why}, until {', '.join(stopping)} has stopped its copy")
        return RemoveReplica(node, why, differs=True)
    if leader in seen.different:
        return Wait(Reason.LEADER_DIFFERS, f"{leader} leads, though it {seen.different[leader].sentence}: until another replica can lead")
    return None


def _left(seen: ReplicaState) -> Wait | None:
    """Copies that differ and for which nothing can be done now."""
    if off := _off_list(seen):
        return Wait(
            Reason.REPLICA_DIFFERS,
            f"what {' and '.join(off)} still has differs: it is moved aside once the node answers and runs no replica",
        )
    again = [node for node in sorted(seen.record.replicas) if node in seen.different]
    shown = "; ".join(f"{node} {seen.different[node].sentence}, after a rebuild" for node in again)
    return Wait(Reason.REBUILT_IN_VAIN, shown) if again else None


def _off_list(seen: ReplicaState) -> list[str]:
    return [node for node in sorted(seen.different) if node not in {seen.record.leader, *seen.record.replicas}]


def _shrink(seen: ReplicaState) -> RemoveReplica | Wait | None:
    """Those of nodes that leave, and those that are too many."""
    leaving = [node for node in seen.record.replicas if node in seen.leaving]
    kept = [node for node in seen.record.replicas if node not in leaving]
    if leaving:
        return _remove(seen, [node for node in leaving if node != seen.record.leader], kept, "it leaves")
    if len(kept) > seen.wanted:
        return _remove(seen, [node for node in kept if node != seen.record.leader], kept, f"{seen.wanted} copies are declared")
    return None


def why_not_caught_up(seen: ReplicaState, node: str) -> str | None:
    """Why the copy of a node can't be relied on when another one goes; None when it leads, or could lead at once."""
    copy, record = seen.copies.get(node), seen.record
    if node == record.leader:
        if not isinstance(copy, NodeTablespace) or (copy.role, copy.ready) != ("leader", True):
            return "it does not lead yet"
        return copy.why_wrong
    leader = seen.copies.get(record.leader)
    return cannot_lead(Node(copy=copy), record) or behind(leader, copy)


def _add(seen: ReplicaState, kept: Sequence[str]) -> AddReplica | Wait:
    """A node that leaves may be dead already: the new copy is made from the log, or by the leader."""
    unsettled = sorted(node for node in {seen.record.leader, *kept} if not _settled(seen.copies.get(node)))
    if unsettled:
        return Wait(Reason.WAITING_FOR_FOLLOWER, f"the next replica is added once the copies on {', '.join(unsettled)} are settled")
    if not seen.free:
        off = _off_list(seen)
        first = f"; what {' and '.join(off)} still has of it differs, and is moved aside first, once the node answers" if off else ""
        return Wait(Reason.WAITING_FOR_HERDDB, f"no further SQL node answers that could hold a replica{first}")
    return AddReplica(min(seen.free, key=lambda node: _crowding(seen, node, kept)))


def _remove(seen: ReplicaState, removable: Sequence[str], kept: Sequence[str], why: str) -> RemoveReplica | Wait:
    """One that is no good first, then one that shares its zone or its machine with most others, then the highest number."""
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
    """How many other copies are in its zone, and on its machine. Where no zones are known, machines alone decide."""
    place, others = seen.places.get(node, Place()), [seen.places.get(other, Place()) for other in kept if other != node]
    machines = sum(place.machine is not None and other.machine == place.machine for other in others)
    return sum(place.zone is not None and other.zone == place.zone for other in others), machines


def _settled(copy: NodeTablespace | Unknown | None) -> bool:
    return isinstance(copy, NodeTablespace) and copy.ready
