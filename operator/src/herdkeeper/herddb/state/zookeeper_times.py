"""The time by ZooKeeper's clock, and since when SQL nodes run by it.

Times of changes come from the clock of ZooKeeper's leader. It may differ from the operator's and the kubelets', so these times are compared
only with each other.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class ZooKeeperTimes:
    """Unix seconds by ZooKeeper's clock.

    `now` is the time of the newest heartbeat, or None. The present is hardly later, since each replica sends one a second. `registered` is
    when each node's process registered, at its start (ZookeeperMetadataStorageManager.registerNode of HerdDB 0.29.0).
    """

    now: float | None = None
    registered: Mapping[str, float] = field(default_factory=dict)


NOT_TOLD = ZooKeeperTimes()
