"""The kinds that the plugin reads and writes, and their paths at the API server.

The models have the same names; importing them takes longer than most commands run. A test compares both.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from herdkeeper.shared import names

OURS = "herdkeeper.io/v1alpha1"


@dataclass(frozen=True)
class Kind:
    """A kind of objects in a namespace."""

    name: str
    plural: str
    short: str = ""
    api_version: str = OURS
    selector: str = ""
    """Labels of those that are meant; all when empty."""

    def path(self, namespace: str, name: str = "") -> str:
        """The path of all objects in a namespace, or of one."""
        root = "/api" if "/" not in self.api_version else "/apis"
        return f"{root}/{self.api_version}/namespaces/{namespace}/{self.plural}" + (f"/{name}" if name else "")


ZOOKEEPER = Kind("ZooKeeperCluster", "zookeeperclusters", "zkc")
BOOKKEEPER = Kind("BookKeeperCluster", "bookkeeperclusters", "bkc")
HERDDB = Kind("HerdDBCluster", "herddbclusters", "hdb")
TABLESPACE = Kind("Tablespace", "tablespaces", "ts")
CHECKPOINT = Kind("Checkpoint", "checkpoints", "ckpt")
SCHEDULED_CHECKPOINT = Kind("ScheduledCheckpoint", "scheduledcheckpoints", "sckpt")
AUDIT = Kind("ReplicationAudit", "replicationaudits", "raudit")
SCHEDULED_AUDIT = Kind("ScheduledReplicationAudit", "scheduledreplicationaudits", "sraudit")
POD = Kind("Pod", "pods", api_version="v1", selector=f"{names.MANAGED_BY_LABEL}={names.MANAGER}")
"""The operator's pods of servers and jobs, and nobody else's."""
SQL_NODE = replace(POD, selector=f"{names.COMPONENT_LABEL}={names.HERDDB_COMPONENT}")
BOOKIE = replace(POD, selector=f"{names.COMPONENT_LABEL}={names.BOOKIE_COMPONENT}")
OPERATOR = replace(POD, selector=f"{names.COMPONENT_LABEL}={names.OPERATOR_COMPONENT}")
SECRET = Kind("Secret", "secrets", api_version="v1")
EVENT = Kind("Event", "events", api_version="v1")
JOB = Kind("Job", "jobs", api_version="batch/v1")
OBJECTS = (
    POD,
    EVENT,
    Kind("Service", "services", api_version="v1"),
    Kind("PersistentVolumeClaim", "persistentvolumeclaims", api_version="v1"),
    Kind("StatefulSet", "statefulsets", api_version="apps/v1"),
    Kind("Deployment", "deployments", api_version="apps/v1"),
    JOB,
    Kind("NetworkPolicy", "networkpolicies", api_version="networking.k8s.io/v1"),
    Kind("PodDisruptionBudget", "poddisruptionbudgets", api_version="policy/v1"),
)
"""What a look at a stack needs besides. Neither Secrets nor ConfigMaps: what is in those stays where it is."""

CLUSTERS = (ZOOKEEPER, BOOKKEEPER, HERDDB, TABLESPACE)
"""What serves, from below to above."""
RESOURCES = (*CLUSTERS, CHECKPOINT, SCHEDULED_CHECKPOINT, AUDIT, SCHEDULED_AUDIT)
"""All kinds of herdkeeper.io."""


def resource_kind(word: str) -> Kind | None:
    """The kind of herdkeeper.io with this name, plural, singular or short name, as kubectl takes them."""
    asked = word.lower().partition(".")[0]
    return next((kind for kind in RESOURCES if asked in (kind.name.lower(), kind.plural, kind.short)), None)
