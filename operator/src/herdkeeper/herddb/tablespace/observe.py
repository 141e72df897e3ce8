"""Observes a Tablespace: HerdDB's record of it, and the nodes' views."""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

from herdkeeper.api import BookKeeperCluster, Checkpoint, HerdDBCluster, Tablespace
from herdkeeper.clients.cluster_reader import ClusterReader
from herdkeeper.clients.kubernetes import WORKLOADS, Unreadable
from herdkeeper.clients.nodes import nodes_of
from herdkeeper.clients.zookeeper import EnsembleError, Znodes
from herdkeeper.clients.zookeeper_member import Wake
from herdkeeper.codecs.herddb.ledgers import LedgerList, decode_ledgers, ledgers_path
from herdkeeper.codecs.herddb.tablespace import DEFAULT_TABLESPACE, decode_tablespace, tablespace_path, tablespaces_path
from herdkeeper.codecs.java_data import MalformedDataError
from herdkeeper.herddb.log.checkpoint_base import doubts, without_files
from herdkeeper.herddb.log.identity import instance_of
from herdkeeper.herddb.log.in_time import log_standings
from herdkeeper.herddb.log.seen import ArchiveObserved, LogPin, SeenOrder, SeenStream
from herdkeeper.herddb.observe.cluster import declared_tablespaces
from herdkeeper.herddb.observe.nodes import read_nodes
from herdkeeper.herddb.observe.tls import read_tls
from herdkeeper.herddb.observe.users import read_credentials
from herdkeeper.herddb.state.cluster import Place, RecordAbsent, UserCredentials, VersionedRecord
from herdkeeper.herddb.state.log_store import LogStore, log_store
from herdkeeper.herddb.tablespace.observe_restore import observe_restore
from herdkeeper.herddb.tablespace.state import TablespaceObserved
from herdkeeper.protocol.log_archive import (
    ArchiveProgress,
    archive_progress_path,
    decode_archive_progress,
    decode_expiry_order,
    expiry_order_path,
)
from herdkeeper.protocol.log_pin import (
    ARCHIVE,
    CHECKPOINT,
    SECOND_DISK,
    decode_log_pin,
    decode_stream_pin,
    log_pin_path,
    log_pins_path,
    stream_of,
)
from herdkeeper.shared import names
from herdkeeper.shared.names import ObjectKey, TablespaceNames
from herdkeeper.shared.node import Node
from herdkeeper.shared.objects import Json, Objects, is_made_for, is_ready, label, pod_trouble
from herdkeeper.shared.problem import Problem
from herdkeeper.shared.unknown import Unknown
from herdkeeper.spark.encryption_keys import fingerprints, secrets_of
from herdkeeper.spark.object_store import ARCHIVE_FIELD, StoreSecrets
from herdkeeper.spark.observe_places import observe_checkpoints, observe_keys, observe_store_secrets

T = TypeVar("T")
PODS = (("v1", "Pod"),)
NODES = (*PODS, WORKLOADS[0])
"""A pod belongs to a cluster only if the StatefulSet made it."""


def observe_tablespace(tablespace: Tablespace, reader: ClusterReader) -> TablespaceObserved:
    """Returns its database, its record, its log, and the nodes' views."""
    namespace, now = tablespace.metadata.namespace, datetime.datetime.now(datetime.UTC)
    database = ObjectKey(namespace, tablespace.spec.herd_db_ref.name)
    herddb = reader.kubernetes.readable(HerdDBCluster, database)
    bookkeeper = None
    if herddb is not None:
        bookkeeper = reader.kubernetes.readable(BookKeeperCluster, ObjectKey(namespace, herddb.spec.book_keeper_ref.name))
    log = log_store(bookkeeper)
    others = tuple(other for other in reader.kubernetes.resources(Tablespace, namespace) if other.metadata.name != tablespace.metadata.name)
    unread_others = tuple(each for each in declared_tablespaces(database, reader) if not each.readable)
    why = Unknown("the HerdDBCluster does not exist, or its spec is invalid" if herddb is None else "the HerdDBCluster has no nodes yet")
    seen = TablespaceObserved(tablespace, herddb, log, why, why, None, {}, {}, others, unread_others=unread_others, now=now)
    if herddb is None or log is None:
        return seen
    seen = _with_metadata(seen, herddb, log, reader)
    objects, taken = _for_clients(tablespace, reader)
    credentials = read_credentials(herddb, reader)
    pods = reader.kubernetes.owned(herddb.KIND, herddb.key, NODES)
    checkpoints, unread = checkpoints_of(tablespace, reader)
    volumes, keys = _volumes(checkpoints, namespace, reader), _keys(checkpoints, namespace, reader)
    seen = replace(
        seen,
        nodes=read_nodes(herddb, pods, reader),
        objects=objects,
        taken=taken,
        credentials=credentials if isinstance(credentials, UserCredentials) else None,
        places=_places(pods, reader) if _is_chosen(tablespace, herddb, seen.record) else {},
        checkpoints=checkpoints,
        without_files=without_files(checkpoints, volumes),
        tls=read_tls(herddb, log, reader),
        archive=replace(
            seen.archive,
            trouble=_archiver_trouble(tablespace, reader),
            now=now.timestamp(),
            unread=unread,
            doubted=doubts(checkpoints, volumes, keys),
            locked=frozenset(doubts(checkpoints, {}, keys)),
            store=_secrets_of_archive(tablespace, reader),
        ),
        instance_id=instance_of(bookkeeper, herddb.spec.book_keeper_ref.name),
    )
    seen = observe_restore(seen, reader)
    return replace(seen, standings=log_standings(seen))


