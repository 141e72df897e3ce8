"""What resources that run a Spark job share."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import ConfigDict, Field

from herdkeeper.api.pods import PodTraits, pods_rules
from herdkeeper.api.resource import (
    LIMIT_RULES,
    RULES,
    Amounts,
    Compute,
    CpuQuantity,
    Image,
    Instant,
    Model,
    ObjectName,
    Quantity,
    Resource,
    Rule,
    SecretReference,
    Status,
    formatted,
    least_memory,
    refusal,
    unchanged,
    unchanged_optional,
)

Phase = Literal["Pending", "Running", "Paused", "Succeeded", "Failed"]
"""Only a ReplicationAudit with a window can be Paused."""


class Executors(Model):
    """Spark executors in their own pods. Without them, the job runs in its driver's pod."""

    model_config = ConfigDict(json_schema_extra={RULES: LIMIT_RULES})

    instances: int = Field(0, ge=0, le=100, description="Executor pods; 0 runs everything in the driver.")
    cores: int = Field(1, ge=1, le=32, description="Concurrent tasks of each executor.")
    cpu: CpuQuantity = Field("500m", description="Requested CPU of each executor.")
    memory: Quantity = Field("512Mi", description="Java heap of each executor. Python and overhead come on top (40 %, at least 384Mi).")
    limits: Amounts = Field({}, description="Limits of each executor, as in Kubernetes: `cpu`, `ephemeral-storage`, devices.")


class DriverJob(Model):
    """How a job without executors runs."""

    image: Image | None = Field(None, description="Image of the job; the operator's setting when absent.")
    resources: Compute = Field(Compute(cpu="500m", memory="2Gi"), description="CPU and memory of the Spark driver.")
    local_threads: int = Field(2, ge=1, le=64, description="Concurrent tasks if the driver runs them itself.")
    pods: PodTraits = Field(PodTraits(), description="Placement and metadata of its pods.")
    deadline_seconds: int = Field(3600, ge=60, description="Seconds after which the job is stopped and fails.")


class SparkJob(DriverJob):
    """How a job runs."""

    executors: Executors = Field(Executors(), description="Executor pods. `pods` applies to them, too.")


_JOB_VALUES = (
    *("resources.cpu", "resources.memory", "localThreads", "deadlineSeconds"),
    *("executors.instances", "executors.cores", "executors.cpu", "executors.memory"),
)
_JOB_MAPS = ("pods", "resources.requests", "resources.limits", "executors.limits")


def unchanged_job(why: str) -> tuple[Rule, ...]:
    """Returns rules that refuse changes of the spec's `job`, a SparkJob, one per field. `why` is the reason and the fix."""
    return (
        *(unchanged(f"job.{field}", f"SELF.job.{field}", why) for field in _JOB_VALUES),
        unchanged_optional("job.image", "SELF.job.image", why),
        *(unchanged_optional(f"job.{field}", None, why) for field in _JOB_MAPS),
    )


def job_rules(field: str) -> tuple[Rule, ...]:
    """Returns the rules for the spec's `field`, which is a SparkJob, e.g. `template.job`."""
    least = (least_memory(f"{field}.resources.memory", 1024), least_memory(f"{field}.executors.memory", 256))
    return (*least, *pods_rules(f"{field}.pods"))


class ClaimDestination(Model):
    """A PersistentVolumeClaim."""

    claim_name: ObjectName = Field(
        description="A PersistentVolumeClaim in the same namespace. With executors it must be mountable where they run."
    )


class VolumeDestination(Model):
    """Where results are written that can be written to a volume only."""

    persistent_volume_claim: ClaimDestination = Field(description="A volume. It can't be an object store.")


StoreAddress = Annotated[
    str,
    Field(
        max_length=512,
        pattern=r"^(s3|gs|az)://[a-z0-9][a-z0-9._-]{1,220}[a-z0-9](/[A-Za-z0-9_=-][A-Za-z0-9._=-]*)*$",
        examples=["s3://backups/flights"],
        json_schema_extra=refusal(
            "this is no prefix in an object store: give s3://bucket/prefix, gs://bucket/prefix or az://container/prefix, without a password"
        ),
    ),
]
"""A bucket, or a container, and the prefix of keys in it."""


class ObjectStore(Model):
    """A prefix in an object store: S3 and what speaks its protocol, Google Cloud Storage, or Azure Blob Storage. It must create an object
    only once."""

    uri: StoreAddress = Field(
        description="`s3://bucket/prefix`, `gs://bucket/prefix` (Google), or `az://container/prefix` (Azure). The bucket must exist."
    )
    endpoint: str | None = Field(
        None,
        max_length=512,
        pattern=r"^https?://[^@/?#\s]+(/[^/?#\s]+)*$",
        json_schema_extra=refusal(
            "this is no address of a store: give one such as https://minio.storage.svc:9000, without a user or a password"
        ),
        description="Where the store answers, e.g. `https://minio.storage.svc:9000`; the cloud's own address when absent.",
    )
    region: str | None = Field(
        None,
        min_length=1,
        max_length=63,
        description="Of S3: the region that requests are signed for. When absent, that of the pod's `AWS_REGION`, else `us-east-1`.",
    )
    storage_account: str | None = Field(
        None,
        max_length=512,
        pattern=r"^[a-z0-9]{3,24}$",
        json_schema_extra=refusal("this is no name of a storage account: give its 3 to 24 small letters and digits, without a key"),
        description="Of Azure, which needs it: the storage account with the container.",
    )
    credentials_secret_ref: SecretReference | None = Field(
        None,
        description="Secret with the keys `AWS_ACCESS_KEY_ID` and `AWS_SECRET_ACCESS_KEY` (S3), `GOOGLE_SERVICE_ACCOUNT_KEY` (JSON), or "
        "`AZURE_STORAGE_ACCOUNT_KEY`. They must allow to list, and to read, write and delete what begins with the prefix.",
    )
    service_account_name: ObjectName | None = Field(
        None,
        description="Instead of a Secret: the ServiceAccount in the same namespace as which the pods run, so that the cloud knows them "
        "(workload identity).",
    )
    ca_secret_ref: SecretReference | None = Field(
        None, description="Secret whose key `ca.crt` has the certificates (PEM) to trust besides those that are well known."
    )

    @property
    def scheme(self) -> str:
        """What the address begins with: s3, gs or az."""
        return self.uri.split("://", maxsplit=1)[0]

    @property
    def place(self) -> str:
        return place_in_store(self.uri, self.endpoint, self.storage_account)


