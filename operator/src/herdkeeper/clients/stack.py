"""Disruptions in a stack: of an ensemble, its bookies and their SQL nodes, only one server may be disrupted at a time."""

from __future__ import annotations

from herdkeeper.api import BookKeeperCluster, HerdDBCluster, ZooKeeperCluster
from herdkeeper.api.resource import Resource
from herdkeeper.clients.cluster_reader import ClusterReader
from herdkeeper.clients.kubernetes import WORKLOADS
from herdkeeper.shared.conditions import READY, condition, serves_as_made, why_not_ready
from herdkeeper.shared.names import ObjectKey
from herdkeeper.shared.objects import Objects, pod_trouble
from herdkeeper.shared.paused import paused_by
from herdkeeper.shared.reason import Reason

SERVERS = (WORKLOADS[0], ("v1", "Pod"))
STUCK = frozenset(reason.value for reason in Reason if reason.needs_person) | {Reason.WAITING_FOR_ZOOKEEPER, Reason.UNREADABLE}
"""Reasons of an unready resource that does not change by itself, or only after those below it: it must not block these."""
ON_DELETE = "OnDelete"
"""Update strategy under which a pod changes only after the operator deletes it."""


def databases_on(key: ObjectKey, reader: ClusterReader) -> tuple[HerdDBCluster, ...]:
    every = reader.kubernetes.resources(HerdDBCluster, key.namespace)
    return tuple(database for database in every if database.spec.book_keeper_ref.name == key.name)


def ensemble_disruption(bookkeeper: BookKeeperCluster | None, reader: ClusterReader) -> str | None:
    """Returns the disruption of a member of a BookKeeperCluster's ZooKeeperCluster, or None."""
    reference = bookkeeper.spec.zoo_keeper_ref if bookkeeper is not None else None
    if bookkeeper is None or reference is None:
        return None
    ensemble = reader.kubernetes.readable(ZooKeeperCluster, ObjectKey(bookkeeper.metadata.namespace, reference.name))
    return None if ensemble is None or _is_stuck(ensemble) else servers_disruption(ensemble, reader)


def databases_disruption(key: ObjectKey, reader: ClusterReader) -> str | None:
    """Returns the disruption of a SQL node on a BookKeeperCluster, or None."""
    waited_for = (database for database in databases_on(key, reader) if not _is_stuck(database))
    return next((why for database in waited_for if (why := servers_disruption(database, reader)) is not None), None)


def dependents_disruption(ensemble: ObjectKey, reader: ClusterReader) -> str | None:
    """Returns the disruption of a BookKeeperCluster on an ensemble, or of a SQL node on a Ready one, or None."""
    for bookkeeper in reader.kubernetes.resources(BookKeeperCluster, ensemble.namespace):
        reference = bookkeeper.spec.zoo_keeper_ref
        if reference is None or reference.name != ensemble.name:
            continue
        ready = serves_as_made(bookkeeper)
        if not _is_stuck(bookkeeper):
            why = servers_disruption(bookkeeper, reader) if ready else f"it is not Ready ({why_not_ready(bookkeeper)})"
            if why is not None:
                return f"the BookKeeperCluster {bookkeeper.metadata.name}: {why}"
        key = ObjectKey(ensemble.namespace, bookkeeper.metadata.name)
        if ready and (why := databases_disruption(key, reader)):
            return why
    return None


def servers_disruption(resource: Resource, reader: ClusterReader) -> str | None:
    """Returns which server of a resource does not serve or is being restarted, or None."""
    return why_disrupted(reader.kubernetes.owned(resource.KIND, resource.key, SERVERS))


def _is_stuck(resource: Resource) -> bool:
    ready = condition(resource, READY)
    stuck = ready is not None and ready.status != "True" and ready.reason in STUCK
    return stuck or resource.metadata.deletion_timestamp is not None or paused_by(resource.metadata.annotations) is not None


def why_disrupted(objects: Objects) -> str | None:
    """Returns which server of a resource does not serve or is about to restart, or None. Unwanted pods don't count. Judged by the objects:
    a status may be older than the last action.
    """
    for item in objects.of_kind("StatefulSet"):
        name = item["metadata"]["name"]
        pods = [f"{name}-{number}" for number in range(item["spec"]["replicas"])]
        for pod in pods:
            if not objects.pod_ready(pod):
                return f"{pod} is not Ready ({pod_trouble(objects.get('Pod', pod))})"
        strategy = item["spec"].get("updateStrategy", {}).get("type")
        if pods and strategy != ON_DELETE and not objects.rolled_out(name):
            return f"{name} is being restarted"
    return None
