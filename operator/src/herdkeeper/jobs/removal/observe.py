"""Observes everything that may need a Checkpoint's files: its volume, other Checkpoints and their runs, Tablespaces made from one."""

from __future__ import annotations

from herdkeeper.api import Checkpoint, ScheduledCheckpoint, Tablespace
from herdkeeper.clients.cluster_reader import ClusterReader
from herdkeeper.jobs.removal.state import RemovalObserved
from herdkeeper.shared.names import ObjectKey
from herdkeeper.shared.unknown import Unknown
from herdkeeper.shared.volumes import Claim


def observe_removal(checkpoint: Checkpoint, reader: ClusterReader) -> RemovalObserved:
    """Returns what may need the files of this Checkpoint."""
    namespace = checkpoint.metadata.namespace
    name = checkpoint.spec.destination.claim_name
    claim = None if name is None else reader.kubernetes.document("v1", "PersistentVolumeClaim", ObjectKey(namespace, name))
    checkpoints = reader.kubernetes.models(Checkpoint, reader.kubernetes.documents(Checkpoint, namespace))
    return RemovalObserved(
        None if claim is None else Claim.of(claim),
        checkpoints
        if isinstance(checkpoints, Unknown)
        else tuple(other for other in checkpoints if other.metadata.uid != checkpoint.metadata.uid),
        reader.kubernetes.models(Tablespace, reader.kubernetes.documents(Tablespace, namespace)),
        reader.kubernetes.models(ScheduledCheckpoint, reader.kubernetes.documents(ScheduledCheckpoint, namespace)),
    )
