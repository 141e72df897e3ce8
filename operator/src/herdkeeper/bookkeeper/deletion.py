"""The deletion of a BookKeeperCluster."""

from __future__ import annotations

from herdkeeper.api import BookKeeperCluster
from herdkeeper.bookkeeper.state.bookies import BookKeeperObserved, LedgersMetadata, MetadataAbsent, MetadataStore
from herdkeeper.planning import requeue
from herdkeeper.planning.actions import DeleteZnodes, Plan
from herdkeeper.planning.deletion import DONE, patiently, take_down
from herdkeeper.shared.unknown import Unknown


def plan_bookkeeper_deletion(cluster: BookKeeperCluster, seen: BookKeeperObserved, waited: float) -> Plan:
    """Take bookies down, then delete their volumes and the metadata root.

    A bookie that is still registered after that belongs to another cluster with the same root: the metadata is kept.
    """
    if plan := take_down(seen.objects, ("PersistentVolumeClaim",)):
        return plan
    return _delete_metadata(cluster.names.ledgers_root, seen, waited)


def _delete_metadata(root: str, seen: BookKeeperObserved, waited: float) -> Plan:
    what = f"{root} in ZooKeeper"
    match seen.metadata:
        case MetadataAbsent():
            return Plan((DONE,))
        case Unknown(why):
            return patiently(waited, what, why)
        case LedgersMetadata(writable=writable, read_only=read_only) if writable or read_only:
            shown = ", ".join(sorted(writable | read_only))
            return patiently(waited, what, f"no bookie of this cluster runs any more, and these are registered: {shown}")
        case LedgersMetadata() if isinstance(seen.store, MetadataStore):
            return Plan((DeleteZnodes(seen.store.address, root),), requeue_after_seconds=requeue.NEXT_STEP)
        case _:
            return patiently(waited, what, "ZooKeeper no longer exists")
