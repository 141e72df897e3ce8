"""The next change of a tablespace's replica list: a copy more, a copy less, or why not now.

The log has every entry, so a copy is never the only place of a row; what is kept here is how fast somebody else can lead. So a copy is
taken away only when the others are as many as declared, settled, and as good as the leader.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from herdkeeper.domain.observed.herddb import NodeTablespace
from herdkeeper.domain.observed.place import Place
from herdkeeper.domain.reason import Reason
from herdkeeper.domain.unknown import Unknown
from herdkeeper.formats.herddb_tablespace import TablespaceRecord
from herdkeeper.plan.action import Wait
from herdkeeper.plan.leadership import Node, behind, cannot_lead


@dataclass(frozen=True)
class Copies:
    """One tablespace. `wanted`: how many copies are declared; `leaving`: nodes that shall hold none any more; `preferred`: the one that
    shall keep its copy.

    `copies` is what the nodes of the list say of it (None: nothing), `free` the answering nodes that stay and have none, the least busy
    first. `places` tells where nodes run.
    """

    record: TablespaceRecord
    wanted: int
    leaving: frozenset[str]
    copies: Mapping[str, NodeTablespace | Unknown | None]
    free: Sequence[str]
    preferred: str | None = None
    places: Mapping[str, Place] = field(default_factory=dict)


@dataclass(frozen=True)
class AddReplica:
    """`node` gets a copy."""

    node: str


@dataclass(frozen=True)
class RemoveReplica:
    """`node` holds none any more."""

    node: str
    why: str


def next_replica(seen: Copies) -> AddReplica | RemoveReplica | Wait | None:
    """What to change now; None when the list is as declared."""
    leaving = [node for node in seen.record.replicas if node in seen.leaving]
    kept = [node for node in seen.record.replicas if node not in leaving]
    if len(kept) < seen.wanted:
        return _add(seen, kept)
    if leaving:
        return _remove(seen, [node for node in leaving if node != seen.record.leader], kept, "it leaves")
    if len(kept) > seen.wanted:
        return _remove(seen, [node for node in kept if node != seen.record.leader], kept, f"{seen.wanted} copies are declared")
    return None


def why_not_as_good(seen: Copies, node: str) -> str | None:
    """Why the copy of a node can't be relied on when another one goes; None when it leads, or could lead at once."""
    copy, record = seen.copies.get(node), seen.record
    if node == record.leader:
        return None if isinstance(copy, NodeTablespace) and (copy.role, copy.ready) == ("leader", True) else "it does not lead yet"
    leader = seen.copies.get(record.leader)
    return cannot_lead(Node(copy=copy), record) or behind(leader, copy)


def _add(seen: Copies, kept: Sequence[str]) -> AddReplica | Wait:
    """A node that leaves may be dead already: the new copy is made from the log, or by the leader."""
    unsettled = sorted(node for node in {seen.record.leader, *kept} if not _settled(seen.copies.get(node)))
    if unsettled:
        return Wait(Reason.WAITING_FOR_FOLLOWER, f"the next replica is added once the copies on {', '.join(unsettled)} are settled")
    if not seen.free:
        return Wait(Reason.WAITING_FOR_HERDDB, "no further SQL node answers that could hold a replica")
    return AddReplica(min(seen.free, key=lambda node: _crowd(seen, node, kept)))


def _remove(seen: Copies, removable: Sequence[str], kept: Sequence[str], why: str) -> RemoveReplica | Wait:
    """One that is no good first, then one that shares its zone or its machine with most others, then the highest number."""
    if not removable:
        return Wait(Reason.WAITING_FOR_OTHERS, f"{seen.record.leader} leaves: its leadership goes to another node first")

    def order(node: str) -> tuple[bool, bool, tuple[int, int], int, str]:
        return node != seen.preferred, why_not_as_good(seen, node) is not None, _crowd(seen, node, kept), len(node), node

    node = max(removable, key=order)
    weak = {other: trouble for other in kept if other != node and (trouble := why_not_as_good(seen, other))}
    if weak:
        shown = "; ".join(f"{other}: {trouble}" for other, trouble in sorted(weak.items()))
        return Wait(Reason.WAITING_FOR_FOLLOWER, f"the copy on {node} is taken away once the others are as good ({shown})")
    return RemoveReplica(node, why)


def _crowd(seen: Copies, node: str, kept: Sequence[str]) -> tuple[int, int]:
    """How many other copies are in its zone, and on its machine. Where no zones are known, machines alone decide."""
    place, others = seen.places.get(node, Place()), [seen.places.get(other, Place()) for other in kept if other != node]
    machines = sum(place.machine is not None and other.machine == place.machine for other in others)
    return sum(place.zone is not None and other.zone == place.zone for other in others), machines


def _settled(copy: NodeTablespace | Unknown | None) -> bool:
    return isinstance(copy, NodeTablespace) and copy.ready
