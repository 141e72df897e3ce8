"""When a deleted resource may go, and what it takes with it.

A cluster goes after those that use it. Under deletionPolicy Delete it takes servers, then volumes, then metadata with it. Under Retain
there is nothing to do: Kubernetes removes what the resource owns, and volumes and passwords have no owner. So a resource has a finalizer
only while its policy is Delete, or while somebody uses it.
"""

from __future__ import annotations

import datetime
from typing import Any

from herdkeeper.api import BookKeeperCluster, Checkpoint, HerdDBCluster, Tablespace, ZooKeeperCluster
from herdkeeper.api.resource import Resource
from herdkeeper.bookkeeper.state.bookies import BookKeeperObserved, LedgersMetadata, MetadataAbsent, MetadataStore
from herdkeeper.herddb.log.archive_expiry import withdraw
from herdkeeper.herddb.log.plan_pins import unpin, unreadable_pin
from herdkeeper.herddb.state.cluster import HerdDBObserved
from herdkeeper.herddb.state.log_store import log_store
from herdkeeper.herddb.tablespace.record import RecordAbsent, VersionedRecord
from herdkeeper.herddb.tablespace.state import TablespaceObserved
from herdkeeper.planning.actions import Action, DeleteLogs, DeleteZnodes, DropTablespace, Plan, SetFinalizer, deletions
from herdkeeper.shared import names
from herdkeeper.shared.conditions import READY, condition
from herdkeeper.shared.dependents import Dependents
from herdkeeper.shared.names import HerdDBNames, ObjectKey
from herdkeeper.shared.objects import Objects
from herdkeeper.shared.reason import Reason
from herdkeeper.shared.unknown import Unknown
from herdkeeper.zookeeper.state import ZooKeeperObserved

PATIENCE_SECONDS = 120.0
"""How long a backend that can't be reached may hold up a deletion, see `waited_seconds`. Then it is given up with an event: else no
namespace could be deleted whose ZooKeeper went first."""

_WORKLOADS = ("StatefulSet", "Deployment", "Job")
_DONE = SetFinalizer(False, Reason.DATA_DELETED, "volumes and metadata are deleted, as deletionPolicy Delete says")


def finalizer_step(resource: Resource, users: Dependents) -> SetFinalizer | None:
    """The finalizer follows deletionPolicy and those who use the resource; None when it is as it should be."""
    deletes = getattr(resource.spec, "deletion_policy", "Retain") == "Delete"
    used_by = (*users.living, *users.deleting)
    pins = isinstance(resource, Tablespace) and keeps_log(resource)
    wanted = deletes or pins or bool(used_by)
    present = names.FINALIZER in resource.metadata.finalizers
    if wanted == present or (wanted and resource.metadata.deletion_timestamp is not None):
        return None
    if deletes:
        return SetFinalizer(True, Reason.UPDATING, "deletionPolicy is Delete: data goes when this resource is deleted")
    if pins:
        return SetFinalizer(True, Reason.UPDATING, "spec.log has the log kept: nobody keeps it once this resource is deleted")
    if wanted:
        return SetFinalizer(True, Reason.UPDATING, f"{', '.join(used_by)} uses it: a deletion of this resource waits for that")
    return SetFinalizer(False, Reason.UPDATING, "deletionPolicy is Retain and nobody uses it: data stays when this resource is deleted")


def keeps_log(tablespace: Tablespace) -> bool:
    """Whether pins keep its log."""
    return tablespace.spec.log.keep_until_checkpoint or tablespace.spec.log.archive is not None


def waiting_for_users(users: Dependents) -> Plan | None:
    """Why a deleted resource stays as it is for now; None when nobody uses it any more."""
    if users.living:
        message = f"it is deleted once nobody uses it: delete {', '.join(users.living)} first, or let that refer to another"
        return Plan.waiting(Reason.WAITING_FOR_DEPENDENTS, message)
    if users.deleting:
        return Plan.waiting(Reason.WAITING_FOR_DEPENDENTS, f"these still delete their data with its help: {', '.join(users.deleting)}", 2)
    return None


