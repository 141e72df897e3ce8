"""Observes a Checkpoint or a ReplicationAudit: its Job, and what it refers to."""

from __future__ import annotations

import datetime
from dataclasses import replace

from herdkeeper.api import BookKeeperCluster, Checkpoint, HerdDBCluster, ReplicationAudit, ScheduledCheckpoint, Tablespace
from herdkeeper.clients.cluster_reader import ClusterReader
from herdkeeper.clients.kubernetes import JOBS
from herdkeeper.jobs.audit.state import AuditRun
from herdkeeper.jobs.state import CheckpointRun, RemovalObserved
from herdkeeper.shared.names import ObjectKey
from herdkeeper.shared.problem import Problem
from herdkeeper.shared.unknown import Unknown
from herdkeeper.shared.volumes import Claim
from herdkeeper.spark.object_store import ARCHIVE_FIELD, why_two_accounts
from herdkeeper.spark.observe_places import observe_checkpoints, observe_destination, observe_store, observe_work

_FIELD = "spec.destination."


def observe_checkpoint(checkpoint: Checkpoint, reader: ClusterReader) -> CheckpointRun:
    """Returns the Checkpoint with its Job's objects, the Tablespace, its database and its bookies."""
    namespace, destination = checkpoint.metadata.namespace, checkpoint.spec.destination
    seen = CheckpointRun(checkpoint, reader.kubernetes.owned(checkpoint.KIND, checkpoint.key, JOBS))
    if checkpoint.metadata.deletion_timestamp is not None:
        return replace(
            seen,
            work=observe_work(namespace, reader),
            removal=_removal(checkpoint, reader),
            # without the key: a removal reads only what is in the clear
            store_unusable=observe_store(destination.object_store, namespace, _FIELD, reader),
        )
    seen = _with_referred(seen, reader)
    if not seen.is_due:
        return seen
    return replace(
        seen,
        work=observe_work(namespace, reader),
        checkpoints=reader.kubernetes.resources(Checkpoint, namespace),
        store_unusable=observe_destination(destination, _FIELD, reader, namespace=namespace, writes=True),
        archive_unusable=None if seen.tablespace is None else _archive(checkpoint, seen.tablespace, reader),
    )


def _removal(checkpoint: Checkpoint, reader: ClusterReader) -> RemovalObserved:
    """Its volume, other Checkpoints and their runs, Tablespaces made from one."""
    namespace = checkpoint.metadata.namespace
    name = checkpoint.spec.destination.claim_name
    claim = None if name is None else reader.kubernetes.document("v1", "PersistentVolumeClaim", ObjectKey(namespace, name))
    checkpoints = observe_checkpoints(reader.kubernetes.documents(Checkpoint, namespace), reader)
    return RemovalObserved(
        None if claim is None else Claim.of(claim),
        checkpoints
        if isinstance(checkpoints, Unknown)
        else tuple(other for other in checkpoints if other.metadata.uid != checkpoint.metadata.uid),
        reader.kubernetes.models(Tablespace, reader.kubernetes.documents(Tablespace, namespace)),
        reader.kubernetes.models(ScheduledCheckpoint, reader.kubernetes.documents(ScheduledCheckpoint, namespace)),
    )


def _archive(checkpoint: Checkpoint, tablespace: Tablespace, reader: ClusterReader) -> Problem | None:
    archive = tablespace.spec.log.archive.destination if tablespace.spec.log.archive is not None else None
    unusable = observe_destination(archive, ARCHIVE_FIELD, reader, namespace=tablespace.metadata.namespace, writes=False)
    return unusable or why_two_accounts(checkpoint.spec.destination, archive, ARCHIVE_FIELD)


def _with_referred(seen: CheckpointRun, reader: ClusterReader) -> CheckpointRun:
    namespace = seen.checkpoint.metadata.namespace
    tablespace = reader.kubernetes.readable(Tablespace, ObjectKey(namespace, seen.checkpoint.spec.tablespace_ref.name))
    if tablespace is None:
        return seen
    herddb = reader.kubernetes.readable(HerdDBCluster, ObjectKey(namespace, tablespace.spec.herd_db_ref.name))
    if herddb is None:
        return replace(seen, tablespace=tablespace)
    bookkeeper = reader.kubernetes.readable(BookKeeperCluster, ObjectKey(namespace, herddb.spec.book_keeper_ref.name))
    nodes = reader.kubernetes.owned(herddb.KIND, herddb.key, (("apps/v1", "StatefulSet"), ("v1", "Pod")))
    return replace(seen, tablespace=tablespace, herddb=herddb, bookkeeper=bookkeeper, nodes=nodes)


def observe_audit(audit: ReplicationAudit, reader: ClusterReader) -> AuditRun:
    """Returns the audit with its Job's objects, the BookKeeperCluster, and the time."""
    objects = reader.kubernetes.owned(audit.KIND, audit.key, JOBS)
    bookkeeper = reader.kubernetes.readable(BookKeeperCluster, ObjectKey(audit.metadata.namespace, audit.spec.book_keeper_ref.name))
    return AuditRun(audit, objects, bookkeeper, datetime.datetime.now(datetime.UTC))
