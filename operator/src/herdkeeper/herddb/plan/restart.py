"""Chooses the next SQL node to restart with a changed template: followers first, leaders last, one at a time, each after its leaderships
moved.

The StatefulSet's own update would go by number, and stop leaders without relieving them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from herdkeeper.codecs.herddb.tablespace import DEFAULT_TABLESPACE, TablespaceRecord
from herdkeeper.herddb.leadership.decision import behind, why_not_verified
from herdkeeper.herddb.state.cluster import LOST_LEDGER, NodeTablespace
from herdkeeper.herddb.state.fleet import SqlFleet
from herdkeeper.planning.actions import Delete, Wait, deletions
from herdkeeper.planning.rolling import Gate, outdated_pods, restart_idle
from herdkeeper.shared.objects import why_gone
from herdkeeper.shared.reason import Reason
from herdkeeper.shared.unknown import Unknown

HEARD_SECONDS = 10.0
"""A node with a heartbeat this recent may lead, even if it does not answer the operator."""


@dataclass(frozen=True)
class DemoteFirst:
    """This node is next, once it leads nothing that another one could lead."""

    node: str


def next_restart(stateful_set: str, fleet: SqlFleet, pods: Sequence[str], gate: Gate) -> tuple[Delete, ...] | DemoteFirst | Wait | None:
    """Returns what the roll needs now. None if every pod has the current template, or that is unknown."""
    stale = outdated_pods(stateful_set, fleet.objects, pods)
    if not stale:
        return None
    if (step := restart_idle(stale, fleet.objects, gate)) is not None:
        return step
    if why := gate.closed_by or _unsettled(fleet, [name for name in pods if name not in stale or name not in gate.serving]):
        return Wait(Reason.WAITING_FOR_OTHERS, f"the next SQL node restarts once no other server is disrupted: {why}")
    name = min(stale, key=lambda each: (*_leaderships_moved(fleet, each), each))
    return DemoteFirst(name) if _led(fleet, name) else deletions((fleet.objects.get("Pod", name),), Reason.ROLLING)


def leading(fleet: SqlFleet) -> frozenset[str]:
    """Returns the nodes that lead something, by their own views; for a node that is silent but known to ZooKeeper, by the record."""
    if isinstance(fleet.records, Unknown):
        return frozenset(fleet.nodes)
    records = [found.record for found in fleet.records.values()]
    return frozenset(record.leader for record in records if _leads(fleet, record))


def _leads(fleet: SqlFleet, record: TablespaceRecord) -> bool:
    if why_gone(fleet.objects.get("Pod", record.leader)) is not None:
        return False
    copy = _replica(fleet, record, record.leader)
    if not isinstance(copy, Unknown):
        return copy is not None and copy.role == "leader"
    heartbeat, now = fleet.heartbeats.get(record.name, {}).get(record.leader), fleet.zookeeper.now
    return heartbeat is not None and now is not None and now - heartbeat < HEARD_SECONDS


def _unsettled(fleet: SqlFleet, pods: Sequence[str]) -> str | None:
    """Returns why a node is needed now. None if every replica of every tablespace is as good as its leader."""
    unready = [pod for pod in pods if not fleet.objects.pod_ready(pod)]
    if unready:
        return f"{' and '.join(unready)} is not Ready"
    if isinstance(fleet.records, Unknown):
        return fleet.records.why
    records = [found.record for _, found in sorted(fleet.records.items())]
    reasons = (_why_not_caught_up(fleet, record, node) for record in records for node in _replicas(fleet, record))
    return next((why for why in reasons if why is not None), None)


def most_away(fleet: SqlFleet) -> int:
    """Returns how many nodes may be evicted at a time: none while a node has lost the log of a tablespace that others still run. It is
    Ready, since its other tablespaces serve, so the budget would let the last rows go. None stays in force while that is unknown.
    """
    budget = fleet.objects.get("PodDisruptionBudget", fleet.named.disruption_budget)
    held = budget is not None and budget["spec"].get("maxUnavailable") == 0
    if isinstance(fleet.records, Unknown):
        return 0 if held else 1
    replicas = [(found.record, node) for found in fleet.records.values() for node in found.record.replicas]
    lost = any(_has_lost(fleet, record, node) and _why_last(fleet, record, node) for record, node in replicas)
    return 0 if lost or (held and any(_may_have_lost(fleet, record, node) for record, node in replicas)) else 1


def _may_have_lost(fleet: SqlFleet, record: TablespaceRecord, node: str) -> bool:
    """Whether a node may have lost the log, and does not tell: it is silent, or boots and has not failed yet."""
    copy = _replica(fleet, record, node) if node in fleet.present else None
    return isinstance(copy, Unknown) or (copy is not None and copy.role == "booting" and copy.unreplayable is None)


def _has_lost(fleet: SqlFleet, record: TablespaceRecord, node: str) -> bool:
    copy = _replica(fleet, record, node)
    unreplayable = copy.unreplayable if isinstance(copy, NodeTablespace) else None
    return unreplayable is not None and unreplayable.entry_type == LOST_LEDGER


def _why_last(fleet: SqlFleet, record: TablespaceRecord, node: str) -> str | None:
    """Returns which nodes run a tablespace whose log is lost. A restart of them ends it: none could boot again."""
    running = [
        each
        for each in _replicas(fleet, record)
        if isinstance(copy := _replica(fleet, record, each), Unknown) or (copy is not None and copy.role in ("leader", "follower"))
    ]
    return (
        f"{node} can't replay the log of {record.name}, which is lost: {' and '.join(running)} may have the last rows" if running else None
    )


def _replicas(fleet: SqlFleet, record: TablespaceRecord) -> list[str]:
    """Returns the nodes with a replica. A SQL user may name others, which are not of this cluster: nobody waits for them."""
    return [node for node in record.replicas if node in fleet.present]


def _why_not_caught_up(fleet: SqlFleet, record: TablespaceRecord, node: str) -> str | None:
    """Returns why the replica on a node can't take over soon, or may be bad. None if it leads, or follows closely with verified rows.

    A node forgets the results of a check when its process ends, and its Tablespace may not have them yet.
    """
    copy = _replica(fleet, record, node)
    if isinstance(copy, Unknown):
        return f"{node}: {copy.why}"
    if copy is not None and copy.unreplayable is not None:
        # else waiting does not help, and other tablespaces don't wait for it
        return _why_last(fleet, record, node) if copy.unreplayable.entry_type == LOST_LEDGER else None
    if copy is None or not copy.ready:
        return f"{node}'s replica of {record.name} is not settled"
    if node == record.leader:
        return None if copy.role == "leader" else f"{node} does not lead {record.name} yet"
    weak = why_not_verified(copy) or behind(_replica(fleet, record, record.leader), copy)
    return f"{node} follows {record.name}, and {weak}" if weak is not None else None


def _replica(fleet: SqlFleet, record: TablespaceRecord, node: str) -> NodeTablespace | Unknown | None:
    view = fleet.view_of(node)
    return (
        view if isinstance(view, Unknown) else next((each for each in view if (each.name, each.uuid) == (record.name, record.uuid)), None)
    )


def _led(fleet: SqlFleet, node: str) -> list[str]:
    """Returns the tablespaces that the node leads and another one could lead."""
    if isinstance(fleet.records, Unknown):
        return []
    return [name for name, found in fleet.records.items() if found.record.leader == node and len(_replicas(fleet, found.record)) > 1]


def _leaderships_moved(fleet: SqlFleet, node: str) -> tuple[int, int]:
    """Returns how many leaderships the restart of a node moves: first those with users' rows, then all.

    If every node leads something, one that leads only the default tablespace goes first: the others' leaderships then move once, not twice.
    """
    led = _led(fleet, node)
    return len([name for name in led if name != DEFAULT_TABLESPACE]), len(led)
