"""Actions on ZooKeeper: the metadata roots of BookKeeper and HerdDB, and HerdDB's records. Each write is counted."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping

import structlog

from herdkeeper.certificates.access import RootAccess
from herdkeeper.clients.counters import WRITES
from herdkeeper.clients.look import make_room
from herdkeeper.clients.zookeeper import ANY_VERSION, ChangedMeanwhileError, EnsembleError, EnsembleSessions, MembershipChange, Znodes
from herdkeeper.codecs.bookkeeper.cookie import cookie_path, encode_cookie
from herdkeeper.codecs.bookkeeper.layout import LedgerLayout, decode_layout, ledger_path
from herdkeeper.codecs.bookkeeper.metadata import decode_ledger_metadata
from herdkeeper.codecs.bookkeeper.underreplication import recovery_delay_path
from herdkeeper.codecs.herddb.ledgers import decode_ledgers, ledgers_path, tablespace_of
from herdkeeper.codecs.herddb.node import node_path
from herdkeeper.codecs.herddb.tablespace import (
    TablespaceRecord,
    decode_tablespace,
    encode_tablespace,
    heartbeat_path,
    replicas_path,
    tablespace_path,
    tablespaces_path,
)
from herdkeeper.codecs.java_data import MalformedDataError
from herdkeeper.planning import actions as do
from herdkeeper.protocol.log_archive import archive_progress_path, encode_expiry_order
from herdkeeper.protocol.log_pin import encode_log_pin, log_pin_path, log_pins_path, replica_pin
from herdkeeper.shared import names

LAYOUT = b"2\norg.apache.bookkeeper.meta.HierarchicalLedgerManagerFactory:1"
"""The value that BookKeeper 4.18 writes for `zk+hierarchical` (LedgerLayout, format version 2)."""
IDENTITY = "INSTANCEID"
"""Child of BookKeeper's root, without which it is no root."""
REGISTRATIONS = ("available/readonly", "available")
"""Folders of BookKeeper's root in which bookies register, the inner one first."""

logger = structlog.get_logger()


def ensure_znode(znodes: Znodes, path: str) -> None:
    """Create a persistent, empty znode and its parents."""
    znodes.ensure(path)
    _count("create")


def format_ledgers_root(znodes: Znodes, root: str, access: RootAccess | None = None) -> None:
    """Create what `bookkeeper shell initnewcluster` creates (ZKRegistrationManager.initNewCluster, 4.18), in one transaction. With `access`
    also the folders that it names, whose access differs from the root's. Raises EnsembleError if the root exists.
    """
    made = {
        root: b"",
        f"{root}/available": b"",
        f"{root}/available/readonly": b"",
        f"{root}/{IDENTITY}": str(uuid.uuid4()).encode(),
        f"{root}/LAYOUT": LAYOUT,
    }
    if access is None:
        znodes.ensure(root.rpartition("/")[0])
        znodes.create_all(made.items())
    else:
        _create_guarded(znodes, made, access)
    _count("create")


def create_herd_root(znodes: Znodes, root: str, access: RootAccess) -> None:
    """Create HerdDB's root, so that HerdDB finds it. Raises EnsembleError if it exists."""
    _create_guarded(znodes, {root: b""}, access)
    _count("create")


def _create_guarded(znodes: Znodes, made: Mapping[str, bytes], access: RootAccess) -> None:
    """Restrict the parents first: they guard the root."""
    for path, who in access.above.items():
        znodes.restrict(path, who)
    znodes.create_all({**made, **{path: b"" for path in access.within if path not in made}}.items(), access.within)


def remove_cookie(znodes: Znodes, action: do.RemoveCookie) -> None:
    """Delete a cookie, as `bookkeeper shell decommissionbookie` does at its end. Raises EnsembleError if the bookie is registered, also if
    it registers in this very moment.
    """
    path = cookie_path(action.root, action.bookie_id)
    found = znodes.read(path)
    _must_not_be_registered(znodes, action.root, action.bookie_id)
    if found is not None:
        znodes.delete_if(path, found[1], absent=_registrations(action.root, action.bookie_id))
    _count("delete")


