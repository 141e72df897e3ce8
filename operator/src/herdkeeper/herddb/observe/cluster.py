"""Observes a HerdDBCluster."""

from __future__ import annotations

import secrets
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

from herdkeeper.api import BookKeeperCluster, HerdDBCluster, Tablespace
from herdkeeper.certificates.holders import NOTHING_DUE, DueSecrets
from herdkeeper.clients.cluster_reader import ClusterReader
from herdkeeper.clients.dependents import observe_dependents
from herdkeeper.clients.identities import observe_identities
from herdkeeper.clients.kubernetes import SECRETS, SHARED, WORKLOADS
from herdkeeper.clients.nodes import nodes_of_doubted
from herdkeeper.clients.stack import ensemble_disruption, servers_disruption
from herdkeeper.clients.zookeeper import EnsembleError
from herdkeeper.codecs.herddb.node import nodes_path
from herdkeeper.codecs.herddb.tablespace import DEFAULT_TABLESPACE, decode_tablespace, tablespace_path, tablespaces_path
from herdkeeper.codecs.herddb.users import FIT, FIT_FOR_ADMINISTRATOR, invalid_part, invalid_part_of_administrator
from herdkeeper.codecs.java_data import MalformedDataError
from herdkeeper.herddb.observe.address import NodeAddress, NodePort, port_of_node, with_authorities
from herdkeeper.herddb.observe.tls import read_tls
from herdkeeper.herddb.observe.zookeeper_clock import Heartbeats, read_times
from herdkeeper.herddb.state.certificate_holder import certificate_holder
from herdkeeper.herddb.state.cluster import (
    Counts,
    CredentialsMissing,
    FullCheck,
    HerdDBObserved,
    NodeTablespace,
    NodeView,
    RetainedLog,
    TableVerdict,
    Unreplayable,
    UserCredentials,
)
from herdkeeper.herddb.state.log_store import LogStore, log_store
from herdkeeper.herddb.state.nodes import mounted_secret, present_nodes
from herdkeeper.herddb.state.zookeeper_times import NOT_TOLD, ZooKeeperTimes
from herdkeeper.herddb.tablespace.observe_verdicts import Declared, declared_tablespaces, judged_nodes
from herdkeeper.herddb.tablespace.record import VersionedRecord
from herdkeeper.protocol.log_pin import SECOND_DISK, log_pin_path
from herdkeeper.protocol.self_report import SelfReport
from herdkeeper.shared import names
from herdkeeper.shared.names import HerdDBNames, ObjectKey, TablespaceNames
from herdkeeper.shared.objects import Objects, why_gone
from herdkeeper.shared.reason import Reason
from herdkeeper.shared.unknown import Unknown

MOST_READERS = 8
SILENT_SECONDS = 2.0
"""A node that was silent for so long, twice its report interval, is not asked: clients would wait for its timeout. Nor is one that reports
no answer from ZooKeeper for so long: it needs ZooKeeper to report its tablespaces."""


def observe_herddb(cluster: HerdDBCluster, reader: ClusterReader) -> HerdDBObserved:
    """Returns all that is known of a cluster: its leaders, its credentials, and its root in ZooKeeper."""
    seen = observe_leadership(cluster, reader)
    log, root = log_store(seen.bookkeeper), cluster.names.herd_root
    return replace(
        seen,
        root_parent=_exists(reader, log, root.rpartition("/")[0]),
        root=_exists(reader, log, root),
        credentials=read_credentials(cluster, reader),
        registered=_registered(reader, log, root),
        fresh_password=secrets.token_urlsafe(24),
        fresh_token=secrets.token_urlsafe(32),
        dependents=observe_dependents(cluster, Tablespace, reader),
        disruption=_disruption(seen.bookkeeper, reader),
        machines=nodes_of_doubted(seen.objects, present_nodes(cluster, seen.objects), reader),
        tls=read_tls(cluster, log, reader) if log is not None else None,
        identities=_identities(cluster, log, reader),
        users=read_users(cluster, reader),
        ownerless_pins=_ownerless_pins(reader, log, root, _undeclared(seen.records, declared_tablespaces(cluster, reader))),
    )


