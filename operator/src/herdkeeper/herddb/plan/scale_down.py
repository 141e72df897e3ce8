"""Fewer SQL nodes: the conditions for removing one, and the cleanup afterwards (docs/decisions/0317).

The highest numbers go first. A node is removed in this order: replicas elsewhere, leaderships, its replicas, the pod, its record in
ZooKeeper, its claim under deletionPolicy Delete.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from herdkeeper.api import HerdDBCluster
from herdkeeper.codecs.herddb.tablespace import DEFAULT_TABLESPACE, TablespaceRecord
from herdkeeper.herddb.leadership.services import declaring
from herdkeeper.herddb.state.cluster import VersionedRecord
from herdkeeper.herddb.state.fleet import SqlFleet
from herdkeeper.herddb.state.nodes import number_of
from herdkeeper.herddb.tablespace.replicas import ReplicaState, why_not_caught_up
from herdkeeper.planning import requeue
from herdkeeper.planning.actions import Action, ForgetNode, Plan, Wait, deletions
from herdkeeper.shared import names
from herdkeeper.shared.counted import counted
from herdkeeper.shared.paused import paused_by
from herdkeeper.shared.reason import Reason
from herdkeeper.shared.unknown import Unknown

CLAIM = "PersistentVolumeClaim"


@dataclass(frozen=True)
class ScaleDown:
    """`nodes`: the StatefulSet's number of nodes for now. `leaving`: nodes whose replicas may move; `relieved`: nodes that must lead
    nothing, with reasons. `wait`: what the next step waits for. `later`: further steps, as sentences.
    """

    nodes: int
    leaving: tuple[str, ...] = ()
    relieved: Mapping[str, str] = field(default_factory=dict)
    wait: Wait | None = None
    later: tuple[str, ...] = ()

    def extended(self, plan: Plan) -> Plan:
        """Returns the plan with its wait and its further steps."""
        soon = requeue.SOON if self.wait is not None else None
        blockers = (self.wait.sentence,) if self.wait is not None else ()
        return replace(
            plan,
            wait=plan.wait or self.wait,
            requeue_after_seconds=plan.requeue_after_seconds or soon,
            later=(*plan.later, *self.later),
            blockers=(*plan.blockers, *blockers),
        )


def scale_down(fleet: SqlFleet) -> ScaleDown:
    """Returns what a scale-down needs now; nothing if the number is as declared."""
    running = fleet.running
    metadata = _metadata(fleet)
    if isinstance(metadata, Unknown):
        held = max(running, fleet.cluster.spec.replicas)
        return ScaleDown(held, wait=Wait(Reason.UNREADABLE, metadata.why) if held > fleet.cluster.spec.replicas else None)
    records, registered = metadata
    needed = max(fleet.cluster.spec.replicas, _named(fleet.cluster, records, registered, running))
    going = fleet.present[fleet.cluster.spec.replicas :]
    if not going and needed == fleet.cluster.spec.replicas:
        return ScaleDown(needed)
    later = _later(fleet.cluster, records, going)
    if blocked := _blocked(fleet, records, going):
        return ScaleDown(max(running, needed), wait=blocked, later=later)
    stopping = [node for node in going if (number_of(fleet.named, node) or 0) >= running and fleet.objects.get("Pod", node)]
    wait = Wait(Reason.POD_STOPPING, f"{' and '.join(stopping)} is stopping") if stopping else None
    step = ScaleDown(max(running if stopping else running - 1, needed), going, wait=wait, later=later)
    return _move_off(fleet, records, step) if needed > fleet.cluster.spec.replicas else step


def forget_gone_nodes(fleet: SqlFleet, zookeeper_address: str) -> tuple[Action, ...]:
    """Delete what is left of surplus nodes that no record names and that have no pod. The record goes first: its
    deletion fails if a tablespace names the node by now, and then the claim stays.
    """
    metadata = _metadata(fleet)
    if isinstance(metadata, Unknown) or fleet.unread:
        return ()
    records, registered = metadata
    named, running = fleet.named, fleet.running
    first = max(fleet.cluster.spec.replicas, running, _named(fleet.cluster, records, registered, running))

    def gone(node: str) -> bool:
        number = number_of(named, node)
        return number is not None and number >= first and fleet.objects.get("Pod", node) is None

    claims = [fleet.objects.get(CLAIM, name) for name in fleet.objects.claims if gone(name.removeprefix(names.DATA_CLAIM_PREFIX))]
    return (
        *(ForgetNode(zookeeper_address, named.herd_root, node) for node in registered if gone(node)),
        *(deletions(claims, Reason.LEFT) if fleet.cluster.spec.deletion_policy == "Delete" else ()),
    )


def _metadata(fleet: SqlFleet) -> tuple[Mapping[str, VersionedRecord], tuple[str, ...]] | Unknown:
    """Returns the records and the registered nodes. Missing records block: volumes may be all that is left, of which nothing is known."""
    if isinstance(fleet.records, Unknown):
        return fleet.records
    if isinstance(fleet.registered, Unknown):
        return fleet.registered
    if not fleet.records:
        return Unknown("ZooKeeper has no record of any tablespace, not even of HerdDB's own")
    made = [each for each in fleet.tablespaces if each.made_uuid and not each.metadata.deletion_timestamp]
    lost = sorted(each.metadata.name for each in made if each.sql_name not in fleet.records)
    if lost:
        return Unknown(
            f"ZooKeeper has no record of what {' and '.join(lost)} created: if it was dropped on purpose, delete that Tablespace"
        )
    return fleet.records, fleet.registered


def _named(cluster: HerdDBCluster, records: Mapping[str, VersionedRecord], registered: tuple[str, ...], running: int) -> int:
    """Returns one more than the highest existing node that a record names."""
    nodes = {node for found in records.values() for node in _nodes(found.record)}
    numbers = {node: number for node in nodes if (number := number_of(cluster.names, node)) is not None}
    return max((number + 1 for node, number in numbers.items() if number < running or node in registered), default=0)


def _blocked(fleet: SqlFleet, records: Mapping[str, VersionedRecord], going: tuple[str, ...]) -> Wait | None:
    """Returns why nothing may move yet; all reasons that a person can fix."""
    silent = [f"{node} does not answer ({view.why})" for node in fleet.staying if isinstance(view := fleet.view_of(node), Unknown)]
    unread = [f"the Tablespace {name} can't be read: correct it, or run the operator version that wrote it" for name in fleet.unread]
    reasons = [*unread, *_declared(fleet, going), *(_unmovable(fleet, found.record, going) for found in records.values())]
    found = [reason for reason in reasons if reason is not None]
    if found:
        return Wait(Reason.WAITING_FOR_TABLESPACE, f"no SQL node is removed yet: {'; '.join(found)}")
    return Wait(Reason.UNREADABLE, f"no SQL node is removed yet: {'; '.join(silent)}") if silent else None


def _declared(fleet: SqlFleet, going: tuple[str, ...]) -> list[str]:
    """Returns declarations of Tablespaces that fewer nodes can't satisfy."""
    remaining, reasons = fleet.cluster.spec.replicas, []
    for tablespace in fleet.tablespaces:
        if tablespace.metadata.deletion_timestamp is not None:
            continue
        name = tablespace.metadata.name
        if tablespace.spec.replicas > remaining:
            reasons.append(
                f"the Tablespace {name} declares {counted(tablespace.spec.replicas, 'replica')} and {counted(remaining, 'node')} would "
                f"remain: lower its spec.replicas, or set spec.replicas of {fleet.cluster.metadata.name} to at least "
                f"{tablespace.spec.replicas}"
            )
        if tablespace.spec.preferred_leader in going:
            reasons.append(
                f"the Tablespace {name} prefers {tablespace.spec.preferred_leader}, which is being removed: change its spec.preferredLeader"
            )
    return reasons


