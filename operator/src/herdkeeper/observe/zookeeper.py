"""Looks at a ZooKeeperCluster."""

from __future__ import annotations

from herdkeeper.api import BookKeeperCluster, ZooKeeperCluster
from herdkeeper.domain import names
from herdkeeper.domain.names import ObjectKey, ZooKeeperNames
from herdkeeper.domain.observed.zookeeper import ZooKeeperObserved
from herdkeeper.domain.unknown import Unknown
from herdkeeper.observe.dependents import observe_dependents
from herdkeeper.observe.kubernetes import SHARED, WORKLOADS
from herdkeeper.observe.world import World


def observe_zookeeper(cluster: ZooKeeperCluster, world: World) -> ZooKeeperObserved:
    """Its objects, and what each Ready member says of its role (admin server, `/commands/srvr`, ZooKeeper 3.9)."""
    key = ObjectKey(cluster.metadata.namespace, cluster.metadata.name)
    named = ZooKeeperNames(key)
    objects = world.kubernetes.owned(cluster.KIND, key, (*WORKLOADS, *SHARED))
    modes = {
        number: _mode(world, f"http://{named.host(number)}:{names.ZOOKEEPER_ADMIN_PORT}/commands/srvr")
        for number in range(cluster.spec.replicas)
        if objects.pod_ready(named.pod(number))
    }
    return ZooKeeperObserved(
        objects,
        modes,
        observe_dependents(cluster, BookKeeperCluster, world),
    )


def _mode(world: World, url: str) -> str | Unknown:
    answer = world.http.get(url)
    if isinstance(answer, Unknown):
        return answer
    try:
        return str(answer["server_stats"]["server_state"])
    except (KeyError, TypeError):
        return Unknown(f"{url} answered without server_stats.server_state")
