"""A Checkpoint: what is declared, what was observed of its run, and what follows from both."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

from herdkeeper.api import BookKeeperCluster, Checkpoint, HerdDBCluster, ScheduledCheckpoint, Tablespace
from herdkeeper.protocol.job_summary import CheckpointSummary
from herdkeeper.shared import names
from herdkeeper.shared.objects import Objects
from herdkeeper.shared.problem import Problem
from herdkeeper.shared.unknown import Unknown
from herdkeeper.shared.volumes import Claim
from herdkeeper.spark.run import Run, observe_run
from herdkeeper.spark.work import CheckpointWork


@dataclass(frozen=True)
class RemovalObserved:
    """What may need a Checkpoint's files. `claim` is the destination's claim; None if it is gone or the destination is no volume.
    `checkpoints` are the others of the namespace, `tablespaces` and `schedules` all of them. Unknown if one can't be read, since it may
    need the files.
    """

    claim: Claim | None
    checkpoints: tuple[Checkpoint, ...] | Unknown
    tablespaces: tuple[Tablespace, ...] | Unknown
    schedules: tuple[ScheduledCheckpoint, ...] | Unknown = ()


@dataclass(frozen=True)
class CheckpointRun:
    """A Checkpoint as declared and as observed. Each derived value is computed once.

    `objects` are its Jobs and their pods; the next three are the objects that it refers to, None if missing. `nodes` are the database's
    pods and their StatefulSet.

    For a Checkpoint without a Job, or one being deleted: `work` is the activity of all Checkpoints in the namespace. `store_unusable` and
    `archive_unusable` are why a Secret of the destination or of the log's archive is unusable. Only for one without a Job: `checkpoints`
    are all those of the namespace. Only for one being deleted: `removal` is what may need its files.
    """

    checkpoint: Checkpoint
    objects: Objects
    tablespace: Tablespace | None = None
    herddb: HerdDBCluster | None = None
    bookkeeper: BookKeeperCluster | None = None
    nodes: Objects = field(default_factory=lambda: Objects({}))
    work: tuple[CheckpointWork, ...] = ()
    checkpoints: tuple[Checkpoint, ...] = ()
    removal: RemovalObserved | None = None
    store_unusable: Problem | None = None
    archive_unusable: Problem | None = None

    @property
    def is_due(self) -> bool:
        """Whether it has not run: its Job does not exist. The resource is the record of one run."""
        return not self.checkpoint.is_over and self.run.job is None

    @cached_property
    def run(self) -> Run:
        """The state of its Job."""
        name = names.job_name(self.checkpoint.key, names.CHECKPOINT_COMPONENT)
        return observe_run(self.objects, name, self.checkpoint.metadata.uid)

    @cached_property
    def reported(self) -> CheckpointSummary | Unknown | None:
        """The driver's termination message. None without one; Unknown if it can't be read."""
        return self.run.reported(CheckpointSummary.from_json)