def _unmovable(fleet: SqlFleet, record: TablespaceRecord, going: tuple[str, ...]) -> str | None:
    """Returns why nothing would move the replicas of a tablespace, or None."""
    held = sorted(node for node in _nodes(record) if node in going)
    if not held or record.name == DEFAULT_TABLESPACE:
        return None
    tablespace, has = declaring(fleet, record.name), f"{' and '.join(held)} has a replica"
    if tablespace is None and fleet.unread:
        return None  # one of them may declare it
    if tablespace is None:
        return f"no Tablespace declares {record.name} ({has}): declare it, or drop it"
    if stops := paused_by(tablespace.metadata.annotations):
        return f"the Tablespace {tablespace.metadata.name} ({has}) is paused: remove its annotation {stops}"
    return None


def _move_off(fleet: SqlFleet, records: Mapping[str, VersionedRecord], step: ScaleDown) -> ScaleDown:
    """Replicas are still on leaving nodes. Leaderships move only when all of them can, so that none moves to another leaving node."""
    held = {name: found.record for name, found in sorted(records.items()) if any(node in step.leaving for node in _nodes(found.record))}
    shown = "; ".join(
        f"{name}: {', '.join(sorted(node for node in _nodes(record) if node in step.leaving))}" for name, record in held.items()
    )
    wait = Wait(Reason.WAITING_FOR_TABLESPACE, f"before nodes stop, their replicas move to nodes that stay ({shown})")
    able = all(_can_be_left(fleet, record) for record in held.values() if record.leader in step.leaving)
    relieved = dict.fromkeys(step.leaving, f"spec.replicas is {fleet.cluster.spec.replicas}") if able else {}
    return replace(step, relieved=relieved, wait=wait)


def _can_be_left(fleet: SqlFleet, record: TablespaceRecord) -> bool:
    staying = fleet.staying
    copies = ReplicaState(record, 1, frozenset(), {node: fleet.replica_on(node, record.name) for node in _nodes(record)}, ())
    return any(node in staying and why_not_caught_up(copies, node) is None for node in record.replicas)


def _nodes(record: TablespaceRecord) -> set[str]:
    return {record.leader, *record.replicas}


def _later(cluster: HerdDBCluster, records: Mapping[str, VersionedRecord], going: tuple[str, ...]) -> tuple[str, ...]:
    """Returns the further steps, highest node first."""
    sentences: list[str] = []
    for node in reversed(going):
        for name, found in sorted(records.items()):
            if found.record.leader == node:
                sentences.append(f"Moving the leadership of {name} from {node} to a node that stays")
            if node in found.record.replicas:
                sentences.append(f"Moving the replica of {name} from {node} to a node that stays")
        claim = f"{'Deleting' if cluster.spec.deletion_policy == 'Delete' else 'Keeping'} the claim {names.DATA_CLAIM_PREFIX}{node}"
        sentences += [f"Stopping {node}", f"Removing {node} from HerdDB's nodes", claim]
    return tuple(sentences)
