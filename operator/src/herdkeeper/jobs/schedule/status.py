"""The status of a schedule: what it has done, what comes next, and whether that is as declared."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from herdkeeper.jobs.audit.state import is_of
from herdkeeper.jobs.drill.state import CheckpointSeries
from herdkeeper.jobs.drill.status import drill_fields, drill_health
from herdkeeper.jobs.schedule.state import Run, RunSeries
from herdkeeper.planning.due import Missed, timetable_of
from herdkeeper.planning.summary import Health, Summary
from herdkeeper.shared import names
from herdkeeper.shared.conditions import CURRENT, RESTORE_DRILLED
from herdkeeper.shared.reason import Reason
from herdkeeper.shared.time import moment_of, text_of
from herdkeeper.shared.timetable import overdue_at
from herdkeeper.shared.unknown import Unknown

REMEMBERED = (
    *("lastScheduleTime", "lastSuccessfulTime", "lastMissedTime", "lastFindings", "instanceId", "newestVerified", "verified"),
    *("newestVerifiedTime", "drillsSince", "lastDrill"),
)
"""Fields that stay while the runs can't be read."""


def summarize_scheduled_checkpoint(series: CheckpointSeries, decided: Mapping[str, Any]) -> Summary:
    """Returns Ready, the times, the newest verified checkpoint, and whether that is recent enough. `decided`: what the plan decides."""
    if isinstance(series.runs, Unknown):
        return replace(_unreadable(series, series.runs), conditions={CURRENT: _current_by_status(series, series.runs)})
    verified = sorted((run for run in series.runs if run.verified), key=lambda run: run.ended)
    kept = [run for run in verified if not run.going]
    mine = [run for run in kept if series.is_of_the_tablespace(run)]
    fields = {
        **_fields(series, verified),
        "newestVerified": mine[-1].name if mine else None,
        "newestVerifiedTime": text_of(mine[-1].completed) if mine and mine[-1].completed else None,
        "verified": len(kept),
        **drill_fields(series, decided),
    }
    drilled = drill_health(series, fields)
    conditions = {
        CURRENT: _current(series, mine),
        **({} if drilled is None else {RESTORE_DRILLED: drilled}),
    }
    wrong = next((each for each in conditions.values() if each.status == "False"), None)
    return Summary(wrong or _health(series), fields, conditions)


def summarize_scheduled_audit(series: RunSeries) -> Summary:
    """Returns Ready, the times, and the findings of the newest audit of the cluster."""
    if isinstance(series.runs, Unknown):
        return _unreadable(series, series.runs)
    succeeded = sorted((run for run in series.runs if run.phase == "Succeeded"), key=lambda run: run.ended)
    return Summary(_health(series), {**_fields(series, succeeded), **_findings(series, succeeded)})


def _findings(series: RunSeries, succeeded: list[Run]) -> dict[str, Any]:
    """Those of an earlier cluster of this name say nothing of this one."""
    cluster, before = series.audited, _before(series)
    for run in reversed(succeeded):
        if cluster is None or is_of(cluster, run.instance_id, run.completed):
            return {"lastFindings": run.findings, "instanceId": run.instance_id}
    kept = cluster is None or (cluster.status is not None and before.get("instanceId") == cluster.status.instance_id)
    return {name: before.get(name) if kept else None for name in ("lastFindings", "instanceId")}


def _current(series: CheckpointSeries, verified: list[Run]) -> Health:
    """`verified`: the verified checkpoints of the tablespace that nobody deletes, in order. One that no restore can load does not count."""
    spec = series.schedule.spec
    success = max((run.completed for run in verified if run.completed and run.restorable), default=None)
    newest = f"the newest verified checkpoint was completed at {text_of(success)}" if success else "there is no verified checkpoint"
    if verified and not verified[-1].restorable:
        newest = f"{verified[-1].name} can't be restored as it is (its status.message says why); of the others {newest}"
    if not _is_overdue(series, success):
        return Health("True", Reason.SCHEDULED, newest)
    since = "more than two periods of the schedule ago" if success else "and the schedule is older than two of its periods"
    suspended = "; spec.suspend is true" if spec.suspend else ""
    going_on = "" if series.active is None else f"; {_done_by(series.active)}"
    return Health("False", Reason.CHECKPOINT_OVERDUE, f"{newest}, {since}{suspended}{going_on}")


