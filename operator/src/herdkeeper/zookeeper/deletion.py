"""The deletion of a ZooKeeperCluster."""

from __future__ import annotations

from herdkeeper.planning.actions import Plan
from herdkeeper.planning.deletion import DONE, take_down
from herdkeeper.zookeeper.state import Ensemble


def plan_zookeeper_deletion(ensemble: Ensemble) -> Plan:
    """Take it down, then delete its volumes."""
    return take_down(ensemble.objects, ("PersistentVolumeClaim", "Secret")) or Plan((DONE,))
