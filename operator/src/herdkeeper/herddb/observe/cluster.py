"""Observes a HerdDBCluster."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from herdkeeper.api import BookKeeperCluster, Checkpoint, HerdDBCluster, Tablespace
from herdkeeper.api.tablespace import sql_name_of
from herdkeeper.certificates.holders import NOTHING_DUE, DueSecrets
from herdkeeper.certificates.roles import sql_nodes_holder
from herdkeeper.clients.cluster_reader import ClusterReader
from herdkeeper.clients.dependents import observe_dependents
from herdkeeper.clients.identities import observe_identities
from herdkeeper.clients.kubernetes import SECRETS, SHARED, WORKLOADS, Unreadable
from herdkeeper.clients.look import make_room
from herdkeeper.clients.nodes import nodes_of_doubted
from herdkeeper.clients.stack import ensemble_disruption, servers_disruption
from herdkeeper.clients.zookeeper import EnsembleError, Znodes
from herdkeeper.codecs.bookkeeper.layout import LedgerLayout, decode_layout, ledger_path
from herdkeeper.codecs.bookkeeper.metadata import decode_ledger_metadata
from herdkeeper.codecs.herddb.ledgers import decode_ledgers, ledgers_path, tablespace_of
from herdkeeper.codecs.herddb.node import node_path, nodes_path
from herdkeeper.codecs.herddb.tablespace import DEFAULT_TABLESPACE, decode_tablespace, heartbeat_path, tablespace_path, tablespaces_path
from herdkeeper.codecs.java_data import MalformedDataError
from herdkeeper.herddb.observe.address import port_of_node
from herdkeeper.herddb.observe.nodes import read_ports
from herdkeeper.herddb.observe.tls import read_tls
from herdkeeper.herddb.observe.users import read_credentials, read_users
from herdkeeper.herddb.state.cluster import MOST_READ_TABLESPACES, NOT_TOLD, NodeView, VersionedRecord, ZooKeeperTimes
from herdkeeper.herddb.state.fleet import SqlFleet
from herdkeeper.herddb.state.log_store import LogStore
from herdkeeper.herddb.state.nodes import is_silent, unasked_nodes
from herdkeeper.herddb.tablespace.judged_nodes import Declared
from herdkeeper.protocol.log_pin import ARCHIVE, CHECKPOINT, SECOND_DISK, log_pin_path
from herdkeeper.protocol.self_report import SelfReport
from herdkeeper.shared.names import ObjectKey, TablespaceNames
from herdkeeper.shared.objects import Objects, why_gone
from herdkeeper.shared.unknown import Unknown

T = TypeVar("T")
Heartbeats = Mapping[str, Mapping[str, float]]
"""By tablespace, as its record names it, and node, in Unix seconds by ZooKeeper's clock."""

PAGE = 1000
"""Ledgers whose metadata is kept at a time."""


def observe_herddb(cluster: HerdDBCluster, reader: ClusterReader) -> SqlFleet:
    """Returns all that is known of a cluster: its leaders, its credentials, and its root in ZooKeeper."""
    fleet = observe_leadership(cluster, reader)
    if cluster.spec.credentials_secret_ref is None and cluster.metadata.deletion_timestamp is None:
        # a deletion takes only what has labels
        fleet = replace(fleet, objects=reader.kubernetes.with_secrets(fleet.objects, cluster.metadata.namespace, (fleet.secret,)))
    log, root, stack = fleet.log, fleet.named.herd_root, fleet.bookkeeper
    return replace(
        fleet,
        root_parent=_ask(reader, log, lambda znodes: znodes.read(root.rpartition("/")[0]) is not None),
        root=_ask(reader, log, lambda znodes: znodes.read(root) is not None),
        credentials=read_credentials(cluster, reader),
        registered=_ask(reader, log, lambda znodes: znodes.children(nodes_path(root), reader.wake) or ()),
        fresh_password=secrets.token_urlsafe(24),
        fresh_token=secrets.token_urlsafe(32),
        dependents=observe_dependents(cluster, Tablespace, reader),
        disruption=None if stack is None else servers_disruption(stack, reader) or ensemble_disruption(stack, reader),
        machines=nodes_of_doubted(fleet.objects, fleet.present, reader),
        tls=read_tls(cluster, log, reader) if log is not None else None,
        identities=_identities(cluster, log, reader),
        user_secrets=read_users(cluster, reader),
        foreign_ledger=_foreign_ledger(fleet, reader),
        # declarations read after the records: a tablespace that was declared meanwhile keeps its pin
        ownerless_pins=_ownerless_pins(reader, log, root, _undeclared(fleet.records, declared_tablespaces(cluster.key, reader))),
    )


