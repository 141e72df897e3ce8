"""Plans a schedule: create due or requested runs, delete expired ones.

Earlier decisions are read from the existing runs and the status, so repeated reconciles decide alike.
"""

from __future__ import annotations

from typing import assert_never

from herdkeeper.api import ScheduledCheckpoint, ScheduledReplicationAudit
from herdkeeper.api.resource import API_VERSION
from herdkeeper.jobs.schedule.build import build_run, kind_of_runs
from herdkeeper.jobs.schedule.retention import expired_runs
from herdkeeper.jobs.schedule.state import RunSeries
from herdkeeper.planning import requeue
from herdkeeper.planning.actions import Action, AnswerRequest, Create, Delete, Plan, Request, Wait, soonest
from herdkeeper.planning.due import Missed, NotDue, Start, requeue_after_seconds, seconds_to_next
from herdkeeper.shared import names
from herdkeeper.shared.reason import Reason
from herdkeeper.shared.unknown import Unknown


def plan_schedule(series: RunSeries) -> Plan:
    """Returns what to do now, and when to reconcile again. An unreadable run blocks starts and deletions: it may be any of them."""
    if isinstance(series.runs, Unknown):
        return Plan.waiting(
            Reason.UNREADABLE, f"{series.runs.why}; nothing is started or deleted until it is corrected or deleted", requeue.UNREAD
        )
    schedule, needed = series.schedule, series.needed
    kind, _ = kind_of_runs(schedule)
    expired = () if isinstance(needed, Unknown) else expired_runs(schedule, series.runs, series.now, needed)
    actions = (*_starts(series), *(Delete(API_VERSION, kind.KIND, run.name, run.uid, Reason.RUN_EXPIRED) for run in expired))
    wait = Wait(Reason.SUSPENDED, "spec.suspend is true: no run is due") if schedule.spec.suspend else None
    again = requeue_after_seconds(None, seconds_to_next(schedule.spec, series.now), acts=bool(actions))
    if isinstance(needed, Unknown):
        wait = Wait(Reason.UNREADABLE, f"{needed.why}; nothing is deleted until then")
        again = soonest(again, requeue.UNREAD)
    return Plan(actions, wait, again)


def _starts(series: RunSeries) -> tuple[Action, ...]:
    """Returns the run that is due or requested, and the answer to a request. A due run answers it, too."""
    schedule, active = series.schedule, series.active
    asked = names.RUN_NOW_ANNOTATION in schedule.metadata.annotations
    match series.decision:
        case Start(due):
            run = build_run(schedule, due, requested=False)
            if run["metadata"]["name"] in series.taken:
                run = build_run(schedule, due, requested=False, name=names.requested_run(schedule.metadata.name, series.now))
        case Missed() | NotDue():
            if not asked:
                return ()
            if active is not None:
                # a requested run is the answer, unless it was that to an earlier request: then it lacks what came since
                unanswered = active.requested and _answer_with(active.name) not in _given(schedule)
                return (_answer(series, _answer_with(active.name) if unanswered else f"refused: {active.name} is not over"),)
            run = build_run(schedule, series.now, requested=True)
        case _:
            assert_never(series.decision)
    made = Create(run, Reason.RUN_STARTED)
    return (made, _answer(series, _answer_with(run["metadata"]["name"]))) if asked else (made,)


def _answer_with(run: str) -> str:
    return f"done: {run}"


def _given(schedule: ScheduledCheckpoint | ScheduledReplicationAudit) -> tuple[str | None, ...]:
    """Returns the last answer, if known. Whoever asks may take the annotation off; the status has it until the next look."""
    remembered = schedule.status.last_request if schedule.status is not None else None
    return schedule.metadata.annotations.get(names.RUN_NOW_ANSWER_ANNOTATION), remembered


def _answer(series: RunSeries, answer: str) -> AnswerRequest:
    return AnswerRequest.on(series.schedule, Request.RUN_NOW, answer)
