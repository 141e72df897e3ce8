"""What time it is for ZooKeeper, and since when SQL nodes run by that clock.

Times of changes are the clock of whichever member leads ZooKeeper. It may differ from the operator's, and a kubelet's from both, so times
are compared with others of ZooKeeper's only.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class ZooKeeperTimes:
    """In seconds since 1970, by ZooKeeper's clock. `now` is when the heartbeat was sent that was the last: it is not earlier, and hardly
    later, since each copy of a tablespace sends one a second; None where there is none. `registered` is when each node's process
    registered, which it does when it starts (ZookeeperMetadataStorageManager.registerNode of HerdDB 0.29.0).
    """

    now: float | None = None
    registered: Mapping[str, float] = field(default_factory=dict)


NOT_TOLD = ZooKeeperTimes()
