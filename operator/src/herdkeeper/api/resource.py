"""The common part of all custom resources of herdkeeper.io: identity, spec, and a status with conditions."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field, model_validator
from pydantic.alias_generators import to_camel
from pydantic.config import JsonDict, JsonValue

from herdkeeper.shared.names import ObjectKey

GROUP = "herdkeeper.io"
VERSION = "v1alpha1"
API_VERSION = f"{GROUP}/{VERSION}"

REFUSAL = "x-refusal"
"""In a model's JSON schema, of a string with a pattern: what the API server answers in place of the pattern. `%s` stands for the value."""

MAY_HOLD_A_SECRET = ("uri", "endpoint", "storageAccount", "currentKey")
"""Fields in which somebody may write a password or a key. Their refusal prints no value."""

RULES = "x-rules"
"""In a model's JSON schema: rules of the API server for each field that is such a model, in CEL over the model."""


def refusal(text: str) -> JsonDict:
    """Returns what Field's `json_schema_extra` has for it. The API server names the field before it, so it names value and fix."""
    return {REFUSAL: text}


ResourceName = Annotated[
    str,
    Field(
        min_length=1,
        max_length=40,
        pattern=r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$",
        json_schema_extra=refusal("%s is no name of a resource: use small letters, digits and -"),
    ),
]
"""A DNS label of at most 40 characters: object names add suffixes, and a pod's name must fit into 63."""

Quantity = Annotated[
    str,
    Field(
        max_length=16,
        pattern=r"^[1-9][0-9]*(Ki|Mi|Gi|Ti)$",
        examples=["512Mi", "20Gi"],
        json_schema_extra=refusal("%s is no size: give a whole number and Ki, Mi, Gi or Ti, e.g. 20Gi or 500Mi"),
    ),
]
"""A size in bytes with a binary unit, e.g. `20Gi`."""

OBJECT_NAME = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$"
"""Kubernetes' rule for the names of objects. A name by it can't lead to another namespace."""
OBJECT_NAME_FIX = "use small letters, digits, - and ., with a letter or digit at each end"

ObjectName = Annotated[
    str,
    Field(
        min_length=1,
        max_length=253,
        json_schema_extra={"pattern": OBJECT_NAME, **refusal(f"%s is no name of an object: {OBJECT_NAME_FIX}")},
    ),
]
"""The name of an object that a resource refers to. The API server takes only one by OBJECT_NAME, but 0.1.0 stored others. The model reads
them, so that such a resource is refused (`planning.refusal.name_refusals`) and not given up.
"""

Instant = Annotated[str, Field(json_schema_extra={"format": "date-time"})]
"""A time that the operator writes (RFC 3339)."""

CpuQuantity = Annotated[
    str,
    Field(
        max_length=16,
        pattern=r"^[0-9]+m?$",
        examples=["500m", "2"],
        json_schema_extra=refusal("%s is no amount of CPU: give whole cores, or thousandths of a core with m, e.g. 2 or 500m"),
    ),
]
"""Cores, or thousandths of a core with `m`."""

_NAME = "[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
_DOMAIN = "[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*/"
LABEL_NAME = f"^({_DOMAIN})?{_NAME}$"
"""Source: Kubernetes, "Labels and Selectors", syntax and character set."""
LONGEST_DOMAIN = 253
"""Characters of a label's domain, which LABEL_NAME does not count."""
NAME_FIX = "use at most 63 letters, digits, `-`, `_` and `.`, optionally after a domain and `/`"
"""What a name by LABEL_NAME is."""

LabelName = Annotated[
    str,
    Field(min_length=1, max_length=317, pattern=LABEL_NAME, json_schema_extra=refusal(f"%s is no name of a label: {NAME_FIX}")),
]
"""The key of a label or taint, where it is a value. A map's keys have no pattern in a schema, so rules check those."""

LabelValue = Annotated[
    str,
    Field(
        max_length=63,
        pattern=r"^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$",
        json_schema_extra=refusal("%s is no value of a label: use letters, digits, `-`, `_` and `.`, with a letter or digit at each end"),
    ),
]
"""The value of a label or taint."""

Amount = Annotated[
    str,
    Field(
        max_length=16,
        pattern=r"^[0-9]+(m|Ki|Mi|Gi|Ti)?$",
        json_schema_extra=refusal("%s is no amount: give a whole number, alone or with m, Ki, Mi, Gi or Ti, e.g. 2, 500m or 4Gi"),
    ),
]
"""An amount of any resource of Kubernetes."""

Amounts = Annotated[dict[Annotated[str, Field(min_length=1, max_length=317)], Amount], Field(max_length=10)]
"""Names of Kubernetes' resources, e.g. `ephemeral-storage`, with amounts."""

Image = Annotated[str, Field(min_length=1, max_length=512)]
"""A container image, e.g. `herdkeeper/bookkeeper:0.2.0`."""

