"""Looks at a ZooKeeperCluster."""

from __future__ import annotations

from herdkeeper.api import BookKeeperCluster, ZooKeeperCluster
from herdkeeper.domain import names
from herdkeeper.domain.names import ObjectKey, ZooKeeperNames
from herdkeeper.domain.observed.zookeeper import ZooKeeperObserved
from herdkeeper.domain.unknown import Unknown
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
    return ZooKeeperObserved(objects, modes, _dependents(cluster, world))


def _mode(world: World, url: str) -> str | Unknown:
    answer = world.http.get(url)
    if isinstance(answer, Unknown):
        return answer
    try:
        return str(answer["server_stats"]["server_state"])
    except (KeyError, TypeError):
        return Unknown(f"{url} answered without server_stats.server_state")


def _dependents(cluster: ZooKeeperCluster, world: World) -> tuple[str, ...]:
    """Only a resource that is being deleted needs to know them."""
    if cluster.metadata.deletion_timestamp is None:
        return ()
    return tuple(
        f"{other.KIND} {other.metadata.name}"
        for other in world.kubernetes.resources(BookKeeperCluster, cluster.metadata.namespace)
        if other.metadata.deletion_timestamp is not None
        and names.FINALIZER in other.metadata.finalizers
        and other.spec.zoo_keeper_ref is not None
        and other.spec.zoo_keeper_ref.name == cluster.metadata.name
    )
