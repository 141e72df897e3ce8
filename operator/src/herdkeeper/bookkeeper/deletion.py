"""The deletion of a BookKeeperCluster."""

from __future__ import annotations

from herdkeeper.bookkeeper.state.bookies import LedgersMetadata, MetadataAbsent, MetadataStore
from herdkeeper.bookkeeper.state.fleet import BookieFleet
from herdkeeper.planning import requeue
from herdkeeper.planning.actions import DeleteZnodes, Plan
from herdkeeper.planning.deletion import DONE, take_down, wait_or_give_up
from herdkeeper.shared.unknown import Unknown


def plan_bookkeeper_deletion(fleet: BookieFleet, waited: float) -> Plan:
    """Take bookies down, then delete their volumes and the metadata root.

    A bookie that is still registered after that belongs to another cluster with the same root: the metadata is kept.
    """
    return take_down(fleet.objects, ("PersistentVolumeClaim",)) or _delete_metadata(fleet, waited)


def _delete_metadata(fleet: BookieFleet, waited: float) -> Plan:
    root = fleet.named.ledgers_root
    what = f"{root} in ZooKeeper"
    match fleet.metadata:
        case MetadataAbsent():
            return Plan((DONE,))
        case Unknown(why):
            return wait_or_give_up(waited, what, why)
        case LedgersMetadata(registered=registered) if registered:
            shown = ", ".join(sorted(registered))
            return wait_or_give_up(waited, what, f"no bookie of this cluster runs any more, and these are registered: {shown}")
        case LedgersMetadata() if isinstance(fleet.store, MetadataStore):
            return Plan((DeleteZnodes(fleet.store.address, root),), requeue_after_seconds=requeue.NEXT_STEP)
        case _:
            return wait_or_give_up(waited, what, "ZooKeeper no longer exists")