def observe_leadership(cluster: HerdDBCluster, reader: ClusterReader) -> HerdDBObserved:
    """Returns what shows who leads each tablespace, and who could: objects, HerdDB's records, heartbeats, and the nodes' views."""
    key = cluster.key
    named = HerdDBNames(key)
    objects = reader.kubernetes.owned(cluster.KIND, key, (*WORKLOADS, *SHARED, *SECRETS))
    bookkeeper = reader.kubernetes.readable(BookKeeperCluster, ObjectKey(key.namespace, cluster.spec.book_keeper_ref.name))
    log = log_store(bookkeeper)
    declared = declared_tablespaces(cluster, reader)
    tablespaces = tuple(each.tablespace for each in declared if each.readable)
    # ZooKeeper first: the first answer may take seconds, during which a node may stay silent.
    records = _records(reader, log, named.herd_root)
    silent_seconds = _silent_seconds(cluster, objects, reader)
    reports = _reports(objects, silent_seconds, reader)
    doubted = _doubted(silent_seconds, reports)
    nodes = judged_nodes(cluster, _read_running_nodes(cluster, objects, doubted, reader), declared, reader)
    times, heartbeats = _times(reader, log, records, named.herd_root)
    return HerdDBObserved(
        objects=objects,
        bookkeeper=bookkeeper,
        nodes=nodes,
        records=records,
        tablespaces=tablespaces,
        unread=tuple(each.tablespace.metadata.name for each in declared if not each.readable),
        taken_services=_taken_services(tablespaces, objects, reader),
        now=time.time(),
        silent_seconds=silent_seconds,
        reports=reports,
        heartbeats=heartbeats,
        zookeeper=times,
    )


def _identities(cluster: HerdDBCluster, log: LogStore | None, reader: ClusterReader) -> DueSecrets:
    if log is None:
        return NOTHING_DUE
    return observe_identities(cluster, (certificate_holder(cluster),), log.zookeeper_address, reader.kubernetes)


def _undeclared(records: Mapping[str, VersionedRecord] | Unknown, declared: Sequence[Declared]) -> list[str]:
    """Returns the uuids of the tablespaces that no resource declares, readable or not."""
    if isinstance(records, Unknown):
        return []
    names_declared = {each.sql_name.lower() for each in declared} | {DEFAULT_TABLESPACE}
    return [found.record.uuid for name, found in sorted(records.items()) if name.lower() not in names_declared]


def _ownerless_pins(reader: ClusterReader, log: LogStore | None, root: str, uuids: Sequence[str]) -> tuple[tuple[str, int], ...]:
    if log is None or not uuids:
        return ()
    paths = [log_pin_path(root, uuid, SECOND_DISK) for uuid in uuids]
    try:
        znodes = reader.znodes(log.zookeeper_address, log.namespace)
        return tuple((path, found[1]) for path in paths if (found := znodes.read(path)) is not None)
    except EnsembleError:
        return ()


def _disruption(bookkeeper: BookKeeperCluster | None, reader: ClusterReader) -> str | None:
    """Returns which bookie, or ensemble member, is being disrupted."""
    return None if bookkeeper is None else servers_disruption(bookkeeper, reader) or ensemble_disruption(bookkeeper, reader)


def read_credentials(cluster: HerdDBCluster, reader: ClusterReader) -> UserCredentials | CredentialsMissing | None:
    """Returns the administrator's credentials. None if they are yet to be generated."""
    namespace = cluster.metadata.namespace
    reference = cluster.spec.credentials_secret_ref
    named = HerdDBNames(ObjectKey(namespace, cluster.metadata.name))
    name = reference.name if reference else named.generated_secret
    values = reader.kubernetes.secret(ObjectKey(namespace, name))
    if values is None:
        return CredentialsMissing(Reason.WAITING_FOR_SECRET, f"the Secret {name} does not exist") if reference else None
    login = _login_of(name, values)
    if isinstance(login, UserCredentials) and (part := invalid_part_of_administrator(login.username, login.password)) is not None:
        return _unfit(Reason.INVALID_SPEC, name, part, FIT_FOR_ADMINISTRATOR)
    return login


