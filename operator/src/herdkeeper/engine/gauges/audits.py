"""Gauges of the newest audits of each BookKeeperCluster, one set for each depth.

They come from the status of the newest finished ReplicationAudit of the whole cluster. So a restarted operator shows them as soon as it has
read the resources. An audit of chosen ledgers does not count.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from prometheus_client import Gauge
from pydantic.alias_generators import to_camel

from herdkeeper.api import BookKeeperCluster, ReplicationAudit
from herdkeeper.jobs.audit.state import is_of
from herdkeeper.protocol.audit_finding import AuditDepth, Severity
from herdkeeper.shared.names import ObjectKey
from herdkeeper.shared.time import moment_of

_CLUSTER = ["namespace", "bookkeeper", "depth"]
FINDINGS = Gauge("herdkeeper_audit_findings", "Findings of the newest audit, by severity.", [*_CLUSTER, "severity"])
ENTRIES = Gauge("herdkeeper_audit_entries", "Entries that the newest audit covered.", _CLUSTER)
COPIES = Gauge(
    "herdkeeper_audit_copies", "Copies that the newest audit verified, did not read (Light), or could not read.", [*_CLUSTER, "state"]
)
COMPLETED = Gauge(
    "herdkeeper_audit_last_complete_timestamp_seconds",
    "When the newest audit ended that could read every ledger from every bookie.",
    _CLUSTER,
)

CREATED = Gauge(
    "herdkeeper_bookkeeper_created_timestamp_seconds",
    "When the BookKeeperCluster was created: a new one may have no audit yet.",
    ["namespace", "bookkeeper"],
)

_SEVERITIES = {to_camel(each.name.lower()): each.value for each in Severity}
"""By their name in a status."""
_STATES = {"replicas": "verified", "replicasUnread": "unread", "replicasUnknown": "unknown"}


class LastAudits:
    """The audits that the gauges show. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._shown: dict[tuple[str, str, str], datetime] = {}
        self._complete: dict[tuple[str, str, str], datetime] = {}
        self._created: dict[tuple[str, str], datetime] = {}

    def show_cluster(self, cluster: BookKeeperCluster) -> None:
        """Shows when the cluster was created. Removes the audits of an earlier cluster of its name."""
        created = moment_of(cluster.metadata.creation_timestamp)
        if created is None:
            return
        key = (cluster.metadata.namespace, cluster.metadata.name)
        with self._lock:
            if self._created.get(key, created) != created:
                self._forget_audits(key)
            self._created[key] = created
            CREATED.labels(*key).set(created.timestamp())

    def show(self, audit: ReplicationAudit, status: Mapping[str, Any], cluster: BookKeeperCluster) -> None:
        """Shows a finished audit of the whole cluster, unless a newer one of its depth is shown."""
        counts = status.get("findingsBySeverity")
        if status.get("phase") != "Succeeded" or not status.get("completedAt") or counts is None or audit.spec.chooses_ledgers:
            return
        labels = (audit.metadata.namespace, audit.spec.book_keeper_ref.name, audit.spec.depth)
        ended = datetime.fromisoformat(status["completedAt"])
        if not is_of(cluster, status.get("instanceId"), ended):
            return
        with self._lock:
            # A ledger whose end or metadata could not be read has no copies that count as unknown, only a finding.
            if not status.get("replicasUnknown") and not counts.get("unknown") and self._complete.get(labels, ended) <= ended:
                self._complete[labels] = ended
                COMPLETED.labels(*labels).set(ended.timestamp())
            if self._shown.get(labels, ended) > ended:
                return
            self._shown[labels] = ended
            ENTRIES.labels(*labels).set(status.get("entries") or 0)
            for name, severity in _SEVERITIES.items():
                FINDINGS.labels(*labels, severity).set(counts.get(name) or 0)
            for name, state in _STATES.items():
                COPIES.labels(*labels, state).set(status.get(name) or 0)

    def forget(self, cluster: ObjectKey) -> None:
        with self._lock:
            self._created.pop((cluster.namespace, cluster.name), None)
            CREATED.remove(cluster.namespace, cluster.name)
            self._forget_audits((cluster.namespace, cluster.name))

    def _forget_audits(self, cluster: tuple[str, str]) -> None:
        """The caller holds the lock."""
        for depth in AuditDepth:
            labels = (*cluster, depth.value)
            self._shown.pop(labels, None)
            self._complete.pop(labels, None)
        for gauge in (FINDINGS, ENTRIES, COPIES, COMPLETED):
            gauge.remove_by_labels({"namespace": cluster[0], "bookkeeper": cluster[1]})


LAST_AUDITS = LastAudits()