def observe_leadership(cluster: HerdDBCluster, reader: ClusterReader) -> SqlFleet:
    """Returns what shows who leads each tablespace, and who could: objects, HerdDB's records, heartbeats, and the nodes' views."""
    key = cluster.key
    fleet = SqlFleet(
        cluster,
        reader.kubernetes.owned(cluster.KIND, key, (*WORKLOADS, *SHARED, *SECRETS)),
        reader.kubernetes.readable(BookKeeperCluster, ObjectKey(key.namespace, cluster.spec.book_keeper_ref.name)),
    )
    log, root = fleet.log, fleet.named.herd_root
    declared = declared_tablespaces(key, reader)
    # ZooKeeper first: the first answer may take seconds, during which a node may stay silent.
    records = _ask(reader, log, lambda znodes: _records(znodes, root, reader))
    silent_seconds = _silent_seconds(fleet, reader)
    reports = _reports(fleet.objects, silent_seconds, reader)
    nodes = _read_running_nodes(fleet, unasked_nodes(silent_seconds, reports), reader)
    times, heartbeats = _times(reader, log, records, root)
    return replace(
        fleet,
        nodes=nodes,
        records=records,
        declared=declared,
        # after the nodes' views: what a Checkpoint has found out meanwhile counts
        checkpoints=reader.kubernetes.resources(Checkpoint, key.namespace),
        taken_services=_taken_services(declared, fleet.objects, reader),
        now=time.time(),
        silent_seconds=silent_seconds,
        reports=reports,
        heartbeats=heartbeats,
        zookeeper=times,
    )


def declared_tablespaces(database: ObjectKey, reader: ClusterReader) -> tuple[Declared, ...]:
    """Returns those of a HerdDBCluster, by resource name. One that does not name its cluster may belong to this one."""
    declared = []
    for document in reader.kubernetes.documents(Tablespace, database.namespace):
        spec, found = document.get("spec") or {}, reader.kubernetes.model(Tablespace, document)
        if ((spec.get("herdDBRef") or {}).get("name") or database.name) != database.name:
            continue
        name = sql_name_of(str(document["metadata"]["name"]), spec.get("tablespaceName"))
        readable = not isinstance(found, Unreadable)
        declared.append(Declared(name, found.rest if isinstance(found, Unreadable) else found, readable))
    return tuple(declared)


def _identities(cluster: HerdDBCluster, log: LogStore | None, reader: ClusterReader) -> DueSecrets:
    if log is None:
        return NOTHING_DUE
    return observe_identities(cluster, (sql_nodes_holder(cluster),), log.zookeeper_address, reader.kubernetes)


def _foreign_ledger(fleet: SqlFleet, reader: ClusterReader) -> str | Unknown | None:
    """Returns why the listed ledgers are not the cluster's own, or None. Asked only before the nodes are made."""
    log, records = fleet.log, fleet.records
    if log is None or fleet.objects.get("StatefulSet", fleet.named.stateful_set) is not None:
        return None
    if isinstance(records, Unknown):
        return records
    return _ask(reader, log, lambda znodes: _first_foreign_ledger(znodes, fleet.named.herd_root, log.ledgers_root, records))