def read_users(cluster: HerdDBCluster, reader: ClusterReader) -> dict[str, UserCredentials | CredentialsMissing]:
    """Returns the contents of the Secrets of `spec.users`, by name."""
    keys = [ObjectKey(cluster.metadata.namespace, user.secret_name) for user in cluster.spec.users]
    if not keys:
        return {}
    # all concurrently: a lost leader is replaced only after this observation
    with ThreadPoolExecutor(max_workers=min(MOST_READERS, len(keys))) as readers:
        values = dict(zip((key.name for key in keys), readers.map(reader.kubernetes.secret, keys), strict=True))
    missing = CredentialsMissing(
        Reason.WAITING_FOR_SECRET, f"the Secret does not exist; create it with {names.USERNAME_KEY} and {names.PASSWORD_KEY}"
    )
    return {name: missing if held is None else _user_of(name, held) for name, held in values.items()}


def _user_of(name: str, values: Mapping[str, str]) -> UserCredentials | CredentialsMissing:
    login = _login_of(name, values)
    if isinstance(login, UserCredentials) and (part := invalid_part(login.username, login.password)) is not None:
        return _unfit(Reason.INVALID_SECRET, name, part, FIT)
    return login


def _unfit(reason: Reason, name: str, part: str, fix: str) -> CredentialsMissing:
    return CredentialsMissing(reason, f"the Secret {name} has a {part} that HerdDB's users file can't hold: {fix}")


def _login_of(name: str, values: Mapping[str, str]) -> UserCredentials | CredentialsMissing:
    missing = [entry for entry in (names.USERNAME_KEY, names.PASSWORD_KEY) if not values.get(entry)]
    if missing:
        return CredentialsMissing(Reason.WAITING_FOR_SECRET, f"the Secret {name} lacks {' and '.join(missing)}: add it")
    return UserCredentials(values[names.USERNAME_KEY], values[names.PASSWORD_KEY])


def read_token(cluster: HerdDBCluster, reader: ClusterReader) -> str | Unknown:
    """Returns the token for the nodes' HTTP port."""
    secret = mounted_secret(cluster)
    values = reader.kubernetes.secret(ObjectKey(cluster.metadata.namespace, secret))
    token = (values or {}).get(names.TOKEN_KEY)
    return token or Unknown(f"the Secret {secret} has no {names.TOKEN_KEY} yet")


def read_nodes(cluster: HerdDBCluster, objects: Objects, reader: ClusterReader) -> dict[str, NodeView | Unknown]:
    """Returns each Ready node's view of its tablespaces (images/herddb, GET /tablespaces), by pod name."""
    ready = [node for node in present_nodes(cluster, objects) if objects.pod_ready(node)]
    return _read_all({node: port_of_node(cluster.names, objects, node) for node in ready}, reader)


def _read_all(ports: Mapping[str, NodePort | Unknown], reader: ClusterReader) -> dict[str, NodeView | Unknown]:
    """All concurrently: a silent node does not delay the others."""
    if not ports:
        return {}

    def read(port: NodePort | Unknown) -> NodeView | Unknown:
        address = port if isinstance(port, Unknown) else with_authorities(port, reader.kubernetes)
        return address if isinstance(address, Unknown) else read_node(reader, address)

    with ThreadPoolExecutor(max_workers=min(MOST_READERS, len(ports))) as readers:
        return dict(zip(ports, readers.map(read, ports.values()), strict=True))


def _read_running_nodes(
    cluster: HerdDBCluster, objects: Objects, doubted: Mapping[str, Unknown], reader: ClusterReader
) -> dict[str, NodeView | Unknown]:
    """Returns the views of all nodes whose process has not ended as far as Kubernetes knows: a leader that is about to stop
    still serves.
    """
    running = [node for node in present_nodes(cluster, objects) if why_gone(objects.get("Pod", node)) is None]
    asked = {node: port_of_node(cluster.names, objects, node) for node in running if node not in doubted}
    return {**_read_all(asked, reader), **doubted}


