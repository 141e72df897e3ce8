"""The condition NodesReachable: pods on a node that is down, and what a person may do. See shared/lost_node.py."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from herdkeeper.planning.summary import Health
from herdkeeper.shared.conditions import NODES_REACHABLE
from herdkeeper.shared.lost_node import OUT_OF_SERVICE, LostNode, lost_nodes
from herdkeeper.shared.node import Nodes
from herdkeeper.shared.objects import Objects
from herdkeeper.shared.reason import Reason


def nodes_reachable(objects: Objects, pods: Iterable[str], nodes: Nodes, meanwhile: str) -> Mapping[str, Health]:
    """Returns the condition by its type, or nothing if no pod hangs. `meanwhile` is a sentence about the data of these pods."""
    lost = lost_nodes(objects, pods, nodes)
    if not lost:
        return {}
    reason = Reason.NODE_LOST if any(node.given_up for node in lost) else Reason.NODE_SILENT
    return {NODES_REACHABLE: Health("False", reason, f"{' '.join(map(_sentence, lost))} {meanwhile}")}


def _sentence(lost: LostNode) -> str:
    what = f"{' and '.join(lost.pods)}: the node {lost.name} {lost.down.why} since {lost.down.since}."
    if lost.down.out_of_service:
        return f"{what} It is marked as out of service, so Kubernetes removes its pods."
    if not lost.given_up:
        return f"{what} The operator changes nothing there; Kubernetes evicts the pods after five minutes."
    return (
        f"{what} Kubernetes has evicted {' and '.join(lost.given_up)}, but keeps the pods and their volumes until the node is back."
        f" Once the machine is certainly off: `kubectl taint nodes {lost.name} {OUT_OF_SERVICE}`; before it runs again: "
        f"`kubectl taint nodes {lost.name} {OUT_OF_SERVICE}-`."
    )