def waited_seconds(resource: Resource, now: datetime.datetime) -> float:
    """How long a deletion has been waiting for a backend that can't be reached, as the condition Ready tells; 0 while it does not wait.

    The deletion's own age says nothing: stopping servers and waiting for dependents take their time, and after that a backend that is
    silent for a moment must not be given up.
    """
    ready = condition(resource, READY)
    # A Checkpoint's files can't be reached without the Secret of their store.
    away = (Reason.UNREADABLE, Reason.WAITING_FOR_SECRET) if isinstance(resource, Checkpoint) else (Reason.UNREADABLE,)
    if resource.metadata.deletion_timestamp is None or ready is None or ready.reason not in away:
        return 0.0
    since = max(datetime.datetime.fromisoformat(text) for text in (resource.metadata.deletion_timestamp, ready.last_transition_time))
    return max(0.0, (now - since).total_seconds())


def plan_unreadable_deletion(error: str, age_seconds: float) -> Plan:
    """What becomes of a deleted resource whose stored spec can't be read: nothing of its data is touched. `age_seconds`: the deletion's."""
    return _patiently(age_seconds, "what this resource made", f"its spec can't be read: {error}")


def plan_zookeeper_deletion(_cluster: ZooKeeperCluster, seen: ZooKeeperObserved, _waited: float) -> Plan:
    """Take it down with its volumes."""
    return _take_down(seen.objects, ("PersistentVolumeClaim", "Secret")) or Plan((_DONE,))


def plan_bookkeeper_deletion(cluster: BookKeeperCluster, seen: BookKeeperObserved, waited: float) -> Plan:
    """Take bookies down, delete their volumes and the metadata root.

    A bookie that is registered when all of this cluster's are gone is somebody else's, who shares the ensemble and the root's name: its
    metadata is left alone.
    """
    if plan := _take_down(seen.objects, ("PersistentVolumeClaim",)):
        return plan
    return _delete_metadata(names.ledgers_root(ObjectKey(cluster.metadata.namespace, cluster.metadata.name)), seen, waited)


def _delete_metadata(root: str, seen: BookKeeperObserved, waited: float) -> Plan:
    what = f"{root} in ZooKeeper"
    match seen.metadata:
        case MetadataAbsent():
            return Plan((_DONE,))
        case Unknown(why):
            return _patiently(waited, what, why)
        case LedgersMetadata(writable=writable, read_only=read_only) if writable or read_only:
            shown = ", ".join(sorted(writable | read_only))
            return _patiently(waited, what, f"no bookie of this cluster runs any more, and these are registered: {shown}")
        case LedgersMetadata() if isinstance(seen.store, MetadataStore):
            return Plan((DeleteZnodes(seen.store.address, root),), look_again_seconds=0.5)
        case _:
            return _patiently(waited, what, "there is no ZooKeeper any more")


def plan_herddb_deletion(cluster: HerdDBCluster, seen: HerdDBObserved, waited: float) -> Plan:
    """Wait for the tablespaces that drop their data, then take the nodes down, delete their volumes, the generated Secret, their logs and
    their metadata. Those that shall live are no reason to wait: a tablespace is nothing outside its database."""
    if waiting := waiting_for_users(Dependents(deleting=seen.dependents.deleting)):
        return waiting
    if plan := _take_down(seen.objects, ("PersistentVolumeClaim", "Secret")):
        return plan
    root = HerdDBNames(ObjectKey(cluster.metadata.namespace, cluster.metadata.name)).herd_root
    log = log_store(seen.bookkeeper)
    match seen.root:
        case False:
            return Plan((_DONE,))
        case True if log is not None:
            logs = DeleteLogs(log.zookeeper_address, log.ledgers_root, root, None)
            return Plan((logs, DeleteZnodes(log.zookeeper_address, root)), look_again_seconds=0.5)
        case Unknown(why):
            return _patiently(waited, f"{root} in ZooKeeper and the ledgers of its log", why)
        case _:
            return _patiently(waited, f"{root} in ZooKeeper and the ledgers of its log", "there is no BookKeeperCluster any more")


def plan_tablespace_deletion(tablespace: Tablespace, seen: TablespaceObserved, waited: float) -> Plan:
    """Drop the tablespace that this resource made, then delete what DROP leaves behind. Another one of the same name is left alone, and so
    is one that another resource has taken over: it could, where this one was gone before its data.

    Under Retain the tablespace lives on, and only its log is not kept any more: nobody is left to say when it may go.
    """
    uuid = tablespace.made_uuid
    if tablespace.spec.deletion_policy == "Retain":
        return _let_go(tablespace, seen, uuid, waited)
    if uuid is None:
        return Plan((SetFinalizer(False, Reason.DATA_DELETED, "there is nothing to drop: this resource never made a tablespace"),))
    if heirs := [other.metadata.name for other in seen.others if other.made_uuid == uuid]:
        return Plan((SetFinalizer(False, Reason.DATA_KEPT, f"the tablespace stays: it is that of the Tablespace {heirs[0]} by now"),))
    return _drop(tablespace, seen, uuid, waited)


