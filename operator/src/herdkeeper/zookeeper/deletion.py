"""The deletion of a ZooKeeperCluster."""

from __future__ import annotations

from herdkeeper.api import ZooKeeperCluster
from herdkeeper.planning.actions import Plan
from herdkeeper.planning.deletion import DONE, take_down
from herdkeeper.zookeeper.state import ZooKeeperObserved


def plan_zookeeper_deletion(_cluster: ZooKeeperCluster, seen: ZooKeeperObserved, _waited: float) -> Plan:
    """Take it down, then delete its volumes."""
    return take_down(seen.objects, ("PersistentVolumeClaim", "Secret")) or Plan((DONE,))
