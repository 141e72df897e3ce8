"""Pods that hang on a node that is down. Kubernetes alone removes them, never the operator (docs/decisions/0008)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from herdkeeper.shared.node import Node, NodeDown, Nodes
from herdkeeper.shared.objects import Json, Objects, is_ready, pod_trouble, why_stopping
from herdkeeper.shared.unknown import Unknown

OUT_OF_SERVICE_TAINT = "node.kubernetes.io/out-of-service"
OUT_OF_SERVICE = f"{OUT_OF_SERVICE_TAINT}=nodeshutdown:NoExecute"
"""The taint in the syntax of `kubectl taint nodes`."""


@dataclass(frozen=True)
class LostNode:
    """A node that is down, with its pods. `given_up`: the pods that Kubernetes has marked as deleted."""

    name: str
    down: NodeDown
    pods: tuple[str, ...]
    given_up: tuple[str, ...]


def lost_nodes(objects: Objects, pods: Iterable[str], nodes: Nodes) -> tuple[LostNode, ...]:
    """Returns the nodes that are down under these pods, sorted by name."""
    found: dict[str, LostNode] = {}
    for name in pods:
        pod = objects.get("Pod", name)
        node, down = _node_down(pod, nodes)
        if pod is not None and down is not None:
            before = found.get(node, LostNode(node, down, (), ()))
            given_up = (name,) if why_stopping(pod) else ()
            found[node] = LostNode(node, down, (*before.pods, name), (*before.given_up, *given_up))
    return tuple(lost for _, lost in sorted(found.items()))


def trouble_of(pod: Json | None, nodes: Nodes) -> str:
    """Returns why a pod does not serve, as a phrase: because of its node if that is down."""
    node, down = _node_down(pod, nodes)
    return pod_trouble(pod) if down is None else f"its node {node} {down.why} since {down.since}"


def unreachable(objects: Objects, pods: Iterable[str], nodes: Nodes) -> dict[str, str]:
    """Returns the pods that hang on a node that is down, each with the reason to leave it alone.

    Kubernetes counts such a pod as not serving, but its process may serve. On a node that is only cut off, all pods deleted meanwhile would
    stop together when it is back. A pod that is not Ready is therefore also left alone while its node can't be read.
    """
    found = {name: _why_unreachable(objects.get("Pod", name), nodes) for name in pods}
    return {name: f"{name} may still run: {why}" for name, why in found.items() if why is not None}


def _why_unreachable(pod: Json | None, nodes: Nodes) -> str | None:
    if _node_down(pod, nodes)[1] is not None:
        return trouble_of(pod, nodes)
    node = nodes.get(str((pod or {}).get("spec", {}).get("nodeName") or ""))
    return node.why if pod is not None and not is_ready(pod) and isinstance(node, Unknown) else None


def _node_down(pod: Json | None, nodes: Nodes) -> tuple[str, NodeDown | None]:
    """Returns the name of a pod's node, and how the node is down; None if it is up or unknown.

    Kubernetes sets pods of a silent node to not Ready with some delay. Such a pod already counts as not serving.
    """
    if pod is None:
        return "", None
    name = str(pod.get("spec", {}).get("nodeName") or "")
    node = nodes.get(name)
    return name, node.down if isinstance(node, Node) else None
