"""When to read all ledgers to check whether their copies are in enough racks."""

from __future__ import annotations

import datetime

from herdkeeper.api import BookKeeperCluster
from herdkeeper.bookkeeper.state.bookies import BookKeeperObserved, LedgersMetadata
from herdkeeper.bookkeeper.state.racks import racks_of, rule_of


def placement_check_due(cluster: BookKeeperCluster, seen: BookKeeperObserved) -> bool:
    """Returns whether the check is due: never with a single rack, otherwise at the time that the last check set."""
    if not seen.now or not placement_can_be_broken(cluster, seen):
        return False
    before = cluster.status.placement_check if cluster.status is not None else None
    return before is None or datetime.datetime.fromisoformat(seen.now) >= datetime.datetime.fromisoformat(before.next_check_at)


def placement_can_be_broken(cluster: BookKeeperCluster, seen: BookKeeperObserved) -> bool:
    """Returns whether any ledger's copies could be in too few racks, as far as known."""
    if not isinstance(seen.metadata, LedgersMetadata):
        return False
    racks = racks_of(cluster, seen.objects, seen.nodes)
    return rule_of(cluster, racks, seen.metadata.cookies).can_be_broken
