"""What the resources that run a Spark job share."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from herdkeeper.api.pods import PodTraits
from herdkeeper.api.resource import (
    Compute,
    CpuQuantity,
    Image,
    Model,
    Quantity,
    Rule,
    SecretReference,
    Status,
    formatted,
    unchanged,
    unchanged_optional,
)

Phase = Literal["Pending", "Running", "Paused", "Succeeded", "Failed"]
"""Only a ReplicationAudit with a window is ever Paused."""


class Executors(Model):
    """Spark executors as pods of their own. Without them the job runs inside its driver's pod."""

    instances: int = Field(0, ge=0, le=100, description="Executor pods; 0 runs everything in the driver.")
    cores: int = Field(1, ge=1, le=32, description="Tasks that an executor runs at once.")
    cpu: CpuQuantity = Field("500m", description="Requested CPU of each executor.")
    memory: Quantity = Field("512Mi", description="Java heap of each executor; Python and overhead come on top (40 %, 384Mi at least).")


class DriverJob(Model):
    """How a job runs that has no executors."""

    image: Image | None = Field(None, description="Image of the job; the operator's setting when absent.")
    resources: Compute = Field(Compute(cpu="500m", memory="2Gi"), description="CPU and memory of the Spark driver.")
    local_threads: int = Field(2, ge=1, le=64, description="Tasks at once where the driver does them itself.")
    pods: PodTraits = Field(PodTraits(), description="Where its pods run, and what else they carry.")
    deadline_seconds: int = Field(3600, ge=60, description="Seconds after which the job is stopped and has failed.")


class SparkJob(DriverJob):
    """How a job runs."""

    executors: Executors = Field(Executors(), description="Executors as pods, for which `pods` is, too.")


_JOB_VALUES = (
    *("resources.cpu", "resources.memory", "localThreads", "deadlineSeconds"),
    *("executors.instances", "executors.cores", "executors.cpu", "executors.memory"),
)


def unchanged_job(why: str) -> tuple[Rule, ...]:
    """Rules that refuse a change of the spec's `job`, a SparkJob, each by the field that changes. `why` is the reason and the fix."""
    return (
        *(unchanged(f"job.{field}", f"SELF.job.{field}", why) for field in _JOB_VALUES),
        unchanged_optional("job.image", "SELF.job.image", why),
        unchanged_optional("job.pods", None, why),
    )


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

    FIELD: ClassVar[str] = "objectStore"

    @property
    def address(self) -> str:
        """As the programs' arguments name it."""
        return self.uri

    @property
    def place(self) -> str:
        """Identity of the place."""
        return place_in_store(self.uri, self.endpoint)


def place_in_store(uri: str, endpoint: str | None) -> str:
    """Identity of the place in a store. It never equals a claim's name."""
    return uri if endpoint is None else f"{uri} at {endpoint}"


FileSystemAddress = Annotated[
    str,
    Field(
        max_length=512,
        pattern=r"^[a-z][a-z0-9+-]*://[A-Za-z0-9._-]+(:[0-9]{1,5})?(/[A-Za-z0-9_=-][A-Za-z0-9._=-]*)*$",
        examples=["webhdfs://namenode:9870/backups/flights"],
    ),
]
"""The URL of a folder, without user and password."""


class FileSystem(Model):
    """A folder of a file system that fsspec knows by its URL, e.g. HDFS. It must give a name only once, which each job tries first."""

    url: FileSystemAddress = Field(
        description="The folder's URL, whose scheme is one of fsspec's. The image has what `webhdfs://host:port/folder` needs (HDFS, and "
        "what an HttpFS gateway serves); others need an image with their package."
    )
    options_secret_ref: SecretReference | None = Field(
        None,
        description="Secret whose entries are options of fsspec's class for the scheme, e.g. `user` or `token`; one whose name ends with "
        "`.json` has a value that is no text (`use_https.json`: `true`). Entries with another dot in their name are files that an option "
        "may name: `/file-systems/<name of the Secret>/<entry>`.",
    )

    FIELD: ClassVar[str] = "fileSystem"

    @property
    def address(self) -> str:
        """As the programs' arguments name it."""
        return self.url

    @property
    def place(self) -> str:
        """Identity of the place."""
        return self.url


