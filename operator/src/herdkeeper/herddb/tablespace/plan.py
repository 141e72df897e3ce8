"""Plans a tablespace: created with one replica, its leader, then given the others one by one. Surplus replicas and those of leaving SQL
nodes are removed.

Replicas are changed in HerdDB's record by compare-and-set: ALTER TABLESPACE answers OK even if its own compare-and-set failed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import assert_never

from herdkeeper.api import Tablespace
from herdkeeper.api.tablespace import MadeMark
from herdkeeper.codecs.herddb.ledgers import LedgerList
from herdkeeper.codecs.herddb.tablespace import TablespaceRecord
from herdkeeper.herddb.leadership.promotion import promotion_bars
from herdkeeper.herddb.log.archive_expiry import expiry_steps
from herdkeeper.herddb.log.in_time import seconds_to_stalled_stream, seconds_to_turn
from herdkeeper.herddb.log.plan_archive import archive_steps
from herdkeeper.herddb.log.plan_pins import log_pin_steps
from herdkeeper.herddb.record_change import record_change
from herdkeeper.herddb.state.cluster import MOST_TABLESPACES, NodeTablespace, RecordAbsent, VersionedRecord
from herdkeeper.herddb.state.nodes import staying_nodes
from herdkeeper.herddb.state.tls import is_encrypted, why_no_login
from herdkeeper.herddb.tablespace.build import build_connection_secret
from herdkeeper.herddb.tablespace.full_check import timing_of
from herdkeeper.herddb.tablespace.plan_full_check import full_check_steps
from herdkeeper.herddb.tablespace.plan_restore import before_creation, plan_restore, refuse_existing, restore_note
from herdkeeper.herddb.tablespace.replicas import AddReplica, RemoveReplica, ReplicaState, SetAside, Step, is_settled, next_replica
from herdkeeper.herddb.tablespace.state import TablespaceObserved
from herdkeeper.herddb.tablespace.verdicts import Rebuilt, Verdict, judged, lost_marks, rebuilt, verdicts_in_force, verdicts_on
from herdkeeper.planning import requeue
from herdkeeper.planning.actions import Annotate, ChangeTablespaceRecord, CreateTablespace, Plan, SetCopyAside, Wait, soonest
from herdkeeper.planning.due import requeue_after_seconds, seconds_to_next
from herdkeeper.planning.intent import needed_applies
from herdkeeper.shared import names
from herdkeeper.shared.conditions import is_ready_resource, why_not_ready
from herdkeeper.shared.problem import Problem
from herdkeeper.shared.reason import Reason
from herdkeeper.shared.unknown import Unknown

EXPECTED_REPLICAS = 1
"""Pinned: HerdDB then neither raises E, Wq and Aq above the declared sizes nor adds replicas by itself."""


def plan_tablespace(seen: TablespaceObserved, spark_image: str, driver_role: str = names.DRIVER_ROLE) -> Plan:
    """Returns the plan for a Tablespace that is not being deleted. `spark_image` and `driver_role` are for a restore's Job."""
    plan = _plan(seen, spark_image, driver_role)
    changes = next((action.why for action in plan.actions if isinstance(action, ChangeTablespaceRecord)), None)
    check = full_check_steps(seen, changes)
    actions, timing = (*plan.actions, *check.actions), timing_of(seen.tablespace)
    again = soonest(plan.requeue_after_seconds, check.requeue_after_seconds)
    to_next = seconds_to_next(timing, seen.now) if timing is not None and not timing.suspend else None
    to_next = soonest(
        to_next, seconds_to_turn(seen.standings, seen.now), seconds_to_stalled_stream(seen), _seconds_to_blocked_statements(seen)
    )
    again = requeue_after_seconds(again, to_next, acts=bool(actions))
    return replace(plan, actions=actions, requeue_after_seconds=again, decided_fields=restore_note(seen))


def _seconds_to_blocked_statements(seen: TablespaceObserved) -> float | None:
    """Returns the seconds until the next read of a leader with hanging statements: the status shows since when."""
    leader = seen.replica_on(seen.known_record.leader) if seen.known_record is not None else None
    return requeue.BLOCKED if isinstance(leader, NodeTablespace) and leader.blocked_seconds else None


