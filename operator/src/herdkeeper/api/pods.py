"""What a resource sets for the pods of its servers or jobs, besides image, CPU and memory."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import ConfigDict, Field

from herdkeeper.api.resource import LABEL_NAME, NAME_FIX, RULES, LabelName, LabelValue, Model, ObjectName, Rule, SecretReference, formatted

OPERATORS_PREFIXES = ("herdkeeper.io/", "app.kubernetes.io/")
"""Prefixes of labels and annotations that the operator sets, and by which it finds its pods."""

_Key = Annotated[str, Field(min_length=1, max_length=317)]


class Toleration(Model):
    """A taint that the pods tolerate. Fields as in Kubernetes."""

    model_config = ConfigDict(
        json_schema_extra={
            RULES: [
                {
                    "rule": "has(self.key) || has(self.operator) && self.operator == 'Exists'",
                    "message": "it names no key: give one, or the operator Exists, which tolerates every key",
                },
                {
                    "rule": "!has(self.value) || self.value == '' || !has(self.operator) || self.operator != 'Exists'",
                    "message": "it has a value with the operator Exists: remove the value, or use the operator Equal",
                },
                {
                    "rule": "!has(self.tolerationSeconds) || has(self.effect) && self.effect == 'NoExecute'",
                    "message": "tolerationSeconds needs the effect NoExecute: set it, or remove tolerationSeconds",
                },
            ]
        }
    )

    key: LabelName | None = Field(None, description="Key of the taint. Absent, with the operator Exists: every key.")
    operator: Literal["Equal", "Exists"] | None = Field(None, description="Exists or Equal; Equal when absent.")
    value: LabelValue | None = Field(None, description="Value of the taint, with the operator Equal.")
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"] | None = Field(
        None, description="Effect of the taint. Absent: every effect."
    )
    toleration_seconds: int | None = Field(None, ge=0, description="With NoExecute: how long a pod stays. Absent: forever.")


class PodTraits(Model):
    """Placement and metadata of pods."""

    labels: Annotated[dict[_Key, LabelValue], Field(max_length=20)] = Field({}, description="More labels.")
    annotations: Annotated[dict[_Key, Annotated[str, Field(max_length=1024)]], Field(max_length=20)] = Field(
        {}, description="More annotations."
    )
    node_selector: Annotated[dict[_Key, LabelValue], Field(max_length=20)] = Field(
        {}, description="Labels that a node must have. Volumes bound to other nodes don't move."
    )
    tolerations: tuple[Toleration, ...] = Field((), max_length=20, description="Taints that the pods tolerate.")
    priority_class_name: ObjectName | None = Field(None, description="PriorityClass of the pods.")
    image_pull_secrets: tuple[SecretReference, ...] = Field((), max_length=10, description="Secrets for the image registry.")


class Spread(Model):
    """A rule by which servers of a kind are spread. Fields as in Kubernetes; the operator selects the pods."""

    topology_key: LabelName = Field(description="Label of nodes. Nodes with equal values are one domain, e.g. a zone.")
    max_skew: int = Field(ge=1, le=100, description="How many more pods one domain may have than another.")
    when_unsatisfiable: Literal["DoNotSchedule", "ScheduleAnyway"] = Field(
        description="Whether a pod that would break the rule stays Pending, or the rule is only preferred."
    )


_SPREADS = "self.topologySpreadConstraints"
_ALONE = f"{_SPREADS}.exists_one(other, other.topologyKey == each.topologyKey && other.whenUnsatisfiable == each.whenUnsatisfiable)"


class Pods(PodTraits):
    """Pods of servers, which are spread over nodes. A change restarts them one at a time, like a change of the image."""

    model_config = ConfigDict(
        json_schema_extra={
            RULES: [
                {
                    "rule": f"!has({_SPREADS}) || {_SPREADS}.all(each, {_ALONE})",
                    "message": "topologySpreadConstraints has two with one topologyKey and whenUnsatisfiable: keep one of them",
                    "messageExpression": formatted(
                        "topologySpreadConstraints has two with the topologyKey %s and %s: keep one of them",
                        *(f"{_SPREADS}.filter(each, !{_ALONE})[0].{field}" for field in ("topologyKey", "whenUnsatisfiable")),
                    ),
                    "fieldPath": ".topologySpreadConstraints",
                }
            ]
        }
    )

    anti_affinity: Literal["Preferred", "Required"] = Field(
        "Preferred",
        description="Whether two pods of the same kind may share a node when no other node has room. With Required the second one stays"
        " Pending.",
    )
    log_format: Literal["Text", "JSON"] | None = Field(
        None,
        description="How the servers write their logs; Text when absent. JSON: one object a line, with `time`, `level`, `logger`, "
        "`thread`, `message` and, with an error, `exception`, its stack trace. Lines that the JVM itself writes, and refusals to start, "
        "stay text.",
    )
    topology_spread_constraints: tuple[Spread, ...] = Field(
        (), max_length=5, description="How the pods are spread. Absent: over zones, which is only preferred."
    )


def pods_rules(pods: str = "pods") -> tuple[Rule, ...]:
    """Returns the rules of the spec's field `pods`, e.g. `job.pods`: the operator's own labels and annotations can't be set. What
    Kubernetes takes for no name is refused here, and not only where it is written into the pods.
    """
    return (
        *(_not_the_operators(f"{pods}.{field}") for field in ("labels", "annotations")),
        *(_names_of_labels(f"{pods}.{field}") for field in ("labels", "nodeSelector")),
        _names_of_labels(f"{pods}.annotations", "key.lowerAscii()"),  # of an annotation the domain may be in capitals
    )


def _not_the_operators(field: str) -> Rule:
    owned = " || ".join(f"key.startsWith('{prefix}')" for prefix in OPERATORS_PREFIXES)
    why = f"keys that begin with {' or '.join(OPERATORS_PREFIXES)} belong to the operator; use another prefix"
    return Rule(
        rule=f"{_absent(field)} || !self.{field}.exists(key, {owned})",
        message=f"spec.{field} has a reserved key: {why}",
        message_expression=formatted(f"spec.{field} has %s: {why}", f"self.{field}.filter(key, {owned})[0]"),
        field_path=f".{field}",
    )


def _names_of_labels(field: str, key: str = "key") -> Rule:
    wrong = f"!{key}.matches('{LABEL_NAME}')"
    return Rule(
        rule=f"{_absent(field)} || !self.{field}.exists(key, {wrong})",
        message=f"spec.{field} has a key that is no name: {NAME_FIX}",
        message_expression=formatted(f"spec.{field} has the key %s, which is no name: {NAME_FIX}", f"self.{field}.filter(key, {wrong})[0]"),
        field_path=f".{field}",
    )


def _absent(field: str) -> str:
    """CEL: whether a part of a path, e.g. of `job.pods.labels`, is absent."""
    parts = field.split(".")
    return " || ".join(f"!has(self.{'.'.join(parts[:length])})" for length in range(1, len(parts) + 1))
