"""A running drill as its Job and its Checkpoint show it. Whether it is given up is decided in jobs/drill/plan.py."""

from __future__ import annotations

from typing import assert_never

from herdkeeper.api import Checkpoint
from herdkeeper.api.checkpoint import Lsn
from herdkeeper.api.restore_drill import DrillStatus
from herdkeeper.jobs.drill.state import CheckpointSeries, NothingToDraw, due_of, is_restorable
from herdkeeper.jobs.schedule.state import run_of
from herdkeeper.protocol.job_summary import RestoreSummary
from herdkeeper.shared.time import text_of
from herdkeeper.spark.run import observe_run


def observed_drill(series: CheckpointSeries) -> DrillStatus | None:
    """Returns the newest drill in its current state. One that ended, or is no longer declared, stays as stored."""
    drill, seen = series.running_drill, series.drill
    if drill is None:
        return series.newest_drill
    job, checkpoint = series.job_of(drill), seen.checkpoint(drill.checkpoint)
    if seen.objects.get("Job", job) is not None:
        return _of_the_job(_with_lsn(drill.model_copy(update={"job": job}), checkpoint), series, job)
    if seen.herddb is None and isinstance(nothing := series.draw(due_of(drill)), NothingToDraw):
        return drill.model_copy(update={"message": f"waits: {nothing.why}"[:1000]})
    if (unusable := seen.store_unusable) is not None and checkpoint is not None and is_restorable(checkpoint):
        return drill.model_copy(update={"message": f"waits: {unusable.why}"})
    return _of_the_moment(drill, checkpoint) if series.is_of_a_moment(drill) else drill


def why_not_made(checkpoint: Checkpoint) -> str | None:
    """Returns why the Checkpoint of a drill's moment will not be restored. None if it was made, or may be."""
    if checkpoint.metadata.deletion_timestamp is not None:
        return "its Checkpoint was deleted before it was restored"
    match run_of(checkpoint).phase:
        case "Failed":  # also one that is refused
            return f"no Checkpoint of that moment could be made: {_reported(checkpoint)}"
        case "Succeeded" if not is_restorable(checkpoint):
            return "its Checkpoint did not report that it was verified"
        case _:
            return None


def failed(drill: DrillStatus, why: str, at: str | None) -> DrillStatus:
    """Returns a drill that failed at this time."""
    return drill.model_copy(update={"outcome": "Failed", "message": why[:1000], "completed_at": at})


def _reported(checkpoint: Checkpoint) -> str:
    return (checkpoint.status.told if checkpoint.status is not None else "") or "it has not started"


def _of_the_moment(drill: DrillStatus, checkpoint: Checkpoint | None) -> DrillStatus:
    if checkpoint is None:
        return drill
    message = why_not_made(checkpoint) or f"its Checkpoint is being made: {_reported(checkpoint)}"
    return drill.model_copy(update={"message": message})


def _with_lsn(drill: DrillStatus, checkpoint: Checkpoint | None) -> DrillStatus:
    lsn = checkpoint.status.lsn if checkpoint is not None and checkpoint.status is not None else None
    return drill if lsn is None else drill.model_copy(update={"lsn": lsn})


def _of_the_job(drill: DrillStatus, series: CheckpointSeries, job: str) -> DrillStatus:
    run = observe_run(series.drill.objects, job, series.schedule.metadata.uid)
    reported, ended = run.reported(RestoreSummary.from_json), run.fields.get("completedAt") or text_of(series.now)
    match run.phase:
        case "Pending" | "Running":
            return drill.model_copy(update={"message": run.message})
        case "Failed":
            cause = reported.message if isinstance(reported, RestoreSummary) and reported.message else run.message
            return failed(drill, f"{cause}{series.drill.server_trouble(job)}", ended)
        case "Succeeded":
            if not isinstance(reported, RestoreSummary):
                return failed(drill, "its Job succeeded without a result", text_of(series.now))
            return _succeeded(drill, reported, ended)
        case _:
            assert_never(run.phase)


def _succeeded(drill: DrillStatus, reported: RestoreSummary, at: str) -> DrillStatus:
    known = reported.ledger_id is not None and reported.entry_id is not None
    return drill.model_copy(
        update={
            "outcome": "Succeeded",
            "message": reported.verified or reported.message,
            "lsn": Lsn(ledger_id=reported.ledger_id, entry_id=reported.entry_id) if known else drill.lsn,
            "rows": reported.rows,
            "tables": reported.tables,
            "seconds": round(reported.duration_seconds, 1),
            "completed_at": at,
            "last_successful_time": at,
        }
    )
