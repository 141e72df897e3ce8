"""What every custom resource of herdkeeper.io has: identity, spec, and a status with conditions."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

GROUP = "herdkeeper.io"
VERSION = "v1alpha1"
API_VERSION = f"{GROUP}/{VERSION}"

ResourceName = Annotated[str, Field(min_length=1, max_length=40, pattern=r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$")]
"""A DNS label. 40 characters at most: object names add suffixes, and a pod's name must fit into 63."""

Quantity = Annotated[str, Field(pattern=r"^[1-9][0-9]*(Ki|Mi|Gi|Ti)$", examples=["512Mi", "20Gi"])]
"""A size in bytes with a binary unit, e.g. `20Gi`."""

DeletionPolicy = Literal["Retain", "Delete"]


class Model(BaseModel):
    """A part of a resource: immutable, camelCase on the wire, unknown fields refused."""

    model_config = ConfigDict(frozen=True, extra="forbid", alias_generator=to_camel, populate_by_name=True)


class ObjectMeta(BaseModel):
    """The metadata that decisions rest on; the rest of it is ignored."""

    model_config = ConfigDict(frozen=True, extra="ignore", alias_generator=to_camel, populate_by_name=True)

    name: str
    namespace: str
    uid: str = ""
    generation: int = 0
    resource_version: str = ""
    creation_timestamp: str = ""
    deletion_timestamp: str | None = None
    finalizers: tuple[str, ...] = ()
    annotations: dict[str, str] = {}
    labels: dict[str, str] = {}


class Condition(Model):
    """A condition as Kubernetes' API conventions define it."""

    type: str = Field(description="What the condition speaks of, e.g. Ready or Progressing.")
    status: Literal["True", "False", "Unknown"] = Field(description="Whether it holds.")
    reason: str = Field(description="Why, as one CamelCase word.")
    message: str = Field(description="Why, as a sentence that a person can act on.")
    last_transition_time: str = Field(description="When the status last changed (RFC 3339).", json_schema_extra={"format": "date-time"})
    observed_generation: int = Field(description="The generation of the spec that this speaks of.")


class Status(Model):
    """What every kind's status begins with."""

    observed_generation: int | None = Field(None, description="The generation of the spec that the operator last acted on.")
    message: str | None = Field(None, description="The state in one sentence.")
    conditions: tuple[Condition, ...] = Field((), description="Ready and Progressing, with reasons.")


class PrinterColumn(BaseModel):
    """A column of `kubectl get`."""

    model_config = ConfigDict(frozen=True)

    name: str
    type: Literal["string", "integer", "date", "boolean"]
    json_path: str
    description: str = ""
    priority: int = 0


class Rule(BaseModel):
    """A CEL rule on the spec: what the API server refuses at once. The message names the field, and the fix."""

    model_config = ConfigDict(frozen=True)

    rule: str
    message: str
    field_path: str | None = None


class Resource(BaseModel):
    """A custom resource as read from the API server. Subclasses set `spec` and `status` and the class facts below."""

    model_config = ConfigDict(frozen=True, extra="ignore", alias_generator=to_camel, populate_by_name=True)

    KIND: ClassVar[str]
    PLURAL: ClassVar[str]
    SHORT_NAME: ClassVar[str]
    SUMMARY: ClassVar[str]
    COLUMNS: ClassVar[tuple[PrinterColumn, ...]] = ()
    RULES: ClassVar[tuple[Rule, ...]] = ()

    metadata: ObjectMeta
    spec: Any
    status: Any = None


class VolumeClaim(Model):
    """A volume that the operator claims."""

    size: Quantity = Field(description="Requested size, e.g. `20Gi`.")
    storage_class_name: str | None = Field(None, description="StorageClass; the cluster's default one when absent. Immutable.")


class Compute(Model):
    """CPU and memory of one container. Heap and direct memory of a server follow from the memory limit."""

    cpu: str = Field(description="Requested CPU, e.g. `500m`. No limit is set: throttled servers miss heartbeats.", pattern=r"^[0-9]+m?$")
    memory: Quantity = Field(description="Requested memory and its limit, e.g. `1Gi`.")


class Reference(Model):
    """A resource of this group in the same namespace."""

    name: ResourceName = Field(description="Name of the resource, in the same namespace.")


READY_COLUMN = PrinterColumn(
    name="Ready", type="string", json_path='.status.conditions[?(@.type=="Ready")].status', description="Whether it serves as declared."
)
STATUS_COLUMN = PrinterColumn(name="Status", type="string", json_path=".status.message", description="The state in one sentence.")
AGE_COLUMN = PrinterColumn(name="Age", type="date", json_path=".metadata.creationTimestamp")
