"""The full check of a tablespace, on request or by schedule. It pauses writes, so it starts only if it can give a result.

A check that a node reports and the status lacks is the due or requested one: the operator ended before it could record it. Writes are not
paused twice.
"""

from __future__ import annotations

import datetime
from dataclasses import dataclass, replace

from herdkeeper.api import Tablespace
from herdkeeper.codecs.herddb.tablespace import TablespaceRecord
from herdkeeper.herddb.state.cluster import NodeTablespace, RecordAbsent, VersionedRecord
from herdkeeper.herddb.tablespace.full_check import (
    KnownCheck,
    newest_check,
    remembered_check,
    remembered_times,
    replica_of,
    reported_check,
    runs,
    timing_of,
    unrecorded_check,
    waits_for_follower,
)
from herdkeeper.herddb.tablespace.state import TablespaceObserved
from herdkeeper.planning import requeue
from herdkeeper.planning.actions import AnswerRequest, Plan, Request, StartFullCheck, soonest
from herdkeeper.planning.due import Missed, NotDue, Start, decide_time, pending_time
from herdkeeper.shared import names
from herdkeeper.shared.conditions import PROGRESSING, condition, is_ready_resource, is_settled_resource, why_not_ready
from herdkeeper.shared.time import moment_of
from herdkeeper.shared.unknown import Unknown

NO_FOLLOWER = "there is no follower to compare with, so writes would stop for nothing"


@dataclass(frozen=True)
class StartedCheck:
    """The check due at `due` has started: a node reports it, but the status lacks it."""

    due: datetime.datetime


@dataclass(frozen=True)
class DeferredCheck:
    """The check due at `due` is deferred."""

    due: datetime.datetime
    why: str


CheckDecision = Start | StartedCheck | DeferredCheck | Missed | NotDue


def decide_check(seen: TablespaceObserved) -> CheckDecision:
    """Returns the decision on the newest unhandled time of `spec.fullCheck`. Earlier missed times are skipped."""
    return _decide(seen, _why_refused(seen))


def _decide(seen: TablespaceObserved, refused: str | TablespaceRecord) -> CheckDecision:
    tablespace, timing = seen.tablespace, timing_of(seen.tablespace)
    due = pending_time(timing, _done_until(tablespace, seen.now), seen.now) if timing is not None else None
    if timing is None or due is None:
        return NotDue()
    if _unrecorded(seen) is not None:
        return StartedCheck(due)
    replicas = len(seen.known_record.replicas) if seen.known_record is not None else 0
    if max(tablespace.spec.replicas, replicas) <= 1:
        return Missed(due, NO_FOLLOWER)
    in_the_way = _blocking_check(seen, due)
    decision = decide_time(timing, due, in_the_way, seen.now)
    if in_the_way is not None or not isinstance(refused, str):
        return decision
    return DeferredCheck(due, refused) if isinstance(decision, Start) else replace(decision, why=f"{decision.why} ({refused})")


def full_check_steps(seen: TablespaceObserved, changes: str | None) -> Plan:
    """Returns the leader's order, a request's answer, and when to check again. `changes`: how the tablespace's record changes, or None."""
    tablespace, refused = seen.tablespace, _why_refused(seen)
    decision = _decide(seen, refused)
    soon = _soon(seen, decision)
    asked, due = names.FULL_CHECK_ANNOTATION in tablespace.metadata.annotations, isinstance(decision, Start)
    if not (asked or due):
        return Plan(requeue_after_seconds=soon)
    if asked and (begun := _unrecorded(seen)) is not None:
        return Plan((_answer(tablespace, f"done: {begun.leader} checks all tables since {begun.started_at}"),), requeue_after_seconds=soon)
    allowed = f"it is being changed: {changes}" if changes is not None else refused
    if isinstance(allowed, str):
        refusal = (_answer(tablespace, f"refused: {allowed}"),) if asked else ()
        return Plan(refusal, requeue_after_seconds=requeue.PENDING if due and soon is None else soon)
    longest = tablespace.spec.full_check.max_writes_stopped_milliseconds
    order = StartFullCheck(tablespace.spec.herd_db_ref.name, allowed.leader, allowed.name, longest)
    # the due check answers the request, too
    answer = _answer(tablespace, f"done: {allowed.leader} checks all tables; see status.fullCheck for the result")
    return Plan((order, answer) if asked else (order,), requeue_after_seconds=requeue.NEXT_STEP)


