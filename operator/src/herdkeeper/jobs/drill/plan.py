"""Restore drills: on schedule, a checkpoint is restored into a temporary server to prove that it can be.

The plan notes the choice in the status before any object is created. The removal of a Checkpoint's files checks this note. The drill
checks, once the note is stored, that the Checkpoint still exists. So neither misses the other. All steps follow from the note.
"""

from __future__ import annotations

import datetime
from dataclasses import dataclass

from herdkeeper.api import Checkpoint, ScheduledCheckpoint
from herdkeeper.api.default_images import image_of
from herdkeeper.api.resource import API_VERSION
from herdkeeper.api.restore_drill import DrillStatus
from herdkeeper.jobs.drill.draw import drawn_moment, drawn_name, seed_of
from herdkeeper.jobs.schedule.build import build_drill_checkpoint
from herdkeeper.jobs.schedule.plan import plan_schedule
from herdkeeper.jobs.schedule.state import Run, ScheduleObserved
from herdkeeper.planning import requeue
from herdkeeper.planning.actions import Action, Create, Delete, Plan, soonest
from herdkeeper.planning.due import newest_time, seconds_to_next
from herdkeeper.shared import names
from herdkeeper.shared.objects import job_ended
from herdkeeper.shared.paused import paused_by
from herdkeeper.shared.reason import Reason
from herdkeeper.shared.time import moment_of, text_of
from herdkeeper.shared.unknown import Unknown
from herdkeeper.spark.build_job import DrillSource, build_drill


@dataclass(frozen=True)
class DrawnCheckpoint:
    """A verified Checkpoint of the schedule. `moment` is its own, or None if unknown."""

    name: str
    moment: str | None


@dataclass(frozen=True)
class DrawnMoment:
    """A moment of the recovery window. A Checkpoint with this name is made of it."""

    name: str
    moment: str


@dataclass(frozen=True)
class NothingToDraw:
    """Nothing can be restored for now."""

    why: str


Draw = DrawnCheckpoint | DrawnMoment | NothingToDraw


def plan_scheduled_checkpoint(schedule: ScheduledCheckpoint, seen: ScheduleObserved, spark_image: str) -> Plan:
    """Returns the plan for the schedule's times, and its drills'."""
    runs = plan_schedule(schedule, seen)
    if isinstance(seen.runs, Unknown):
        return runs
    drills = plan_drill(schedule, seen, spark_image)
    again = soonest(runs.requeue_after_seconds, drills.requeue_after_seconds)
    return Plan((*runs.actions, *drills.actions), runs.wait, again, notes=drills.notes)


def plan_drill(schedule: ScheduledCheckpoint, seen: ScheduleObserved, spark_image: str) -> Plan:
    """Returns the next step of the noted drill, the cleanup of earlier ones, and as the note `lastDrill` what is newly chosen."""
    drill = running_drill(schedule)
    chosen = _chosen(schedule, seen, drill)
    return Plan(
        (*_leftovers(schedule, seen, drill), *(() if drill is None else _continue_drill(schedule, seen, drill, spark_image))),
        requeue_after_seconds=_until_the_next(schedule, seen) if drill is None else requeue.UNREAD,
        notes={} if chosen is None else {"lastDrill": chosen.model_dump(mode="json", by_alias=True, exclude_none=True)},
    )


def running_drill(schedule: ScheduledCheckpoint) -> DrillStatus | None:
    """Returns the drill in the stored status, unless it is finished or drills are no longer declared."""
    drill = schedule.status.last_drill if schedule.status is not None else None
    return drill if drill is not None and drill.outcome == "Running" and schedule.spec.drill is not None else None


def due_of(drill: DrillStatus) -> datetime.datetime:
    """Returns the scheduled time of a drill. Raises ValueError if the status has none."""
    due = moment_of(drill.scheduled_time)
    if due is None:
        raise ValueError(f"status.lastDrill.scheduledTime is {drill.scheduled_time!r}, which is not a time")
    return due


def due_drill(schedule: ScheduledCheckpoint, now: datetime.datetime) -> datetime.datetime | None:
    """Returns the newest time without a drill yet. None if there is none, or no drill may start."""
    status, drill = schedule.status, schedule.spec.drill
    since = moment_of(status.drills_since) if status is not None else None
    if drill is None or since is None or schedule.spec.suspend or paused_by(schedule.metadata) is not None:
        return None
    last = status.last_drill if status is not None else None
    if last is not None and last.outcome == "Running":
        return None
    return newest_time(drill, since if last is None else max(since, due_of(last)), now)


