"""The observation of a Checkpoint."""

from __future__ import annotations

from dataclasses import dataclass

from herdkeeper.api import BookKeeperCluster, HerdDBCluster, Tablespace
from herdkeeper.jobs.removal.state import RemovalObserved
from herdkeeper.shared.objects import Objects
from herdkeeper.spark.object_store import StoreUnusable
from herdkeeper.spark.work import CheckpointWork


@dataclass(frozen=True)
class JobObserved:
    """The Job, its pods, and the referenced objects, None if missing.

    For a Checkpoint without a Job, or one being deleted: `work` is the activity of all Checkpoints in the namespace; `store_unusable` and
    `archive_unusable` are why a Secret of the destination or of the log's archive is unusable. For one being deleted: `removal` is what may
    need its files.
    """

    objects: Objects
    tablespace: Tablespace | None = None
    herddb: HerdDBCluster | None = None
    bookkeeper: BookKeeperCluster | None = None
    work: tuple[CheckpointWork, ...] = ()
    removal: RemovalObserved | None = None
    store_unusable: StoreUnusable | None = None
    archive_unusable: StoreUnusable | None = None
