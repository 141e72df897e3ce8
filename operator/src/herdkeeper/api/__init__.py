"""The custom resources (herdkeeper.io/v1alpha1): one file per kind. The CRDs in crds/ are generated from these models."""

from __future__ import annotations

from herdkeeper.api.bookkeeper_cluster import BookKeeperCluster
from herdkeeper.api.checkpoint import Checkpoint
from herdkeeper.api.herddb_cluster import HerdDBCluster
from herdkeeper.api.replication_audit import ReplicationAudit
from herdkeeper.api.resource import Resource
from herdkeeper.api.scheduled_checkpoint import ScheduledCheckpoint
from herdkeeper.api.scheduled_replication_audit import ScheduledReplicationAudit
from herdkeeper.api.tablespace import Tablespace
from herdkeeper.api.zookeeper_cluster import ZooKeeperCluster

KINDS: tuple[type[Resource], ...] = (
    ZooKeeperCluster,
    BookKeeperCluster,
    HerdDBCluster,
    Tablespace,
    Checkpoint,
    ScheduledCheckpoint,
    ReplicationAudit,
    ScheduledReplicationAudit,
)

__all__ = [
    "KINDS",
    "BookKeeperCluster",
    "Checkpoint",
    "HerdDBCluster",
    "ReplicationAudit",
    "Resource",
    "ScheduledCheckpoint",
    "ScheduledReplicationAudit",
    "Tablespace",
    "ZooKeeperCluster",
]
