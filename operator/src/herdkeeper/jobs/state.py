"""What was seen of a Checkpoint or a ReplicationAudit."""

from __future__ import annotations

import datetime
from dataclasses import dataclass

from herdkeeper.api import BookKeeperCluster, HerdDBCluster, Tablespace
from herdkeeper.jobs.removal.state import RemovalObserved
from herdkeeper.shared.objects import Objects
from herdkeeper.spark.object_store import StoreUnusable
from herdkeeper.spark.work import CheckpointWork


@dataclass(frozen=True)
class JobObserved:
    """The Job, its pods, and what the references lead to; None where nothing is. A Checkpoint refers to a Tablespace, an audit does not.

    Of a Checkpoint that has no Job yet, or is being deleted: `work` is what all Checkpoints of the namespace do, and `store_unusable` why
    a Secret of its destination is not what it needs, `archive_unusable` the same of the log's archive. Of one that is being deleted:
    `removal` is who may need its files. Of an audit: `now` is when that was seen.
    """

    objects: Objects
    tablespace: Tablespace | None = None
    herddb: HerdDBCluster | None = None
    bookkeeper: BookKeeperCluster | None = None
    work: tuple[CheckpointWork, ...] = ()
    removal: RemovalObserved | None = None
    store_unusable: StoreUnusable | None = None
    archive_unusable: StoreUnusable | None = None
    now: datetime.datetime | None = None
