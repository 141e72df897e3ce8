"""Which SQL nodes a HerdDBCluster has, and which of them stay: those below spec.replicas."""

from __future__ import annotations

from herdkeeper.api import HerdDBCluster
from herdkeeper.shared.names import HerdDBNames
from herdkeeper.shared.objects import Objects

_MOST_DIGITS = 2
"""Of a node's number: `spec.replicas` is 99 at most."""


def mounted_secret(cluster: HerdDBCluster) -> str:
    """The Secret that the nodes mount: the generated one, or what is made of the one that the resource names."""
    named = cluster.names
    return named.users_secret if cluster.spec.credentials_secret_ref is not None else named.generated_secret


def staying_nodes(cluster: HerdDBCluster) -> tuple[str, ...]:
    """The nodes that are declared, by number."""
    return tuple(map(cluster.names.pod, range(cluster.spec.replicas)))


def present_nodes(cluster: HerdDBCluster, objects: Objects) -> tuple[str, ...]:
    """The nodes that are declared, and those above that the StatefulSet still has or that still have a pod, by number."""
    named = cluster.names
    numbers = [number_of(named, item["metadata"]["name"]) for item in objects.of_kind("Pod")]
    highest = max((number + 1 for number in numbers if number is not None), default=0)
    return tuple(map(named.pod, range(max(cluster.spec.replicas, running_nodes(cluster, objects) or 0, highest))))


def running_nodes(cluster: HerdDBCluster, objects: Objects) -> int | None:
    """How many nodes the StatefulSet is told to have; None when there is none."""
    stateful_set = objects.get("StatefulSet", cluster.names.stateful_set)
    return None if stateful_set is None else int(stateful_set["spec"]["replicas"])


def number_of(named: HerdDBNames, node: str) -> int | None:
    """The number in a node's name; None when it is not a node of this cluster. A name with a larger number than any node may have is
    somebody else's: nodes are counted up to the highest number, and anybody can name a pod."""
    prefix = f"{named.stateful_set}-"
    number = node.removeprefix(prefix)
    return int(number) if node.startswith(prefix) and number.isdigit() and len(number) <= _MOST_DIGITS else None
