"""The sources that a reconcile reads."""

from __future__ import annotations

from dataclasses import dataclass, field

from herdkeeper.clients.deleted_resources import DeletedResources
from herdkeeper.clients.http import JsonReader
from herdkeeper.clients.kubernetes import KubernetesReader
from herdkeeper.clients.liveness import NodeLiveness
from herdkeeper.clients.paged_reads import PagedReads
from herdkeeper.clients.zookeeper import EnsembleSessions, Znodes
from herdkeeper.clients.zookeeper_member import Wake
from herdkeeper.shared import names


@dataclass(frozen=True)
class ClusterReader:
    """Kubernetes, ZooKeeper by address, the servers' admin ports, the SQL nodes' last reports, scans of ledgers, and deleted resources with
    remaining data. `wake` requeues the resource being reconciled.
    """

    kubernetes: KubernetesReader
    ensembles: EnsembleSessions
    http: JsonReader
    liveness: NodeLiveness = field(default_factory=NodeLiveness)
    scans: PagedReads = field(default_factory=PagedReads)
    deleted: DeletedResources = field(default_factory=DeletedResources)
    wake: Wake | None = None

    def znodes(self, zookeeper_address: str, namespace: str) -> Znodes:
        """Returns the znodes of the ensemble at `host:port,host:port`, for a resource of this namespace. Raises EnsembleError."""
        return self.ensembles.at(zookeeper_address, names.operator_identity(zookeeper_address, namespace))