def _first_foreign_ledger(
    znodes: Znodes, herd_root: str, ledgers_root: str, records: Mapping[str, VersionedRecord]
) -> str | Unknown | None:
    stored = znodes.read(f"{ledgers_root}/LAYOUT")
    try:
        # without a layout no bookie has begun, and no ledger exists wherever it is looked for
        layout = LedgerLayout.LONG_HIERARCHICAL if stored is None else decode_layout(stored[0])
        for name, uuid in sorted((name, each.record.uuid) for name, each in records.items()):
            listed = znodes.read(ledgers_path(herd_root, uuid))
            ledgers = () if listed is None else decode_ledgers(listed[0]).active
            exists = False
            for begin in range(0, len(ledgers), PAGE):
                page = ledgers[begin : begin + PAGE]
                paths = [f"{ledgers_root}{ledger_path(layout, ledger)}" for ledger in page]
                found = [(ledger, data) for ledger, data in zip(page, znodes.read_many(paths), strict=True) if data is not None]
                for ledger, data in found:
                    if tablespace_of(decode_ledger_metadata(ledger, data)) != uuid:
                        return f"ledger {ledger}, which {herd_root} lists for the tablespace {name}, is of another log"
                make_room(sum(len(data) for _, data in found))
                exists = exists or bool(found)
            # A log keeps its newest ledger. Ids that nobody has yet are another log's once it has grown.
            if ledgers and not exists:
                return f"none of the ledgers that {herd_root} lists for the tablespace {name} exists there"
    except (MalformedDataError, ValueError) as error:
        return Unknown(str(error))
    return None


def _undeclared(records: Mapping[str, VersionedRecord] | Unknown, declared: Sequence[Declared]) -> list[str]:
    """Returns the uuids of the tablespaces that no resource declares, readable or not."""
    if isinstance(records, Unknown):
        return []
    names_declared = {each.sql_name.lower() for each in declared} | {DEFAULT_TABLESPACE}
    return [found.record.uuid for name, found in sorted(records.items()) if name.lower() not in names_declared]


def _ownerless_pins(reader: ClusterReader, log: LogStore | None, root: str, uuids: Sequence[str]) -> tuple[tuple[str, int], ...]:
    if not uuids:
        return ()
    paths = [log_pin_path(root, uuid, name) for uuid in uuids for name in (CHECKPOINT, ARCHIVE, SECOND_DISK)]
    found = _ask(reader, log, lambda znodes: znodes.changed_many(paths))
    if isinstance(found, Unknown):
        return ()
    return tuple((path, pin.version) for path, pin in zip(paths, found, strict=True) if pin is not None)


def _read_running_nodes(fleet: SqlFleet, unasked: Mapping[str, Unknown], reader: ClusterReader) -> dict[str, NodeView | Unknown]:
    """Returns the views of all nodes whose process may run, as far as Kubernetes knows: a leader that is about to stop still serves."""
    running = [node for node in fleet.present if why_gone(fleet.objects.get("Pod", node)) is None]
    asked = {node: port_of_node(fleet.named, fleet.objects, node) for node in running if node not in unasked}
    return {**read_ports(asked, reader), **unasked}


def _silent_seconds(fleet: SqlFleet, reader: ClusterReader) -> dict[str, float]:
    pods = {node: fleet.objects.get("Pod", node) for node in fleet.present}
    found = {node: reader.liveness.silent_seconds(pod["metadata"]["uid"]) for node, pod in pods.items() if pod is not None}
    return {node: seconds for node, seconds in found.items() if seconds is not None}


def _reports(objects: Objects, silent_seconds: Mapping[str, float], reader: ClusterReader) -> dict[str, SelfReport]:
    """Returns the reports of nodes that are not silent: an old report may be outdated."""
    speaking = [node for node, seconds in silent_seconds.items() if not is_silent(seconds)]
    pods = {node: pod for node in speaking if (pod := objects.get("Pod", node)) is not None}
    found = {node: reader.liveness.last_report(pod["metadata"]["uid"]) for node, pod in pods.items()}
    return {node: report for node, report in found.items() if report is not None}