def _silent_seconds(cluster: HerdDBCluster, objects: Objects, reader: ClusterReader) -> dict[str, float]:
    pods = {node: objects.get("Pod", node) for node in present_nodes(cluster, objects)}
    found = {node: reader.liveness.silent_seconds(pod["metadata"]["uid"]) for node, pod in pods.items() if pod is not None}
    return {node: seconds for node, seconds in found.items() if seconds is not None}


def _reports(objects: Objects, silent_seconds: Mapping[str, float], reader: ClusterReader) -> dict[str, SelfReport]:
    """Returns the reports of nodes that are not silent: an old report may be outdated."""
    speaking = [node for node, seconds in silent_seconds.items() if seconds < SILENT_SECONDS]
    pods = {node: pod for node in speaking if (pod := objects.get("Pod", node)) is not None}
    found = {node: reader.liveness.last_report(pod["metadata"]["uid"]) for node, pod in pods.items()}
    return {node: report for node, report in found.items() if report is not None}


def _doubted(silent_seconds: Mapping[str, float], reports: Mapping[str, SelfReport]) -> dict[str, Unknown]:
    """Returns the nodes that are not asked, and why."""
    silent = {node: Unknown("its process sends no heartbeat") for node, seconds in silent_seconds.items() if seconds >= SILENT_SECONDS}
    cut_off = {
        node: Unknown("it reports that ZooKeeper does not answer it")
        for node, report in reports.items()
        if report.zookeeper_silent >= SILENT_SECONDS
    }
    return {**silent, **cut_off}


def _times(
    reader: ClusterReader, log: LogStore | None, records: Mapping[str, VersionedRecord] | Unknown, root: str
) -> tuple[ZooKeeperTimes, Heartbeats]:
    """Returns nothing for what can't be read."""
    if log is None or isinstance(records, Unknown):
        return NOT_TOLD, {}
    try:
        return read_times(reader.znodes(log.zookeeper_address, log.namespace), root, records)
    except EnsembleError:
        return NOT_TOLD, {}


def read_node(reader: ClusterReader, address: NodeAddress) -> NodeView | Unknown:
    """Returns one node's view."""
    url = address.url("/tablespaces")
    answer = reader.http.get(url, address.trust)
    if isinstance(answer, Unknown):
        return answer
    try:
        return tuple(_tablespace(entry) for entry in answer)
    except (KeyError, TypeError) as error:
        return Unknown(f"{url} did not answer with tablespaces: {error!r}")


def _tablespace(entry: dict[str, Any]) -> NodeTablespace:
    # a node that does not name the leader has compared HerdDB's own digest, which fails equal replicas
    told = {table: check for table, check in sorted((entry.get("checks") or {}).items()) if "leader" in check}
    return NodeTablespace(
        name=str(entry["name"]),
        uuid=str(entry["uuid"]),
        role=str(entry["role"]),
        ready=bool(entry["ready"]),
        lsn=_lsn(entry.get("applied")),
        last_error=entry.get("lastError"),
        checkpoint=_lsn(entry.get("checkpoint")),
        recoverable=entry.get("recoverable"),
        retained_log=_retained(entry.get("retainedLog")),
        checks=tuple(_verdict(table, check) for table, check in told.items()),
        full_check=_full_check(entry),
        barred=entry.get("barred"),
        blocked_seconds=_seconds(entry.get("blockedSeconds")),
        counts=_counts(entry.get("counts")),
        unreplayable=_unreplayable(entry.get("unreplayable")),
    )


def _seconds(told: object) -> float | None:
    return float(told) if isinstance(told, int | float) else None


def _counts(told: dict[str, Any] | None) -> Counts | None:
    lsn = _lsn(told["position"]) if told and told["exact"] is True else None
    return Counts(lsn, {str(table): int(rows) for table, rows in told["tables"].items()}) if told and lsn is not None else None


