"""The result of the newest restore drill, and what it means for the schedule's checkpoints."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any

from herdkeeper.jobs.drill.progress import observed_drill
from herdkeeper.jobs.drill.state import CheckpointSeries, NothingToDraw
from herdkeeper.planning.due import timetable_of
from herdkeeper.planning.summary import Health
from herdkeeper.shared.conditions import RESTORE_DRILLED, condition
from herdkeeper.shared.problem import Problem
from herdkeeper.shared.reason import Reason
from herdkeeper.shared.time import moment_of, text_of
from herdkeeper.shared.timetable import overdue_at

Fields = dict[str, Any]
_NEXT_WAITS = "; the next one waits: "


def drill_fields(series: CheckpointSeries, decided: Mapping[str, Any]) -> Fields:
    """Returns `drillsSince` and `lastDrill`, which exist before any object of a drill. `decided` are the fields that the plan decides."""
    if series.schedule.spec.drill is None:
        return {}
    status = series.schedule.status
    since = status.drills_since if status is not None else None
    if series.drill_of_another is not None:
        since = series.drill_of_another.scheduled_time
    observed = observed_drill(series)
    last = decided.get("lastDrill", None if observed is None else observed.document())
    return {"drillsSince": since or text_of(series.now), "lastDrill": last}


def drill_health(series: CheckpointSeries, fields: Fields) -> Health | None:
    """Returns the condition RestoreDrilled for the fields to be stored. None without declared drills."""
    if series.schedule.spec.drill is None:
        return None
    last = own_drill(series, fields) or {}
    since = moment_of(fields["drillsSince"])
    return _failure(series, last) or _waiting(series, last) or _overdue(series, last, since) or _newest(series, last)


def own_drill(series: CheckpointSeries, fields: Mapping[str, Any]) -> Fields | None:
    """Returns `lastDrill`, unless it is of another tablespace than the schedule names now."""
    last: Fields | None = fields.get("lastDrill")
    return None if last is None or series.is_another(last.get("tablespaceUuid")) else last


def _waiting(series: CheckpointSeries, last: Fields) -> Health | None:
    """Returns that a drill can't continue before a person acts. Its Job, once created, reports for itself."""
    unusable = _what_stops(series, last)
    return None if unusable is None else Health("False", unusable.reason, f"{_of(last)} waits: {unusable.why}")


def _what_stops(series: CheckpointSeries, last: Fields) -> Problem | None:
    waits = last.get("outcome") == "Running" and last.get("job") is None
    return series.drill.store_unusable if waits else None


def _failure(series: CheckpointSeries, last: Fields) -> Health | None:
    """Returns that a drill failed, until the next one succeeds, and what that one waits for."""
    before = condition(series.schedule, RESTORE_DRILLED) if series.drill_of_another is None else None
    if last.get("outcome") == "Failed":
        return Health("False", Reason.DRILL_FAILED, drill_sentence(last))
    if last.get("outcome") == "Running" and before is not None and before.reason == Reason.DRILL_FAILED:
        unusable = _what_stops(series, last)
        waits = "" if unusable is None else f"{_NEXT_WAITS}{unusable.why}"
        return Health("False", Reason.DRILL_FAILED, f"{before.message.partition(_NEXT_WAITS)[0]}{waits}")
    return None


def _overdue(series: CheckpointSeries, last: Fields, since: datetime.datetime | None) -> Health | None:
    success, drill = _last_success(last), series.schedule.spec.drill
    since = success or since
    overdue = overdue_at(timetable_of(drill), since) if since is not None and drill is not None else None
    if overdue is None or series.now <= overdue:
        return None
    message = f"{_success(success)}, for more than two periods of spec.drill{_why_none(series)}"
    return Health("False", Reason.DRILL_OVERDUE, message)


def _newest(series: CheckpointSeries, last: Fields) -> Health:
    if last.get("outcome") == "Succeeded":
        return Health("True", Reason.DRILLED, drill_sentence(last))
    success = _last_success(last)
    if success is not None:
        return Health("True", Reason.DRILLED, _success(success))
    return Health("Unknown", Reason.NOT_DRILLED, f"{_success(None)}{_why_none(series)}")


def _last_success(last: Fields) -> datetime.datetime | None:
    return moment_of(last.get("lastSuccessfulTime"))


def _success(at: datetime.datetime | None) -> str:
    return (
        f"the newest successful restore drill ended at {text_of(at)}"
        if at is not None
        else "no restore drill of this tablespace has succeeded yet"
    )


def drill_ended(before: Fields | None, after: Fields | None) -> Fields | None:
    """Returns the drill that ended between two values of `lastDrill`, or None."""
    if before is None or after is None or before["outcome"] != "Running" or after["outcome"] == "Running":
        return None
    return after


def drill_sentence(ended: Fields) -> str:
    """Returns the outcome of a finished drill, for an event."""
    return f"{_of(ended)} {ended['outcome'].lower()}: {ended['message']}"


def _of(drill: Fields) -> str:
    moment = f" ({drill['moment']})" if drill.get("moment") else ""
    return f"the restore drill of {drill['scheduledTime']}, of the Checkpoint {drill['checkpoint']}{moment},"


def _why_none(series: CheckpointSeries) -> str:
    if isinstance(series.drawn, NothingToDraw):
        return f"; one is due, and {series.drawn.why}"
    return "; spec.suspend is true" if series.schedule.spec.suspend else ""
