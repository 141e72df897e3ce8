"""Fills a new tablespace from a checkpoint: find the checkpoint, create the tablespace, then let a Job fill and verify it.

An existing tablespace is never overwritten: the plan notes the restore in the status before the tablespace is created, so one without that
note belongs to somebody else. A failed Job is recreated after a person deleted it, and continues where the last one stopped.
"""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from typing import Any

from herdkeeper.api import Checkpoint, Tablespace
from herdkeeper.api.job import Destination
from herdkeeper.api.tablespace import Bootstrap, RestoreStatus
from herdkeeper.codecs.herddb.tablespace import TablespaceRecord
from herdkeeper.herddb.state.cluster import RecordAbsent
from herdkeeper.herddb.state.tls import TlsUsable, why_no_login
from herdkeeper.herddb.tablespace.state import TablespaceObserved
from herdkeeper.planning import requeue
from herdkeeper.planning.actions import Plan, Wait
from herdkeeper.planning.intent import needed_applies
from herdkeeper.shared import names
from herdkeeper.shared.reason import Reason
from herdkeeper.spark.build_job import build_restore
from herdkeeper.spark.run import Run, observe_run
from herdkeeper.spark.sources import ArchiveSource, Login, RestoreSource
from herdkeeper.spark.work import removal_at

PROGRESS_SECONDS = 10.0
"""Interval for reading the progress of the load, which causes no events."""


@dataclass(frozen=True)
class RestoreFiles:
    """Where a checkpoint lies: a place, and the manifest's path there; None if a moment is made from the archive in a `folder`."""

    destination: Destination
    manifest: str | None
    folder: str | None = None

    @property
    def path(self) -> str:
        """Path of the manifest or the folder. Raises ValueError if neither is known."""
        if (path := self.manifest or self.folder) is None:
            raise ValueError("no manifest and no folder is known")
        return path

    @property
    def fields(self) -> dict[str, Any]:
        """The location as fields of status.restore."""
        place = self.destination
        given = {"objectStore": place.object_store, "encryption": place.encryption}
        shown = {name: value.document() for name, value in given.items() if value is not None}
        known = {"claimName": place.claim_name, **shown, "manifest": self.manifest}
        return {name: value for name, value in known.items() if value is not None}


def restore_note(seen: TablespaceObserved) -> dict[str, Any]:
    """Returns the note `restore` of a restore that begins, or whose status was lost before its Job was created. Nothing for another one,
    where another tablespace exists, or while the checkpoint is unknown.
    """
    tablespace, mine = seen.tablespace, isinstance(seen.record, RecordAbsent) or seen.tablespace.mark is not None
    if not (mine and tablespace.is_restoring) or tablespace.restore is not None or restore_run(seen).job is not None:
        return {}
    files = files_of(seen)
    return {"restore": {"phase": "Pending", **files.fields}} if isinstance(files, RestoreFiles) else {}


def restore_run(seen: TablespaceObserved) -> Run:
    return observe_run(seen.objects, names.job_name(seen.tablespace.key, names.RESTORE_COMPONENT), seen.tablespace.metadata.uid)


def comes_too_late(tablespace: Tablespace, checkpoint: Checkpoint) -> bool:
    """Returns whether a Tablespace names a Checkpoint that was being deleted with its files already. The removal asks this, too."""
    deleted = checkpoint.metadata.deletion_timestamp
    if deleted is None or checkpoint.spec.deletion_policy == "Retain" or tablespace.restore is not None or tablespace.mark is not None:
        return False
    return datetime.datetime.fromisoformat(tablespace.metadata.creation_timestamp) >= datetime.datetime.fromisoformat(deleted)


def files_of(seen: TablespaceObserved) -> RestoreFiles | Wait:
    """Returns the checkpoint's files, or why they are unknown. Those of a started restore are remembered: its Checkpoint may be gone."""
    tablespace, bootstrap = seen.tablespace, seen.tablespace.spec.bootstrap
    if bootstrap is None:
        raise ValueError("spec.bootstrap is absent: there is nothing to restore")
    if (known := _known_files(bootstrap, tablespace.restore)) is not None:
        return known
    field = f"spec.bootstrap.checkpoint.name is {bootstrap.checkpoint.name if bootstrap.checkpoint else 'absent'}"
    checkpoint = seen.checkpoint
    if checkpoint is None:
        return Wait(Reason.WAITING_FOR_CHECKPOINT, f"{field}: the Checkpoint does not exist yet; create it")
    if (waiting := _not_usable(tablespace, checkpoint, field)) is not None:
        return waiting
    status = checkpoint.status
    if status is None or status.phase != "Succeeded" or not status.manifest:
        return Wait(Reason.WAITING_FOR_CHECKPOINT, f"{field}: that Checkpoint has not succeeded yet")
    return RestoreFiles(checkpoint.spec.destination, status.manifest)


