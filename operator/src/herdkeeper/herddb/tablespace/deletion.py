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
    Retain the tablespace stays, and only its log is no longer kept, unless another resource declares it: nothing would move the pins.
    """
    uuid = seen.tablespace.made_uuid
    if seen.tablespace.spec.deletion_policy == "Retain":
        return _let_go(seen, uuid, waited)
    if uuid is None:
        if isinstance(seen.record, RecordAbsent):
            return Plan((SetFinalizer(False, Reason.DATA_DELETED, "there is nothing to drop: this resource never created a tablespace"),))
        # It may have made it a moment ago: the operator ended, or the resource was deleted, before that was noted.
        stays = f"a tablespace {seen.tablespace.sql_name} stays if there is one: this resource has noted none as its own"
        return Plan((SetFinalizer(False, Reason.DATA_KEPT, stays),))
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
            return Plan((DropTablespace(seen.herddb.metadata.name, node, record.name, uuid),), requeue_after_seconds=requeue.NEXT_STEP)
        case Unknown(why):
            return wait_or_give_up(waited, what, why)
        case VersionedRecord() | RecordAbsent():
            return _delete_log(seen, uuid, waited)


def _let_go(seen: TablespaceObserved, uuid: str | None, waited: float) -> Plan:
    if (heir := _heir(seen, uuid)) is not None:
        return Plan((SetFinalizer(False, Reason.DATA_KEPT, f"the tablespace and its log stay: the Tablespace {heir} declares it, too"),))
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


def _heir(seen: TablespaceObserved, uuid: str | None) -> str | None:
    """Returns the resource that takes the tablespace over, and the pins on its log with it, such as one with another name."""
    mine = seen.tablespace
    same = (other for other in seen.others if other.spec.herd_db_ref == mine.spec.herd_db_ref and other.sql_name == mine.sql_name)
    takes = (other for other in same if other.made_uuid == uuid or (other.made_uuid is None and other.spec.bootstrap is None))
    unread = (each.tablespace for each in seen.unread_others if each.sql_name == mine.sql_name)
    return next((other.metadata.name for other in (*takes, *unread) if other.metadata.deletion_timestamp is None), None)


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
