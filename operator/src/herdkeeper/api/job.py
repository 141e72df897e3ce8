"""What the resources that run a Spark job share."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from herdkeeper.api.pods import PodTraits
from herdkeeper.api.resource import Compute, CpuQuantity, Image, Model, Quantity, Rule, SecretReference, Status, formatted

Phase = Literal["Pending", "Running", "Paused", "Succeeded", "Failed"]
"""Only a ReplicationAudit with a window is ever Paused."""


class Executors(Model):
    """Spark executors as pods of their own. Without them the job runs inside its driver's pod."""

    instances: int = Field(0, ge=0, le=100, description="Executor pods; 0 runs everything in the driver.")
    cores: int = Field(1, ge=1, le=32, description="Tasks that an executor runs at once.")
    cpu: CpuQuantity = Field("500m", description="Requested CPU of each executor.")
    memory: Quantity = Field("512Mi", description="Java heap of each executor; Python and overhead come on top (40 %, 384Mi at least).")


class DriverJob(Model):
    """How a job runs whose driver does all of its work."""

    image: Image | None = Field(None, description="Image of the job; the operator's setting when absent.")
    resources: Compute = Field(Compute(cpu="500m", memory="2Gi"), description="CPU and memory of the Spark driver.")
    local_threads: int = Field(2, ge=1, le=64, description="Tasks at once where the driver does them itself.")
    pods: PodTraits = Field(PodTraits(), description="Where its pods run, and what else they carry.")
    deadline_seconds: int = Field(3600, ge=60, description="Seconds after which the job is stopped and has failed.")


class SparkJob(DriverJob):
    """How a job runs."""

    executors: Executors = Field(Executors(), description="Executors as pods, for which `pods` is, too.")


class ClaimDestination(Model):
    """A PersistentVolumeClaim."""

    claim_name: str = Field(
        min_length=1,
        max_length=253,
        description="A PersistentVolumeClaim in the same namespace. With executors it must be mountable where they run.",
    )


class VolumeDestination(Model):
    """Where results are written that can be written to a volume only."""

    persistent_volume_claim: ClaimDestination = Field(description="A volume. It can't be an object store.")


StoreAddress = Annotated[
    str,
    Field(
        max_length=512,
        pattern=r"^s3://[a-z0-9][a-z0-9.-]{1,61}[a-z0-9](/[A-Za-z0-9_=-][A-Za-z0-9._=-]*)*$",
        examples=["s3://backups/flights"],
    ),
]
"""A bucket and the prefix of keys in it."""


class ObjectStore(Model):
    """A prefix in a bucket of an S3-compatible object store, which must honour `If-None-Match: *` in PutObject."""

    uri: StoreAddress = Field(description="Bucket and prefix, `s3://bucket/prefix`. The bucket must exist.")
    endpoint: str | None = Field(
        None,
        max_length=512,
        pattern=r"^https?://[^/?#\s]+$",
        description="Where the store answers, e.g. `https://minio.storage.svc:9000`; Amazon S3 in the region when absent.",
    )
    region: str | None = Field(
        None, min_length=1, max_length=63, description="Region that requests are signed for; `us-east-1` when absent."
    )
    credentials_secret_ref: SecretReference = Field(
        description="Secret with the keys `AWS_ACCESS_KEY_ID` and `AWS_SECRET_ACCESS_KEY`. They must allow to list the bucket, and to "
        "read, write and delete what begins with the prefix."
    )
    ca_secret_ref: SecretReference | None = Field(
        None, description="Secret whose key `ca.crt` has the certificates (PEM) to trust besides those that are well known."
    )

    @property
    def place(self) -> str:
        """What is equal for two that are the same."""
        return place_in_store(self.uri, self.endpoint)


def place_in_store(uri: str, endpoint: str | None) -> str:
    """What is equal for two that are the same, and no claim's name."""
    return uri if endpoint is None else f"{uri} at {endpoint}"


class Encryption(Model):
    """Keys for what lies at a destination. Jobs and the archiver mount the Secret; the operator looks at it, and keeps none."""

    keys_secret_ref: SecretReference = Field(
        description="Secret whose entries are keys, each 32 random bytes as base64 (`openssl rand -base64 32`). What is there is read with "
        "whichever of them it was written with, so a key has to stay as long as there are files of it. What is not encrypted is read, too."
    )
    current_key: str | None = Field(
        None,
        min_length=1,
        max_length=253,
        pattern=r"^[A-Za-z0-9_-][A-Za-z0-9._-]*$",
        description="Name of the entry that new files are encrypted with. The Secret's only one when absent.",
    )


class Destination(Model):
    """Where checkpoints lie. One of `persistentVolumeClaim` and `objectStore`."""

    persistent_volume_claim: ClaimDestination | None = Field(None, description="A volume.")
    object_store: ObjectStore | None = Field(None, description="A prefix of an S3-compatible object store.")
    encryption: Encryption | None = Field(
        None,
        description="Encrypts new files before they leave the job's pods, and gives the keys to read those that are. Plain when absent.",
    )

    @property
    def place(self) -> str:
        """What is equal for two that are the same: the name of a claim, or the address of a store, which is no such name."""
        if self.object_store is not None:
            return self.object_store.place
        return self.claim_name or ""

    @property
    def claim_name(self) -> str | None:
        """The claim; None for an object store."""
        return None if self.persistent_volume_claim is None else self.persistent_volume_claim.claim_name

    @property
    def described(self) -> str:
        """For people."""
        return f"the volume claim {self.place}" if self.object_store is None else f"the object store {self.place}"


def one_destination(field: str) -> Rule:
    """A rule that refuses none and two places at the spec's `field`, which is a Destination, e.g. `destination`."""
    volume, store = f"self.{field}.persistentVolumeClaim", f"self.{field}.objectStore"
    fix = f"set one of spec.{field}.persistentVolumeClaim and spec.{field}.objectStore"
    return Rule(
        rule=f"has({volume}) != has({store})",
        message=f"spec.{field} names no place, or two: {fix}",
        message_expression=formatted(f"spec.{field} names %s: {fix}", f"has({volume}) ? 'two places' : 'no place'"),
        field_path=f".{field}",
    )


class JobStatus(Status):
    """How far the job has come."""

    phase: Phase | None = Field(None, description="Pending, Running, Succeeded or Failed; of an audit with a window also Paused.")
    job: str | None = Field(None, description="The Job that runs it.")
    started_at: str | None = Field(None, description="When its pod started.", json_schema_extra={"format": "date-time"})
    completed_at: str | None = Field(None, description="When it ended.", json_schema_extra={"format": "date-time"})
    duration_seconds: float | None = Field(None, description="Seconds that the job worked.")
