"""The SQL nodes of a HerdDBCluster, from the resource alone, without the cluster's objects."""

from __future__ import annotations

from herdkeeper.api import HerdDBCluster
from herdkeeper.shared.names import HerdDBNames, ObjectKey


def told_nodes(cluster: HerdDBCluster) -> tuple[str, ...]:
    """The nodes that are declared, and those above that are still there, by number."""
    named = HerdDBNames(ObjectKey(cluster.metadata.namespace, cluster.metadata.name))
    there = (cluster.status.nodes or 0) if cluster.status is not None else 0
    return tuple(map(named.pod, range(max(cluster.spec.replicas, there))))
