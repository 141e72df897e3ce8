"""The status of a schedule: what it has done, what comes next, and whether that is as declared."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any

from herdkeeper.api import ScheduledCheckpoint, ScheduledReplicationAudit
from herdkeeper.jobs.drill.status import drill_fields, drill_health
from herdkeeper.jobs.schedule.plan import created_at, decide
from herdkeeper.jobs.schedule.state import Run, ScheduleObserved
from herdkeeper.planning.due import Missed, timetable_of
from herdkeeper.planning.summary import Health, Summary
from herdkeeper.shared import names
from herdkeeper.shared.conditions import CURRENT, RESTORE_DRILLED
from herdkeeper.shared.reason import Reason
from herdkeeper.shared.time import moment_of, text_of
from herdkeeper.shared.timetable import overdue_at
from herdkeeper.shared.unknown import Unknown

REMEMBERED = (
    *("lastScheduleTime", "lastSuccessfulTime", "lastMissedTime", "lastFindings", "newestVerified", "verified"),
    *("drillsSince", "lastDrill"),
)
"""Fields that stay while the runs can't be read."""


def summarize_scheduled_checkpoint(schedule: ScheduledCheckpoint, seen: ScheduleObserved, notes: Mapping[str, Any]) -> Summary:
    """Returns Ready, the times, the newest verified checkpoint, and whether that is recent enough. `notes` are the plan's."""
    if isinstance(seen.runs, Unknown):
        return _unreadable(schedule, seen.runs)
    verified = sorted((run for run in seen.runs if run.verified), key=lambda run: (run.completed or run.due, run.name))
    fields = {
        **_fields(schedule, seen.runs, seen.now, verified),
        "newestVerified": verified[-1].name if verified else None,
        "verified": len(verified),
        **drill_fields(schedule, seen, notes),
    }
    current = _current(schedule, moment_of(fields["lastSuccessfulTime"]), seen.now)
    drilled = drill_health(schedule, fields, seen)
    conditions = {CURRENT: current, **({} if drilled is None else {RESTORE_DRILLED: drilled})}
    wrong = next((each for each in conditions.values() if each.status == "False"), None)
    return Summary(wrong or _health(schedule, seen.runs, seen.now), fields, conditions)


def summarize_scheduled_audit(schedule: ScheduledReplicationAudit, seen: ScheduleObserved) -> Summary:
    """Returns Ready, the times, and the findings of the newest audit."""
    if isinstance(seen.runs, Unknown):
        return _unreadable(schedule, seen.runs)
    succeeded = [run for run in seen.runs if run.phase == "Succeeded"]
    found = succeeded[-1].findings if succeeded else _before(schedule).get("lastFindings")
    fields = {**_fields(schedule, seen.runs, seen.now, succeeded), "lastFindings": found}
    return Summary(_health(schedule, seen.runs, seen.now), fields)


def _current(schedule: ScheduledCheckpoint, success: datetime.datetime | None, now: datetime.datetime) -> Health:
    overdue = overdue_at(timetable_of(schedule.spec), success or created_at(schedule))
    newest = f"the newest verified checkpoint was completed at {text_of(success)}" if success else "no checkpoint is verified yet"
    if overdue is None or now <= overdue:
        return Health("True", Reason.SCHEDULED, newest)
    suspended = "; spec.suspend is true" if schedule.spec.suspend else ""
    return Health("False", Reason.CHECKPOINT_OVERDUE, f"{newest}, more than two periods of the schedule ago{suspended}")


def _health(schedule: ScheduledCheckpoint | ScheduledReplicationAudit, runs: tuple[Run, ...], now: datetime.datetime) -> Health:
    ended = [run for run in runs if not run.active]
    following = _next(schedule, now)
    comes = f"the next run is due at {following}" if following is not None else "spec.suspend is true: no run is due"
    if (active := next((run for run in runs if run.active), None)) is not None:
        comes = f"{active.name} is running; {comes}"
    if ended and ended[-1].phase == "Failed":
        return Health("False", Reason.LAST_RUN_FAILED, f"{ended[-1].name} failed ({ended[-1].message}); {comes}")
    decision = decide(schedule, runs, now)
    if isinstance(decision, Missed):
        return Health("True", Reason.TIME_MISSED, f"no run was made for {text_of(decision.due)}, since {decision.why}; {comes}")
    return Health("True", Reason.SUSPENDED if schedule.spec.suspend else Reason.SCHEDULED, comes)


def _fields(
    schedule: ScheduledCheckpoint | ScheduledReplicationAudit, runs: tuple[Run, ...], now: datetime.datetime, successes: list[Run]
) -> dict[str, Any]:
    """Returns the fields of both kinds. Facts about deleted runs stay."""
    before = _before(schedule)
    decision = decide(schedule, runs, now)
    missed = text_of(decision.due) if isinstance(decision, Missed) else None
    return {
        "lastScheduleTime": _latest(before.get("lastScheduleTime"), *(text_of(run.due) for run in runs if not run.requested)),
        "lastSuccessfulTime": _latest(before.get("lastSuccessfulTime"), *(text_of(run.completed) for run in successes if run.completed)),
        "nextScheduleTime": _next(schedule, now),
        "lastMissedTime": _latest(before.get("lastMissedTime"), missed),
        "active": next((run.name for run in runs if run.active), None),
        "lastRequest": schedule.metadata.annotations.get(names.RUN_NOW_ANSWER_ANNOTATION),
    }


def _next(schedule: ScheduledCheckpoint | ScheduledReplicationAudit, now: datetime.datetime) -> str | None:
    following = None if schedule.spec.suspend else timetable_of(schedule.spec).after(now)
    return None if following is None else text_of(following)


def _latest(*texts: str | None) -> str | None:
    """Returns the latest of times in one format, which sort as text."""
    return max((text for text in texts if text is not None), default=None)


def _before(schedule: ScheduledCheckpoint | ScheduledReplicationAudit) -> dict[str, Any]:
    return schedule.status.model_dump(mode="json", by_alias=True, exclude_none=True) if schedule.status is not None else {}


def _unreadable(schedule: ScheduledCheckpoint | ScheduledReplicationAudit, unknown: Unknown) -> Summary:
    kept = {name: value for name, value in _before(schedule).items() if name in REMEMBERED}
    return Summary(Health("Unknown", Reason.UNREADABLE, unknown.why), kept)
