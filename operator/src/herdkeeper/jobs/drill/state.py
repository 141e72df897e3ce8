"""What was seen of a schedule's restore drills."""

from __future__ import annotations

from dataclasses import dataclass

from herdkeeper.api import Checkpoint, HerdDBCluster
from herdkeeper.herddb.log.checkpoint_base import is_made_for_a_drill
from herdkeeper.shared.objects import Objects
from herdkeeper.spark.object_store import StoreUnusable


@dataclass(frozen=True)
class DrillObserved:
    """`objects` are the drills' Jobs and their pods, `checkpoints` all that the schedule made, for its times and for drills. `herddb` is
    the database of the tablespace, None while there is none, and while no drill is declared. `store_unusable` is why the object store
    with the Checkpoint that is drilled can't be opened."""

    objects: Objects
    checkpoints: tuple[Checkpoint, ...]
    herddb: HerdDBCluster | None = None
    store_unusable: StoreUnusable | None = None

    def checkpoint(self, name: str) -> Checkpoint | None:
        """One of the schedule's, None when there is none of this name."""
        return next((found for found in self.checkpoints if found.metadata.name == name), None)

    @property
    def made_for_drills(self) -> tuple[Checkpoint, ...]:
        """Those of them that are of a moment that was drawn."""
        return tuple(found for found in self.checkpoints if is_made_for_a_drill(found))


NOTHING_DRILLED = DrillObserved(Objects({}), ())
"""Of a schedule that never had drills."""