ConfigLines = Annotated[dict[str, Annotated[str, Field(max_length=1024)]], Field(max_length=100)]
"""Further lines of a server's configuration file, key to value. Bounded, so that the API server can estimate its rules' cost."""

DeletionPolicy = Literal["Retain", "Delete"]


class Model(BaseModel):
    """A part of a resource: immutable, camelCase on the wire, unknown fields are refused."""

    model_config = ConfigDict(frozen=True, extra="forbid", alias_generator=to_camel, populate_by_name=True)

    def document(self) -> dict[str, Any]:
        """Returns it as the API server stores it."""
        return self.model_dump(mode="json", by_alias=True, exclude_none=True)


class ObjectMeta(BaseModel):
    """The metadata that the operator uses; the rest is ignored."""

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
    """A condition by Kubernetes' API conventions."""

    type: str = Field(description="The type of the condition, e.g. Ready or Progressing.")
    status: Literal["True", "False", "Unknown"] = Field(description="Whether it holds.")
    reason: str = Field(description="Why, as one CamelCase word.")
    message: str = Field(description="Why, as a sentence that a person can act on.")
    last_transition_time: Instant = Field(description="When the status last changed (RFC 3339).")
    observed_generation: int = Field(description="The generation of the spec that the condition refers to.")


class PlanStatus(Model):
    """What the operator would do."""

    steps: tuple[str, ...] = Field((), description="Planned steps, in order; empty if the state is as declared.")
    blockers: tuple[str, ...] = Field((), description="What the steps would wait for, and how to unblock each.")


class Status(Model):
    """Common beginning of every kind's status."""

    observed_generation: int | None = Field(
        None, description="The generation of the spec that the operator last acted on; -1 before the first reconcile."
    )
    message: str | None = Field(None, description="The state in one sentence.")
    conditions: tuple[Condition, ...] = Field(
        (),
        description="Ready and Progressing, with reasons; Reconciling or Stalled while the declared state is not reached, for GitOps "
        "tools (docs/gitops.md); further ones for some kinds.",
    )
    plan: PlanStatus | None = Field(
        None, description="Present while the annotation `herdkeeper.io/plan` has any value but `false`: the plan is shown, not executed."
    )


NO_STATUS = {"observedGeneration": -1}
"""The status before the operator has written one, by the CRD's default. Without it, kstatus would take an unseen resource for Current."""


class PrinterColumn(BaseModel):
    """A column of `kubectl get`."""

    model_config = ConfigDict(frozen=True)

    name: str
    type: Literal["string", "integer", "date", "boolean"]
    json_path: str
    description: str = ""
    priority: int = 0


class Rule(BaseModel):
    """A CEL rule that the API server enforces. The message names the field, the value and the fix.

    `rule` is CEL over the spec, or over the whole resource with scope "resource"; a rule with `oldSelf` runs only at updates.
    `message_expression` is CEL for the message with its values; `message` replaces it if it can't be evaluated. `field_path` is relative to
    the scope.
    """

    model_config = ConfigDict(frozen=True)

    rule: str
    message: str
    message_expression: str | None = None
    field_path: str | None = None
    scope: Literal["spec", "resource"] = "spec"


def formatted(text: str, *values: str) -> str:
    """CEL that formats values (CEL expressions) into a text at its `%d` and `%s`. String sums would do, but the API server can't estimate
    their cost.
    """
    quoted = text.replace("'", "\\'")
    return f"'{quoted}'.format([{', '.join(values)}])"


def unchanged(field: str, shown: str, why: str) -> Rule:
    """Returns a rule that refuses a change of the spec's `field`, which always has a value.

    `shown` is CEL for the value as text, with `SELF` for the spec, e.g. `SELF.bookKeeperRef.name`; `why` is the reason and the fix.
    """
    return Rule(
        rule=f"self.{field} == oldSelf.{field}",
        message=f"spec.{field} can't change: {why}",
        message_expression=_change(field, shown, why),
        field_path=f".{field}",
    )


def is_unchanged(field: str) -> str:
    """Returns CEL for that an optional field of the spec is neither changed nor added nor removed."""
    return f"has(self.{field}) == has(oldSelf.{field}) && (!has(self.{field}) || self.{field} == oldSelf.{field})"


def unchanged_optional(field: str, shown: str | None, why: str, absent: str = "none") -> Rule:
    """Returns a rule that refuses to change, add or remove the spec's optional `field`. Arguments as in `unchanged`; without `shown`, for
    values that are too long, only the field is named. `absent` is the text for no value.
    """
    return Rule(
        rule=is_unchanged(field),
        message=f"spec.{field} can't change: {why}",
        message_expression=None if shown is None else _change(field, f"(has(SELF.{field}) ? {shown} : '{absent}')", why),
        field_path=f".{field}",
    )


