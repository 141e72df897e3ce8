"""What was seen of a Checkpoint or a ReplicationAudit."""

from __future__ import annotations

from dataclasses import dataclass

from herdkeeper.api import BookKeeperCluster, HerdDBCluster, Tablespace
from herdkeeper.domain.observed.objects import Json, Objects


@dataclass(frozen=True)
class JobObserved:
    """The Job, its pods, and what the references lead to; None where nothing is. A Checkpoint refers to a Tablespace, an audit does not."""

    objects: Objects
    tablespace: Tablespace | None = None
    herddb: HerdDBCluster | None = None
    bookkeeper: BookKeeperCluster | None = None

    def ended(self, job: Json) -> str | None:
        """`Complete` or `Failed` when the Job has ended, else None."""
        for entry in job.get("status", {}).get("conditions") or []:
            if entry["type"] in ("Complete", "Failed") and entry["status"] == "True":
                return str(entry["type"])
        return None