def _plan(seen: TablespaceObserved, spark_image: str, driver_role: str) -> Plan:
    tablespace, reference = seen.tablespace, seen.tablespace.spec.herd_db_ref.name
    if seen.herddb is None:
        return Plan.waiting(Reason.WAITING_FOR_HERDDB, f"the HerdDBCluster {reference} does not exist, or its spec is invalid")
    if seen.log is None:
        return Plan.waiting(Reason.WAITING_FOR_HERDDB, f"the HerdDBCluster {reference} has no nodes yet")
    match seen.record:
        case Unknown(why):
            return Plan.waiting(Reason.UNREADABLE, why)
        case RecordAbsent():
            return before_creation(seen) or _create(seen)
        case VersionedRecord(record):
            not_ours = _why_another_tablespace(tablespace, record) or refuse_existing(tablespace, record)
            if not_ours is not None:
                return not_ours
            verdicts = verdicts_in_force(tablespace, record.uuid, seen.checkpoints, seen.nodes, seen.ledgers)
            judging = replace(seen, nodes=judged(seen.nodes, record.uuid, verdicts))
            return _with_pins(judging, seen.record, spark_image, driver_role)


def _create(seen: TablespaceObserved) -> Plan:
    tablespace = seen.tablespace
    if tablespace.made_uuid:
        return Plan.waiting(
            Reason.DATA_LOST,
            f"HerdDB no longer has the tablespace {tablespace.sql_name} ({tablespace.made_uuid}). It is not created again, since it "
            "would be empty. Delete this resource if the tablespace was dropped on purpose",
            requeue.BLOCKED,
        )
    if not is_ready_resource(seen.herddb) or seen.herddb is None:
        why = why_not_ready(seen.herddb) if seen.herddb is not None else "it does not exist"
        return Plan.waiting(Reason.WAITING_FOR_HERDDB, f"the HerdDBCluster {tablespace.spec.herd_db_ref.name} is not Ready ({why})")
    if sum(seen.leaderships.values()) >= MOST_TABLESPACES:
        full = f"the HerdDBCluster {tablespace.spec.herd_db_ref.name} has {MOST_TABLESPACES} tablespaces, the most that the operator makes"
        do = "drop those not in use, or make this one in another HerdDBCluster"
        return Plan.waiting(Reason.WAITING_FOR_HERDDB, f"{full}: {do}", requeue.BLOCKED)
    if (unencrypted := why_no_login(seen.tls, seen.herddb)) is not None:
        return Plan((), unencrypted, requeue.PENDING)
    leaders = _by_work(seen, set())
    if not leaders or seen.system_leader is None:
        return Plan.waiting(Reason.WAITING_FOR_HERDDB, "no SQL node answers")
    millis = tablespace.spec.failover.max_leader_inactivity_seconds * 1000
    return Plan(
        (CreateTablespace(seen.herddb.metadata.name, seen.system_leader, tablespace.sql_name, leaders[0], millis),),
        requeue_after_seconds=requeue.NEXT_STEP,
    )


def _adjust(seen: TablespaceObserved, found: VersionedRecord) -> Plan:
    """Bring the record to the spec. A node that must not promote itself is barred first: its replica may stay for long."""
    record = found.record
    verdicts = verdicts_in_force(seen.tablespace, record.uuid, seen.checkpoints, seen.nodes, seen.ledgers)
    said = {node: seen.replica_on(node) for node in verdicts}
    bars = promotion_bars(seen.tablespace.spec.herd_db_ref.name, record, said, verdicts)
    plan = _change_record(seen, found, verdicts)
    if not bars:
        return plan
    return replace(plan, actions=(*bars, *plan.actions), requeue_after_seconds=soonest(plan.requeue_after_seconds, requeue.SOON))


def _change_record(seen: TablespaceObserved, found: VersionedRecord, verdicts: Mapping[str, Verdict]) -> Plan:
    record = found.record
    millis = seen.tablespace.spec.failover.max_leader_inactivity_seconds * 1000
    wished = replace(record, expected_replica_count=EXPECTED_REPLICAS, max_leader_inactivity_millis=millis)
    if wished != record:
        return Plan((_change(seen, found, wished, "failover settings as declared"),), requeue_after_seconds=requeue.NEXT_STEP)
    if marks := _lost_marks(seen, record) or _proven(seen.tablespace, record.uuid, verdicts):
        return Plan(marks, requeue_after_seconds=requeue.NEXT_STEP)
    return _step_plan(seen, found, next_replica(_replica_state(seen, record, verdicts)))