class Encryption(Model):
    """Keys for what lies at a destination. Jobs and the archiver mount the Secret; the operator looks at it, and keeps none."""

    keys_secret_ref: SecretReference = Field(
        description="Secret whose entries are keys, each 32 random bytes as base64 (`openssl rand -base64 32`). Files are read with the"
        " key that they were written with, so keep a key while such files exist. Files that are not encrypted are read, too."
    )
    current_key: str | None = Field(
        None,
        min_length=1,
        max_length=253,
        pattern=r"^[A-Za-z0-9_-][A-Za-z0-9._-]*$",
        description="Name of the entry that new files are encrypted with. The Secret's only one when absent.",
    )


class Destination(Model):
    """Where checkpoints lie. One of `persistentVolumeClaim`, `objectStore` and `fileSystem`."""

    persistent_volume_claim: ClaimDestination | None = Field(None, description="A volume.")
    object_store: ObjectStore | None = Field(None, description="A prefix of an S3-compatible object store.")
    file_system: FileSystem | None = Field(None, description="A folder of another file system, e.g. HDFS.")
    encryption: Encryption | None = Field(
        None,
        description="Encrypts new files before they leave the job's pods, and provides the keys for existing ones. Without it files are"
        " not encrypted.",
    )

    @property
    def store(self) -> ObjectStore | FileSystem | None:
        """What is opened by its address; None for a volume."""
        return self.object_store or self.file_system

    @property
    def place(self) -> str:
        """Identity of the destination: the name of a claim, or the address of a store, which is never a claim's name."""
        return self.claim_name or "" if self.store is None else self.store.place

    @property
    def claim_name(self) -> str | None:
        """The claim; None for what is no volume."""
        return None if self.persistent_volume_claim is None else self.persistent_volume_claim.claim_name

    @property
    def described(self) -> str:
        """For people."""
        kind = "volume claim" if self.store is None else "object store" if self.object_store is not None else "file system"
        return f"the {kind} {self.place}"


PLACES = ("persistentVolumeClaim", "objectStore", "fileSystem")
"""The fields of a Destination of which it has one."""


def place_rules(field: str, absent: str | None = None) -> tuple[Rule, Rule]:
    """Rules that refuse none and several places at the spec's `field`, which is a Destination, e.g. `destination`, and a URL of what is no
    file system of its own. `absent` is CEL for that there is no such Destination."""
    unless = f"{absent} || " if absent else ""
    there = [f"has(self.{field}.{place})" for place in PLACES]
    fix = f"set one of {', '.join(PLACES)} there"
    named = "fileSystem.url"
    other = f"spec.{field}.{named} is in the pod itself or an object store: set persistentVolumeClaim or objectStore there instead"
    return (
        Rule(
            rule=f"{unless}[{', '.join(there)}].exists_one(named, named)",
            message=f"spec.{field} names no place, or several: {fix}",
            message_expression=None
            if absent
            else formatted(f"spec.{field} names %s: {fix}", f"{' || '.join(there)} ? 'several places' : 'no place'"),
            field_path=f".{field.split('.', maxsplit=1)[0]}" if absent else f".{field}",
        ),
        Rule(
            rule=f"{unless}!{there[-1]} || !self.{field}.{named}.matches('^(s3|s3a|file|local|memory)://')",
            message=other,
            field_path=f".{field.split('.', maxsplit=1)[0]}" if absent else f".{field}.{named}",
        ),
    )


class JobStatus(Status):
    """How far the job has come."""

    phase: Phase | None = Field(None, description="Pending, Running, Succeeded or Failed; of an audit with a window also Paused.")
    job: str | None = Field(None, description="The Job that runs it.")
    started_at: str | None = Field(None, description="When its pod started.", json_schema_extra={"format": "date-time"})
    completed_at: str | None = Field(None, description="When it ended.", json_schema_extra={"format": "date-time"})
    duration_seconds: float | None = Field(None, description="Seconds that the job worked.")