def draw(schedule: ScheduledCheckpoint, seen: ScheduleObserved, due: datetime.datetime) -> Draw:
    """Returns what a drill restores: a moment of the recovery window if the log is archived, else a verified Checkpoint."""
    tablespace, seed = seen.tablespace, seed_of(schedule, due)
    if isinstance(tablespace, Unknown):
        return NothingToDraw(tablespace.why)
    if tablespace is None or seen.drill.herddb is None:
        return NothingToDraw(f"the Tablespace {schedule.spec.template.tablespace_ref.name}, or its database, does not exist")
    window = tablespace.status.recovery_window if tablespace.status is not None else None
    if tablespace.spec.log.archive is not None and window is not None:
        begin, end = moment_of(window.from_), moment_of(window.to)
        if begin is not None and end is not None and begin <= end:
            moment = drawn_moment(begin, end, seed).astimezone(datetime.UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
            return DrawnMoment(names.drill_checkpoint(schedule.metadata.name, due), moment)
    if isinstance(seen.runs, Unknown):
        return NothingToDraw(seen.runs.why)
    name = drawn_name((run.name for run in seen.runs if _restorable(run, seen)), seed)
    if name is None:
        return NothingToDraw("this schedule has no verified Checkpoint yet")
    found = seen.drill.checkpoint(name)
    return DrawnCheckpoint(name, found.status.lsn_timestamp if found is not None and found.status is not None else None)


def _chosen(schedule: ScheduledCheckpoint, seen: ScheduleObserved, drill: DrillStatus | None) -> DrillStatus | None:
    """Returns the drill to note: one that is due and has something to restore, or another choice if the noted one's Checkpoint was deleted
    before its Job was created. Without another choice, that drill has failed. None if nothing changes.
    """
    due = due_drill(schedule, seen.now) if drill is None else due_of(drill)
    if due is None or (drill is not None and _goes_on(schedule, seen, drill)):
        return None
    found = draw(schedule, seen, due)
    if not isinstance(found, NothingToDraw) and (drill is None or found.name != drill.checkpoint):
        last = schedule.status.last_drill if schedule.status is not None else None
        return DrillStatus(
            scheduled_time=text_of(due),
            outcome="Running",
            message="chosen, and about to be restored",
            checkpoint=found.name,
            moment=found.moment,
            last_successful_time=last.last_successful_time if last is not None else None,
        )
    if drill is None:
        return None
    why = f"the Checkpoint {drill.checkpoint} was deleted before it was restored, and there is no other"
    return drill.model_copy(update={"outcome": "Failed", "message": why, "completed_at": text_of(seen.now)})


def _goes_on(schedule: ScheduledCheckpoint, seen: ScheduleObserved, drill: DrillStatus) -> bool:
    """Returns whether a drill goes on with its Checkpoint: it is there, is made for the drill, or its Job reads it already."""
    checkpoint = seen.drill.checkpoint(drill.checkpoint)
    reads = seen.drill.objects.get("Job", names.drill_job(schedule.metadata.name, due_of(drill))) is not None
    return reads or is_of_a_moment(schedule, drill) or (checkpoint is not None and is_restorable(checkpoint))


def is_of_a_moment(schedule: ScheduledCheckpoint, drill: DrillStatus) -> bool:
    """Returns whether a drill's Checkpoint is made for it."""
    return drill.checkpoint == names.drill_checkpoint(schedule.metadata.name, due_of(drill))


def _restorable(run: Run, seen: ScheduleObserved) -> bool:
    found = seen.drill.checkpoint(run.name)
    return run.verified and not run.going and found is not None and found.manifest is not None


def _continue_drill(schedule: ScheduledCheckpoint, seen: ScheduleObserved, drill: DrillStatus, spark_image: str) -> tuple[Action, ...]:
    """Returns one step, or nothing while waiting. A drill that can't continue gets an outcome in the status."""
    job = names.drill_job(schedule.metadata.name, due_of(drill))
    if seen.drill.objects.get("Job", job) is not None:
        return ()
    checkpoint = seen.drill.checkpoint(drill.checkpoint)
    if checkpoint is None and is_of_a_moment(schedule, drill) and drill.moment is not None:
        return (Create(build_drill_checkpoint(schedule, due_of(drill), drill.moment), Reason.DRILL_STARTED),)
    if checkpoint is None or not is_restorable(checkpoint) or checkpoint.manifest is None or seen.drill.herddb is None:
        return ()
    if seen.drill.store_unusable is not None:
        return ()  # its pod would wait for the Secret until its deadline
    source = DrillSource(checkpoint.spec.destination, checkpoint.manifest, image_of(seen.drill.herddb), job)
    return (Create(build_drill(schedule, source, spark_image), Reason.DRILL_STARTED),)


def is_restorable(checkpoint: Checkpoint) -> bool:
    """Returns whether a Checkpoint succeeded, is verified, and was not deleted."""
    status = checkpoint.status
    there = checkpoint.metadata.deletion_timestamp is None and checkpoint.manifest is not None
    return there and status is not None and status.phase == "Succeeded" and bool(status.verified)


def _leftovers(schedule: ScheduledCheckpoint, seen: ScheduleObserved, drill: DrillStatus | None) -> tuple[Delete, ...]:
    """Returns what no noted drill needs. A finished Job is deleted automatically, and keeps its logs until then."""
    kept = () if drill is None else (drill.checkpoint, names.drill_job(schedule.metadata.name, due_of(drill)))
    checkpoints = (
        Delete(API_VERSION, Checkpoint.KIND, made.metadata.name, made.metadata.uid, Reason.DRILL_ENDED)
        for made in seen.drill.made_for_drills
        if made.metadata.name not in kept and made.metadata.deletion_timestamp is None
    )
    jobs = (
        Delete("batch/v1", "Job", job["metadata"]["name"], job["metadata"]["uid"], Reason.DRILL_ENDED)
        for job in seen.drill.objects.of_kind("Job")
        if job["metadata"]["name"] not in kept and job_ended(job) is None and not job["metadata"].get("deletionTimestamp")
    )
    return (*checkpoints, *jobs)


def _until_the_next(schedule: ScheduledCheckpoint, seen: ScheduleObserved) -> float | None:
    if schedule.spec.drill is None:
        return None
    if schedule.status is None or schedule.status.drills_since is None:
        return requeue.NOTED
    due = due_drill(schedule, seen.now)
    if due is not None:
        return requeue.UNREAD if isinstance(draw(schedule, seen, due), NothingToDraw) else requeue.NOTED
    following = seconds_to_next(schedule.spec.drill, seen.now)
    return None if following is None else max(requeue.NOTED, following)
