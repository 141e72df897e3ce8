"""A change of HerdDB's record of a tablespace, as an action."""

from __future__ import annotations

from herdkeeper.api import HerdDBCluster
from herdkeeper.codecs.herddb.tablespace import tablespace_path
from herdkeeper.herddb.state.cluster import VersionedRecord
from herdkeeper.herddb.state.log_store import LogStore
from herdkeeper.planning.actions import ChangeTablespaceRecord
from herdkeeper.shared.reason import Reason


def record_change(
    cluster: HerdDBCluster, log: LogStore, wished: VersionedRecord, why: str, reason: Reason = Reason.REPLICAS_CHANGED
) -> ChangeTablespaceRecord:
    """Returns the change to a wished record, by compare-and-set on the version that was read."""
    path = tablespace_path(cluster.names.herd_root, wished.record.name)
    return ChangeTablespaceRecord(log.zookeeper_address, path, wished.record, wished.version, why, reason)
