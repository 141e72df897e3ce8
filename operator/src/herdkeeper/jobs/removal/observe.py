"""Looks at all that may need a Checkpoint's files: its volume, other Checkpoints and what they do, Tablespaces that are made from one."""

from __future__ import annotations

from herdkeeper.api import Checkpoint, ScheduledCheckpoint, Tablespace
from herdkeeper.clients.kubernetes import parsed_wholly
from herdkeeper.clients.world import World
from herdkeeper.jobs.removal.state import CheckpointWork, RemovalObserved, work_of
from herdkeeper.shared.names import ObjectKey
from herdkeeper.shared.unknown import Unknown

_WORK = (("batch/v1", "Job"), ("v1", "Pod"))


def observe_removal(checkpoint: Checkpoint, world: World) -> RemovalObserved:
    """Who may need the files of this one."""
    namespace = checkpoint.metadata.namespace
    claim = checkpoint.spec.destination.claim_name
    checkpoints = parsed_wholly(Checkpoint, world.kubernetes.documents(Checkpoint, namespace))
    return RemovalObserved(
        None if claim is None else world.kubernetes.document("v1", "PersistentVolumeClaim", ObjectKey(namespace, claim)),
        checkpoints
        if isinstance(checkpoints, Unknown)
        else tuple(other for other in checkpoints if other.metadata.uid != checkpoint.metadata.uid),
        parsed_wholly(Tablespace, world.kubernetes.documents(Tablespace, namespace)),
        parsed_wholly(ScheduledCheckpoint, world.kubernetes.documents(ScheduledCheckpoint, namespace)),
    )


def observe_work(namespace: str, world: World) -> tuple[CheckpointWork, ...]:
    """The Jobs and pods of all Checkpoints of a namespace."""
    return tuple(work for item in world.kubernetes.made_for(Checkpoint.KIND, namespace, _WORK) for work in work_of(item))
