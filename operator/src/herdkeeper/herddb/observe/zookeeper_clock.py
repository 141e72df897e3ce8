"""Reads times by ZooKeeper's clock: heartbeats of replicas, and when their nodes registered."""

from __future__ import annotations

from collections.abc import Mapping

from herdkeeper.clients.zookeeper import Znodes
from herdkeeper.codecs.herddb.node import node_path
from herdkeeper.codecs.herddb.tablespace import heartbeat_path
from herdkeeper.herddb.state.cluster import VersionedRecord
from herdkeeper.herddb.state.zookeeper_times import ZooKeeperTimes

Heartbeats = Mapping[str, Mapping[str, float]]
"""By tablespace, as its record names it, and node, in Unix seconds by ZooKeeper's clock."""


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
