"""Disruptions in a stack: of an ensemble, its bookies and their SQL nodes, only one server is disrupted at a time."""

from __future__ import annotations

from herdkeeper.api import BookKeeperCluster, HerdDBCluster, ZooKeeperCluster
from herdkeeper.api.resource import Resource
from herdkeeper.clients.kubernetes import WORKLOADS
from herdkeeper.clients.world import World
from herdkeeper.shared.conditions import READY, condition, is_ready_resource, why_not_ready
from herdkeeper.shared.disturbance import why_disturbed
from herdkeeper.shared.left_alone import left_alone_by
from herdkeeper.shared.names import ObjectKey
from herdkeeper.shared.reason import Reason

SERVERS = (WORKLOADS[0], ("v1", "Pod"))
STUCK = frozenset(reason.value for reason in Reason if reason.needs_person) | {Reason.WAITING_FOR_ZOOKEEPER, Reason.UNREADABLE}
"""Why a resource that is not Ready does not move by itself, or only once those below it do: it must not hold these up."""


def databases_on(key: ObjectKey, world: World) -> tuple[HerdDBCluster, ...]:
    """The HerdDBClusters that refer to a BookKeeperCluster."""
    every = world.kubernetes.resources(HerdDBCluster, key.namespace)
    return tuple(database for database in every if database.spec.book_keeper_ref.name == key.name)


def ensemble_disturbed(bookkeeper: BookKeeperCluster | None, world: World) -> str | None:
    """The disruption of a member of a BookKeeperCluster's ZooKeeperCluster; None when there is none."""
    reference = bookkeeper.spec.zoo_keeper_ref if bookkeeper is not None else None
    if bookkeeper is None or reference is None:
        return None
    ensemble = world.kubernetes.readable(ZooKeeperCluster, ObjectKey(bookkeeper.metadata.namespace, reference.name))
    return None if ensemble is None or _is_waited_for_in_vain(ensemble) else servers_disturbed(ensemble, world)


def databases_disturbed(key: ObjectKey, world: World) -> str | None:
    """The disruption of a SQL node on a BookKeeperCluster; None when there is none."""
    waited_for = (database for database in databases_on(key, world) if not _is_waited_for_in_vain(database))
    return next((why for database in waited_for if (why := servers_disturbed(database, world)) is not None), None)


def users_disturbed(ensemble: ObjectKey, world: World) -> str | None:
    """The disruption of a BookKeeperCluster on an ensemble, or of a SQL node on a Ready one; None when there is none."""
    for bookkeeper in world.kubernetes.resources(BookKeeperCluster, ensemble.namespace):
        reference = bookkeeper.spec.zoo_keeper_ref
        if reference is None or reference.name != ensemble.name:
            continue
        ready = is_ready_resource(bookkeeper)
        if not _is_waited_for_in_vain(bookkeeper):
            why = servers_disturbed(bookkeeper, world) if ready else f"it is not Ready ({why_not_ready(bookkeeper)})"
            if why is not None:
                return f"the BookKeeperCluster {bookkeeper.metadata.name}: {why}"
        key = ObjectKey(ensemble.namespace, bookkeeper.metadata.name)
        if ready and (why := databases_disturbed(key, world)):
            return why
    return None


def servers_disturbed(resource: Resource, world: World) -> str | None:
    """Which server of a resource does not serve or is being restarted; None when all serve."""
    key = resource.key
    return why_disturbed(world.kubernetes.owned(resource.KIND, key, SERVERS))


def _is_waited_for_in_vain(resource: Resource) -> bool:
    ready = condition(resource, READY)
    stuck = ready is not None and ready.status != "True" and ready.reason in STUCK
    return stuck or resource.metadata.deletion_timestamp is not None or left_alone_by(resource.metadata) is not None