def _soon(seen: TablespaceObserved, decision: CheckDecision) -> float | None:
    running = requeue.SOON if _is_under_way(seen) else None
    return soonest(running, requeue.PENDING if isinstance(decision, DeferredCheck) else None)


def _done_until(tablespace: Tablespace, now: datetime.datetime) -> datetime.datetime:
    """Returns when the schedule was first seen, the last check (also a requested one) started, or the last time was handled.

    Nothing is due for a new schedule: declaring a nightly check must not pause writes during the day.
    """
    times, check = remembered_times(tablespace), remembered_check(tablespace)
    if times is None:
        return now
    told = (times.since, times.last_schedule_time, times.last_missed_time, check.started_at if check is not None else None)
    return max((moment for text in told if (moment := moment_of(text)) is not None), default=now)


def _blocking_check(seen: TablespaceObserved, due: datetime.datetime) -> str | None:
    """Returns the check that is running, or was when this time came. A check on an unreachable node may still run."""
    record = seen.known_record
    check = newest_check(seen.tablespace, seen.nodes, record) if record is not None else remembered_check(seen.tablespace)
    if check is None:
        return None
    started, completed = moment_of(check.started_at), moment_of(check.completed_at)
    ran = started is not None and completed is not None and started < due < completed
    return f"the check that {check.leader} started at {check.started_at}" if runs(check) or ran else None


def _answer(tablespace: Tablespace, answer: str) -> AnswerRequest:
    return AnswerRequest.on(tablespace, Request.FULL_CHECK, answer)


def _is_under_way(seen: TablespaceObserved) -> bool:
    record = seen.known_record
    check = newest_check(seen.tablespace, seen.nodes, record) if record is not None else None
    return record is not None and check is not None and (runs(check) or waits_for_follower(check, seen.nodes, record))


def _unrecorded(seen: TablespaceObserved) -> KnownCheck | None:
    return unrecorded_check(seen.tablespace, seen.nodes, seen.known_record) if seen.known_record is not None else None


def _why_refused(seen: TablespaceObserved) -> str | TablespaceRecord:
    """Returns why no check may start now, or the record if one may."""
    match seen.record:
        case Unknown(why):
            return why
        case RecordAbsent():
            return "the tablespace does not exist yet"
        case VersionedRecord(record):
            told = reported_check(seen.nodes, record)
            if told is not None and runs(told):
                return f"one runs on {told.leader} since {told.started_at}"
            return _why_not_settled(seen) or _why_not_checkable(seen, record) or record


def _why_not_settled(seen: TablespaceObserved) -> str | None:
    """A leader change would end the check, and its scan would delay the change."""
    tablespace = seen.tablespace
    if not is_ready_resource(tablespace):
        return f"the tablespace is not Ready ({why_not_ready(tablespace)})"
    if names.SWITCHOVER_ANNOTATION in tablespace.metadata.annotations:
        return "a switchover is requested"
    name = tablespace.spec.herd_db_ref.name
    if seen.herddb is None:
        return f"the HerdDBCluster {name} does not exist"
    if not is_settled_resource(seen.herddb):
        changing = condition(seen.herddb, PROGRESSING)
        why = changing.message if changing is not None and changing.status != "False" else why_not_ready(seen.herddb)
        return f"the HerdDBCluster {name} is not settled ({why})"
    return None


def _why_not_checkable(seen: TablespaceObserved, record: TablespaceRecord) -> str | None:
    followers = [node for node in sorted(record.replicas) if node != record.leader]
    if not followers:
        return NO_FOLLOWER
    for node in (record.leader, *followers):
        copy = replica_of(seen.nodes, node, record)
        wanted = "leader" if node == record.leader else "follower"
        if isinstance(copy, Unknown):
            return f"{node} can't be reached ({copy.why})"
        if copy is None or copy.role != wanted or not copy.ready:
            return f"{node} is not a settled {wanted} ({_role_of(copy, wanted)})"
        # a follower with an older node program could not tell to which check a verdict belongs
        if isinstance(copy.full_check, Unknown):
            return f"{node} can't check all tables ({copy.full_check.why})"
    return None


def _role_of(copy: NodeTablespace | None, wanted: str) -> str:
    if copy is None:
        return "it does not hold the tablespace"
    return f"it is {copy.role}" if copy.role != wanted else "it is not ready"
