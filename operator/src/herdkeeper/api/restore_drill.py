"""Restore drills of a ScheduledCheckpoint: scheduled restores that prove that restores work."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from herdkeeper.api.checkpoint import Lsn
from herdkeeper.api.job import DriverJob
from herdkeeper.api.pods import pods_rules
from herdkeeper.api.resource import Compute, Instant, Model, ObjectName, Quantity, VolumeClaim, least_memory
from herdkeeper.api.schedule import Times, five_fields


class DrillStorage(VolumeClaim):
    """The storage of a drill's database."""

    size: Quantity = Field("10Gi", description="Space for the restored tables and their log. A pod that needs more is evicted.")
    storage_class_name: ObjectName | None = Field(
        None,
        description="StorageClass of a volume that is created with the pod and deleted with it, a day after the end. Absent: the "
        "node's disk.",
    )


class DrillServer(Model):
    """The HerdDB server in a drill's pod, with the image of the tablespace's database."""

    resources: Compute = Field(Compute(cpu="500m", memory="1Gi"), description="CPU and memory of the server.")
    storage: DrillStorage = Field(DrillStorage(), description="Its data.")


class Drill(Times):
    """Test restores into a temporary database."""

    server: DrillServer = Field(DrillServer(), description="The temporary database of the restore.")
    job: DriverJob = Field(
        DriverJob(),
        description="How the Spark job runs that restores and compares, in one pod. The database is not reachable from outside the pod.",
    )


class DrillStatus(Model):
    """The newest drill."""

    scheduled_time: Instant = Field(description="The scheduled time of the drill.")
    outcome: Literal["Running", "Succeeded", "Failed"] = Field(
        description="Succeeded: all rows and the schema were restored and equal the checkpoint's. Failed: they could not be, or differ."
    )
    message: str = Field(description="The result; after a failure, the first difference or the cause.")
    checkpoint: str = Field(description="The Checkpoint that is restored. A Checkpoint that was created for the drill is deleted with it.")
    tablespace_uuid: str | None = Field(
        None, description="Identity of the tablespace inside HerdDB. A drill of another one says nothing of the present one."
    )
    moment: Instant | None = Field(
        None, description="The moment chosen at random from the recovery window, or that of the chosen Checkpoint."
    )
    job: str | None = Field(None, description="The Job that restores. It is kept for a day after its end.")
    lsn: Lsn | None = Field(None, description="The position in the log that was restored.")
    rows: int | None = Field(None, description="Rows that were compared.")
    tables: int | None = Field(None, description="Tables that were compared.")
    seconds: float | None = Field(None, description="Seconds from the first file to the end of the comparison.")
    completed_at: Instant | None = Field(None, description="When it ended.")
    last_successful_time: Instant | None = Field(None, description="When the newest successful drill ended.")


DRILL_RULES = (
    five_fields("drill"),
    *(
        rule.model_copy(update={"rule": f"!has(self.drill) || ({rule.rule})"})
        for rule in (
            least_memory("drill.job.resources.memory", 1024),
            least_memory("drill.server.resources.memory", 512),
            *pods_rules("drill.job.pods"),
        )
    ),
)
"""Rules for a schedule's optional `drill`."""
