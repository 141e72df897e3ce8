"""The deletion of a HerdDBCluster."""

from __future__ import annotations

from herdkeeper.herddb.state.fleet import SqlFleet
from herdkeeper.planning import requeue
from herdkeeper.planning.actions import DeleteLogs, DeleteZnodes, Plan
from herdkeeper.planning.deletion import DONE, take_down, wait_or_give_up, waiting_for_users
from herdkeeper.shared.dependents import Dependents
from herdkeeper.shared.unknown import Unknown


def plan_herddb_deletion(fleet: SqlFleet, waited: float) -> Plan:
    """Wait for tablespaces that drop their data, then take the nodes down, then delete volumes, generated Secret, logs and metadata.
    Retained tablespaces are no reason to wait: outside their database they don't exist.
    """
    if waiting := waiting_for_users(Dependents(deleting=fleet.dependents.deleting)):
        return waiting
    if plan := take_down(fleet.objects, ("PersistentVolumeClaim", "Secret")):
        return plan
    root = fleet.named.herd_root
    log = fleet.log
    match fleet.root:
        case False:
            return Plan((DONE,))
        case True if log is not None:
            logs = DeleteLogs(log.zookeeper_address, log.ledgers_root, root, None)
            return Plan((logs, DeleteZnodes(log.zookeeper_address, root)), requeue_after_seconds=requeue.NEXT_STEP)
        case Unknown(why):
            return wait_or_give_up(waited, f"{root} in ZooKeeper and the ledgers of its log", why)
        case _:
            return wait_or_give_up(waited, f"{root} in ZooKeeper and the ledgers of its log", "the BookKeeperCluster no longer exists")
