"""Reads the Kubernetes nodes of pods, each by name: a list of all nodes is long, and mostly irrelevant."""

from __future__ import annotations

from collections.abc import Iterable

from herdkeeper.clients.cluster_reader import ClusterReader
from herdkeeper.shared.node import Nodes
from herdkeeper.shared.objects import Json, Objects, is_ready, why_gone


def nodes_of(pods: Iterable[Json], reader: ClusterReader) -> Nodes:
    doubted: dict[str, bool] = {}
    for pod in pods:
        if name := pod.get("spec", {}).get("nodeName"):
            doubted[name] = doubted.get(name, False) or _is_doubted(pod)
    return {name: reader.kubernetes.node(name, doubted=doubted[name]) for name in sorted(doubted)}


def nodes_of_doubted(objects: Objects, names: Iterable[str], reader: ClusterReader) -> Nodes:
    """Returns the nodes of pods for which only the node shows whether they still run."""
    pods = (objects.get("Pod", name) for name in names)
    return nodes_of((pod for pod in pods if pod is not None and _is_doubted(pod)), reader)


def _is_doubted(pod: Json) -> bool:
    """Returns whether a pod is not Ready although Kubernetes knows of no ended process."""
    return not is_ready(pod) and why_gone(pod) is None
