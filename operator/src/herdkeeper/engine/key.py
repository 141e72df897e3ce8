"""The key by which a resource is queued and reconciled."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass

from herdkeeper.api import BookKeeperCluster, Checkpoint, HerdDBCluster, ZooKeeperCluster
from herdkeeper.api.resource import Resource
from herdkeeper.shared.names import ObjectKey


@dataclass(frozen=True)
class Key:
    """A resource: its kind, namespace and name."""

    kind: str
    namespace: str
    name: str

    @classmethod
    def of(cls, resource: Resource) -> Key:
        return cls(resource.KIND, resource.metadata.namespace, resource.metadata.name)

    @property
    def object_key(self) -> ObjectKey:
        """The key without the kind."""
        return ObjectKey(self.namespace, self.name)

    def __str__(self) -> str:
        return f"{self.kind}/{self.namespace}/{self.name}"


def locks_of(stacks_of: Callable[[Key], frozenset[Hashable]], key: Key) -> frozenset[Hashable]:
    """Returns the locks of a reconcile. `stacks_of` names the stack of a cluster.

    Clusters of one stack share a lock: only one of its servers may be disrupted at a time, so each reconcile must see the result of the
    last one. Checkpoints of a namespace share one: none may start to write while another one is being removed.
    """
    if key.kind == Checkpoint.KIND:
        return frozenset({(key.kind, key.namespace)})
    disrupts = key.kind in (ZooKeeperCluster.KIND, BookKeeperCluster.KIND, HerdDBCluster.KIND)
    return frozenset({key, *(("stack", stack) for stack in stacks_of(key))} if disrupts else {key})
