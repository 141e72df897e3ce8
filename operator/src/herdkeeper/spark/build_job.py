"""Builds the Job of a Checkpoint, an audit, a restore or a drill, whose pod is the Spark driver, with what its executors need. The Job that
removes a Checkpoint's files is similar, without Spark.

Arguments and exit codes are those of the cli modules in herdkeeper_jobs.{checkpoint,audit,restore} (and its removal_cli): 2 configuration,
42 invariant.
"""

from __future__ import annotations

from typing import assert_never

from herdkeeper.api import Checkpoint, ReplicationAudit, ScheduledCheckpoint, Tablespace
from herdkeeper.api.checkpoint import Target
from herdkeeper.api.job import Destination, Executors, SparkJob
from herdkeeper.api.replication_audit import LedgerFilter, RepairMode
from herdkeeper.api.resource import Compute
from herdkeeper.api.tablespace import Bootstrap
from herdkeeper.shared import names
from herdkeeper.shared.names import ObjectKey
from herdkeeper.shared.objects import Json
from herdkeeper.shared.quantity import bytes_of
from herdkeeper.shared.time import text_of
from herdkeeper.shared.timetable import duration_of
from herdkeeper.spark import build_throwaway_server as throwaway_server
from herdkeeper.spark import encryption_keys
from herdkeeper.spark.build_driver import ARCHIVE, driver_job, job_and_access, spark_arguments
from herdkeeper.spark.job_run import DESTINATION, JobFiles, JobRun, root_of
from herdkeeper.spark.sources import ArchiveSource, AuditSource, CheckpointSource, DrillSource, FollowerSource, OpenWindow, RestoreSource

READ_UNTIL = "--read-until"
"""The program's argument with the closing time of the window."""

REMOVAL_RESOURCES = Compute(cpu="100m", memory="512Mi")
"""For a Job that lists and deletes files: Python with the modules for a checkpoint's layout."""

DRILL_KEPT_SECONDS = 86400
"""How long the logs of a finished drill stay readable."""


def build_checkpoint(
    checkpoint: Checkpoint, source: CheckpointSource, default_image: str, driver_role: str = names.DRIVER_ROLE
) -> tuple[Json, ...]:
    """Returns the Checkpoint's Job, after its rights if it has executors. Raises ValueError if a follower is required and none is known."""
    spec = checkpoint.spec
    if spec.verify == "Follower" and source.follower is None:
        raise ValueError("spec.verify is Follower: no follower is known; wait for one, or create a Checkpoint with verify: Reread")
    archived = _archive_arguments(source.archive, spec.destination)
    verify = ("--verify-against", source.follower) if spec.verify == "Follower" and source.follower else ()
    rate, full_every = spec.bytes_per_second_per_bookie, str(int(duration_of(spec.full_every).total_seconds()))
    # A follower can be held only at the present, and a request for the whole log accepts nothing else.
    begins_with = source.begins_with if spec.target is None and spec.mode != "Full" else None
    leader = ("--leader-http", source.leader) if source.leader and spec.target is None else ()
    base = _begins_with(begins_with)
    # An image that does not know this argument ends before it sends the token in plain text.
    with_tls = [address for address in dict.fromkeys((*leader, *verify, *base)) if address in source.with_tls]
    command = (
        "herdkeeper_jobs.checkpoint.cli",
        *("--zookeeper", source.zookeeper_address),
        *("--ledgers-root", source.ledgers_root),
        *("--herd-root", source.herd_root),
        *("--tablespace", source.tablespace),
        *("--to", _moment(spec.target)),
        *(("--mode", spec.mode) if spec.mode != "Auto" else ("--full-every-seconds", full_every)),
        *(("--bytes-per-second-per-bookie", str(bytes_of(rate))) if rate else ()),
        *("--destination", root_of(spec.destination)),
        *encryption_keys.encrypts(spec.destination),
        *leader,
        *verify,
        *base,
        *(("--nodes-with-tls", ",".join(with_tls)) if with_tls else ()),
    )
    return job_and_access(
        JobRun(
            checkpoint,
            names.CHECKPOINT_COMPONENT,
            default_image,
            (*command, *archived),
            spec.job,
            JobFiles.at(spec.destination, source.archive),
            node_token=source.secret if verify or begins_with is not None else None,
            node_authorities=source.authorities if with_tls else None,
            identity=source.identity,
        ),
        driver_role,
    )


