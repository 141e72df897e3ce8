"""The SQL nodes of a HerdDBCluster, from the resource alone, without the cluster's objects."""

from __future__ import annotations

from herdkeeper.api import HerdDBCluster


def known_nodes(cluster: HerdDBCluster) -> tuple[str, ...]:
    """The nodes that are declared, and those above that are still there, by number."""
    named = cluster.names
    there = (cluster.status.nodes or 0) if cluster.status is not None else 0
    return tuple(map(named.pod, range(max(cluster.spec.replicas, there))))
