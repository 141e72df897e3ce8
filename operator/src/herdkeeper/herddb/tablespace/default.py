"""HerdDB's own tablespace `herd`, which every node needs and only one has at first.

A statement is planned with the connection's default tablespace, mostly `herd`. A node without a replica of it delays such a client by a
minute. HerdDB creates it with one replica and without failover.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from herdkeeper.codecs.herddb.tablespace import DEFAULT_TABLESPACE
from herdkeeper.herddb.record_change import record_change
from herdkeeper.herddb.state.fleet import SqlFleet
from herdkeeper.herddb.state.log_store import LogStore
from herdkeeper.herddb.tablespace.plan import EXPECTED_REPLICAS
from herdkeeper.herddb.tablespace.replicas import AddReplica, RemoveReplica, ReplicaState, next_replica
from herdkeeper.planning.actions import ChangeTablespaceRecord
from herdkeeper.shared.unknown import Unknown

MAX_INACTIVITY_MILLIS = 60_000


def plan_default_tablespace(fleet: SqlFleet, log: LogStore, leaving: Sequence[str] = ()) -> tuple[ChangeTablespaceRecord, ...]:
    """Returns the next change of its record: the failover settings, then one replica after the other, each once the others are settled.
    Finally the replicas of leaving nodes are removed.
    """
    found = fleet.records.get(DEFAULT_TABLESPACE) if not isinstance(fleet.records, Unknown) else None
    if found is None:
        return ()
    record = found.record
    if (record.expected_replica_count, record.max_leader_inactivity_millis) != (EXPECTED_REPLICAS, MAX_INACTIVITY_MILLIS):
        wished = replace(record, expected_replica_count=EXPECTED_REPLICAS, max_leader_inactivity_millis=MAX_INACTIVITY_MILLIS)
        return (record_change(fleet.cluster, log, replace(found, record=wished), "failover enabled"),)
    ready = [node for node in fleet.staying if fleet.objects.pod_ready(node)]
    free = [node for node in ready if node not in record.replicas and not isinstance(fleet.view_of(node), Unknown)]
    # at least one: while no remaining node serves, leaving nodes keep their replicas
    wanted = max(1, len(free) + sum(node not in leaving for node in record.replicas))
    copies = {node: fleet.replica_on(node, DEFAULT_TABLESPACE) for node in {record.leader, *record.replicas}}
    match next_replica(ReplicaState(record, wanted, frozenset(leaving), copies, free)):
        case AddReplica(node):
            grown = replace(record, replicas=(*record.replicas, node))
            return (record_change(fleet.cluster, log, replace(found, record=grown), f"replica on {node}"),)
        case RemoveReplica(node, why):
            fewer = replace(record, replicas=tuple(other for other in record.replicas if other != node))
            return (record_change(fleet.cluster, log, replace(found, record=fewer), f"no replica on {node} any more, since {why}"),)
        case _:
            return ()