def restore_cookie(znodes: Znodes, action: do.RestoreCookie) -> None:
    """Create a cookie again. Raises EnsembleError if the metadata is another cluster's, or the bookie is registered or has a cookie."""
    cookie = action.cookie
    instance = znodes.read(f"{action.root}/{IDENTITY}")
    if instance is None or instance[0] != cookie.instance_id.encode():
        raise EnsembleError(
            f"{action.root}/{IDENTITY} is no longer {cookie.instance_id}: the cookie of {cookie.bookie_id} belongs to another cluster"
        )
    _must_not_be_registered(znodes, action.root, cookie.bookie_id)
    path = cookie_path(action.root, cookie.bookie_id)
    znodes.ensure(path.rpartition("/")[0])
    znodes.create_all(((path, encode_cookie(cookie)),))
    _count("create")


def _registrations(root: str, bookie_id: str) -> tuple[str, ...]:
    return tuple(f"{root}/{folder}/{bookie_id}" for folder in REGISTRATIONS)


def _must_not_be_registered(znodes: Znodes, root: str, bookie_id: str) -> None:
    for registration in _registrations(root, bookie_id):
        if znodes.read(registration) is not None:
            raise EnsembleError(f"{bookie_id} is registered as {registration}: its cookie stays as it is")


def set_recovery_delay(znodes: Znodes, action: do.SetRecoveryDelay | do.StartBookieAudit) -> None:
    """Compare-and-set on the read version. Auditors watch the znode, and check all ledgers if the value stays the same."""
    znodes.compare_and_set(recovery_delay_path(action.root), str(action.seconds).encode(), action.version)
    _count("set")


def change_membership(ensembles: EnsembleSessions, action: do.ChangeMembership, namespace: str) -> None:
    """Reconfig by compare-and-set on the version that was read."""
    identity = names.operator_identity(action.zookeeper_address, namespace)
    joining = () if action.server is None else (action.server.line,)
    change = MembershipChange(joining, action.leaving, action.version)
    ensembles.reconfigure(action.zookeeper_address, action.password, change, identity)
    _count("reconfig")


def change_tablespace_record(znodes: Znodes, action: do.ChangeTablespaceRecord) -> None:
    """Compare-and-set on the version that was read. Raises ChangedMeanwhileError also for another tablespace of the name: the versions of
    its record begin at 0 again.
    """
    present = znodes.read(action.path)
    if present is None or decode_tablespace(present[0]).uuid != action.record.uuid:
        raise ChangedMeanwhileError(f"{action.path} is of another tablespace than the one that was read, or gone")
    znodes.compare_and_set(action.path, encode_tablespace(action.record), action.version)
    _count("set")


def set_log_pin(znodes: Znodes, action: do.SetLogPin) -> None:
    """Raises EnsembleError if the pin has changed since it was read."""
    _set_own(znodes, action.path, None if action.lsn is None else encode_log_pin(action.lsn), action.version)


def set_archive_expiry(znodes: Znodes, action: do.SetArchiveExpiry) -> None:
    """Raises EnsembleError if the order has changed since it was read."""
    _set_own(znodes, action.path, None if action.order is None else encode_expiry_order(action.order), action.version)


def _set_own(znodes: Znodes, path: str, data: bytes | None, version: int | None) -> None:
    """Compare-and-set on the read version, None if there was no znode. Without data the znode is deleted: not if the key of another
    resource, which needs it, has written it since.
    """
    if data is None:
        znodes.delete(path, ANY_VERSION if version is None else version)
        _count("delete")
        return
    if version is None:
        znodes.ensure(path.rpartition("/")[0])
        znodes.create_own(path, data)
    else:
        znodes.compare_and_set(path, data, version)
    _count("set")


def forget_node(znodes: Znodes, action: do.ForgetNode) -> None:
    """Delete a node's heartbeats and pins, then its record. Raises EnsembleError if a tablespace names it by now, and
    ChangedMeanwhileError if that may be so, or if the node has registered again.
    """
    root = action.herd_root
    registered = znodes.read(node_path(root, action.node))
    records: dict[str, int] = {}
    for path, record, version in _records(znodes, root):
        if action.node in (record.leader, *record.replicas):
            raise EnsembleError(f"the tablespace {record.name} names {action.node}, so its record stays")
        records[path] = version
    for tablespace_uuid in znodes.children(f"{root}/replicas") or ():
        znodes.delete(heartbeat_path(root, tablespace_uuid, action.node))
    for tablespace_uuid in znodes.children(f"{root}/logPins") or ():
        znodes.delete(log_pin_path(root, tablespace_uuid, replica_pin(action.node)))
    znodes.delete_tree(replicas_path(root, action.node))  # each node has a tablespace of its own, whose uuid is the node's id
    if registered is not None:
        znodes.delete_if(node_path(root, action.node), registered[1], records)
    _count("delete")