def _current_by_status(series: CheckpointSeries, unread: Unknown) -> Health:
    """The same while the runs can't be read, and nothing is started."""
    success = moment_of(_before(series).get("newestVerifiedTime"))
    if not _is_overdue(series, success):
        return Health("Unknown", Reason.UNREADABLE, unread.why)
    newest = f"the newest known verified checkpoint was completed at {text_of(success)}" if success else "no verified checkpoint is known"
    return Health("False", Reason.CHECKPOINT_OVERDUE, f"{newest}, and nothing is started: {unread.why}")


def _is_overdue(series: CheckpointSeries, success: datetime.datetime | None) -> bool:
    """Returns whether two periods have passed since the newest success, or since the schedule was created."""
    overdue = overdue_at(timetable_of(series.schedule.spec), success or series.created_at)
    return overdue is not None and series.now > overdue


def _done_by(active: Run) -> str:
    why = f" ({active.message})" if active.message else ""
    return f"{active.name} is running" if active.phase == "Running" else f"{active.name} waits{why}"


def _health(series: RunSeries) -> Health:
    ended = sorted((run for run in series.known if run.phase in ("Succeeded", "Failed")), key=lambda run: run.ended)
    following = _next(series)
    comes = f"the next run is due at {following}" if following is not None else "spec.suspend is true: no run is due"
    if series.active is not None:
        comes = f"{_done_by(series.active)}; {comes}"
        if series.active.refused:
            return Health("False", Reason.INVALID_SPEC, f"until it is corrected or deleted, no other run is made: {comes}")
    if ended and ended[-1].phase == "Failed":
        return Health("False", Reason.LAST_RUN_FAILED, f"{ended[-1].name} failed ({ended[-1].message}); {comes}")
    decision = series.decision
    if isinstance(decision, Missed):
        return Health("True", Reason.TIME_MISSED, f"no run was made for {text_of(decision.due)}, since {decision.why}; {comes}")
    return Health("True", Reason.SUSPENDED if series.schedule.spec.suspend else Reason.SCHEDULED, comes)


def _fields(series: RunSeries, successes: list[Run]) -> dict[str, Any]:
    """Returns the fields of both kinds. Facts about deleted runs stay."""
    before, decision = _before(series), series.decision
    missed = text_of(decision.due) if isinstance(decision, Missed) else None
    return {
        "lastScheduleTime": _latest(before.get("lastScheduleTime"), *(text_of(run.due) for run in series.known if not run.requested)),
        "lastSuccessfulTime": _latest(before.get("lastSuccessfulTime"), *(text_of(run.completed) for run in successes if run.completed)),
        "nextScheduleTime": _next(series),
        "lastMissedTime": _latest(before.get("lastMissedTime"), missed),
        "active": None if series.active is None else series.active.name,
        "lastRequest": series.schedule.metadata.annotations.get(names.RUN_NOW_ANSWER_ANNOTATION),
    }


def _next(series: RunSeries) -> str | None:
    since = max(series.now, series.done_until)
    following = None if series.schedule.spec.suspend else timetable_of(series.schedule.spec).after(since)
    return None if following is None else text_of(following)


def _latest(*texts: str | None) -> str | None:
    """Returns the latest of times in one format, which sort as text."""
    return max((text for text in texts if text is not None), default=None)


def _before(series: RunSeries) -> dict[str, Any]:
    status = series.schedule.status
    return status.document() if status is not None else {}


def _unreadable(series: RunSeries, unknown: Unknown) -> Summary:
    kept = {name: value for name, value in _before(series).items() if name in REMEMBERED}
    return Summary(Health("Unknown", Reason.UNREADABLE, unknown.why), kept)
