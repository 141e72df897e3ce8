"""The next steps of a tablespace: created with one replica, which leads it, then given the others one by one.

Replicas are changed in HerdDB's record by compare-and-set: ALTER TABLESPACE answers OK even when its own compare-and-set failed.
"""

from __future__ import annotations

from dataclasses import replace

from herdkeeper.api import Tablespace
from herdkeeper.build.tablespace import build_connection_secret
from herdkeeper.domain import names
from herdkeeper.domain.conditions import is_ready_resource, why_not_ready
from herdkeeper.domain.names import ObjectKey, TablespaceNames
from herdkeeper.domain.observed.herddb import NodeTablespace
from herdkeeper.domain.observed.tablespace import TablespaceObserved
from herdkeeper.domain.observed.tablespace_record import RecordAbsent, VersionedRecord
from herdkeeper.domain.reason import Reason
from herdkeeper.domain.unknown import Unknown
from herdkeeper.formats.herddb_tablespace import TablespaceRecord, tablespace_path
from herdkeeper.plan.action import ChangeTablespaceRecord, CreateTablespace, Plan, Wait
from herdkeeper.plan.intent import settle

EXPECTED_REPLICAS = 1
"""Pinned: HerdDB then neither raises E, Wq and Aq behind the declared sizes nor adds nodes by itself."""
UNMADE_SECONDS = 5.0
"""How often it is looked whether the HerdDBCluster's key has made the Service, of which no event tells this one."""


def plan_tablespace(tablespace: Tablespace, seen: TablespaceObserved) -> Plan:
    """What to do now for a tablespace that shall live."""
    reference = tablespace.spec.herd_db_ref.name
    if seen.herddb is None or seen.zookeeper_address is None:
        return Plan.waiting(Reason.WAITING_FOR_HERDDB, f"the HerdDBCluster {reference} is not there or has no nodes yet")
    match seen.record:
        case Unknown(why):
            return Plan.waiting(Reason.UNREADABLE, why)
        case RecordAbsent():
            return _create(tablespace, seen)
        case VersionedRecord(record) if tablespace.status is not None and tablespace.status.uuid not in (None, record.uuid):
            return Plan.waiting(
                Reason.DATA_LOST,
                f"HerdDB's tablespace {record.name} is another one now ({record.uuid}) than this resource made ({tablespace.status.uuid}): "
                "delete this resource, and create a new one if the new tablespace shall be kept",
                60,
            )
        case VersionedRecord():
            return _for_clients(tablespace, seen, _adjust(tablespace, seen, seen.record))


def own_copy(seen: TablespaceObserved, node: str, name: str) -> NodeTablespace | Unknown | None:
    """What a node says of this tablespace; None when it says nothing of it."""
    view = seen.nodes.get(node, Unknown(f"{node} is not Ready"))
    if isinstance(view, Unknown):
        return view
    return next((entry for entry in view if entry.name == name), None)


def _create(tablespace: Tablespace, seen: TablespaceObserved) -> Plan:
    if tablespace.status is not None and tablespace.status.uuid:
        return Plan.waiting(
            Reason.DATA_LOST,
            f"HerdDB has no tablespace {tablespace.sql_name} any more, though it was {tablespace.status.uuid}: it is not created again, "
            "since that would be an empty one. Delete this resource if it was dropped on purpose",
            60,
        )
    if not is_ready_resource(seen.herddb) or seen.herddb is None:
        why = why_not_ready(seen.herddb) if seen.herddb is not None else "it is not there"
        return Plan.waiting(Reason.WAITING_FOR_HERDDB, f"the HerdDBCluster {tablespace.spec.herd_db_ref.name} is not Ready ({why})")
    leader = _least_busy(seen, set())
    if leader is None or seen.system_leader is None:
        return Plan.waiting(Reason.WAITING_FOR_HERDDB, "no SQL node answers")
    millis = tablespace.spec.failover.max_leader_inactivity_seconds * 1000
    return Plan(
        (CreateTablespace(seen.herddb.metadata.name, seen.system_leader, tablespace.sql_name, leader, millis),), look_again_seconds=1
    )


def _adjust(tablespace: Tablespace, seen: TablespaceObserved, found: VersionedRecord) -> Plan:
    record = found.record
    millis = tablespace.spec.failover.max_leader_inactivity_seconds * 1000
    wished = replace(record, expected_replica_count=EXPECTED_REPLICAS, max_leader_inactivity_millis=millis)
    if wished != record:
        return Plan((_change(seen, found, wished, "failover settings as declared"),), look_again_seconds=1)
    unsettled = [node for node in record.replicas if not _settled(own_copy(seen, node, record.name))]
    if len(record.replicas) >= tablespace.spec.replicas:
        return Plan(look_again_seconds=3 if unsettled else None)
    if unsettled:
        return Plan.waiting(
            Reason.WAITING_FOR_FOLLOWER, f"the next replica is added once the copies on {', '.join(sorted(unsettled))} are settled", 2
        )
    node = _least_busy(seen, set(record.replicas))
    if node is None:
        return Plan.waiting(Reason.WAITING_FOR_HERDDB, "no further SQL node answers that could hold a replica")
    grown = replace(record, replicas=(*record.replicas, node))
    return Plan((_change(seen, found, grown, f"replica on {node}"),), look_again_seconds=2)


def _for_clients(tablespace: Tablespace, seen: TablespaceObserved, plan: Plan) -> Plan:
    """The plan, and the connection Secret. The replicas go on though a name is taken: the data does not depend on it."""
    if seen.taken:
        taken = f"somebody else made the {' and the '.join(seen.taken)}: delete what stands there, or take another name for this resource"
        return replace(plan, wait=Wait(Reason.NAME_TAKEN, taken))
    if seen.zookeeper_address is None or seen.credentials is None:
        return plan
    secret = settle((build_connection_secret(tablespace, seen.zookeeper_address, seen.credentials),), seen.objects)
    service = TablespaceNames(ObjectKey(tablespace.metadata.namespace, tablespace.metadata.name)).leader_service
    unmade = None if seen.objects.get("Service", service) is not None else UNMADE_SECONDS
    return replace(plan, actions=(*plan.actions, *secret), look_again_seconds=plan.look_again_seconds or unmade)


def _settled(copy: NodeTablespace | Unknown | None) -> bool:
    return isinstance(copy, NodeTablespace) and copy.ready


def _change(seen: TablespaceObserved, found: VersionedRecord, record: TablespaceRecord, why: str) -> ChangeTablespaceRecord:
    if seen.herddb is None or seen.zookeeper_address is None:
        raise ValueError("a record was read, so its database and its ensemble are known")
    root = names.herd_root(ObjectKey(seen.herddb.metadata.namespace, seen.herddb.metadata.name))
    return ChangeTablespaceRecord(seen.zookeeper_address, tablespace_path(root, record.name), record, found.version, why)


def _least_busy(seen: TablespaceObserved, without: set[str]) -> str | None:
    """The answering node that leads the fewest tablespaces; the first by name among equals, so that the choice is the same each time."""
    answering = [node for node, view in sorted(seen.nodes.items()) if not isinstance(view, Unknown) and node not in without]
    return min(answering, key=lambda node: seen.leaderships.get(node, 0), default=None)
