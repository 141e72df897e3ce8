"""Removes the files of a Checkpoint that is deleted with deletionPolicy Delete, by a Job (docs/decisions/0412).

Two kinds of Checkpoints remove only a manifest of their own. One was made for a drill: what it found there may have been kept on purpose.
The other's run found none: a later one is of a copied resource, e.g. of a backup, in another namespace or cluster.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from herdkeeper.api import Checkpoint, ScheduledCheckpoint, Tablespace
from herdkeeper.herddb.log.checkpoint_base import is_made_for_a_drill
from herdkeeper.herddb.tablespace.plan_restore import comes_too_late
from herdkeeper.jobs.drill.state import drilled_checkpoint
from herdkeeper.jobs.state import CheckpointRun, RemovalObserved
from herdkeeper.planning import requeue
from herdkeeper.planning.actions import Plan, SetFinalizer, deletions
from herdkeeper.planning.deletion import PATIENCE_SECONDS
from herdkeeper.planning.intent import needed_applies
from herdkeeper.shared import names
from herdkeeper.shared.objects import JobEnd, Json, is_owned_by, job_ended, termination_message_of
from herdkeeper.shared.reason import Reason
from herdkeeper.shared.unknown import Unknown
from herdkeeper.spark.build_job import build_removal


def plan_removal(seen: CheckpointRun, spark_image: str, waited: float = 0.0) -> Plan:
    """Returns the next step of a deletion that has waited for so many seconds. Raises ValueError if users of the files were not read."""
    checkpoint, removal = seen.checkpoint, seen.removal
    if removal is None:
        raise ValueError("a Checkpoint that is being deleted is observed with those that may need its files")
    if removal.claim is None and checkpoint.spec.destination.object_store is None:
        return _let_go(Reason.DATA_DELETED, f"there is nothing to remove: the volume claim {checkpoint.place} is gone")
    job = seen.objects.get("Job", names.job_name(checkpoint.key, names.REMOVAL_COMPONENT))
    if job is not None:
        return _follow(job, seen)
    return _ending(seen) or _why_kept(seen, removal) or _begin(seen, spark_image, waited)


def _why_kept(seen: CheckpointRun, removal: RemovalObserved) -> Plan | None:
    """Returns why no Job is created. None if the run has ended, left files, and nothing needs them."""
    checkpoint = seen.checkpoint
    if checkpoint.status is None or checkpoint.status.job is None:
        return _let_go(Reason.DATA_DELETED, "there is nothing to remove: its Job never started")
    if removal.claim is not None and removal.claim.going:
        return Plan.waiting(Reason.DELETING, f"the volume claim {checkpoint.place} is being deleted with everything on it")
    # Without a manifest, only files of this very run are removed, which nothing else references.
    return None if checkpoint.manifest is None else _needed(seen, removal)


def _begin(seen: CheckpointRun, spark_image: str, waited: float) -> Plan:
    """Create the Job. A Secret that was deleted first, e.g. with its namespace, delays the deletion only for a while."""
    checkpoint = seen.checkpoint
    if (unusable := seen.store_unusable) is not None:
        if waited >= PATIENCE_SECONDS:
            return _let_go(Reason.DELETION_GIVEN_UP, f"its files in {checkpoint.place} were left behind: {unusable.why}")
        why = f"{unusable.why}; or set spec.deletionPolicy to Retain, which leaves the files"
        return Plan.waiting(unusable.reason, f"its files are not removed: {why}")
    reused = checkpoint.status is not None and checkpoint.status.reused
    only_own = is_made_for_a_drill(checkpoint) or not reused
    made = needed_applies((build_removal(checkpoint, checkpoint.manifest, spark_image, only_own=only_own),), seen.objects)
    return Plan(made, Plan.waiting(Reason.DELETING, "a Job removes its files").wait)


def _follow(job: Json, seen: CheckpointRun) -> Plan:
    name = job["metadata"]["name"]
    if not is_owned_by(job, seen.checkpoint.metadata.uid):
        earlier = f"the Job {name} belongs to an earlier Checkpoint of this name, and is about to be deleted"
        return Plan.waiting(Reason.DELETING, earlier, requeue.SOON)
    said = termination_message_of(seen.objects, name)
    match job_ended(job):
        case JobEnd(failed=False):
            return _let_go(Reason.DATA_DELETED, said or "its files are being removed (deletionPolicy: Delete)")
        case JobEnd(message=why):
            fix = f"Fix the cause and delete the Job {name}, so that another one starts; or set spec.deletionPolicy to Retain, which"
            return Plan.waiting(Reason.REMOVAL_FAILED, f"its files could not be removed: {said or why}. {fix} keeps the remaining files")
        case _:
            return Plan.waiting(Reason.DELETING, f"the Job {name} removes its files")


def _ending(seen: CheckpointRun) -> Plan | None:
    """Returns what to do while its own run has not ended, or None."""
    job = seen.run.job
    if job is not None and job_ended(job) is not None:
        if seen.checkpoint.is_over:
            return None
        # Its manifest must be known before others that share it can be found.
        return Plan.waiting(Reason.DELETING, "its Job has ended: the result is recorded first", requeue.NOTED)
    waiting = Plan.waiting(Reason.DELETING, "its Job is being stopped", requeue.SOON)
    mine = (work for work in seen.work if work.owner == seen.checkpoint.metadata.name)
    if job is None:
        return waiting if any(not work.ended for work in mine) else None
    return replace(waiting, actions=deletions([job], Reason.DELETING))


def _needed(seen: CheckpointRun, removal: RemovalObserved) -> Plan | None:
    """Returns what to do instead because the checkpoint is needed, or None."""
    checkpoint = seen.checkpoint
    if isinstance(removal.checkpoints, Unknown):
        return _unreadable(removal.checkpoints)
    if isinstance(removal.tablespaces, Unknown):
        return _unreadable(removal.tablespaces)
    if isinstance(removal.schedules, Unknown):
        return _unreadable(removal.schedules)
    others = [other for other in removal.checkpoints if other.place == checkpoint.place]
    return (
        _needed_by_checkpoints(seen, others)
        or _needed_by_tablespaces(checkpoint, removal.tablespaces, others)
        or _needed_by_drills(checkpoint, removal.schedules, others)
    )


def _needed_by_checkpoints(seen: CheckpointRun, others: list[Checkpoint]) -> Plan | None:
    checkpoint = seen.checkpoint
    if silent := [other for other in others if _may_share(other, checkpoint)]:
        why = f"{_listed(silent)} succeeded without reporting its manifest, which may be this one; delete it first"
        return Plan.waiting(Reason.UNREADABLE, why)
    if writing := _writing(seen, others):
        message = f"these runs write to the same place and may use the same manifest: {', '.join(writing)}"
        return Plan.waiting(Reason.WAITING_FOR_DEPENDENTS, message)
    living = [other for other in others if other.metadata.deletion_timestamp is None and not is_made_for_a_drill(other)]
    if sharing := [other for other in living if other.manifest == checkpoint.manifest]:
        return _let_go(Reason.DATA_KEPT, f"its files stay: {_listed(sharing)} has the same manifest {checkpoint.manifest}")
    return None


def _needed_by_tablespaces(checkpoint: Checkpoint, tablespaces: tuple[Tablespace, ...], others: list[Checkpoint]) -> Plan | None:
    same = [checkpoint, *(other for other in others if other.manifest == checkpoint.manifest)]
    there = (checkpoint, *others)
    if reading := [one for one in tablespaces if _restores_a_moment_there(one, there) or any(_reads(one, other) for other in same)]:
        message = (
            f"{_listed(reading)} is being made from it, or from another checkpoint at the same place: wait until it is Ready, or delete it"
        )
        return Plan.waiting(Reason.WAITING_FOR_DEPENDENTS, message)
    return None


def _needed_by_drills(checkpoint: Checkpoint, schedules: tuple[ScheduledCheckpoint, ...], others: list[Checkpoint]) -> Plan | None:
    """A drill announces in its schedule's status what it will read, and then checks whether that still exists."""
    same = {checkpoint.metadata.name, *(other.metadata.name for other in others if other.manifest == checkpoint.manifest)}
    if drilling := [schedule for schedule in schedules if drilled_checkpoint(schedule) in same]:
        return Plan.waiting(Reason.WAITING_FOR_DEPENDENTS, f"a restore drill of {_listed(drilling)} reads it: wait for its end")
    return None