def checkpoints_of(tablespace: Tablespace, reader: ClusterReader) -> tuple[tuple[Checkpoint, ...], Unknown | None]:
    """Returns a tablespace's readable Checkpoints, and which can't be read. One that names no tablespace may belong to this one."""
    documents = reader.kubernetes.documents(Checkpoint, tablespace.metadata.namespace)
    mine = [document for document in documents if _named(document) in (None, tablespace.metadata.name)]
    wholly = observe_checkpoints(mine, reader)
    if not isinstance(wholly, Unknown):
        return wholly, None
    found = (reader.kubernetes.model(Checkpoint, document) for document in mine)
    return tuple(item for item in found if not isinstance(item, Unreadable)), wholly


def _volumes(checkpoints: tuple[Checkpoint, ...], namespace: str, reader: ClusterReader) -> dict[str, str | None]:
    """Returns since when each volume claim with files of Checkpoints exists, None if it is gone."""
    claims = {each.spec.destination.claim_name for each in checkpoints if each.manifest is not None}
    return {claim: reader.kubernetes.claim_since(ObjectKey(namespace, claim)) for claim in claims if claim is not None}


def _keys(checkpoints: tuple[Checkpoint, ...], namespace: str, reader: ClusterReader) -> dict[str, dict[str, str]]:
    """Returns the fingerprints of the keys, by name, in each Secret that encrypted Checkpoints name."""
    encrypted = (each for each in checkpoints if each.status is not None and each.status.encrypted_with is not None)
    secrets = {secret for each in encrypted for secret in secrets_of(each.spec.destination)}
    return {secret: fingerprints(reader.kubernetes.recent_secret(ObjectKey(namespace, secret)) or {}) for secret in secrets}


def _named(document: Json) -> str | None:
    reference = (document.get("spec") or {}).get("tablespaceRef")
    return reference.get("name") if isinstance(reference, dict) else None


def _is_chosen(tablespace: Tablespace, herddb: HerdDBCluster, record: VersionedRecord | RecordAbsent | Unknown) -> bool:
    """Returns whether a node must be chosen, to add or remove a replica: only then do places matter."""
    if not isinstance(record, VersionedRecord):
        return False
    replicas, leaving = record.record.replicas, herddb.status.leaving_nodes if herddb.status is not None else ()
    return len(replicas) != tablespace.spec.replicas or any(node in leaving for node in replicas)


def _places(pods: Objects, reader: ClusterReader) -> dict[str, Place]:
    machines = {pod["metadata"]["name"]: pod["spec"].get("nodeName") for pod in pods.of_kind("Pod")}
    found = nodes_of(pods.of_kind("Pod"), reader)
    zones = {machine: node.labels.get(names.ZONE_LABEL) for machine, node in found.items() if isinstance(node, Node)}
    return {pod: Place(machine, zones.get(machine)) for pod, machine in machines.items()}


def _for_clients(tablespace: Tablespace, reader: ClusterReader) -> tuple[Objects, tuple[str, ...]]:
    """Returns its connection Secret, its archiver, and foreign objects with their names."""
    key = tablespace.key
    named = TablespaceNames(key)
    wanted = (
        ("v1", "Service", named.leader_service, (HerdDBCluster.KIND, tablespace.spec.herd_db_ref.name)),
        ("v1", "Secret", named.connection_secret, (Tablespace.KIND, key.name)),
        *((("apps/v1", "Deployment", named.archive, (Tablespace.KIND, key.name)),) if tablespace.spec.log.archive is not None else ()),
    )
    left = reader.kubernetes.owned(Tablespace.KIND, key, (WORKLOADS[1],))  # of an archive that is no longer declared
    found = {(kind, name): reader.kubernetes.document(version, kind, ObjectKey(key.namespace, name)) for version, kind, name, _ in wanted}
    live = {(kind, name): item for _, kind, name, owner in wanted if (item := found[kind, name]) is not None and is_made_for(item, *owner)}
    return Objects({**left.items, **live}), tuple(
        f"{kind} {name}" for (kind, name), item in found.items() if item is not None and (kind, name) not in live
    )


