"""Reads what SQL nodes tell of their tablespaces. Format: images/herddb, NodeEndpoints."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from herdkeeper.api import HerdDBCluster
from herdkeeper.clients.cluster_reader import ClusterReader
from herdkeeper.herddb.observe.address import NodeAddress, NodePort, port_of_node, with_authorities
from herdkeeper.herddb.state.cluster import (
    MOST_READ_TABLESPACES,
    Counts,
    FullCheck,
    NodeTablespace,
    NodeView,
    RetainedLog,
    TableVerdict,
    Unreplayable,
)
from herdkeeper.herddb.state.nodes import present_nodes
from herdkeeper.shared.objects import Objects
from herdkeeper.shared.unknown import Unknown

_MOST_READERS = 8
_UNREADABLE = (KeyError, TypeError, ValueError, AttributeError, OverflowError)
"""What reading a document of another form raises."""


def read_nodes(cluster: HerdDBCluster, objects: Objects, reader: ClusterReader) -> dict[str, NodeView | Unknown]:
    """Returns each Ready node's view of its tablespaces (images/herddb, GET /tablespaces), by pod name."""
    ready = [node for node in present_nodes(cluster, objects) if objects.pod_ready(node)]
    return read_ports({node: port_of_node(cluster.names, objects, node) for node in ready}, reader)


def read_ports(ports: Mapping[str, NodePort | Unknown], reader: ClusterReader) -> dict[str, NodeView | Unknown]:
    """Returns the views of nodes, by name. All are asked concurrently: a silent node does not delay the others."""
    if not ports:
        return {}

    def read(port: NodePort | Unknown) -> NodeView | Unknown:
        address = port if isinstance(port, Unknown) else with_authorities(port, reader.kubernetes)
        return address if isinstance(address, Unknown) else read_node(reader, address)

    with ThreadPoolExecutor(max_workers=min(_MOST_READERS, len(ports))) as readers:
        return dict(zip(ports, readers.map(read, ports.values()), strict=True))


def read_node(reader: ClusterReader, address: NodeAddress) -> NodeView | Unknown:
    url = address.url("/tablespaces")
    answer = reader.http.get(url, address.trust)
    if isinstance(answer, Unknown):
        return answer
    try:
        if len(answer) > MOST_READ_TABLESPACES:
            return Unknown(f"{url} tells of {len(answer)} tablespaces, more than {MOST_READ_TABLESPACES}")
        return tuple(_tablespace(entry) for entry in answer)
    except _UNREADABLE as error:
        return Unknown(f"{url} did not answer with tablespaces: {error!r}")


def _tablespace(entry: dict[str, Any]) -> NodeTablespace:
    # a node that does not name the leader has compared HerdDB's own digest, which fails equal replicas
    told = {table: check for table, check in sorted((entry.get("checks") or {}).items()) if "leader" in check}
    last_error, blocked = entry.get("lastError"), entry.get("blockedSeconds")
    return NodeTablespace(
        name=str(entry["name"]),
        uuid=str(entry["uuid"]),
        role=str(entry["role"]),
        ready=bool(entry["ready"]),
        lsn=_lsn(entry.get("applied")),
        last_error=None if last_error is None else str(last_error),
        checkpoint=_lsn(entry.get("checkpoint")),
        recoverable=entry.get("recoverable"),
        retained_log=_retained(entry.get("retainedLog")),
        checks=tuple(_verdict(table, check) for table, check in told.items()),
        full_check=_full_check(entry),
        barred=entry.get("barred"),
        barred_until=_barred_until(entry),
        blocked_seconds=float(blocked) if isinstance(blocked, int | float) else None,
        counts=_counts(entry.get("counts")),
        unreplayable=_unreplayable(entry.get("unreplayable")),
    )


def _barred_until(entry: dict[str, Any]) -> tuple[int, int] | Unknown | None:
    if not entry.get("barred") or "barredUntil" not in entry:
        return None
    return _lsn(entry["barredUntil"]) or Unknown("the node's disk does not show the LSN at which the replica differed")


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
    except _UNREADABLE as error:
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