def _drop(tablespace: Tablespace, seen: TablespaceObserved, uuid: str, waited: float) -> Plan:
    what = f"the tablespace {tablespace.sql_name} and its log"
    if seen.herddb is None or seen.zookeeper_address is None or seen.ledgers_root is None:
        return _patiently(waited, what, "there is no database any more")
    match seen.record:
        case VersionedRecord(record) if record.uuid == uuid:
            node = seen.system_leader
            if node is None or isinstance(seen.nodes.get(node, Unknown("")), Unknown):
                return _patiently(waited, what, "no SQL node answers")
            return Plan((DropTablespace(seen.herddb.metadata.name, node, record.name),), look_again_seconds=1)
        case Unknown(why):
            return _patiently(waited, what, why)
        case VersionedRecord() | RecordAbsent():
            return _delete_log(seen, uuid, waited)


def _let_go(tablespace: Tablespace, seen: TablespaceObserved, uuid: str | None, waited: float) -> Plan:
    if (unread := unreadable_pin(seen)) is not None:
        return _patiently(waited, "what keeps the log", unread.why)
    if uuid is not None and keeps_log(tablespace) and seen.herddb is not None and seen.zookeeper_address is None:
        # Nobody has looked whether there are pins, and one that stays keeps the log for ever.
        return _patiently(waited, "what keeps the log", "the BookKeeperCluster does not tell where the log is")
    why = "the Tablespace is deleted"
    steps: tuple[Action, ...] = () if uuid is None else (*unpin(seen, uuid, why), *withdraw(seen, uuid, why))
    if steps:
        return Plan(steps, look_again_seconds=0.5)
    return Plan((SetFinalizer(False, Reason.DATA_KEPT, "deletionPolicy is Retain: the tablespace stays, its log is released by age"),))


def _delete_log(seen: TablespaceObserved, uuid: str, waited: float) -> Plan:
    match seen.log_left:
        case False:
            return Plan((SetFinalizer(False, Reason.DATA_DELETED, "the tablespace is dropped and its log deleted"),))
        case True if seen.herddb is not None and seen.zookeeper_address is not None and seen.ledgers_root is not None:
            root = names.herd_root(ObjectKey(seen.herddb.metadata.namespace, seen.herddb.metadata.name))
            return Plan((DeleteLogs(seen.zookeeper_address, seen.ledgers_root, root, (uuid,)),), look_again_seconds=0.5)
        case Unknown(why):
            return _patiently(waited, "the log of the dropped tablespace", why)
        case _:
            return _patiently(waited, "the log of the dropped tablespace", "there is no database any more")


def _take_down(objects: Objects, data_kinds: tuple[str, ...]) -> Plan | None:
    """Delete workloads, wait until no pod is left, then delete what holds data; None when all of it is gone."""
    workloads = [item for kind in _WORKLOADS for item in objects.of_kind(kind)]
    pods = objects.of_kind("Pod")
    if workloads or pods:
        message = f"{len(pods)} pods are stopping" if not workloads else "the servers are stopped"
        return _plan_deletes(workloads, message)
    data = [item for kind in data_kinds for item in objects.of_kind(kind)]
    return _plan_deletes(data, f"{len(data)} volume claims or Secrets are being deleted") if data else None


def _plan_deletes(items: list[dict[str, Any]], message: str) -> Plan:
    waiting = Plan.waiting(Reason.DELETING, message, 2)
    return Plan(deletions(items, Reason.DELETING), waiting.wait, waiting.look_again_seconds)


def _patiently(waited: float, what: str, why: str) -> Plan:
    if waited < PATIENCE_SECONDS:
        return Plan.waiting(Reason.UNREADABLE, f"{what} can't be deleted yet: {why}")
    return Plan((SetFinalizer(False, Reason.DELETION_GIVEN_UP, f"{what} was left behind: {why}"),))
