"""HerdDB's full check of a tablespace, on request: it stops writes while it scans, so it is begun only where it can tell something."""

from __future__ import annotations

from herdkeeper.api import Tablespace
from herdkeeper.domain import names
from herdkeeper.domain.conditions import PROGRESSING, condition, is_ready_resource, is_settled_resource, why_not_ready
from herdkeeper.domain.full_check import copy_of, newest_check, remembered_check, runs, told_check, waits_for_follower
from herdkeeper.domain.observed.herddb import NodeTablespace
from herdkeeper.domain.observed.tablespace import TablespaceObserved
from herdkeeper.domain.observed.tablespace_record import RecordAbsent, VersionedRecord
from herdkeeper.domain.unknown import Unknown
from herdkeeper.formats.herddb_tablespace import TablespaceRecord
from herdkeeper.plan.action import AnswerRequest, Plan, Request, StartFullCheck

RUNNING_SECONDS = 2.0
"""No event tells that a check has ended, or that a follower has come to its end."""


def full_check_steps(tablespace: Tablespace, seen: TablespaceObserved, changes: str | None) -> Plan:
    """The order to the leader, the answer to who asked, and when to look again while a check is not over. `changes`: how the tablespace's
    record is being changed in this moment, None when it is not."""
    soon = RUNNING_SECONDS if _is_under_way(tablespace, seen) else None
    if names.FULL_CHECK_ANNOTATION not in tablespace.metadata.annotations:
        return Plan(look_again_seconds=soon)
    if (begun := _begun_unanswered(tablespace, seen)) is not None:
        return Plan((_answer(tablespace, f"done: {begun}"),), look_again_seconds=soon)
    allowed = f"it is being changed: {changes}" if changes is not None else _why_refused(tablespace, seen)
    if isinstance(allowed, str):
        return Plan((_answer(tablespace, f"refused: {allowed}"),), look_again_seconds=soon)
    order = StartFullCheck(tablespace.spec.herd_db_ref.name, allowed.leader, allowed.name)
    answer = _answer(tablespace, f"done: {allowed.leader} checks all tables; status.fullCheck tells what it finds")
    return Plan((order, answer), look_again_seconds=1.0)


def _answer(tablespace: Tablespace, answer: str) -> AnswerRequest:
    metadata = tablespace.metadata
    return AnswerRequest(tablespace.KIND, metadata.name, metadata.resource_version, Request.FULL_CHECK, answer)


def _is_under_way(tablespace: Tablespace, seen: TablespaceObserved) -> bool:
    if not isinstance(seen.record, VersionedRecord):
        return False
    check = newest_check(tablespace, seen.nodes, seen.record.record)
    return check is not None and (runs(check) or waits_for_follower(check, seen.nodes, seen.record.record))


def _begun_unanswered(tablespace: Tablespace, seen: TablespaceObserved) -> str | None:
    """A check that is not in the status yet: it was begun for this request, and the process ended before it could answer."""
    if not isinstance(seen.record, VersionedRecord):
        return None
    told, before = told_check(seen.nodes, seen.record.record), remembered_check(tablespace)
    if told is None or (before is not None and told.identity <= before.identity):
        return None
    return f"{told.node} checks all tables since {told.started_at}"


def _why_refused(tablespace: Tablespace, seen: TablespaceObserved) -> str | TablespaceRecord:
    """Why no check is begun now; the record when one may be."""
    match seen.record:
        case Unknown(why):
            return why
        case RecordAbsent():
            return "the tablespace does not exist yet"
        case VersionedRecord(record):
            told = told_check(seen.nodes, record)
            if told is not None and runs(told):
                return f"one runs on {told.node} since {told.started_at}"
            return _why_not_calm(tablespace, seen) or _why_not_checkable(seen, record) or record


def _why_not_calm(tablespace: Tablespace, seen: TablespaceObserved) -> str | None:
    """A leader that changes meanwhile would end the check, and its scan would hold up the change."""
    if not is_ready_resource(tablespace):
        return f"the tablespace is not Ready ({why_not_ready(tablespace)})"
    if names.SWITCHOVER_ANNOTATION in tablespace.metadata.annotations:
        return "a switchover is asked for"
    name = tablespace.spec.herd_db_ref.name
    if seen.herddb is None:
        return f"there is no HerdDBCluster {name}"
    if not is_settled_resource(seen.herddb):
        changing = condition(seen.herddb, PROGRESSING)
        why = changing.message if changing is not None and changing.status != "False" else why_not_ready(seen.herddb)
        return f"the HerdDBCluster {name} is not settled ({why})"
    return None


def _why_not_checkable(seen: TablespaceObserved, record: TablespaceRecord) -> str | None:
    followers = [node for node in sorted(record.replicas) if node != record.leader]
    if not followers:
        return "there is no follower that could be compared: writes would stop for nothing"
    for node in (record.leader, *followers):
        copy = copy_of(seen.nodes, node, record)
        wanted = "leader" if node == record.leader else "follower"
        if isinstance(copy, Unknown):
            return f"{node} can't be asked ({copy.why})"
        if copy is None or copy.role != wanted or not copy.ready:
            return f"{node} is no settled {wanted} ({'it does not hold the tablespace' if copy is None else f'it is {copy.role}'})"
        if why := _why_mute(copy):
            return f"{node} {why}"
    return None


def _why_mute(copy: NodeTablespace) -> str | None:
    """An older node program's follower could not say which check a verdict is about."""
    return f"can't check all tables ({copy.full_check.why})" if isinstance(copy.full_check, Unknown) else None
