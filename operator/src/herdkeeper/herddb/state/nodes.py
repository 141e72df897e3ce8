"""The SQL nodes of a HerdDBCluster: which of them stay (those below spec.replicas), and which are asked."""

from __future__ import annotations

import re
from collections.abc import Mapping

from herdkeeper.api import HerdDBCluster
from herdkeeper.protocol.self_report import SelfReport
from herdkeeper.shared.names import HerdDBNames
from herdkeeper.shared.objects import Objects
from herdkeeper.shared.unknown import Unknown

_NUMBER = "[0-9]{1,2}"
"""A node's number: `spec.replicas` is at most 99."""
_SILENT_SECONDS = 2.0
"""Twice the interval of a node's reports."""


def mounted_secret(cluster: HerdDBCluster) -> str:
    """Returns the Secret that the nodes mount: the generated one, or the one derived from the named Secret."""
    named = cluster.names
    return named.users_secret if cluster.spec.credentials_secret_ref is not None else named.generated_secret


def staying_nodes(cluster: HerdDBCluster) -> tuple[str, ...]:
    return tuple(map(cluster.names.pod, range(cluster.spec.replicas)))


def present_nodes(cluster: HerdDBCluster, objects: Objects) -> tuple[str, ...]:
    """Returns the declared nodes, and those above that are in the StatefulSet or still have a pod, by number."""
    named = cluster.names
    numbers = [number_of(named, item["metadata"]["name"]) for item in objects.of_kind("Pod")]
    highest = max((number + 1 for number in numbers if number is not None), default=0)
    return tuple(map(named.pod, range(max(cluster.spec.replicas, running_nodes(cluster, objects) or 0, highest))))


def running_nodes(cluster: HerdDBCluster, objects: Objects) -> int | None:
    stateful_set = objects.get("StatefulSet", cluster.names.stateful_set)
    return None if stateful_set is None else int(stateful_set["spec"]["replicas"])


def is_silent(seconds: float) -> bool:
    """Returns whether a node that has not reported for so long is silent."""
    return seconds >= _SILENT_SECONDS


def unasked_nodes(silent_seconds: Mapping[str, float], reports: Mapping[str, SelfReport]) -> dict[str, Unknown]:
    """Returns the nodes that are not asked, since clients would wait for the timeout, and why. To report, a node needs ZooKeeper."""
    silent = {node: Unknown("its process sends no heartbeat") for node, seconds in silent_seconds.items() if is_silent(seconds)}
    why = Unknown("it reports that ZooKeeper does not answer it")
    return {**silent, **{node: why for node, report in reports.items() if is_silent(report.zookeeper_silent)}}


def number_of(named: HerdDBNames, node: str) -> int | None:
    """Returns the number in a node's name. None if it is not a node of this cluster.

    A number beyond the maximum is not: nodes are counted up to the highest number, and anybody can name a pod, or a znode.
    """
    prefix = f"{named.stateful_set}-"
    number = node.removeprefix(prefix)
    return int(number) if node.startswith(prefix) and re.fullmatch(_NUMBER, number) else None
