"""Pods that hang on a node that is down.

Kubernetes marks such pods as deleted five minutes later, and keeps them until the node tells that they have stopped: a StatefulSet makes no
other one meanwhile, and the volumes stay attached. That is right, since a process on a node that is only cut off goes on, and would share
the volume with a second one. Who knows that the machine is off says so by the taint `out-of-service`, or by deleting the node: Kubernetes
then removes the pods itself. The operator never does.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from herdkeeper.shared.node import Node, NodeDown, Nodes
from herdkeeper.shared.objects import Json, Objects, is_ready, pod_trouble
from herdkeeper.shared.unknown import Unknown

OUT_OF_SERVICE_TAINT = "node.kubernetes.io/out-of-service"
OUT_OF_SERVICE = f"{OUT_OF_SERVICE_TAINT}=nodeshutdown:NoExecute"
"""The taint as `kubectl taint nodes` takes it."""


@dataclass(frozen=True)
class LostNode:
    """A node that is down and the pods there. `given_up`: those of them that Kubernetes has marked as deleted."""

    name: str
    down: NodeDown
    pods: tuple[str, ...]
    given_up: tuple[str, ...]


def lost_nodes(objects: Objects, pods: Iterable[str], nodes: Nodes) -> tuple[LostNode, ...]:
    """The nodes that are down under pods of these names, sorted by name."""
    found: dict[str, LostNode] = {}
    for name in pods:
        pod = objects.get("Pod", name)
        node, down = _node_down(pod, nodes)
        if pod is not None and down is not None:
            before = found.get(node, LostNode(node, down, (), ()))
            given_up = (name,) if pod["metadata"].get("deletionTimestamp") else ()
            found[node] = LostNode(node, down, (*before.pods, name), (*before.given_up, *given_up))
    return tuple(lost for _, lost in sorted(found.items()))


def trouble_of(pod: Json | None, nodes: Nodes) -> str:
    """Why a pod does not serve, as a phrase for people: by its node if that is down."""
    node, down = _node_down(pod, nodes)
    return pod_trouble(pod) if down is None else f"its node {node} {down.why} since {down.since}"


def unreachable(objects: Objects, pods: Iterable[str], nodes: Nodes) -> dict[str, str]:
    """The pods that hang on a node that is down, each with the reason to leave it alone.

    It does not serve as far as Kubernetes knows, and yet its process may: of those on a node that is only cut off, all that were deleted
    meanwhile would be stopped at once when it is back. So one that is not Ready is left alone as well while its node can't be read.
    """
    found = {name: _why_unreachable(objects.get("Pod", name), nodes) for name in pods}
    return {name: f"{name} may still run: {why}" for name, why in found.items() if why is not None}


def _why_unreachable(pod: Json | None, nodes: Nodes) -> str | None:
    if _node_down(pod, nodes)[1] is not None:
        return trouble_of(pod, nodes)
    node = nodes.get(str((pod or {}).get("spec", {}).get("nodeName") or ""))
    return node.why if pod is not None and not is_ready(pod) and isinstance(node, Unknown) else None


def _node_down(pod: Json | None, nodes: Nodes) -> tuple[str, NodeDown | None]:
    """The node of a pod, by its name, and how it is down; None when it is not, or that is not known.

    Kubernetes takes Ready off the pods of a silent node, but not in the same instant: such a pod counts as one that does not serve.
    """
    if pod is None:
        return "", None
    name = str(pod.get("spec", {}).get("nodeName") or "")
    node = nodes.get(name)
    return name, node.down if isinstance(node, Node) else None
