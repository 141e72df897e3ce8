"""What was seen of a Checkpoint or a ReplicationAudit."""

from __future__ import annotations

from dataclasses import dataclass

from herdkeeper.api import BookKeeperCluster, HerdDBCluster, Tablespace
from herdkeeper.domain.observed.objects import Objects


@dataclass(frozen=True)
class JobObserved:
    """The Job, its pods, and what the references lead to; None where nothing is. A Checkpoint refers to a Tablespace, an audit does not."""

    objects: Objects
    tablespace: Tablespace | None = None
    herddb: HerdDBCluster | None = None
    bookkeeper: BookKeeperCluster | None = None
