"""Observed Kubernetes nodes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from herdkeeper.shared.unknown import Unknown


@dataclass(frozen=True)
class NodeDown:
    """A node whose pods can neither start nor be seen to stop. `why` continues a sentence about the node; `since` is RFC 3339, UTC.

    `out_of_service`: a person declared the machine off by Kubernetes' taint `node.kubernetes.io/out-of-service`.
    """

    why: str
    since: str
    out_of_service: bool


@dataclass(frozen=True)
class Node:
    """A node that runs pods. `down` is None while its kubelet reports that it is well, and where all its pods are Ready."""

    name: str
    labels: Mapping[str, str]
    down: NodeDown | None = None


Nodes = Mapping[str, Node | Unknown | None]
"""Nodes by name; None for a missing node."""
