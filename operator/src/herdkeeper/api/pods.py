"""What a resource may say of the pods of its servers or of its jobs, beside their image, CPU and memory."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from herdkeeper.api.resource import Model, Rule, SecretReference, formatted

OPERATORS_PREFIXES = ("herdkeeper.io/", "app.kubernetes.io/")
"""Of labels and annotations that the operator sets, and by which it finds its pods."""

_Key = Annotated[str, Field(min_length=1, max_length=317)]
_LabelValue = Annotated[str, Field(max_length=63)]


class Toleration(Model):
    """A taint of nodes that the pods put up with. Fields as Kubernetes has them."""

    key: _Key | None = Field(None, description="The taint's key; every key when absent, with the operator Exists.")
    operator: Literal["Equal", "Exists"] | None = Field(None, description="Whether the value counts; Equal when absent.")
    value: _LabelValue | None = Field(None, description="The taint's value, with the operator Equal.")
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"] | None = Field(None, description="The taint's effect; each when absent.")
    toleration_seconds: int | None = Field(None, ge=0, description="Of NoExecute: for how long a pod stays; for good when absent.")


class PodTraits(Model):
    """Where pods run, and what else they carry."""

    labels: Annotated[dict[_Key, _LabelValue], Field(max_length=20)] = Field({}, description="More labels.")
    annotations: Annotated[dict[_Key, Annotated[str, Field(max_length=1024)]], Field(max_length=20)] = Field(
        {}, description="More annotations."
    )
    node_selector: Annotated[dict[_Key, _LabelValue], Field(max_length=20)] = Field(
        {}, description="Labels that a node must have. Volumes that are bound to other nodes don't follow."
    )
    tolerations: tuple[Toleration, ...] = Field((), max_length=20, description="Taints that the pods put up with.")
    priority_class_name: str | None = Field(None, min_length=1, max_length=253, description="PriorityClass of the pods.")
    image_pull_secrets: tuple[SecretReference, ...] = Field((), max_length=10, description="Secrets of the image registry.")


class Pods(PodTraits):
    """Pods of servers, which are spread over nodes. A change restarts them one at a time, as a change of the image does."""

    anti_affinity: Literal["Preferred", "Required"] = Field(
        "Preferred",
        description="Whether two pods of the same kind may share a node when no other node has room. With Required the second one stays"
        " Pending.",
    )


def pods_rules(pods: str = "pods") -> tuple[Rule, ...]:
    """The rules of the spec's field `pods`, e.g. `job.pods`: the operator's own labels and annotations can't be set."""
    return tuple(_not_the_operators(f"{pods}.{field}") for field in ("labels", "annotations"))


def _not_the_operators(field: str) -> Rule:
    owned = " || ".join(f"key.startsWith('{prefix}')" for prefix in OPERATORS_PREFIXES)
    why = f"keys that begin with {' or '.join(OPERATORS_PREFIXES)} are the operator's; take another prefix"
    return Rule(
        rule=f"{_absent(field)} || !self.{field}.exists(key, {owned})",
        message=f"spec.{field} has a key of the operator's: {why}",
        message_expression=formatted(f"spec.{field} has %s: {why}", f"self.{field}.filter(key, {owned})[0]"),
        field_path=f".{field}",
    )


def _absent(field: str) -> str:
    """CEL: whether one of the parts of a path is absent, e.g. of `job.pods.labels`."""
    parts = field.split(".")
    return " || ".join(f"!has(self.{'.'.join(parts[:length])})" for length in range(1, len(parts) + 1))