def _begins_with(source: FollowerSource | None) -> tuple[str, ...]:
    if source is None:
        return ()
    return ("--base-follower", source.follower, *(("--base-witness", source.witness) if source.witness is not None else ()))


def _archive_arguments(archive: ArchiveSource | None, destination: Destination) -> tuple[str, ...]:
    """Nothing if the archive is at the destination itself, with the same Secrets. All keys are mounted in any case."""
    if archive is None:
        return ()
    claim, store = archive.destination.claim_name, archive.destination.object_store
    if (claim, store) == (destination.claim_name, destination.object_store):
        return ()
    return ("--archive", ARCHIVE if store is None else store.uri)


def _moment(target: Target | None) -> str:
    """Returns the program's `--to`. Raises ValueError for an empty target, which the API server refuses."""
    if target is None:
        return "now"
    if target.timestamp is not None:
        return target.timestamp
    if target.lsn is not None:
        return f"{target.lsn.ledger_id},{target.lsn.entry_id}"
    raise ValueError("spec.target has no moment: set one of spec.target.lsn and spec.target.timestamp")


def build_removal(checkpoint: Checkpoint, manifest: str | None, default_image: str, *, only_own: bool = False) -> Json:
    """Returns the Job that removes a Checkpoint's files. `manifest` is its path at the destination, None if the run reported none.
    `only_own`: a manifest that another run made stays.
    """
    command = (
        "herdkeeper_jobs.checkpoint.removal_cli",
        *("--destination", root_of(checkpoint.spec.destination)),
        *(("--manifest", manifest) if manifest else ()),
        *(("--only-own",) if only_own else ()),
    )
    spec = checkpoint.spec.job.model_copy(update={"resources": REMOVAL_RESOURCES, "executors": Executors()})
    destination = checkpoint.spec.destination
    files = JobFiles(destination)  # no rows are read: no key is needed
    return driver_job(JobRun(checkpoint, names.REMOVAL_COMPONENT, default_image, command, spec, files), ())


def build_audit(
    audit: ReplicationAudit,
    source: AuditSource,
    default_image: str,
    window: OpenWindow | None = None,
    driver_role: str = names.DRIVER_ROLE,
) -> tuple[Json, ...]:
    """Returns the ReplicationAudit's Job, after its rights if it has executors. Its deadline counts from the end of the window."""
    spec = audit.spec
    rate = spec.bytes_per_second_per_bookie
    command = (
        "herdkeeper_jobs.audit.cli",
        *("--zookeeper", source.zookeeper_address),
        *("--ledgers-root", source.ledgers_root),
        *(("--depth", "light") if spec.depth == "Light" else ()),
        *_placement_arguments(source),
        *_filter_arguments(audit),
        *(("--bytes-per-second-per-bookie", str(bytes_of(rate))) if rate else ()),
        *_repair_arguments(spec.repair),
        *(("--output", DESTINATION) if spec.destination else ()),
        *((READ_UNTIL, text_of(window.closes)) if window else ()),
    )
    files = JobFiles(Destination(persistent_volume_claim=spec.destination.persistent_volume_claim) if spec.destination else None)
    seconds = spec.job.deadline_seconds + (window.seconds_left if window else 0)
    job = spec.job.model_copy(update={"deadline_seconds": seconds})
    run = JobRun(audit, names.AUDIT_COMPONENT, default_image, command, job, files, identity=source.identity)
    return job_and_access(run, driver_role)


