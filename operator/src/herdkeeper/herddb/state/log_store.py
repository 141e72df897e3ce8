"""Where a database's log is, as the BookKeeperCluster that keeps it says."""

from __future__ import annotations

from dataclasses import dataclass

from herdkeeper.api import BookKeeperCluster
from herdkeeper.bookkeeper.state.racks import Placement, PlacementPolicy


@dataclass(frozen=True)
class LogStore:
    """Where the log is: ZooKeeper's `host:port,host:port`, the BookKeeperCluster's root in it, and how ensembles are chosen."""

    zookeeper_address: str
    ledgers_root: str
    placement: Placement


def log_store(bookkeeper: BookKeeperCluster | None) -> LogStore | None:
    """Where the log is, once the BookKeeperCluster says so in its status."""
    if bookkeeper is None or bookkeeper.status is None:
        return None
    address, root = bookkeeper.status.zoo_keeper_address, bookkeeper.status.ledgers_root
    if not address or not root:
        return None
    wanted = bookkeeper.spec.placement
    named = bookkeeper.names
    policy = PlacementPolicy(bookkeeper.status.placement_policy or PlacementPolicy.RACK_AWARE)
    return LogStore(address, root, Placement(policy, wanted.min_racks_per_write_quorum, wanted.enforced, named.racks_config_map))
