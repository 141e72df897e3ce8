"""Which pods may reach the pods of a resource over the network."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from herdkeeper.api.resource import LabelValue, Model

_Key = Annotated[str, Field(min_length=1, max_length=317)]
_Labels = Annotated[dict[_Key, LabelValue], Field(max_length=20)]

NetworkPolicies = Annotated[
    Literal["Enabled", "Disabled"],
    Field(
        description="Whether NetworkPolicies admit only pods that need a port (docs/network.md). With Disabled the operator creates "
        "none and removes its own."
    ),
]


class NetworkPeer(Model):
    """Pods, by their labels and by those of their namespace."""

    pod_labels: _Labels = Field({}, description="Labels of the pods; empty: all pods.")
    namespace_labels: _Labels | None = Field(
        None,
        description="Labels of their namespace, e.g. `kubernetes.io/metadata.name`. Absent: the resource's own namespace; empty: all "
        "namespaces.",
    )


NetworkPeers = Annotated[tuple[NetworkPeer, ...], Field(max_length=20)]
