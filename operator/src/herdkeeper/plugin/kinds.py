"""The kinds that the plugin reads and writes, and their API paths.

The models have the same names, but their import takes longer than most commands. A test compares both.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from herdkeeper.shared import names

OURS = "herdkeeper.io/v1alpha1"


@dataclass(frozen=True)
class Kind:
    """A namespaced kind."""

    name: str
    plural: str
    short: str = ""
    api_version: str = OURS
    selector: str = ""
    """Label selector; empty for all."""

    def path(self, namespace: str, name: str = "") -> str:
        """Returns the path of all objects in a namespace, or of one."""
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
"""Only the operator's pods of servers and jobs."""
SQL_NODE = replace(POD, selector=f"{names.COMPONENT_LABEL}={names.HERDDB_COMPONENT}")
BOOKIE = replace(POD, selector=f"{names.COMPONENT_LABEL}={names.BOOKIE_COMPONENT}")
OPERATOR = replace(POD, selector=f"{names.COMPONENT_LABEL}={names.OPERATOR_COMPONENT}")
SECRET = Kind("Secret", "secrets", api_version="v1")
EVENT = Kind("Event", "events", api_version="v1")
JOB = Kind("Job", "jobs", api_version="batch/v1")
CLAIM = Kind("PersistentVolumeClaim", "persistentvolumeclaims", api_version="v1")
OBJECTS = (
    POD,
    EVENT,
    Kind("Service", "services", api_version="v1"),
    CLAIM,
    Kind("StatefulSet", "statefulsets", api_version="apps/v1"),
    Kind("Deployment", "deployments", api_version="apps/v1"),
    JOB,
    Kind("NetworkPolicy", "networkpolicies", api_version="networking.k8s.io/v1"),
    Kind("PodDisruptionBudget", "poddisruptionbudgets", api_version="policy/v1"),
)
"""What the observation of a stack needs besides. Neither Secrets nor ConfigMaps, whose content must not leave the cluster."""

CLUSTERS = (ZOOKEEPER, BOOKKEEPER, HERDDB, TABLESPACE)
"""Servers, from bottom to top."""
RESOURCES = (*CLUSTERS, CHECKPOINT, SCHEDULED_CHECKPOINT, AUDIT, SCHEDULED_AUDIT)
"""All kinds of herdkeeper.io."""


def resource_kind(word: str) -> Kind | None:
    """Returns the kind of herdkeeper.io with this name, plural, singular or short name, as in kubectl."""
    asked = word.lower().partition(".")[0]
    return next((kind for kind in RESOURCES if asked in (kind.name.lower(), kind.plural, kind.short)), None)
