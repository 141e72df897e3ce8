"""The observation of a schedule's restore drills."""

from __future__ import annotations

from dataclasses import dataclass

from herdkeeper.api import Checkpoint, HerdDBCluster
from herdkeeper.herddb.log.checkpoint_base import is_made_for_a_drill
from herdkeeper.shared.objects import Objects
from herdkeeper.spark.object_store import StoreUnusable


@dataclass(frozen=True)
class DrillObserved:
    """`objects` are the drills' Jobs and pods; `checkpoints` all that the schedule made, also for drills. `herddb` is the tablespace's
    database; None if missing, or without drills. `store_unusable` is why the object store of the drilled Checkpoint can't be opened.
    """

    objects: Objects
    checkpoints: tuple[Checkpoint, ...]
    herddb: HerdDBCluster | None = None
    store_unusable: StoreUnusable | None = None

    def checkpoint(self, name: str) -> Checkpoint | None:
        """Returns one of the schedule's Checkpoints by name, or None."""
        return next((found for found in self.checkpoints if found.metadata.name == name), None)

    @property
    def made_for_drills(self) -> tuple[Checkpoint, ...]:
        """Returns the Checkpoints of moments chosen for drills."""
        return tuple(found for found in self.checkpoints if is_made_for_a_drill(found))


NOTHING_DRILLED = DrillObserved(Objects({}), ())
"""For a schedule that never had drills."""
