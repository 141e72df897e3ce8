"""HerdDB's own tablespace `herd`, which every node needs and only one has at first.

A statement is planned with the connection's default tablespace, which for most clients is `herd`: a node without a copy of it keeps such a
client waiting for a minute. HerdDB makes it with one replica and without failover.
"""

from __future__ import annotations

from dataclasses import replace

from herdkeeper.api import HerdDBCluster
from herdkeeper.build.log_store import LogStore
from herdkeeper.domain import names
from herdkeeper.domain.names import HerdDBNames, ObjectKey
from herdkeeper.domain.observed.herddb import HerdDBObserved
from herdkeeper.domain.observed.tablespace_record import VersionedRecord
from herdkeeper.domain.unknown import Unknown
from herdkeeper.formats.herddb_tablespace import tablespace_path
from herdkeeper.plan.action import ChangeTablespaceRecord

DEFAULT_TABLESPACE = "herd"
MAX_INACTIVITY_MILLIS = 60_000
EXPECTED_REPLICAS = 1


def plan_default_tablespace(cluster: HerdDBCluster, seen: HerdDBObserved, log: LogStore) -> tuple[ChangeTablespaceRecord, ...]:
    """The next change of its record: the failover's settings, then one replica after the other, each once the others are settled."""
    found = seen.records.get(DEFAULT_TABLESPACE) if not isinstance(seen.records, Unknown) else None
    if found is None:
        return ()
    record = found.record
    if (record.expected_replica_count, record.max_leader_inactivity_millis) != (EXPECTED_REPLICAS, MAX_INACTIVITY_MILLIS):
        wished = replace(record, expected_replica_count=EXPECTED_REPLICAS, max_leader_inactivity_millis=MAX_INACTIVITY_MILLIS)
        return (_change(cluster, log, VersionedRecord(wished, found.version), "made able to fail over"),)
    named = HerdDBNames(ObjectKey(cluster.metadata.namespace, cluster.metadata.name))
    ready = [pod for pod in map(named.pod, range(cluster.spec.replicas)) if _answers(seen, pod)]
    missing = [pod for pod in ready if pod not in record.replicas]
    if not missing or not all(_settled(seen, node) for node in record.replicas):
        return ()
    grown = replace(record, replicas=(*record.replicas, missing[0]))
    return (_change(cluster, log, VersionedRecord(grown, found.version), f"replica on {missing[0]}"),)


def _answers(seen: HerdDBObserved, node: str) -> bool:
    return seen.objects.pod_ready(node) and not isinstance(seen.nodes.get(node, Unknown("it was not asked")), Unknown)


def _settled(seen: HerdDBObserved, node: str) -> bool:
    view = seen.nodes.get(node, Unknown("it was not asked"))
    return not isinstance(view, Unknown) and any(copy.name == DEFAULT_TABLESPACE and copy.ready for copy in view)


def _change(cluster: HerdDBCluster, log: LogStore, wished: VersionedRecord, why: str) -> ChangeTablespaceRecord:
    root = names.herd_root(ObjectKey(cluster.metadata.namespace, cluster.metadata.name))
    return ChangeTablespaceRecord(log.zookeeper_address, tablespace_path(root, wished.record.name), wished.record, wished.version, why)
