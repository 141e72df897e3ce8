"""Observes the Jobs and pods of Checkpoints."""

from __future__ import annotations

from herdkeeper.api import Checkpoint
from herdkeeper.clients.cluster_reader import ClusterReader
from herdkeeper.spark.work import CheckpointWork, work_of

_WORK = (("batch/v1", "Job"), ("v1", "Pod"))


def observe_work(namespace: str, reader: ClusterReader) -> tuple[CheckpointWork, ...]:
    """Returns the activity of all Checkpoints of a namespace."""
    return tuple(work for item in reader.kubernetes.made_for(Checkpoint.KIND, namespace, _WORK) for work in work_of(item))