def _unreadable(unknown: Unknown) -> Plan:
    return Plan.waiting(Reason.UNREADABLE, f"{unknown.why}, so it is unknown whether it needs these files; correct or delete it")


def _may_share(other: Checkpoint, checkpoint: Checkpoint) -> bool:
    """Returns whether another one may have a manifest of the same tablespace without reporting it."""
    if other.status is None or other.metadata.deletion_timestamp is not None:
        return False
    silent = other.status.phase == "Succeeded" and other.manifest is None
    return silent and other.spec.tablespace_ref == checkpoint.spec.tablespace_ref


def _writing(seen: CheckpointRun, others: list[Checkpoint]) -> list[str]:
    """Returns other Checkpoints whose run has not ended, as far as known."""
    checkpoint = seen.checkpoint
    going = {other.metadata.name for other in others if not other.is_over}
    runs = [work for work in seen.work if work.component == names.CHECKPOINT_COMPONENT and work.place == checkpoint.place]
    found = {work.owner for work in runs if not work.ended or work.owner in going}
    return [f"{Checkpoint.KIND} {name}" for name in sorted(found - {checkpoint.metadata.name})]


def _restores_a_moment_there(tablespace: Tablespace, checkpoints: tuple[Checkpoint, ...]) -> bool:
    """Returns whether a Tablespace is being made as of a moment, from a checkpoint in the same place. It may use any of them as a base."""
    bootstrap, begun = tablespace.spec.bootstrap, tablespace.restore
    if bootstrap is None or bootstrap.target is None or not _is_being_restored(tablespace):
        return False
    place = checkpoints[0].place
    if bootstrap.archive is not None and bootstrap.archive.folder is not None:
        return bootstrap.archive.place == place
    if begun is not None and begun.source is not None:
        return begun.source.place == place
    if bootstrap.files is not None:
        return bootstrap.files.place == place
    named = (one for one in checkpoints if bootstrap.checkpoint is not None and one.metadata.name == bootstrap.checkpoint.name)
    return any(not comes_too_late(tablespace, one) for one in named)


