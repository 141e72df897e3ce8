"""What the resources that run a Spark job share."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from herdkeeper.api.pods import PodTraits
from herdkeeper.api.resource import Compute, CpuQuantity, Image, Model, Quantity, Status

Phase = Literal["Pending", "Running", "Succeeded", "Failed"]


class Executors(Model):
    """Spark executors as pods of their own. Without them the job runs inside its driver's pod."""

    instances: int = Field(0, ge=0, le=100, description="Executor pods; 0 runs everything in the driver.")
    cores: int = Field(1, ge=1, le=32, description="Tasks that an executor runs at once.")
    cpu: CpuQuantity = Field("500m", description="Requested CPU of each executor.")
    memory: Quantity = Field("512Mi", description="Java heap of each executor; Python and overhead come on top (40 %, 384Mi at least).")


class SparkJob(Model):
    """How a job runs."""

    image: Image | None = Field(None, description="Image of the job; the operator's setting when absent.")
    resources: Compute = Field(Compute(cpu="500m", memory="2Gi"), description="CPU and memory of the driver.")
    local_threads: int = Field(2, ge=1, le=64, description="Tasks at once in the driver when there are no executors.")
    executors: Executors = Field(Executors(), description="Executors as pods.")
    pods: PodTraits = Field(PodTraits(), description="Where its pods run, those of executors, too, and what else they carry.")
    deadline_seconds: int = Field(3600, ge=60, description="Seconds after which the job is stopped and failed.")


class ClaimDestination(Model):
    """A PersistentVolumeClaim."""

    claim_name: str = Field(
        min_length=1,
        max_length=253,
        description="A PersistentVolumeClaim in the same namespace. With executors it must be mountable where they run.",
    )


class Destination(Model):
    """Where results are written."""

    persistent_volume_claim: ClaimDestination = Field(description="A volume.")


class JobStatus(Status):
    """How far the job has come."""

    phase: Phase | None = Field(None, description="Pending, Running, Succeeded or Failed.")
    job: str | None = Field(None, description="The Job that runs it.")
    started_at: str | None = Field(None, description="When its pod started.", json_schema_extra={"format": "date-time"})
    completed_at: str | None = Field(None, description="When it ended.", json_schema_extra={"format": "date-time"})
    duration_seconds: float | None = Field(None, description="Seconds that the job worked.")
