"""Where a database's log is, as the BookKeeperCluster that keeps it says."""

from __future__ import annotations

from dataclasses import dataclass

from herdkeeper.api import BookKeeperCluster


@dataclass(frozen=True)
class LogStore:
    """Where the log is: ZooKeeper's `host:port,host:port` and the BookKeeperCluster's root in it."""

    zookeeper_address: str
    ledgers_root: str


def log_store(bookkeeper: BookKeeperCluster | None) -> LogStore | None:
    """Where the log is, once the BookKeeperCluster says so in its status."""
    if bookkeeper is None or bookkeeper.status is None:
        return None
    address, root = bookkeeper.status.zoo_keeper_address, bookkeeper.status.ledgers_root
    return LogStore(address, root) if address and root else None
