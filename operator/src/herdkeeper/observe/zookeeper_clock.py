"""Reads what tells the time by ZooKeeper's clock."""

from __future__ import annotations

from collections.abc import Mapping

from herdkeeper.domain.observed.tablespace_record import VersionedRecord
from herdkeeper.domain.observed.zookeeper_times import ZooKeeperTimes
from herdkeeper.formats.herddb_node import node_path
from herdkeeper.formats.herddb_tablespace import heartbeat_path
from herdkeeper.observe.ensembles import Ensemble


def read_times(ensemble: Ensemble, root: str, records: Mapping[str, VersionedRecord]) -> ZooKeeperTimes:
    """Of all copies that these records name, since one that fails sends no heartbeats, and of their nodes. Raises EnsembleError."""
    copies = [(found.record.uuid, node) for found in records.values() for node in found.record.replicas]
    nodes = sorted({node for _, node in copies})
    beats = ensemble.changed_many([heartbeat_path(root, uuid, node) for uuid, node in copies])
    registered = ensemble.changed_many([node_path(root, node) for node in nodes])
    return ZooKeeperTimes(
        max((moment for moment in beats if moment is not None), default=None),
        {node: moment for node, moment in zip(nodes, registered, strict=True) if moment is not None},
    )
