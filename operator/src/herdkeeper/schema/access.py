"""The operator's rights: the table of RBAC rules, with reasons. The Helm chart's rule files are generated from it.

WATCHED: granted in the watched namespaces, or everywhere. CLUSTER: for objects without a namespace. CHOSEN: the same, but only if the
watched namespaces are named. HOME: granted in the operator's namespace. DRIVER: rights of Spark drivers, not of the operator. They are in
the chart's ClusterRole, which the operator may bind.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from herdkeeper.api import KINDS, Checkpoint, ReplicationAudit
from herdkeeper.api.resource import GROUP
from herdkeeper.shared import names

READ = ("get", "list", "watch")
APPLY = (*READ, "create", "patch")
"""Server-side apply is a patch, and a create if the object does not exist."""


class Scope(Enum):
    """Where a rule is granted; the value is the name of its file."""

    WATCHED = "watched"
    CLUSTER = "cluster"
    CHOSEN = "chosen"
    HOME = "home"
    DRIVER = "driver"


@dataclass(frozen=True)
class AccessRule:
    """Verbs on resources of an API group ("": the core group), and why. `only`: the one object they are for, as the chart names it."""

    scope: Scope
    group: str
    resources: tuple[str, ...]
    verbs: tuple[str, ...]
    why: str
    only: str | None = None


PLURALS = tuple(kind.PLURAL for kind in KINDS)

CHARTS_DRIVER_ROLE = '{{ include "herdkeeper.driverRole" . }}'
"""The name of the ClusterRole for Spark drivers, as the chart makes it."""

DRIVER_RULES = (
    AccessRule(
        Scope.DRIVER,
        "",
        ("pods",),
        ("get", "list", "watch", "create", "delete", "deletecollection"),
        "a driver creates, watches and deletes its executors",
    ),
    AccessRule(Scope.DRIVER, "", ("configmaps",), ("create", "deletecollection"), "it configures them"),
    AccessRule(Scope.DRIVER, GROUP, ("executors",), ("drive",), "a mark only: the chart's admission policy identifies Spark drivers by it"),
)
"""The rights of a Spark driver with executors, by the RoleBinding of its run."""

ACCESS: tuple[AccessRule, ...] = (
    AccessRule(Scope.WATCHED, GROUP, PLURALS, READ, "the declared resources"),
    AccessRule(
        Scope.WATCHED,
        GROUP,
        tuple(plural for plural in PLURALS if plural != ReplicationAudit.PLURAL),
        ("patch",),
        "finalizers, answers to requests by annotation",
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
        "runs of schedules, created on time and deleted after their retention",
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
        "volumes; deleted by uid, with deletionPolicy Delete or at the end of a drain",
    ),
    AccessRule(
        Scope.WATCHED,
        "",
        ("secrets",),
        (*APPLY, "delete"),
        "those it generates: SQL credentials, certificates, tokens; the user's, for the users file; whether those of an object store exist",
    ),
    AccessRule(
        Scope.WATCHED,
        "",
        ("pods",),
        (*READ, "patch", "delete"),
        "readiness of members, and what blocks them; restarts of SQL nodes, and annotations that bring changed users to them soon",
    ),
    AccessRule(Scope.WATCHED, "", ("events",), ("create", "get", "patch"), "events about the resources; repeated ones are counted"),
    AccessRule(
        Scope.WATCHED,
        "rbac.authorization.k8s.io",
        ("roles", "rolebindings"),
        APPLY,
        "bind the ClusterRole of Spark drivers to a run's driver, and the marks below",
    ),
    AccessRule(
        Scope.WATCHED,
        "rbac.authorization.k8s.io",
        ("clusterroles",),
        ("bind",),
        "give Spark drivers rights that the operator doesn't hold: those of this ClusterRole, and of no other",
        only=CHARTS_DRIVER_ROLE,
    ),
    AccessRule(
        Scope.WATCHED,
        GROUP,
        ("executors",),
        ("run", "mount"),
        "marks only, handed on in a Role: which ServiceAccount, beside the default one, and which Secrets the executors of a run may have",
    ),
    AccessRule(Scope.CLUSTER, "", ("nodes",), ("get",), "zones, cordons and losses"),
    AccessRule(Scope.CLUSTER, "storage.k8s.io", ("storageclasses",), ("get",), "whether a volume can grow"),
    AccessRule(Scope.CLUSTER, "apiextensions.k8s.io", ("customresourcedefinitions",), ("list", "watch"), "whether the kinds are served"),
    AccessRule(Scope.CHOSEN, "", ("namespaces",), ("list", "watch"), "which of the named namespaces are there, and which are deleted"),
    AccessRule(Scope.HOME, "", ("namespaces",), ("get",), "whether OpenShift gives users to the operator's own namespace"),
    AccessRule(Scope.HOME, "coordination.k8s.io", ("leases",), ("create",), "leadership, for the first time; a name can't limit this verb"),
    AccessRule(Scope.HOME, "coordination.k8s.io", ("leases",), ("get", "update"), "leadership", only=names.LEASE),
)


def rule_files() -> dict[str, str]:
    """Returns file name -> YAML list of RBAC rules, one file per scope, each rule with its reason as a comment."""
    rules = (*ACCESS, *DRIVER_RULES)
    return {f"{scope.value}.yaml": "".join(_as_yaml(rule) for rule in rules if rule.scope is scope) for scope in Scope}


def _as_yaml(rule: AccessRule) -> str:
    only = f"  resourceNames: ['{rule.only}']\n" if rule.only is not None else ""
    what = f'- apiGroups: ["{rule.group}"]\n  resources: [{", ".join(rule.resources)}]\n{only}'
    return f"# {rule.why}\n{what}  verbs: [{', '.join(rule.verbs)}]\n"