def _times(
    reader: ClusterReader, log: LogStore | None, records: Mapping[str, VersionedRecord] | Unknown, root: str
) -> tuple[ZooKeeperTimes, Heartbeats]:
    """Returns nothing for what can't be read."""
    if isinstance(records, Unknown):
        return NOT_TOLD, {}
    found = _ask(reader, log, lambda znodes: read_times(znodes, root, records))
    return (NOT_TOLD, {}) if isinstance(found, Unknown) else found


def read_times(znodes: Znodes, root: str, records: Mapping[str, VersionedRecord]) -> tuple[ZooKeeperTimes, Heartbeats]:
    """Returns the times of all recorded replicas (failed ones send no heartbeats) and their nodes. Raises EnsembleError.

    The current time is that of the heartbeat written last, not the maximum. A dead replica's stays forever, and may come from a ZooKeeper
    leader with a fast clock. A leader's heartbeat is read after its followers', so that the delay makes it look younger, never older.
    """
    copies = [(name, node) for name, found in records.items() for node in sorted(found.record.replicas, key=found.record.leader.__eq__)]
    paths = [heartbeat_path(root, records[name].record.uuid, node) for name, node in copies]
    beats = {copy: znode for copy, znode in zip(copies, znodes.changed_many(paths), strict=True) if znode is not None}
    nodes = sorted({node for _, node in copies})
    registered = znodes.changed_many([node_path(root, node) for node in nodes])
    last = max(beats.values(), key=lambda znode: znode.transaction, default=None)
    times = ZooKeeperTimes(
        None if last is None else last.changed_at,
        {node: znode.changed_at for node, znode in zip(nodes, registered, strict=True) if znode is not None},
    )
    heartbeats: dict[str, dict[str, float]] = {found.record.name: {} for found in records.values()}
    for (name, node), znode in beats.items():
        heartbeats[records[name].record.name][node] = znode.changed_at
    return times, heartbeats


def _records(znodes: Znodes, root: str, reader: ClusterReader) -> dict[str, VersionedRecord] | Unknown:
    """Returns HerdDB's record of each tablespace, with the time of its last change."""
    known = znodes.children(tablespaces_path(root), reader.wake) or ()
    if len(known) > MOST_READ_TABLESPACES:
        return Unknown(f"{root} in ZooKeeper has {len(known)} tablespaces, more than {MOST_READ_TABLESPACES}: drop those not in use")
    found = {name: znodes.read_changed(tablespace_path(root, name), reader.wake) for name in known}
    try:
        return {
            name: VersionedRecord(decode_tablespace(znode.data), znode.version, znode.changed_at)
            for name, znode in found.items()
            if znode is not None
        }
    except MalformedDataError as error:
        return Unknown(str(error))


def _taken_services(declared: Sequence[Declared], objects: Objects, reader: ClusterReader) -> frozenset[str]:
    """Read one by one, but only until the Service exists."""
    keys = [each.tablespace.key for each in declared if each.readable]
    services = [ObjectKey(key.namespace, TablespaceNames(key).leader_service) for key in keys]
    missing = [key for key in services if objects.get("Service", key.name) is None]
    return frozenset(key.name for key in missing if reader.kubernetes.document("v1", "Service", key) is not None)


def _ask(reader: ClusterReader, log: LogStore | None, question: Callable[[Znodes], T]) -> T | Unknown:
    """Returns what ZooKeeper answers."""
    if log is None:
        return Unknown("the BookKeeperCluster does not name its ZooKeeper yet")
    try:
        return question(reader.znodes(log.zookeeper_address, log.namespace))
    except EnsembleError as error:
        return Unknown(str(error))