def place_in_store(uri: str, endpoint: str | None, storage_account: str | None) -> str:
    """Identity of the place in a store. It never equals a claim's name."""
    at = endpoint or storage_account
    return uri if at is None else f"{uri} at {at}"


class Encryption(Model):
    """Keys for what lies at a destination. Jobs and the archiver mount the Secret; the operator looks at it, and keeps none."""

    keys_secret_ref: SecretReference = Field(
        description="Secret whose entries are keys, each 32 random bytes as base64 (`openssl rand -base64 32`). Files are read with the"
        " key that they were written with, so keep a key while such files exist. Files that are not encrypted are read, too."
    )
    current_key: str | None = Field(
        None,
        max_length=253,
        pattern=r"^[A-Za-z0-9_-][A-Za-z0-9._-]*$",
        json_schema_extra=refusal("this is no name of a key: give one file name, without /, and not the key itself"),
        description="Name of the entry that new files are encrypted with. The Secret's only one when absent.",
    )


class Destination(Model):
    """Where checkpoints lie. One of `persistentVolumeClaim` and `objectStore`."""

    persistent_volume_claim: ClaimDestination | None = Field(None, description="A volume.")
    object_store: ObjectStore | None = Field(None, description="A prefix of an object store: S3, Google or Azure.")
    encryption: Encryption | None = Field(
        None,
        description="Encrypts new files before they leave the job's pods, and provides the keys for existing ones. Without it files are"
        " not encrypted.",
    )

    @property
    def place(self) -> str:
        """Identity of the destination: the name of a claim, or the address of a store, which is never a claim's name."""
        return self.claim_name or "" if self.object_store is None else self.object_store.place

    @property
    def claim_name(self) -> str | None:
        """The claim; None for what is no volume."""
        return None if self.persistent_volume_claim is None else self.persistent_volume_claim.claim_name

    @property
    def described(self) -> str:
        """For people."""
        kind = "volume claim" if self.object_store is None else "object store"
        return f"the {kind} {self.place}"


PLACES = ("persistentVolumeClaim", "objectStore")
"""The fields of a Destination of which it has one."""


def place_rules(field: str, absent: str | None = None) -> tuple[Rule, ...]:
    """Rules for the spec's `field`, which is a Destination, e.g. `destination`: one place, which is known, and one way to open it. `absent`
    is CEL for that there is no such Destination."""
    there = [f"has(self.{field}.{place})" for place in PLACES]
    fix = f"set one of {', '.join(PLACES)} there"
    store = f"self.{field}.objectStore"
    no_store = f"!has({store})" if absent is None else f"{absent} || !has({store})"
    path = f".{field.split('.', maxsplit=1)[0]}" if absent else f".{field}"
    opened = f"spec.{field}.objectStore names no credentials, or two: set one of credentialsSecretRef, serviceAccountName there"
    account = f"spec.{field}.objectStore.storageAccount belongs to az:// addresses, which need it: set it for these, and for no others"
    return (
        Rule(
            rule=f"{f'{absent} || ' if absent else ''}[{', '.join(there)}].exists_one(named, named)",
            message=f"spec.{field} names no place, or several: {fix}",
            message_expression=None
            if absent
            else formatted(f"spec.{field} names %s: {fix}", f"{' || '.join(there)} ? 'several places' : 'no place'"),
            field_path=path,
        ),
        Rule(
            rule=f"{no_store} || has({store}.credentialsSecretRef) != has({store}.serviceAccountName)",
            message=opened,
            field_path=path,
        ),
        Rule(
            rule=f"{no_store} || has({store}.storageAccount) == {store}.uri.startsWith('az://')",
            message=account,
            field_path=path,
        ),
    )


class JobStatus(Status):
    """How far the job has come."""

    phase: Phase | None = Field(None, description="Pending, Running, Succeeded or Failed; Paused for an audit outside its window.")
    job: str | None = Field(None, description="The Job that runs it.")
    started_at: Instant | None = Field(None, description="When the Job's pod started.")
    completed_at: Instant | None = Field(None, description="When the Job ended.")
    duration_seconds: float | None = Field(None, description="Seconds that the job worked.")
    failure: str | None = Field(None, description="Why the run failed. It stays when `message` is about a deletion.")

    @property
    def told(self) -> str:
        """Why the run failed, else what `message` says of it."""
        return self.failure or self.message or ""


class JobResource(Resource):
    """A resource that runs its job once, and stays as its record."""

    status: JobStatus | None = None

    @property
    def is_over(self) -> bool:
        """Whether its run has ended, by its status."""
        return self.status is not None and self.status.phase in ("Succeeded", "Failed")
