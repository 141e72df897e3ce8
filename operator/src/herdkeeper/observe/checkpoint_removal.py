"""Looks at all that may need a Checkpoint's files: its volume, other Checkpoints and what they do, Tablespaces that are made from one."""

from __future__ import annotations

from herdkeeper.api import Checkpoint, Tablespace
from herdkeeper.domain.names import ObjectKey
from herdkeeper.domain.observed.checkpoint_removal import CheckpointWork, RemovalObserved, work_of
from herdkeeper.domain.unknown import Unknown
from herdkeeper.observe.kubernetes import ResourceType, Unreadable, parsed
from herdkeeper.observe.world import World

_WORK = (("batch/v1", "Job"), ("v1", "Pod"))


def observe_removal(checkpoint: Checkpoint, world: World) -> RemovalObserved:
    """Who may need the files of this one."""
    namespace = checkpoint.metadata.namespace
    claim = checkpoint.spec.destination.persistent_volume_claim.claim_name
    checkpoints = _all(Checkpoint, namespace, world)
    return RemovalObserved(
        world.kubernetes.document("v1", "PersistentVolumeClaim", ObjectKey(namespace, claim)),
        checkpoints
        if isinstance(checkpoints, Unknown)
        else tuple(other for other in checkpoints if other.metadata.uid != checkpoint.metadata.uid),
        _all(Tablespace, namespace, world),
    )


def observe_work(namespace: str, world: World) -> tuple[CheckpointWork, ...]:
    """The Jobs and pods of all Checkpoints of a namespace."""
    return tuple(work for item in world.kubernetes.made_for(Checkpoint.KIND, namespace, _WORK) for work in work_of(item))


def _all(kind: type[ResourceType], namespace: str, world: World) -> tuple[ResourceType, ...] | Unknown:
    found: list[ResourceType] = []
    for document in world.kubernetes.documents(kind, namespace):
        resource, name = parsed(kind, document), document["metadata"]["name"]
        if isinstance(resource, Unreadable):
            return Unknown(f"the {kind.KIND} {name} can't be read")
        if getattr(resource, "status", None) is None and document.get("status"):  # of another version: what it uses is not known
            return Unknown(f"the status of the {kind.KIND} {name} can't be read")
        found.append(resource)
    return tuple(found)
