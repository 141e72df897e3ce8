"""Observes a Checkpoint or a ReplicationAudit: its Job, and what it refers to."""

from __future__ import annotations

import datetime
from dataclasses import replace

from herdkeeper.api import BookKeeperCluster, Checkpoint, HerdDBCluster, ReplicationAudit, Tablespace
from herdkeeper.clients.cluster_reader import ClusterReader
from herdkeeper.clients.kubernetes import JOBS
from herdkeeper.jobs.audit.state import AuditRun
from herdkeeper.jobs.removal.observe import observe_removal
from herdkeeper.jobs.state import JobObserved
from herdkeeper.shared import names
from herdkeeper.shared.names import ObjectKey
from herdkeeper.shared.objects import Objects
from herdkeeper.spark.object_store import ARCHIVE_FIELD, StoreUnusable, why_two_accounts
from herdkeeper.spark.observe_object_store import observe_destination, observe_store
from herdkeeper.spark.observe_work import observe_work

_FIELD = "spec.destination."


def observe_checkpoint(checkpoint: Checkpoint, reader: ClusterReader) -> JobObserved:
    """Returns the Job's objects, the Tablespace, its database and its bookies."""
    namespace = checkpoint.metadata.namespace
    key = ObjectKey(namespace, checkpoint.metadata.name)
    objects = reader.kubernetes.owned(checkpoint.KIND, key, JOBS)
    if checkpoint.metadata.deletion_timestamp is not None:
        return JobObserved(
            objects,
            work=observe_work(namespace, reader),
            removal=observe_removal(checkpoint, reader),
            store_unusable=_store(checkpoint, reader),
        )
    starts = not checkpoint.is_over and objects.get("Job", names.job_name(key, names.CHECKPOINT_COMPONENT)) is None
    seen = _referred(checkpoint, objects, reader)
    if not starts:
        return seen
    return replace(
        seen,
        work=observe_work(namespace, reader),
        store_unusable=observe_destination(checkpoint.spec.destination, _FIELD, reader, namespace=namespace, writes=True),
        archive_unusable=None if seen.tablespace is None else _archive(checkpoint, seen.tablespace, reader),
    )


def _store(checkpoint: Checkpoint, reader: ClusterReader) -> StoreUnusable | None:
    """What a removal needs: no key, since it reads only what is in the clear."""
    return observe_store(checkpoint.spec.destination.object_store, checkpoint.metadata.namespace, _FIELD, reader)


def _archive(checkpoint: Checkpoint, tablespace: Tablespace, reader: ClusterReader) -> StoreUnusable | None:
    archive = tablespace.spec.log.archive.destination if tablespace.spec.log.archive is not None else None
    unusable = observe_destination(archive, ARCHIVE_FIELD, reader, namespace=tablespace.metadata.namespace, writes=False)
    return unusable or why_two_accounts(checkpoint.spec.destination, archive, ARCHIVE_FIELD)


def _referred(checkpoint: Checkpoint, objects: Objects, reader: ClusterReader) -> JobObserved:
    """Returns the existing objects to which a Checkpoint refers."""
    namespace = checkpoint.metadata.namespace
    tablespace = reader.kubernetes.readable(Tablespace, ObjectKey(namespace, checkpoint.spec.tablespace_ref.name))
    if tablespace is None:
        return JobObserved(objects)
    herddb = reader.kubernetes.readable(HerdDBCluster, ObjectKey(namespace, tablespace.spec.herd_db_ref.name))
    if herddb is None:
        return JobObserved(objects, tablespace)
    bookkeeper = reader.kubernetes.readable(BookKeeperCluster, ObjectKey(namespace, herddb.spec.book_keeper_ref.name))
    return JobObserved(objects, tablespace, herddb, bookkeeper)


def observe_audit(audit: ReplicationAudit, reader: ClusterReader) -> AuditRun:
    """Returns the audit with its Job's objects, the BookKeeperCluster, and the time."""
    objects = reader.kubernetes.owned(audit.KIND, audit.key, JOBS)
    bookkeeper = reader.kubernetes.readable(BookKeeperCluster, ObjectKey(audit.metadata.namespace, audit.spec.book_keeper_ref.name))
    return AuditRun(audit, objects, bookkeeper, datetime.datetime.now(datetime.UTC))
