"""Gauges of times and counts in a resource's status. Each exists while the status has its value."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from prometheus_client import Gauge

from herdkeeper.api import BookKeeperCluster, HerdDBCluster, ScheduledCheckpoint, Tablespace, ZooKeeperCluster
from herdkeeper.shared.time import moment_of

UNDER_REPLICATED = Gauge(
    "herdkeeper_under_replicated_ledgers",
    "Ledgers that BookKeeper's auditor has marked as under-replicated, counted up to 1000.",
    ["namespace", "bookkeeper"],
)
UNDER_REPLICATED_SINCE = Gauge(
    "herdkeeper_under_replicated_since_timestamp_seconds",
    "When the oldest of these marks was made; absent while there is none.",
    ["namespace", "bookkeeper"],
)
CERTIFICATE_EXPIRES = Gauge(
    "herdkeeper_certificate_expires_timestamp_seconds",
    "When the certificate that SQL nodes serve with expires; absent without TLS.",
    ["namespace", "herddb"],
)
AUTHORITY_EXPIRES = Gauge(
    "herdkeeper_authority_expires_timestamp_seconds",
    "When the authority that signs the certificates of a stack's servers expires; absent without them.",
    ["namespace", "zookeeper"],
)
ARCHIVED_UNTIL = Gauge(
    "herdkeeper_archive_current_timestamp_seconds",
    "All of the log that was confirmed at this time is archived; absent without an archive.",
    ["namespace", "tablespace"],
)
LAST_ARCHIVED_ENTRY = Gauge(
    "herdkeeper_archive_last_entry_timestamp_seconds",
    "When the newest archived entry was written, by its leader's clock; absent while the archive has no entry.",
    ["namespace", "tablespace"],
)
WINDOW_BEGINS = Gauge(
    "herdkeeper_recovery_window_begins_timestamp_seconds",
    "The first moment that can be restored from the archive; absent while there is none.",
    ["namespace", "tablespace"],
)
WINDOW_ENDS = Gauge(
    "herdkeeper_recovery_window_ends_timestamp_seconds",
    "The last moment that can be restored from the archive; absent while there is none.",
    ["namespace", "tablespace"],
)
VERIFIED = Gauge(
    "herdkeeper_checkpoint_last_verified_timestamp_seconds",
    "When the newest verified Checkpoint of a ScheduledCheckpoint ended; absent without one.",
    ["namespace", "schedule"],
)

_SHOWN: Mapping[str, tuple[tuple[Gauge, tuple[str, ...]], ...]] = {
    ZooKeeperCluster.KIND: ((AUTHORITY_EXPIRES, ("authorityExpires",)),),
    BookKeeperCluster.KIND: ((UNDER_REPLICATED, ("underReplicatedLedgers",)), (UNDER_REPLICATED_SINCE, ("underReplicatedSince",))),
    HerdDBCluster.KIND: ((CERTIFICATE_EXPIRES, ("certificateExpires",)),),
    Tablespace.KIND: (
        (ARCHIVED_UNTIL, ("archive", "currentAt")),
        (LAST_ARCHIVED_ENTRY, ("archive", "lsnTimestamp")),
        (WINDOW_BEGINS, ("recoveryWindow", "from")),
        (WINDOW_ENDS, ("recoveryWindow", "to")),
    ),
    ScheduledCheckpoint.KIND: ((VERIFIED, ("newestVerifiedTime",)),),
}
"""The gauges of each kind, with the path of the value in the status."""


def show_figures(kind: str, namespace: str, name: str, status: Mapping[str, Any]) -> None:
    """Shows the values in a resource's status, and removes the other gauges. An empty status removes all."""
    for gauge, path in _SHOWN.get(kind, ()):
        value = _number(status, path)
        if value is not None:
            gauge.labels(namespace, name).set(value)
        else:
            gauge.remove(namespace, name)


def _number(status: Mapping[str, Any], path: tuple[str, ...]) -> float | None:
    """Returns a count as it is, a time in Unix seconds."""
    found: Any = status
    for part in path:
        found = (found or {}).get(part)
    if found is None or isinstance(found, int):
        return found
    moment = moment_of(found)
    return None if moment is None else moment.timestamp()