def _unreplayable(told: dict[str, Any] | None) -> Unreplayable | None:
    if not told:
        return None
    lsn, disk = (int(told["ledgerId"]), int(told["offset"])), told.get("disk") is True
    return Unreplayable(lsn, str(told["entryType"]), told.get("table"), str(told["message"]), disk)


def _verdict(table: str, told: dict[str, Any]) -> TableVerdict:
    position = told["position"]
    return TableVerdict(table, bool(told["pass"]), (int(position["ledgerId"]), int(position["entryId"])), str(told["leader"]))


def _full_check(entry: dict[str, Any]) -> FullCheck | Unknown | None:
    """An unreadable check must not hide the rest, which shows who can lead."""
    if "fullCheck" not in entry:
        return Unknown("its node program is too old: change the image of the HerdDBCluster")
    try:
        return _reported_check(entry["fullCheck"]) if entry["fullCheck"] is not None else None
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        return Unknown(f"its node program reports an unreadable check: {error!r}")


def _reported_check(told: dict[str, Any]) -> FullCheck:
    return FullCheck(
        started_millis=int(told["startedAtMillis"]),
        ended_millis=None if told["endedAtMillis"] is None else int(told["endedAtMillis"]),
        after=(int(told["after"]["ledgerId"]), int(told["after"]["entryId"])),
        until=_lsn(told["until"]),
        tables=tuple((str(table), int(millis)) for table, millis in sorted(told["tables"].items())),
        not_checked=tuple((str(table), str(why)) for table, why in sorted(told["notChecked"].items())),
        writes_stopped_millis=int(told["writesStoppedMillis"]),
        longest_stop_millis=int(told["longestStopMillis"]),
        error=told["error"],
    )


def _retained(told: dict[str, Any] | None) -> RetainedLog | None:
    return RetainedLog(int(told["ledgers"]), int(told["sinceMillis"]), tuple(map(str, told["keptFor"]))) if told else None


def _lsn(position: dict[str, Any] | None) -> tuple[int, int] | None:
    return (int(position["ledgerId"]), int(position["entryId"])) if position else None


def _records(reader: ClusterReader, log: LogStore | None, root: str) -> dict[str, VersionedRecord] | Unknown:
    """Returns HerdDB's record of each tablespace, with the time of its last change."""
    if log is None:
        return Unknown("the BookKeeperCluster does not name its ZooKeeper yet")
    try:
        znodes = reader.znodes(log.zookeeper_address, log.namespace)
        known = znodes.children(tablespaces_path(root), reader.wake) or ()
        found = {name: znodes.read_changed(tablespace_path(root, name), reader.wake) for name in known}
        return {
            name: VersionedRecord(decode_tablespace(znode.data), znode.version, znode.changed_at)
            for name, znode in found.items()
            if znode is not None
        }
    except (EnsembleError, MalformedDataError) as error:
        return Unknown(str(error))


def _registered(reader: ClusterReader, log: LogStore | None, root: str) -> tuple[str, ...] | Unknown:
    if log is None:
        return Unknown("the BookKeeperCluster does not name its ZooKeeper yet")
    try:
        return reader.znodes(log.zookeeper_address, log.namespace).children(nodes_path(root), reader.wake) or ()
    except EnsembleError as error:
        return Unknown(str(error))


def _taken_services(tablespaces: Sequence[Tablespace], objects: Objects, reader: ClusterReader) -> frozenset[str]:
    """Read one by one, but only until the Service exists."""
    keys = [each.key for each in tablespaces]
    services = [ObjectKey(key.namespace, TablespaceNames(key).leader_service) for key in keys]
    missing = [key for key in services if objects.get("Service", key.name) is None]
    return frozenset(key.name for key in missing if reader.kubernetes.document("v1", "Service", key) is not None)


def _exists(reader: ClusterReader, log: LogStore | None, path: str) -> bool | Unknown:
    if log is None:
        return Unknown("the BookKeeperCluster does not name its ZooKeeper yet")
    try:
        return reader.znodes(log.zookeeper_address, log.namespace).read(path) is not None
    except EnsembleError as error:
        return Unknown(str(error))
