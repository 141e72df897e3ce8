"""The SQL nodes of a HerdDBCluster, without reading its objects."""

from __future__ import annotations

from herdkeeper.api import HerdDBCluster


def known_nodes(cluster: HerdDBCluster) -> tuple[str, ...]:
    """Returns the declared nodes and those above them that still exist, by number."""
    named = cluster.names
    there = (cluster.status.nodes or 0) if cluster.status is not None else 0
    return tuple(map(named.pod, range(max(cluster.spec.replicas, there))))
