"""The next step of a schedule: a run is made when it is due or asked for, and runs go when they have expired.

What was decided before is read from the runs that there are and from the status, so that looking twice decides alike.
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
    """What becomes of the newest time of the schedule that is not dealt with. Those that were missed before it are left out."""
    due = pending_time(schedule.spec, _done_until(schedule, runs), now)
    if due is None:
        return NotDue()
    run = _in_the_way(runs, due)
    return decide_time(schedule.spec, due, run.name if run is not None else None, now)


def plan_schedule(schedule: ScheduledCheckpoint | ScheduledReplicationAudit, seen: ScheduleObserved) -> Plan:
    """What to do now, and when to look again. Nothing is started or deleted while a run can't be read: it may be any of them."""
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
    """Those that the archive of the tablespace's log needs for its recovery window, by name.

    A Tablespace that is gone may have left an archive, which is then all that there is to restore from, and needs the Checkpoints that its
    window stands on: nobody tells any more which these are.
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
    """When a schedule was declared. ValueError for one that no API server has stored."""
    created = moment_of(schedule.metadata.creation_timestamp)
    if created is None:
        raise ValueError(f"the {schedule.KIND} {schedule.metadata.name} has no creationTimestamp")
    return created


def _done_until(schedule: ScheduledCheckpoint | ScheduledReplicationAudit, runs: tuple[Run, ...]) -> datetime.datetime:
    """When the newest run was made, on request or for a time whose run may be deleted by now; else when the schedule was declared."""
    created = created_at(schedule)
    last = moment_of(schedule.status.last_schedule_time) if schedule.status is not None else None
    return max(created, last or created, *(run.due for run in runs))


def _in_the_way(runs: tuple[Run, ...], due: datetime.datetime) -> Run | None:
    """A run that is not over, or was not when this time came: whoever looks later must decide as if it had looked then."""
    return next((run for run in runs if run.active or (run.due < due and run.completed is not None and run.completed > due)), None)


def _starts(schedule: ScheduledCheckpoint | ScheduledReplicationAudit, runs: tuple[Run, ...], now: datetime.datetime) -> tuple[Action, ...]:
    """The run that is due or asked for, and the answer to who asked. What is due is an answer, too."""
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
                # one that was asked for is the answer, which whoever made it could not give
                said = f"done: {active.name}" if active.requested else f"refused: {active.name} is not over"
                return (_answer(schedule, said),)
            run = build_run(schedule, now, requested=True)
        case _:
            assert_never(decision)
    made = Create(run, Reason.RUN_STARTED)
    return (made, _answer(schedule, f"done: {run['metadata']['name']}")) if asked else (made,)


def _answer(schedule: ScheduledCheckpoint | ScheduledReplicationAudit, answer: str) -> AnswerRequest:
    return AnswerRequest(schedule.KIND, schedule.metadata.name, schedule.metadata.resource_version, Request.RUN_NOW, answer)
