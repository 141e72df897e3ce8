"""Restore drills: on schedule, a checkpoint is restored into a temporary server to prove that it can be.

The plan notes the choice in the status before any object is created. The removal of a Checkpoint's files checks this note. The drill
checks, once the note is stored, that the Checkpoint still exists. So neither misses the other. All steps follow from the note.
"""

from __future__ import annotations

import datetime

from herdkeeper.api import Checkpoint
from herdkeeper.api.default_images import image_of
from herdkeeper.api.resource import API_VERSION
from herdkeeper.api.restore_drill import DrillStatus
from herdkeeper.jobs.drill.progress import failed, why_not_made
from herdkeeper.jobs.drill.state import CheckpointSeries, Drawn, NothingToDraw, due_of, is_restorable
from herdkeeper.jobs.schedule.build import build_drill_checkpoint
from herdkeeper.jobs.schedule.plan import plan_schedule
from herdkeeper.planning import requeue
from herdkeeper.planning.actions import Action, Create, Delete, Plan, deletions, soonest
from herdkeeper.planning.due import seconds_to_next
from herdkeeper.shared.objects import job_ended
from herdkeeper.shared.reason import Reason
from herdkeeper.shared.time import text_of
from herdkeeper.shared.unknown import Unknown
from herdkeeper.spark.build_job import build_drill
from herdkeeper.spark.sources import DrillSource


def plan_scheduled_checkpoint(series: CheckpointSeries, spark_image: str) -> Plan:
    """Returns the plan for the schedule's times, and its drills'."""
    runs = plan_schedule(series)
    if isinstance(series.runs, Unknown):
        return runs
    drills = plan_drill(series, spark_image)
    again = soonest(runs.requeue_after_seconds, drills.requeue_after_seconds)
    return Plan((*runs.actions, *drills.actions), runs.wait, again, drills.later, decided_fields=drills.decided_fields)


def plan_drill(series: CheckpointSeries, spark_image: str) -> Plan:
    """Returns the next step of the noted drill, the cleanup of earlier ones, and as the note `lastDrill` one that begins or is given up."""
    drill, decided = series.running_drill, _decided(series)
    return Plan(
        (*_leftovers(series), *(() if drill is None else _continue_drill(series, drill, spark_image))),
        requeue_after_seconds=_until_the_next(series) if drill is None else requeue.UNREAD,
        later=() if decided is None or decided.outcome != "Running" else (_described(decided),),
        decided_fields={} if decided is None else {"lastDrill": decided.document()},
    )


def _decided(series: CheckpointSeries) -> DrillStatus | None:
    """Returns the drill to note: one that is due, given up, or gets another Checkpoint, since its own was deleted. None for no change."""
    drill = series.running_drill
    if drill is None:
        due, drawn = series.due_drill, series.drawn
        return _begun(series, due, drawn) if due is not None and isinstance(drawn, Drawn) else None
    if series.drill.objects.get("Job", series.job_of(drill)) is not None:
        return None
    checkpoint, now = series.drill.checkpoint(drill.checkpoint), text_of(series.now)
    if series.is_of_a_moment(drill):
        why = None if checkpoint is None else why_not_made(checkpoint)
        return None if why is None else failed(drill, why, now)
    if checkpoint is not None and is_restorable(checkpoint):
        return None
    if isinstance(other := series.draw(due_of(drill)), Drawn):
        return _begun(series, due_of(drill), other)
    why = f"the Checkpoint {drill.checkpoint} was deleted before it was restored, and there is no other"
    # without the database it is unknown what else could be restored
    return None if series.drill.herddb is None else failed(drill, why, now)


def _described(begun: DrillStatus) -> str:
    moment = f" ({begun.moment})" if begun.moment is not None else ""
    return f"Starting the restore drill of {begun.scheduled_time}, of the Checkpoint {begun.checkpoint}{moment}"


def _begun(series: CheckpointSeries, due: datetime.datetime, drawn: Drawn) -> DrillStatus:
    last = series.newest_drill if series.drill_of_another is None else None
    return DrillStatus(
        scheduled_time=text_of(due),
        outcome="Running",
        message="chosen, and about to be restored",
        checkpoint=drawn.name,
        tablespace_uuid=series.tablespace_uuid,
        moment=drawn.moment,
        last_successful_time=last.last_successful_time if last is not None else None,
    )


def _continue_drill(series: CheckpointSeries, drill: DrillStatus, spark_image: str) -> tuple[Action, ...]:
    """Returns one step, or nothing while waiting."""
    seen, job = series.drill, series.job_of(drill)
    if seen.objects.get("Job", job) is not None:
        return ()
    checkpoint = seen.checkpoint(drill.checkpoint)
    if checkpoint is None and series.is_of_a_moment(drill) and drill.moment is not None:
        return (Create(build_drill_checkpoint(series.schedule, due_of(drill), drill.moment), Reason.DRILL_STARTED),)
    if checkpoint is None or not is_restorable(checkpoint) or checkpoint.manifest is None or seen.herddb is None:
        return ()
    if seen.store_unusable is not None:
        return ()  # its pod would wait for the Secret until its deadline
    source = DrillSource(checkpoint.spec.destination, checkpoint.manifest, image_of(seen.herddb), job)
    return (Create(build_drill(series.schedule, source, spark_image), Reason.DRILL_STARTED),)


def _leftovers(series: CheckpointSeries) -> tuple[Delete, ...]:
    """Returns what no noted drill needs. A finished Job is deleted automatically, and keeps its logs until then."""
    drill, seen = series.running_drill, series.drill
    kept = () if drill is None else (drill.checkpoint, series.job_of(drill))
    checkpoints = (
        Delete(API_VERSION, Checkpoint.KIND, made.metadata.name, made.metadata.uid, Reason.DRILL_ENDED)
        for made in seen.made_for_drills
        if made.metadata.name not in kept and made.metadata.deletion_timestamp is None
    )
    jobs = (job for job in seen.objects.of_kind("Job") if job["metadata"]["name"] not in kept and job_ended(job) is None)
    return (*checkpoints, *deletions(jobs, Reason.DRILL_ENDED))


def _until_the_next(series: CheckpointSeries) -> float | None:
    schedule = series.schedule
    if schedule.spec.drill is None:
        return None
    if schedule.status is None or schedule.status.drills_since is None:
        return requeue.NOTED
    if series.drawn is not None:
        return requeue.UNREAD if isinstance(series.drawn, NothingToDraw) else requeue.NOTED
    following = seconds_to_next(schedule.spec.drill, series.now)
    return None if following is None else max(requeue.NOTED, following)