def _records(znodes: Znodes, herd_root: str) -> Iterator[tuple[str, TablespaceRecord, int]]:
    """Yields path, content and version of each tablespace's record."""
    for name in znodes.children(tablespaces_path(herd_root)) or ():
        path = tablespace_path(herd_root, name)
        if (found := znodes.read(path)) is not None:
            yield path, decode_tablespace(found[0]), found[1]


def delete_znodes(znodes: Znodes, root: str) -> None:
    """Deletes the tree, and its parents that are then empty: clusters of one namespace share the first.

    A process may die in the middle, and its successor must recognize the root and continue. So the identity goes last, in one transaction
    with the root and its parents. Raises EnsembleError if others write below the root meanwhile. Of bookies' metadata the folders of
    registrations go first, in one transaction: raises EnsembleError, without a change, if a bookie is registered there. It is another
    cluster's, with the same root.
    """
    children = znodes.children(root)
    if children is None:
        return
    folders = [path for folder in REGISTRATIONS if znodes.read(path := f"{root}/{folder}") is not None]
    if folders and not znodes.delete_together(folders):
        raise EnsembleError(f"a bookie is registered below {root}/available: all of {root} stays")
    for child in children:
        if child != IDENTITY:
            znodes.delete_tree(f"{root}/{child}")
    last = (*((f"{root}/{IDENTITY}",) if IDENTITY in children else ()), root)
    parents = _parents(root)
    if not any(znodes.delete_together((*last, *parents[:count])) for count in range(len(parents), -1, -1)):
        raise EnsembleError(f"{root} was written to while it was deleted")
    _count("delete")


def _parents(path: str) -> tuple[str, ...]:
    """Returns the parents of a path: of `/a/b/c`, `/a/b` and `/a`."""
    parent = path.rpartition("/")[0]
    return (parent, *_parents(parent)) if parent else ()


def delete_logs(znodes: Znodes, action: do.DeleteLogs) -> None:
    """Delete the ledgers of the listed tablespaces (None: all), then their lists, pins, heartbeats and archive progress. Bookies collect
    ledgers without metadata.

    Raises EnsembleError if one of the listed tablespaces is not dropped, and ChangedMeanwhileError if its leader has not noticed that yet
    and lists another ledger: the next try deletes that one, too.
    """
    root = action.herd_root
    dropped = action.uuids or ()
    for _, record, _ in _records(znodes, root) if dropped else ():
        if record.uuid in dropped:
            raise EnsembleError(f"the tablespace {record.name} is {record.uuid}, so its log stays")
    uuids = action.uuids if action.uuids is not None else znodes.children(f"{root}/ledgers") or ()
    layout = znodes.read(f"{action.ledgers_root}/LAYOUT")
    for tablespace_uuid in uuids:
        found = znodes.read(ledgers_path(root, tablespace_uuid))
        if found is not None and layout is not None:
            for ledger in decode_ledgers(found[0]).active:
                _delete_ledger(znodes, action.ledgers_root, decode_layout(layout[0]), ledger, tablespace_uuid)
        znodes.delete_tree(replicas_path(root, tablespace_uuid))
        znodes.delete_tree(log_pins_path(root, tablespace_uuid))
        znodes.delete_tree(archive_progress_path(root, tablespace_uuid))
        if found is not None:
            znodes.delete(ledgers_path(root, tablespace_uuid), found[1])
    _count("delete")


def _delete_ledger(znodes: Znodes, root: str, layout: LedgerLayout, ledger: int, tablespace_uuid: str) -> None:
    """Delete a ledger whose own metadata names the tablespace."""
    path = root + ledger_path(layout, ledger)
    found = znodes.read(path)
    if found is None:
        return
    make_room(len(found[0]))
    try:
        owner = tablespace_of(decode_ledger_metadata(ledger, found[0]))
    except MalformedDataError:
        owner = None
    if owner != tablespace_uuid:
        logger.warning("ledger kept: its metadata does not name this tablespace", ledger=ledger, tablespace_uuid=tablespace_uuid)
        return
    znodes.delete(path, found[1])


def _count(verb: str) -> None:
    WRITES.labels(verb, "Znode").inc()