def _filter_arguments(audit: ReplicationAudit) -> tuple[str, ...]:
    chosen = audit.spec.filter or LedgerFilter()
    ids = ",".join((*map(str, audit.spec.ledgers), *(f"{each.first}-{each.last}" for each in chosen.ledger_ranges)))
    roots = ((names.herd_root(ObjectKey(audit.metadata.namespace, each.herd_db_ref.name)), each.name) for each in chosen.tablespaces)
    return (
        *(("--ledgers", ids) if ids else ()),
        *(argument for root, name in roots for argument in ("--tablespace", root, name)),
        *(("--states", ",".join(chosen.states)) if chosen.states else ()),
        *(("--bookies", ",".join(chosen.bookies)) if chosen.bookies else ()),
    )


def _placement_arguments(source: AuditSource) -> tuple[str, ...]:
    if not source.rack_of:
        return ()
    racks = ",".join(f"{bookie_id}={rack}" for bookie_id, rack in sorted(source.rack_of.items()))
    return ("--racks", racks, "--min-racks", str(source.min_racks))


def _repair_arguments(mode: RepairMode) -> tuple[str, ...]:
    match mode:
        case "Report":
            return ()
        case "DryRun":
            return ("--repair", "dry-run")
        case "Repair":
            return ("--repair", "repair")
        case _:
            assert_never(mode)


def build_restore(
    tablespace: Tablespace, source: RestoreSource, default_image: str, driver_role: str = names.DRIVER_ROLE
) -> tuple[Json, ...]:
    """Returns the Job that fills a Tablespace, after its rights if it has executors. Raises ValueError without a bootstrap."""
    bootstrap = tablespace.spec.bootstrap
    if bootstrap is None:
        raise ValueError("spec.bootstrap is absent: there is nothing to restore")
    command = (
        "herdkeeper_jobs.restore.cli",
        *("--zookeeper", source.zookeeper_address),
        *("--herd-root", source.herd_root),
        *("--tablespace", tablespace.sql_name),
        *_restored_arguments(bootstrap, source),
    )
    files = JobFiles.at(source.files, source.archive, reads_only=bootstrap.target is None)
    run = JobRun(tablespace, names.RESTORE_COMPONENT, default_image, command, bootstrap.job, files, source.login, identity=source.identity)
    return job_and_access(run, driver_role)


def _restored_arguments(bootstrap: Bootstrap, source: RestoreSource) -> tuple[str, ...]:
    named = "--folder" if bootstrap.archive is not None and bootstrap.archive.folder is not None else "--manifest"
    which = (named, f"{root_of(source.files)}/{source.path}")
    if bootstrap.target is None:
        return which
    encrypts = encryption_keys.encrypts(source.files)
    return (*which, "--to", bootstrap.target.text, *_archive_arguments(source.archive, source.files), *encrypts)


def build_drill(schedule: ScheduledCheckpoint, source: DrillSource, default_image: str) -> Json:
    """Returns the Job that restores a checkpoint into a server in its own pod. Raises ValueError without a drill."""
    drill = schedule.spec.drill
    if drill is None:
        raise ValueError("spec.drill is absent: there is nothing to restore")
    command = (
        "herdkeeper_jobs.restore.cli",
        *("--server", throwaway_server.ADDRESS),
        *("--tablespace", throwaway_server.TABLESPACE),
        *("--manifest", f"{root_of(source.files)}/{source.manifest}"),
    )
    run = JobRun(
        schedule,
        names.DRILL_COMPONENT,
        default_image,
        command,
        SparkJob.model_validate(drill.job.model_dump()),
        JobFiles.at(source.files, reads_only=True),
        called=source.job,
    )
    job = driver_job(run, spark_arguments(run))
    template = job["spec"]["template"]
    (driver,) = template["spec"]["containers"]
    with_server = {
        **template["spec"],
        "initContainers": [throwaway_server.server_container(drill.server, source.herddb_image)],
        "containers": [{**driver, "env": [*driver["env"], *throwaway_server.server_login()]}],
        "volumes": [*template["spec"]["volumes"], throwaway_server.server_volume(drill.server.storage)],
    }
    described = {"ttlSecondsAfterFinished": DRILL_KEPT_SECONDS, "template": {**template, "spec": with_server}}
    return {**job, "spec": {**job["spec"], **described}}
