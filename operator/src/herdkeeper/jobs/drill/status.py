"""The result of the newest restore drill, and what it means for the schedule's checkpoints."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any, assert_never

from herdkeeper.api import Checkpoint
from herdkeeper.api.restore_drill import DrillStatus
from herdkeeper.jobs.drill.draw import NothingToDraw
from herdkeeper.jobs.drill.state import CheckpointSeries, is_restorable
from herdkeeper.planning.due import timetable_of
from herdkeeper.planning.summary import Health
from herdkeeper.protocol.job_summary import RestoreSummary
from herdkeeper.shared.conditions import RESTORE_DRILLED, condition
from herdkeeper.shared.reason import Reason
from herdkeeper.shared.time import moment_of, text_of
from herdkeeper.shared.timetable import overdue_at
from herdkeeper.spark.object_store import StoreUnusable
from herdkeeper.spark.run import Run, observe_run

Fields = dict[str, Any]
_NEXT_WAITS = "; the next one waits: "


def drill_fields(series: CheckpointSeries, notes: Mapping[str, Any]) -> Fields:
    """Returns `drillsSince` and `lastDrill`, given the plan's notes. They exist before any object of the drill, see jobs/drill/plan.py."""
    if series.schedule.spec.drill is None:
        return {}
    status, running = series.schedule.status, series.running_drill
    since = status.drills_since if status is not None else None
    last = _stored(series.newest_drill) if running is None else _progress(series, running)
    return {"drillsSince": since or text_of(series.now), "lastDrill": notes.get("lastDrill", last)}


def drill_health(series: CheckpointSeries, fields: Fields) -> Health | None:
    """Returns the condition RestoreDrilled for the fields to be stored. None without declared drills."""
    if series.schedule.spec.drill is None:
        return None
    last: Fields = fields["lastDrill"] or {}
    return _failure(series, last) or _waiting(series, last) or _overdue(series, fields) or _newest(series, last)


def _waiting(series: CheckpointSeries, last: Fields) -> Health | None:
    """Returns that a drill can't continue before a person acts. Its Job, once created, reports for itself."""
    unusable = _what_stops(series, last)
    return None if unusable is None else Health("False", unusable.reason, f"{_of(last)} waits: {unusable.why}")


def _what_stops(series: CheckpointSeries, last: Fields) -> StoreUnusable | None:
    waits = last.get("outcome") == "Running" and last.get("job") is None
    return series.drill.store_unusable if waits else None


def _failure(series: CheckpointSeries, last: Fields) -> Health | None:
    """Returns that a drill failed, until the next one succeeds, and what that one waits for."""
    before = condition(series.schedule, RESTORE_DRILLED)
    if last.get("outcome") == "Failed":
        return Health("False", Reason.DRILL_FAILED, drill_sentence(last))
    if last.get("outcome") == "Running" and before is not None and before.reason == Reason.DRILL_FAILED:
        unusable = _what_stops(series, last)
        waits = "" if unusable is None else f"{_NEXT_WAITS}{unusable.why}"
        return Health("False", Reason.DRILL_FAILED, f"{before.message.partition(_NEXT_WAITS)[0]}{waits}")
    return None


def _overdue(series: CheckpointSeries, fields: Fields) -> Health | None:
    success = _last_success(fields["lastDrill"] or {})
    since = success or moment_of(fields["drillsSince"])
    drill = series.schedule.spec.drill
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
    return f"the newest successful restore drill ended at {text_of(at)}" if at is not None else "no restore drill has succeeded yet"


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


def _progress(series: CheckpointSeries, drill: DrillStatus) -> Fields:
    """The current state of a running drill."""
    before, seen = _stored(drill) or {}, series.drill
    job, checkpoint = series.job_of(drill), seen.checkpoint(drill.checkpoint)
    if seen.objects.get("Job", job) is not None:
        return _of_the_job({**before, "job": job}, series, observe_run(seen.objects, job, series.schedule.metadata.uid), checkpoint)
    if (unusable := seen.store_unusable) is not None and checkpoint is not None and is_restorable(checkpoint):
        return {**before, "message": f"waits: {unusable.why}"}
    return _of_the_moment(before, series, checkpoint) if series.is_of_a_moment(drill) else before


def _of_the_moment(before: Fields, series: CheckpointSeries, checkpoint: Checkpoint | None) -> Fields:
    """A drill whose Checkpoint is being made."""
    if checkpoint is None:
        return before
    if checkpoint.metadata.deletion_timestamp is not None:
        return _failed(before, "its Checkpoint was deleted before it was restored", series)
    status = checkpoint.status
    said = (status.message if status is not None else None) or "it has not started"
    if status is not None and status.phase == "Failed":
        return _failed(before, f"no Checkpoint of that moment could be made: {said}", series)
    return {**before, "message": f"its Checkpoint is being made: {said}"}


def _of_the_job(before: Fields, series: CheckpointSeries, run: Run, checkpoint: Checkpoint | None) -> Fields:
    lsn = checkpoint.status.lsn if checkpoint is not None and checkpoint.status is not None else None
    known = before if lsn is None else {**before, "lsn": lsn.model_dump(by_alias=True)}
    said = run.reported(RestoreSummary.from_json)
    match run.phase:
        case "Pending" | "Running":
            return {**known, "message": run.message}
        case "Failed":
            told = said.message if isinstance(said, RestoreSummary) and said.message else run.message
            ended = _failed(known, f"{told}{series.drill.server_trouble(before['job'])}", series)
            return {**ended, "completedAt": run.fields.get("completedAt") or ended["completedAt"]}
        case "Succeeded":
            completed = run.fields.get("completedAt") or text_of(series.now)
            if not isinstance(said, RestoreSummary):
                return _failed(known, "its Job succeeded without a result", series)
            counts: Fields = {"rows": said.rows, "tables": said.tables, "seconds": round(said.duration_seconds, 1)}
            if said.ledger_id is not None and said.entry_id is not None:
                counts |= {"lsn": {"ledgerId": said.ledger_id, "entryId": said.entry_id}}
            ended = {"outcome": "Succeeded", "message": said.verified or said.message, "completedAt": completed}
            return {**known, **ended, **counts, "lastSuccessfulTime": completed}
        case _:
            assert_never(run.phase)


def _failed(before: Fields, why: str, series: CheckpointSeries) -> Fields:
    return {**before, "outcome": "Failed", "message": why[:1000], "completedAt": text_of(series.now)}


def _stored(drill: DrillStatus | None) -> Fields | None:
    return drill.model_dump(mode="json", by_alias=True, exclude_none=True) if drill is not None else None
