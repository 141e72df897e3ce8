"""Looks at a Checkpoint or a ReplicationAudit: its Job, and what it refers to."""

from __future__ import annotations

from herdkeeper.api import BookKeeperCluster, Checkpoint, HerdDBCluster, ReplicationAudit, Tablespace
from herdkeeper.domain.names import ObjectKey
from herdkeeper.domain.observed.job import JobObserved
from herdkeeper.observe.kubernetes import JOBS
from herdkeeper.observe.world import World


def observe_checkpoint(checkpoint: Checkpoint, world: World) -> JobObserved:
    """The Job's objects, the Tablespace, its database and its bookies."""
    namespace = checkpoint.metadata.namespace
    objects = world.kubernetes.owned(checkpoint.KIND, ObjectKey(namespace, checkpoint.metadata.name), JOBS)
    tablespace = world.kubernetes.readable(Tablespace, ObjectKey(namespace, checkpoint.spec.tablespace_ref.name))
    if tablespace is None:
        return JobObserved(objects)
    herddb = world.kubernetes.readable(HerdDBCluster, ObjectKey(namespace, tablespace.spec.herd_db_ref.name))
    if herddb is None:
        return JobObserved(objects, tablespace)
    bookkeeper = world.kubernetes.readable(BookKeeperCluster, ObjectKey(namespace, herddb.spec.book_keeper_ref.name))
    return JobObserved(objects, tablespace, herddb, bookkeeper)


def observe_audit(audit: ReplicationAudit, world: World) -> JobObserved:
    """The Job's objects and the BookKeeperCluster."""
    namespace = audit.metadata.namespace
    objects = world.kubernetes.owned(audit.KIND, ObjectKey(namespace, audit.metadata.name), JOBS)
    bookkeeper = world.kubernetes.readable(BookKeeperCluster, ObjectKey(namespace, audit.spec.book_keeper_ref.name))
    return JobObserved(objects, bookkeeper=bookkeeper)