def _is_being_restored(tablespace: Tablespace) -> bool:
    """Returns whether a Tablespace is still being made from a checkpoint. One that is being deleted no longer needs it."""
    return tablespace.is_restoring and tablespace.metadata.deletion_timestamp is None


def _reads(tablespace: Tablespace, checkpoint: Checkpoint) -> bool:
    """Returns whether a Tablespace is, or will be, made from this checkpoint."""
    bootstrap, begun = tablespace.spec.bootstrap, tablespace.restore
    if bootstrap is None or not _is_being_restored(tablespace):
        return False
    if begun is not None and begun.source is not None and begun.manifest:
        return (begun.source.place, begun.manifest) == (checkpoint.place, checkpoint.manifest)
    if bootstrap.files is not None:
        return (bootstrap.files.place, bootstrap.files.manifest) == (checkpoint.place, checkpoint.manifest)
    named = bootstrap.checkpoint is not None and bootstrap.checkpoint.name == checkpoint.metadata.name
    return named and not comes_too_late(tablespace, checkpoint)


def _let_go(reason: Reason, message: str) -> Plan:
    return Plan((SetFinalizer(False, reason, message),))


def _listed(resources: Iterable[Checkpoint | ScheduledCheckpoint | Tablespace]) -> str:
    return ", ".join(f"{resource.KIND} {resource.metadata.name}" for resource in resources)