def unchanged_volume(field: str, kind: str) -> Rule:
    """Returns a rule that refuses a change of the volume claim at the spec's `field`."""
    storage_class = f"(has(SELF.{field}.storageClassName) ? SELF.{field}.storageClassName : 'default')"
    why = f"volumes can't be resized or moved in this version; revert it, or create a new {kind}"
    shown = [expression.replace("SELF", owner) for owner in ("oldSelf", "self") for expression in (f"SELF.{field}.size", storage_class)]
    return Rule(
        rule=f"self.{field} == oldSelf.{field}",
        message=f"spec.{field} can't change: {why}",
        message_expression=formatted(f"spec.{field} can't change from %s (class %s) to %s (class %s): {why}", *shown),
        field_path=f".{field}",
    )


def unchanged_class(field: str, kind: str) -> Rule:
    """Returns a rule that refuses another StorageClass of the volume claim at the spec's `field`.

    Its size may change: the API server can't know whether the volume can grow.
    """
    named, why = f"{field}.storageClassName", f"volumes can't be moved; revert it, or create a new {kind}"
    return unchanged_optional(named, f"SELF.{named}", why, absent="default").model_copy(update={"field_path": f".{field}"})


def least_memory(field: str, mebibytes: int, absent: str | None = None) -> Rule:
    """Returns a rule that refuses a memory limit below `mebibytes` at the spec's `field`, e.g. `resources.memory`. `absent` is CEL for that
    an optional part with this field is absent.
    """
    why = f"the process needs at least {mebibytes}Mi; raise it"
    rule = f"quantity(self.{field}).compareTo(quantity('{mebibytes}Mi')) >= 0"
    return Rule(
        rule=f"{absent} || {rule}" if absent else rule,
        message=f"spec.{field} is too small: {why}",
        message_expression=None if absent else formatted(f"spec.{field} is %s: {why}", f"self.{field}"),
        field_path=f".{field.partition('.')[0]}" if absent else f".{field}",
    )


def _change(field: str, shown: str, why: str) -> str:
    return formatted(f"spec.{field} can't change from %s to %s: {why}", shown.replace("SELF", "oldSelf"), shown.replace("SELF", "self"))


def name_rules(most: int, made_of_it: str) -> tuple[Rule, ...]:
    """Returns the rules for a kind's name: at most `most` characters, since `made_of_it` are made from it."""
    return (
        Rule(
            scope="resource",
            rule=f"self.metadata.name.size() <= {most}",
            message=f"metadata.name has more than {most} characters: {made_of_it} are made from it; use a shorter one",
            message_expression=formatted(
                f"metadata.name is %s, %d characters: {made_of_it} are made from it; use at most {most} characters",
                "self.metadata.name",
                "self.metadata.name.size()",
            ),
        ),
        Rule(
            scope="resource",
            rule="self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",
            message="metadata.name must begin with a letter and have only small letters, digits and -: names of services are made from it",
            message_expression=formatted(
                "metadata.name is %s: names of services are made from it; begin with a letter and use only small letters, digits and -",
                "self.metadata.name",
            ),
        ),
    )


NAME_RULES = name_rules(40, "names of pods and services")
"""The rules for every kind's name."""


class Resource(BaseModel):
    """A custom resource as read from the API server. Subclasses set `spec`, `status` and the class facts below.

    `COLUMNS`: of `kubectl get`, before Status and Age, which every kind has.

    `ignored` are paths of spec fields, and `unread` stored status fields, that the model can't read: they come from a newer operator or
    schema. `assigned_ids`: the platform assigns users and groups to its pods, by the operator's setting.
    """

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
    ignored: tuple[str, ...] = Field(default=(), exclude=True)
    unread: dict[str, Any] = Field(default_factory=dict, exclude=True)
    assigned_ids: bool = Field(default=False, exclude=True)

    @model_validator(mode="before")
    @classmethod
    def _default_status_is_none(cls, document: Any) -> Any:
        return {**document, "status": None} if isinstance(document, dict) and document.get("status") == NO_STATUS else document

    @property
    def key(self) -> ObjectKey:
        return ObjectKey(self.metadata.namespace, self.metadata.name)

    @property
    def unread_fields(self) -> tuple[str, ...]:
        """The status fields that the model knows but can't read."""
        known = {field.alias for field in self.status_model().model_fields.values()}
        return tuple(f"status.{name}" for name in sorted(self.unread) if name in known)

    @classmethod
    def status_model(cls) -> type[Status]:
        model: type[Status] = get_args(cls.model_fields["status"].annotation)[0]
        return model


class VolumeClaim(Model):
    """A volume that the operator claims."""

    size: Quantity = Field(description="Requested size in Ki, Mi, Gi or Ti, e.g. `20Gi`.")
    storage_class_name: ObjectName | None = Field(None, description="StorageClass; the cluster's default when absent. Immutable.")


