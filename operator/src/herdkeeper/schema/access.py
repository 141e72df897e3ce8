"""What the operator may do: the one table of RBAC rules, with the reason of each. The Helm chart's rule files are generated from it.

A rule of the scope WATCHED is granted in the watched namespaces (or everywhere), one of CLUSTER for objects without a namespace, one of
HOME in the operator's own
namespace. A Role that the operator creates may only grant what the operator holds itself: that is why it holds what Spark drivers need.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from herdkeeper.api import KINDS, Checkpoint, ReplicationAudit
from herdkeeper.api.resource import GROUP

READ = ("get", "list", "watch")
APPLY = (*READ, "create", "patch")
"""Server-side apply is a patch, and a create where the object does not exist."""


class Scope(Enum):
    """Where a rule is granted; the value is the name of its file."""

    WATCHED = "watched"
    CLUSTER = "cluster"
    HOME = "home"


@dataclass(frozen=True)
class AccessRule:
    """Verbs on resources of one API group ("" is the core group), and why the operator needs them."""

    scope: Scope
    group: str
    resources: tuple[str, ...]
    verbs: tuple[str, ...]
    why: str


PLURALS = tuple(kind.PLURAL for kind in KINDS)

EXECUTOR_RULES = (
    AccessRule(
        Scope.WATCHED, "", ("pods",), (*APPLY, "delete", "deletecollection"), "Spark drivers make executors as pods, and remove them"
    ),
    AccessRule(Scope.WATCHED, "", ("configmaps",), (*APPLY, "delete", "deletecollection"), "Spark drivers give executors their settings"),
    AccessRule(
        Scope.WATCHED,
        GROUP,
        ("executors",),
        ("drive", "run"),
        "marks only: by them the chart's admission policy knows Spark drivers, and as which ServiceAccounts their executors may run",
    ),
)
"""What the Role of a Spark driver may grant at most."""

ACCESS: tuple[AccessRule, ...] = (
    AccessRule(Scope.WATCHED, GROUP, PLURALS, READ, "the declared resources"),
    AccessRule(
        Scope.WATCHED,
        GROUP,
        tuple(plural for plural in PLURALS if plural != ReplicationAudit.PLURAL),
        ("patch",),
        "finalizers are set and cleared, requests by annotation answered",
    ),
    AccessRule(Scope.WATCHED, GROUP, tuple(f"{plural}/status" for plural in PLURALS), ("patch",), "conditions and status"),
    AccessRule(
        Scope.WATCHED,
        GROUP,
        tuple(f"{plural}/finalizers" for plural in PLURALS),
        ("update",),
        "owner references that block the owner's deletion (checked where OwnerReferencesPermissionEnforcement is on)",
    ),
    AccessRule(
        Scope.WATCHED,
        GROUP,
        (Checkpoint.PLURAL, ReplicationAudit.PLURAL),
        ("create", "delete"),
        "the runs of schedules, made at their time and deleted when they have expired",
    ),
    AccessRule(Scope.WATCHED, "apps", ("statefulsets", "deployments"), (*APPLY, "delete"), "servers, autorecovery and archivers of logs"),
    AccessRule(Scope.WATCHED, "batch", ("jobs",), (*APPLY, "delete"), "checkpoints, audits and drains"),
    AccessRule(Scope.WATCHED, "policy", ("poddisruptionbudgets",), APPLY, "one voluntary disruption at a time"),
    AccessRule(
        Scope.WATCHED, "networking.k8s.io", ("networkpolicies",), (*APPLY, "delete"), "who may connect to which port (docs/network.md)"
    ),
    AccessRule(Scope.WATCHED, "", ("configmaps",), (*APPLY, "delete"), "configuration"),
    AccessRule(Scope.WATCHED, "", ("services",), APPLY, "addresses"),
    AccessRule(Scope.WATCHED, "", ("serviceaccounts",), APPLY, "the identity of a Spark driver"),
    AccessRule(
        Scope.WATCHED,
        "",
        ("persistentvolumeclaims",),
        (*APPLY, "delete"),
        "volumes; deleted by uid, by deletionPolicy Delete or at the end of a drain",
    ),
    AccessRule(
        Scope.WATCHED,
        "",
        ("secrets",),
        (*APPLY, "delete"),
        "SQL credentials: generated, or the user's, from which the users file is made; whether those of an object store are there",
    ),
    AccessRule(
        Scope.WATCHED,
        "",
        ("pods",),
        (*READ, "patch", "delete"),
        "readiness of members, and what blocks them; SQL nodes are restarted one by one, and marked so that changed users reach them soon",
    ),
    AccessRule(
        Scope.WATCHED, "", ("events",), ("create", "get", "patch"), "what was done, beside the resource; what is done again is counted"
    ),
    AccessRule(Scope.WATCHED, "rbac.authorization.k8s.io", ("roles", "rolebindings"), APPLY, "the Role of a Spark driver"),
    *EXECUTOR_RULES,
    AccessRule(Scope.CLUSTER, "", ("nodes",), ("get",), "zones, cordons and losses"),
    AccessRule(Scope.CLUSTER, "storage.k8s.io", ("storageclasses",), ("get",), "whether a volume can grow"),
    AccessRule(Scope.CLUSTER, "", ("namespaces",), ("list", "watch"), "which namespaces there are to watch, and which are ending"),
    AccessRule(
        Scope.CLUSTER, "apiextensions.k8s.io", ("customresourcedefinitions",), ("list", "watch"), "whether the kinds are served yet"
    ),
    AccessRule(Scope.HOME, "coordination.k8s.io", ("leases",), ("get", "create", "update"), "leadership"),
)


def rules_of(scope: Scope) -> tuple[AccessRule, ...]:
    """The rules of one scope, in the table's order."""
    return tuple(rule for rule in ACCESS if rule.scope is scope)


def rule_files() -> dict[str, str]:
    """File name -> YAML list of RBAC rules, one file a scope, each rule under a comment that says why."""
    return {f"{scope.value}.yaml": "".join(_as_yaml(rule) for rule in rules_of(scope)) for scope in Scope}


def _as_yaml(rule: AccessRule) -> str:
    return f'# {rule.why}\n- apiGroups: ["{rule.group}"]\n  resources: [{", ".join(rule.resources)}]\n  verbs: [{", ".join(rule.verbs)}]\n'