def _step_plan(seen: TablespaceObserved, found: VersionedRecord, step: Step | Wait | None) -> Plan:
    """Returns a step of the replica list as a plan."""
    record = found.record
    match step:
        case AddReplica(node):
            grown = replace(record, replicas=(*record.replicas, node))
            return Plan((_change(seen, found, grown, f"replica on {node}"),), requeue_after_seconds=requeue.SOON)
        case RemoveReplica(node, why, differs):
            fewer = replace(record, replicas=tuple(other for other in record.replicas if other != node))
            change = _change(seen, found, fewer, f"no replica on {node} any more, since {why}")
            return Plan((replace(change, reason=Reason.REPLICA_DIFFERS) if differs else change,), requeue_after_seconds=requeue.SOON)
        case SetAside(node, verdict):
            order = SetCopyAside(seen.tablespace.spec.herd_db_ref.name, node, record.name, record.uuid, f"it {verdict.sentence}")
            state = Rebuilt(verdict.lsn, max(verdict.lsn, _end_of_log(seen, record)), uuid=record.uuid)
            mark = _mark(seen.tablespace, node, state, Reason.REPLICA_SET_ASIDE)
            return Plan((order, mark), requeue_after_seconds=requeue.NEXT_STEP)
        case Wait():
            return Plan((), step, requeue.SOON)
        case None:
            unsettled = [node for node in record.replicas if not is_settled(seen.replica_on(node))]
            return Plan(requeue_after_seconds=requeue.SOON if unsettled else None)
        case _:
            assert_never(step)


def _end_of_log(seen: TablespaceObserved, record: TablespaceRecord) -> tuple[int, int]:
    """Returns an LSN that no stopped replica can have passed; the lowest one if the leader reports none."""
    copy = seen.replica_on(record.leader)
    told = copy.lsn if isinstance(copy, NodeTablespace) else None
    return told or (-1, -1)


def _lost_marks(seen: TablespaceObserved, record: TablespaceRecord) -> tuple[Annotate, ...]:
    """Remove the marks of a time that the log lost: once it has ledgers of their numbers again, they would hide differences. Only while the
    leader tells where the log is, since it lists the ledger that it opens a moment later.
    """
    leader, ledgers = seen.replica_on(record.leader), seen.ledgers
    if not isinstance(leader, NodeTablespace) or leader.role != "leader" or leader.lsn is None:
        return ()
    if not isinstance(ledgers, LedgerList) or not ledgers.active:
        return ()
    lost = lost_marks(seen.tablespace, ledgers, leader.lsn[0])
    gone: dict[str, str | None] = {name: None for name, mark in lost.items() if mark.uuid in (None, record.uuid)}
    return (Annotate.on(seen.tablespace, gone, Reason.UPDATING),) if gone else ()


def _proven(tablespace: Tablespace, uuid: str, verdicts: Mapping[str, Verdict]) -> tuple[Annotate, ...]:
    """Note that a rebuilt replica is equal: if it ever differs again, it is rebuilt again."""
    marks = ((node, rebuilt(tablespace, node, uuid)) for node, verdict in sorted(verdicts.items()) if verdict.equal)
    return tuple(
        _mark(tablespace, node, replace(before, proven=True, uuid=uuid), Reason.REPLICA_REBUILT)
        for node, before in marks
        if before is not None and not (before.proven and before.uuid)
    )


def _mark(tablespace: Tablespace, node: str, state: Rebuilt, reason: Reason) -> Annotate:
    return Annotate.on(tablespace, {f"{names.SET_ASIDE_PREFIX}{node}": state.text}, reason)


def _replica_state(seen: TablespaceObserved, record: TablespaceRecord, verdicts: Mapping[str, Verdict]) -> ReplicaState:
    here = verdicts_on(verdicts, (record.leader, *record.replicas, *_staying(seen)))
    on_list = {record.leader, *record.replicas}
    # for a replica only the log's verdict counts; a removed one is of no value
    different = {
        node: verdict for node, verdict in here.items() if not verdict.equal and (verdict.compared_with_log or node not in on_list)
    }
    return ReplicaState(
        record,
        seen.tablespace.spec.replicas,
        _leaving(seen),
        {node: seen.replica_on(node) for node in {record.leader, *record.replicas, *different}},
        _by_work(seen, {*record.replicas, *different}),
        seen.tablespace.spec.preferred_leader,
        seen.places,
        different,
    )


def _staying(seen: TablespaceObserved) -> tuple[str, ...]:
    return staying_nodes(seen.herddb) if seen.herddb is not None else ()


def _leaving(seen: TablespaceObserved) -> frozenset[str]:
    """Returns the nodes that the database reports as leaving and does not want back."""
    status = seen.herddb.status if seen.herddb is not None else None
    return frozenset(status.leaving_nodes if status is not None else ()) - set(_staying(seen))


