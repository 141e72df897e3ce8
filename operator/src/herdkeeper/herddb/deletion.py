"""The deletion of a HerdDBCluster."""

from __future__ import annotations

from herdkeeper.herddb.state.fleet import SqlFleet
from herdkeeper.planning import requeue
from herdkeeper.planning.actions import DeleteLogs, DeleteZnodes, Plan
from herdkeeper.planning.deletion import DONE, given_up, take_down, wait_or_give_up, waiting_for_users
from herdkeeper.shared.dependents import Dependents
from herdkeeper.shared.unknown import Unknown


def plan_herddb_deletion(fleet: SqlFleet, waited: float) -> Plan:
    """Wait for tablespaces that drop their data, then take the nodes down, then delete volumes, generated Secret, logs and metadata.
    Retained tablespaces are no reason to wait: outside their database they don't exist. All stays if the log is elsewhere.
    """
    root = fleet.named.herd_root
    plan = waiting_for_users(Dependents(deleting=fleet.dependents.deleting)) or _keep_what_finds_the_log(fleet)
    if plan is None:
        plan = take_down(fleet.objects, ("PersistentVolumeClaim", "Secret"))
    if plan is not None:
        return plan
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


def _keep_what_finds_the_log(fleet: SqlFleet) -> Plan | None:
    """Leaves all behind if the log is in another BookKeeperCluster: without their list nobody finds its ledgers."""
    if not isinstance(fleet.foreign_ledger, str):
        return None
    why = f"the BookKeeperCluster {fleet.cluster.spec.book_keeper_ref.name} does not have this database's log: {fleet.foreign_ledger}"
    return given_up(f"what is below {fleet.named.herd_root} in ZooKeeper and in volume claims", why)