def _with_metadata(seen: TablespaceObserved, herddb: HerdDBCluster, log: LogStore, reader: ClusterReader) -> TablespaceObserved:
    """Adds HerdDB's data in ZooKeeper."""
    tablespace, root = seen.tablespace, herddb.names.herd_root
    uuid = tablespace.made_uuid
    try:
        znodes = reader.znodes(log.zookeeper_address, tablespace.metadata.namespace)
        left = uuid is not None and znodes.read(ledgers_path(root, uuid)) is not None
        record = _record(znodes, root, tablespace.sql_name, reader.wake)
        pinned = uuid or (record.record.uuid if isinstance(record, VersionedRecord) else None)
        if pinned is not None:
            checkpoint_pin, archive_pin, disk_pin = (
                _pin(znodes, log_pin_path(root, pinned, name)) for name in (CHECKPOINT, ARCHIVE, SECOND_DISK)
            )
            progress = _progress(znodes, archive_progress_path(root, pinned))
            seen = replace(
                seen,
                log_pin=checkpoint_pin,
                disk_pin=disk_pin,
                archive=ArchiveObserved(progress, archive_pin, order=_order(znodes, expiry_order_path(root, pinned))),
                ledgers=_ledgers(znodes, ledgers_path(root, pinned)),
                streams=_streams(znodes, root, pinned, reader.wake),
            )
        leaders = _leaders(znodes, root, reader.wake)
    except (EnsembleError, MalformedDataError) as error:
        why = Unknown(str(error))
        unread = ArchiveObserved(why, why, order=why)
        return replace(seen, record=why, log_left=why, log_pin=why, disk_pin=why, archive=unread, ledgers=why, streams=why)
    return replace(seen, record=record, log_left=left, system_leader=leaders.get(DEFAULT_TABLESPACE), leaderships=Counter(leaders.values()))


def _record(znodes: Znodes, root: str, name: str, wake: Wake | None = None) -> VersionedRecord | RecordAbsent:
    found = znodes.read(tablespace_path(root, name), wake)
    return RecordAbsent() if found is None else VersionedRecord(decode_tablespace(found[0]), found[1])


def _ledgers(znodes: Znodes, path: str) -> LedgerList | Unknown | None:
    found = znodes.read(path)
    try:
        return None if found is None else decode_ledgers(*found)
    except MalformedDataError as error:
        return Unknown(str(error))


def _archiver_trouble(tablespace: Tablespace, reader: ClusterReader) -> str:
    """Returns why the archiver's pod does not run; empty if it runs, or is not wanted."""
    if tablespace.spec.log.archive is None:
        return ""
    pods = reader.kubernetes.owned(tablespace.KIND, tablespace.key, PODS)
    archivers = [pod for pod in pods.of_kind("Pod") if label(pod, names.COMPONENT_LABEL) == names.ARCHIVE_COMPONENT]
    if any(is_ready(pod) for pod in archivers):
        return ""
    return pod_trouble(archivers[0] if archivers else None)


def _secrets_of_archive(tablespace: Tablespace, reader: ClusterReader) -> StoreSecrets | Problem | None:
    archive = tablespace.spec.log.archive
    if archive is None:
        return None
    where, namespace = archive.destination, tablespace.metadata.namespace
    opened_with = observe_store_secrets(where.object_store, namespace, ARCHIVE_FIELD, reader)
    if isinstance(opened_with, Problem):
        return opened_with
    return observe_keys(where.encryption, f"{ARCHIVE_FIELD}encryption", reader, namespace=namespace, writes=True) or opened_with


def _progress(znodes: Znodes, path: str) -> ArchiveProgress | Unknown | None:
    found = znodes.read_changed(path)
    try:
        return None if found is None else decode_archive_progress(found.data, found.changed_at)
    except MalformedDataError as error:
        return Unknown(str(error))


def _order(znodes: Znodes, path: str) -> SeenOrder | None:
    found = znodes.read(path)
    return None if found is None else SeenOrder(_readable(decode_expiry_order, found[0]), found[1])


def _pin(znodes: Znodes, path: str) -> LogPin | None:
    found = znodes.read(path)
    return None if found is None else LogPin(_readable(decode_log_pin, found[0]), found[1])


def _readable(decode: Callable[[bytes], T], data: bytes) -> T | None:
    try:
        return decode(data)
    except MalformedDataError:
        return None


def _streams(znodes: Znodes, root: str, uuid: str, wake: Wake | None) -> tuple[SeenStream, ...]:
    names_of_pins = znodes.children(log_pins_path(root, uuid), wake) or ()
    found = ((name, stream_of(name)) for name in names_of_pins)
    seen = (_stream(znodes, log_pin_path(root, uuid, name), stream) for name, stream in found if stream is not None)
    return tuple(each for each in seen if each is not None)


def _stream(znodes: Znodes, path: str, name: str) -> SeenStream | None:
    found = znodes.read_changed(path)
    if found is None:
        return None
    return SeenStream(name, _readable(decode_stream_pin, found.data), datetime.datetime.fromtimestamp(found.changed_at, datetime.UTC))


def _leaders(znodes: Znodes, root: str, wake: Wake | None) -> dict[str, str]:
    found = {name: _record(znodes, root, name) for name in znodes.children(tablespaces_path(root), wake) or ()}
    return {name: record.record.leader for name, record in found.items() if isinstance(record, VersionedRecord)}