def _at_most(requested: str, limit: str, what: str, fix: str) -> JsonDict:
    """Returns a rule that refuses a request above its limit, if both are there. Each is a field, or `field/name` of a map in it.

    Not by optionals: the API server can't estimate the cost of what they return.
    """
    present = " && ".join(_present(each) for each in (requested, limit))
    amounts = [_amount(each) for each in (requested, limit)]
    return {
        "rule": f"!({present}) || quantity({amounts[0]}).compareTo(quantity({amounts[1]})) <= 0",
        "message": f"{what} is more than the limit: {fix}",
        "messageExpression": formatted(f"{what} is %s, more than the limit of %s: {fix}", *amounts),
    }


def _present(path: str) -> str:
    field, _, name = path.partition("/")
    return f"has(self.{field}) && '{name}' in self.{field}" if name else f"has(self.{field})"


def _amount(path: str) -> str:
    field, _, name = path.partition("/")
    return f"self.{field}['{name}']" if name else f"self.{field}"


_LIMITED = (
    "name in ['cpu', 'ephemeral-storage'] || name.matches('^hugepages-[1-9][0-9]*(Ki|Mi|Gi)$') || "
    f"name.matches('^{_DOMAIN}{_NAME}$') && !name.contains('kubernetes.io/') && !name.startsWith('requests.')"
)
_WHOLE = "name == 'cpu' || !self.limits[name].endsWith('m')"
LIMIT_RULES: list[JsonValue] = [
    {
        "rule": f"!has(self.limits) || self.limits.all(name, {_LIMITED})",
        "message": "limits has another name than cpu, ephemeral-storage, hugepages-<size> and a device's; memory is limited by `memory`",
        "messageExpression": formatted(
            "limits has %s: give cpu, ephemeral-storage, hugepages-<size> or the name of a device, e.g. example.com/gpu; memory is limited "
            "by `memory`",
            f"self.limits.filter(name, !({_LIMITED}))[0]",
        ),
    },
    {
        "rule": f"!has(self.limits) || self.limits.all(name, {_WHOLE})",
        "message": "limits has thousandths of something else than cpu: give a whole number",
        "messageExpression": formatted(
            "limits has %s of %s: only cpu has thousandths; give a whole number",
            *(text.replace("NAME", f"self.limits.filter(name, !({_WHOLE}))[0]") for text in ("self.limits[NAME]", "NAME")),
        ),
    },
    _at_most("cpu", "limits/cpu", "cpu", "raise limits.cpu, or lower cpu"),
]
"""For a model with `cpu`, `limits` and `memory`."""
_REQUESTED = "name in ['memory', 'ephemeral-storage']"
_NO_REQUEST = "cpu is the request of CPU, and for others Kubernetes requests the limit"


class Compute(Model):
    """CPU and memory of one container. A server's heap and direct memory follow from the memory limit."""

    model_config = ConfigDict(
        json_schema_extra={
            RULES: [
                *LIMIT_RULES,
                {
                    "rule": f"!has(self.requests) || self.requests.all(name, {_REQUESTED})",
                    "message": f"requests has another name than memory and ephemeral-storage: {_NO_REQUEST}",
                    "messageExpression": formatted(
                        f"requests has %s: give memory or ephemeral-storage; {_NO_REQUEST}",
                        f"self.requests.filter(name, !({_REQUESTED}))[0]",
                    ),
                },
                _at_most("requests/memory", "memory", "requests.memory", "raise memory, which is the limit"),
                _at_most("requests/ephemeral-storage", "limits/ephemeral-storage", "ephemeral-storage of requests", "raise the limit"),
            ]
        }
    )

    cpu: CpuQuantity = Field(description="Requested CPU: cores, or thousandths of one as in `500m`. `limits` may limit it.")
    memory: Quantity = Field(description="Memory limit, and requested memory unless `requests` has less, in Ki, Mi, Gi or Ti, e.g. `1Gi`.")
    requests: Amounts = Field({}, description="More requests, as in Kubernetes: `memory`, if less than its limit; `ephemeral-storage`.")
    limits: Amounts = Field(
        {},
        description="More limits, as in Kubernetes: `cpu`, `ephemeral-storage`, `hugepages-<size>`, devices. CPU has none by default: "
        "throttled servers miss heartbeats.",
    )


class SecretReference(Model):
    """A Secret in the same namespace."""

    name: ObjectName = Field(description="Name of the Secret, in the same namespace.")


class Reference(Model):
    """A resource of this group in the same namespace."""

    name: ResourceName = Field(description="Name of the resource, in the same namespace.")


READY_COLUMN = PrinterColumn(
    name="Ready", type="string", json_path='.status.conditions[?(@.type=="Ready")].status', description="Whether it serves as declared."
)