def _known_files(bootstrap: Bootstrap, begun: RestoreStatus | None) -> RestoreFiles | None:
    """Returns the declared files with the current keys, or the noted ones. None if a Checkpoint must be read."""
    if bootstrap.archive is not None and bootstrap.archive.folder is not None:
        return RestoreFiles(bootstrap.archive, None, bootstrap.archive.folder)
    if bootstrap.files is not None:
        return RestoreFiles(bootstrap.files, bootstrap.files.manifest)
    if begun is not None and begun.source is not None and begun.manifest:
        return RestoreFiles(begun.source, begun.manifest)
    return None


def _not_usable(tablespace: Tablespace, checkpoint: Checkpoint, field: str) -> Wait | None:
    """Returns why nothing can ever be made from a Checkpoint, or None."""
    if comes_too_late(tablespace, checkpoint):
        why = "is being deleted with its files"
    elif checkpoint.status is not None and checkpoint.status.phase == "Failed":
        why = f"failed: {checkpoint.status.told}" if checkpoint.status.told else "failed"
    else:
        return None
    return Wait(Reason.INVALID_SPEC, f"{field}: that Checkpoint {why}; delete this Tablespace and create one from another Checkpoint")


def before_creation(seen: TablespaceObserved) -> Plan | None:
    """Returns what must exist before the tablespace is created. None if all does."""
    if not seen.tablespace.is_restoring:
        return None
    files = files_of(seen)
    if isinstance(files, Wait):
        return Plan((), files, requeue.PENDING)
    if seen.store_unusable is not None:
        return Plan.waiting(seen.store_unusable.reason, seen.store_unusable.why)
    # the status is written first, see above
    return None if seen.tablespace.restore is not None else Plan(requeue_after_seconds=requeue.NOTED)


def refuse_existing(tablespace: Tablespace, record: TablespaceRecord) -> Plan | None:
    """Returns why an existing tablespace is not restored into. None if it was created for this resource."""
    if tablespace.spec.bootstrap is None or tablespace.restore is not None or tablespace.made_uuid == record.uuid:
        return None
    message = (
        f"spec.bootstrap is set, but HerdDB already has a tablespace {record.name} ({record.uuid}), and a restore never replaces one. "
        "Create another Tablespace with a free spec.tablespaceName. To keep the existing one, delete this Tablespace, which drops nothing, "
        "and create it without spec.bootstrap. To drop the existing one, create it so with deletionPolicy Delete, and delete it again"
    )
    return Plan.waiting(Reason.INVALID_SPEC, message, requeue.BLOCKED)


def plan_restore(seen: TablespaceObserved, spark_image: str, driver_role: str) -> Plan:
    """Create the Job if it does not exist. Called once the tablespace's leader leads."""
    if seen.objects.get("Job", names.job_name(seen.tablespace.key, names.RESTORE_COMPONENT)) is not None:
        return Plan(requeue_after_seconds=PROGRESS_SECONDS)
    files = files_of(seen)
    if isinstance(files, Wait):
        return Plan((), files, requeue.PENDING)
    if seen.store_unusable is not None:
        return Plan.waiting(seen.store_unusable.reason, seen.store_unusable.why)
    if (unencrypted := why_no_login(seen.tls, seen.herddb)) is not None:
        return Plan((), unencrypted, requeue.PENDING)
    if seen.tablespace.restored_moment is not None and (removal := removal_at(files.destination, seen.work)) is not None:
        return Plan((), removal, requeue.PENDING)
    if seen.herddb is None or seen.log is None:
        raise ValueError("a record was read, so its database and its ensemble are known")
    reference, named = seen.herddb.spec.credentials_secret_ref, seen.herddb.names
    secret = reference.name if reference else named.generated_secret
    source = RestoreSource(
        seen.log.zookeeper_address,
        named.herd_root,
        files.destination,
        files.path,
        Login(secret, seen.tls.secret if isinstance(seen.tls, TlsUsable) else None),
        _archive(seen),
        seen.log.readers_secret,
    )
    made = build_restore(seen.tablespace, source, spark_image, driver_role)
    return Plan(needed_applies(made, seen.objects), requeue_after_seconds=PROGRESS_SECONDS)


def _archive(seen: TablespaceObserved) -> ArchiveSource | None:
    """Returns where the old log is archived, with its archiver if that still runs in this namespace."""
    archive = seen.tablespace.spec.bootstrap.archive if seen.tablespace.spec.bootstrap is not None else None
    if archive is None:
        return None
    claim = archive.claim_name
    logs = ((other.metadata.name, other.spec.log.archive) for other in seen.others)
    beside = sorted(name for name, log in logs if claim and log is not None and log.destination.claim_name == claim)
    return ArchiveSource(next(iter(beside), None), archive)
