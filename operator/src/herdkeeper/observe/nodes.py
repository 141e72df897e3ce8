"""Looks at the Kubernetes nodes of pods. Each is asked for by name: a list of all nodes is long, and most are not ours."""

from __future__ import annotations

from collections.abc import Iterable

from herdkeeper.domain.observed.node import Nodes
from herdkeeper.domain.observed.objects import Json, Objects, is_ready, why_gone
from herdkeeper.observe.world import World


def nodes_of(pods: Iterable[Json], world: World) -> Nodes:
    """The nodes that these pods stand on."""
    wanted = {name for pod in pods if (name := pod.get("spec", {}).get("nodeName"))}
    return {name: world.kubernetes.node(name) for name in sorted(wanted)}


def nodes_of_doubted(objects: Objects, names: Iterable[str], world: World) -> Nodes:
    """The nodes of those pods that are not Ready though Kubernetes knows of no process that has ended: only a node can tell then."""
    pods = (objects.get("Pod", name) for name in names)
    return nodes_of((pod for pod in pods if pod is not None and not is_ready(pod) and why_gone(pod) is None), world)
