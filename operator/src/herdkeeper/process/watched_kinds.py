"""The kinds that the watches tell of: our resources, and what the operator makes for them. Others are read when they are needed."""

from __future__ import annotations

from dataclasses import dataclass

from herdkeeper.api import KINDS
from herdkeeper.api.resource import GROUP, VERSION
from herdkeeper.shared import names

_MADE_BY_US = f"{names.MANAGED_BY_LABEL}={names.MANAGER}"


@dataclass(frozen=True)
class WatchedKind:
    """A kind of the API, and the label selector of those of its objects that are watched; empty for all of them."""

    group: str
    version: str
    plural: str
    kind: str
    selector: str = _MADE_BY_US

    @property
    def api_version(self) -> str:
        """As objects name it."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def is_ours(self) -> bool:
        """Whether it is one of the operator's own resources."""
        return self.group == GROUP


WATCHED_KINDS = (
    *(WatchedKind(GROUP, VERSION, kind.PLURAL, kind.KIND, selector="") for kind in KINDS),
    WatchedKind("apps", "v1", "statefulsets", "StatefulSet"),
    WatchedKind("apps", "v1", "deployments", "Deployment"),
    WatchedKind("batch", "v1", "jobs", "Job"),
    WatchedKind("", "v1", "pods", "Pod"),
    WatchedKind("", "v1", "persistentvolumeclaims", "PersistentVolumeClaim"),
    WatchedKind("", "v1", "configmaps", "ConfigMap"),
    WatchedKind("", "v1", "services", "Service"),
    WatchedKind("", "v1", "secrets", "Secret"),
    WatchedKind("", "v1", "serviceaccounts", "ServiceAccount"),
    WatchedKind("policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget"),
    WatchedKind("networking.k8s.io", "v1", "networkpolicies", "NetworkPolicy"),
    WatchedKind("rbac.authorization.k8s.io", "v1", "roles", "Role"),
    WatchedKind("rbac.authorization.k8s.io", "v1", "rolebindings", "RoleBinding"),
)
