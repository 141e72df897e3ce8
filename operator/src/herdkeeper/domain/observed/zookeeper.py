"""What was seen of a ZooKeeperCluster."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from herdkeeper.domain.observed.dependents import NOBODY, Dependents
from herdkeeper.domain.observed.objects import Objects
from herdkeeper.domain.unknown import Unknown


@dataclass(frozen=True)
class ZooKeeperObserved:
    """`modes` is what each Ready member says of itself, by number: `leader`, `follower`, `observer` or `standalone`.

    `dependents` are the BookKeeperClusters that refer to it.
    """

    objects: Objects
    modes: Mapping[int, str | Unknown]
    dependents: Dependents = NOBODY
