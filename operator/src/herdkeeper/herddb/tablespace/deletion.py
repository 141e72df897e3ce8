"""The deletion of a Tablespace."""

from __future__ import annotations

from herdkeeper.api import Tablespace
from herdkeeper.herddb.log.archive_expiry import withdraw
from herdkeeper.herddb.log.plan_pins import unpin, unreadable_pin
from herdkeeper.herddb.state.cluster import RecordAbsent, VersionedRecord
from herdkeeper.herddb.tablespace.state import TablespaceObserved
from herdkeeper.planning import requeue
from herdkeeper.planning.actions import Action, DeleteLogs, DropTablespace, Plan, SetFinalizer
from herdkeeper.planning.deletion import wait_or_give_up
from herdkeeper.shared.reason import Reason
from herdkeeper.shared.unknown import Unknown


def keeps_log(tablespace: Tablespace) -> bool:
    """Returns whether pins keep its log."""
    return tablespace.spec.log.keep_until_checkpoint or tablespace.spec.log.archive is not None


def plan_tablespace_deletion(seen: TablespaceObserved, waited: float) -> Plan:
    """Drop the tablespace that this resource created, then delete what DROP leaves behind.

    Another tablespace of the same name stays. So does one that another resource has taken over, if this one was gone before its data. With
    Retain the tablespace stays, and only its log is no longer kept: nothing would move the pins any more.
    """
    uuid = seen.tablespace.made_uuid
    if seen.tablespace.spec.deletion_policy == "Retain":
        return _let_go(seen, uuid, waited)
    if uuid is None:
        return Plan((SetFinalizer(False, Reason.DATA_DELETED, "there is nothing to drop: this resource never created a tablespace"),))
    others = (*seen.others, *(each.tablespace for each in seen.unread_others))
    if heirs := [other.metadata.name for other in others if other.made_uuid == uuid]:
        return Plan((SetFinalizer(False, Reason.DATA_KEPT, f"the tablespace stays: it belongs to the Tablespace {heirs[0]} now"),))
    return _drop(seen, uuid, waited)


def _drop(seen: TablespaceObserved, uuid: str, waited: float) -> Plan:
    what = f"the tablespace {seen.tablespace.sql_name} and its log"
    if seen.herddb is None or seen.log is None:
        return wait_or_give_up(waited, what, "the HerdDBCluster no longer exists")
    match seen.record:
        case VersionedRecord(record) if record.uuid == uuid:
            node = seen.system_leader
            if node is None or isinstance(seen.nodes.get(node, Unknown("")), Unknown):
                return wait_or_give_up(waited, what, "no SQL node answers")
            return Plan((DropTablespace(seen.herddb.metadata.name, node, record.name),), requeue_after_seconds=requeue.NEXT_STEP)
        case Unknown(why):
            return wait_or_give_up(waited, what, why)
        case VersionedRecord() | RecordAbsent():
            return _delete_log(seen, uuid, waited)


def _let_go(seen: TablespaceObserved, uuid: str | None, waited: float) -> Plan:
    if (unread := unreadable_pin(seen)) is not None:
        return wait_or_give_up(waited, "what keeps the log", unread.why)
    if uuid is not None and keeps_log(seen.tablespace) and seen.herddb is not None and seen.log is None:
        # The pins were not read, and a remaining one would keep the log forever.
        return wait_or_give_up(waited, "what keeps the log", "the BookKeeperCluster does not report where the log is")
    why = "the Tablespace is deleted"
    steps: tuple[Action, ...] = () if uuid is None else (*unpin(seen, uuid, why), *withdraw(seen, uuid, why))
    if steps:
        return Plan(steps, requeue_after_seconds=requeue.NEXT_STEP)
    return Plan((SetFinalizer(False, Reason.DATA_KEPT, "deletionPolicy is Retain: the tablespace stays, its log is released by age"),))


def _delete_log(seen: TablespaceObserved, uuid: str, waited: float) -> Plan:
    match seen.log_left:
        case False:
            return Plan((SetFinalizer(False, Reason.DATA_DELETED, "the tablespace is dropped and its log deleted"),))
        case True if seen.herddb is not None and seen.log is not None:
            root = seen.herddb.names.herd_root
            return Plan(
                (DeleteLogs(seen.log.zookeeper_address, seen.log.ledgers_root, root, (uuid,)),), requeue_after_seconds=requeue.NEXT_STEP
            )
        case Unknown(why):
            return wait_or_give_up(waited, "the log of the dropped tablespace", why)
        case _:
            return wait_or_give_up(waited, "the log of the dropped tablespace", "the HerdDBCluster no longer exists")
