"""Plans a schedule: create due or requested runs, delete expired ones.

Earlier decisions are read from the existing runs and the status, so repeated reconciles decide alike.
"""

from __future__ import annotations

import datetime
from typing import assert_never

from herdkeeper.api import ScheduledCheckpoint, ScheduledReplicationAudit
from herdkeeper.api.resource import API_VERSION
from herdkeeper.herddb.log.archive_expiry import needed_by_archive
from herdkeeper.jobs.drill.draw import drilled_checkpoint
from herdkeeper.jobs.schedule.build import build_run, kind_of_runs
from herdkeeper.jobs.schedule.retention import expired_runs
from herdkeeper.jobs.schedule.state import Run, ScheduleObserved
from herdkeeper.planning import requeue
from herdkeeper.planning.actions import Action, AnswerRequest, Create, Delete, Plan, Request, Wait, soonest
from herdkeeper.planning.due import Missed, NotDue, Start, decide_time, pending_time, requeue_after_seconds, seconds_to_next
from herdkeeper.shared import names
from herdkeeper.shared.reason import Reason
from herdkeeper.shared.time import moment_of
from herdkeeper.shared.unknown import Unknown

Decision = Start | Missed | NotDue


def decide(schedule: ScheduledCheckpoint | ScheduledReplicationAudit, runs: tuple[Run, ...], now: datetime.datetime) -> Decision:
    """Returns the decision on the newest unhandled time. Earlier missed times are skipped."""
    due = pending_time(schedule.spec, _done_until(schedule, runs), now)
    if due is None:
        return NotDue()
    run = _blocking_run(runs, due)
    return decide_time(schedule.spec, due, run.name if run is not None else None, now)


def plan_schedule(schedule: ScheduledCheckpoint | ScheduledReplicationAudit, seen: ScheduleObserved) -> Plan:
    """Returns what to do now, and when to reconcile again. An unreadable run blocks starts and deletions: it may be any of them."""
    if isinstance(seen.runs, Unknown):
        return Plan.waiting(Reason.UNREADABLE, f"{seen.runs.why}; nothing is started or deleted until then", requeue.UNREAD)
    kind, _ = kind_of_runs(schedule)
    needed = needed_runs(seen)
    expired = () if isinstance(needed, Unknown) else expired_runs(schedule, seen.runs, seen.now, needed | _drilled(schedule))
    actions = (
        *_starts(schedule, seen.runs, seen.now),
        *(Delete(API_VERSION, kind.KIND, run.name, run.uid, Reason.RUN_EXPIRED) for run in expired),
    )
    wait = Wait(Reason.SUSPENDED, "spec.suspend is true: nothing is started by the schedule") if schedule.spec.suspend else None
    again = requeue_after_seconds(None, seconds_to_next(schedule.spec, seen.now), acts=bool(actions))
    if isinstance(needed, Unknown):
        wait = Wait(Reason.UNREADABLE, f"{needed.why}; nothing is deleted until then")
        again = soonest(again, requeue.UNREAD)
    return Plan(actions, wait, again)


def _drilled(schedule: ScheduledCheckpoint | ScheduledReplicationAudit) -> frozenset[str]:
    name = drilled_checkpoint(schedule) if isinstance(schedule, ScheduledCheckpoint) else None
    return frozenset() if name is None else frozenset({name})


def needed_runs(seen: ScheduleObserved) -> frozenset[str] | Unknown:
    """Returns the names of the runs that the recovery window of the log's archive needs.

    A deleted Tablespace may have left an archive, then the only source for a restore. It is unknown which Checkpoints its window needs.
    """
    tablespace, checkpoints = seen.tablespace, seen.checkpoints
    if isinstance(seen.runs, Unknown):
        return seen.runs
    if tablespace is None:
        return frozenset(run.name for run in seen.runs if run.verified)
    if isinstance(tablespace, Unknown):
        return tablespace
    if isinstance(checkpoints, Unknown):
        return checkpoints
    return needed_by_archive(tablespace, checkpoints, seen.instance_id, seen.now)


def created_at(schedule: ScheduledCheckpoint | ScheduledReplicationAudit) -> datetime.datetime:
    """Returns when a schedule was created. Raises ValueError if no API server has stored it."""
    created = moment_of(schedule.metadata.creation_timestamp)
    if created is None:
        raise ValueError(f"the {schedule.KIND} {schedule.metadata.name} has no creationTimestamp")
    return created


def _done_until(schedule: ScheduledCheckpoint | ScheduledReplicationAudit, runs: tuple[Run, ...]) -> datetime.datetime:
    """Returns when the newest run was made, requested or scheduled and perhaps deleted by now; otherwise when the schedule was created."""
    created = created_at(schedule)
    last = moment_of(schedule.status.last_schedule_time) if schedule.status is not None else None
    return max(created, last or created, *(run.due for run in runs))


def _blocking_run(runs: tuple[Run, ...], due: datetime.datetime) -> Run | None:
    """Returns a run that is active, or was at this time: a late decision must equal a timely one."""
    return next((run for run in runs if run.active or (run.due < due and run.completed is not None and run.completed > due)), None)


def _starts(schedule: ScheduledCheckpoint | ScheduledReplicationAudit, runs: tuple[Run, ...], now: datetime.datetime) -> tuple[Action, ...]:
    """Returns the run that is due or requested, and the answer to a request. A due run answers it, too."""
    decision = decide(schedule, runs, now)
    asked = names.RUN_NOW_ANNOTATION in schedule.metadata.annotations
    match decision:
        case Start(due):
            run = build_run(schedule, due, requested=False)
        case Missed() | NotDue():
            active = next((run for run in runs if run.active), None)
            if not asked:
                return ()
            if active is not None:
                # a requested run is the answer, which its maker could not give
                said = f"done: {active.name}" if active.requested else f"refused: {active.name} is still running"
                return (_answer(schedule, said),)
            run = build_run(schedule, now, requested=True)
        case _:
            assert_never(decision)
    made = Create(run, Reason.RUN_STARTED)
    return (made, _answer(schedule, f"done: {run['metadata']['name']}")) if asked else (made,)


def _answer(schedule: ScheduledCheckpoint | ScheduledReplicationAudit, answer: str) -> AnswerRequest:
    return AnswerRequest(schedule.KIND, schedule.metadata.name, schedule.metadata.resource_version, Request.RUN_NOW, answer)