def _why_another_tablespace(tablespace: Tablespace, record: TablespaceRecord) -> Plan | None:
    """Returns why nothing is done if the tablespace is not the one that this resource created, or None."""
    made = tablespace.made_uuid
    if made in (None, record.uuid):
        return None
    return Plan.waiting(
        Reason.DATA_LOST,
        f"HerdDB's tablespace {record.name} has the uuid {record.uuid}, but this resource created {made}: delete this resource; to "
        "keep the new tablespace, create a new one",
        requeue.BLOCKED,
    )


def _with_pins(seen: TablespaceObserved, found: VersionedRecord, spark_image: str, driver_role: str) -> Plan:
    """Pins come first: what they keep must not be gone before the rest is done."""
    restoring = seen.tablespace.is_restoring
    plan = _fill(seen, found, spark_image, driver_role) if restoring else _for_clients(seen, _adjust(seen, found))
    archive = archive_steps(seen, spark_image)
    return replace(
        plan,
        actions=(
            *_note_made(seen.tablespace, found.record.uuid),
            *log_pin_steps(seen, found.record.uuid),
            *plan.actions,
            *archive.actions,
            *expiry_steps(seen, found.record.uuid),
        ),
        requeue_after_seconds=soonest(plan.requeue_after_seconds, archive.requeue_after_seconds),
    )


def _note_made(tablespace: Tablespace, uuid: str) -> tuple[Annotate, ...]:
    """Note in the metadata, since a status can be lost, which tablespace was created, and later that it is filled."""
    mark = MadeMark(uuid, filled=tablespace.spec.bootstrap is not None and not tablespace.is_restoring)
    if tablespace.mark == mark:
        return ()
    return (Annotate.on(tablespace, {names.MADE_ANNOTATION: mark.text(tablespace.metadata.uid)}, Reason.TABLESPACE_MADE),)


def _fill(seen: TablespaceObserved, found: VersionedRecord, spark_image: str, driver_role: str) -> Plan:
    """Plan replicas as always, and the Job once the leader leads. Clients get their Secret once the content is verified."""
    plan = _adjust(seen, found)
    if not is_settled(seen.replica_on(found.record.leader)):
        return plan
    filling = plan_restore(seen, spark_image, driver_role)
    soon = soonest(plan.requeue_after_seconds, filling.requeue_after_seconds)
    return replace(plan, actions=(*plan.actions, *filling.actions), wait=filling.wait or plan.wait, requeue_after_seconds=soon)


def _for_clients(seen: TablespaceObserved, plan: Plan) -> Plan:
    """Returns the plan with the connection Secret. A taken name does not block the replicas: the data does not depend on it."""
    if seen.taken:
        taken = f"the {' and the '.join(seen.taken)} was not created by the operator: delete it, or give this resource another name"
        return replace(plan, wait=Wait(Reason.NAME_TAKEN, taken))
    if seen.log is None or seen.credentials is None or isinstance(seen.tls, Problem):
        return plan
    refuses = seen.herddb is not None and (seen.herddb.spec.tls is None or seen.herddb.spec.tls.plaintext == "Refused")
    if refuses and seen.tls is not None and not is_encrypted(seen.herddb):  # a client must not begin with a URL in plain text
        again = soonest(plan.requeue_after_seconds, requeue.PENDING)
        return replace(plan, wait=plan.wait or why_no_login(seen.tls, seen.herddb), requeue_after_seconds=again)
    # the leader's URL shows how to connect to every node: it changes only after all have restarted
    address = seen.log.applications_address
    authorities = seen.tls.authorities if seen.tls is not None and is_encrypted(seen.herddb) else None
    secret = needed_applies((build_connection_secret(seen.tablespace, address, seen.credentials, authorities),), seen.objects)
    service = seen.tablespace.names.leader_service
    unmade = None if seen.objects.get("Service", service) is not None else requeue.PENDING
    return replace(plan, actions=(*plan.actions, *secret), requeue_after_seconds=plan.requeue_after_seconds or unmade)


def _change(seen: TablespaceObserved, found: VersionedRecord, record: TablespaceRecord, why: str) -> ChangeTablespaceRecord:
    if seen.herddb is None or seen.log is None:
        raise ValueError("a record was read, so its database and its ensemble are known")
    return record_change(seen.herddb, seen.log, replace(found, record=record), why)


def _by_work(seen: TablespaceObserved, without: set[str]) -> list[str]:
    """Returns the reachable nodes that stay: those with the fewest leaderships, then the fewest replicas, come first, then by name."""
    staying = _staying(seen)
    held = {node: len(view) for node, view in sorted(seen.nodes.items()) if not isinstance(view, Unknown) and node in staying}
    return sorted((node for node in held if node not in without), key=lambda node: (seen.leaderships.get(node, 0), held[node]))
