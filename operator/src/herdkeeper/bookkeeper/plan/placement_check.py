"""When to read all ledgers to check whether their copies are in enough racks."""

from __future__ import annotations

import datetime

from herdkeeper.bookkeeper.state.bookies import LedgersMetadata
from herdkeeper.bookkeeper.state.fleet import BookieFleet


def placement_check_due(fleet: BookieFleet) -> bool:
    """Returns whether the check is due: never with a single rack, otherwise at the time that the last check set."""
    if not fleet.now or not placement_can_be_broken(fleet):
        return False
    status = fleet.cluster.status
    before = status.placement_check if status is not None else None
    return before is None or datetime.datetime.fromisoformat(fleet.now) >= datetime.datetime.fromisoformat(before.next_check_at)


def placement_can_be_broken(fleet: BookieFleet) -> bool:
    """Returns whether any ledger's copies could be in too few racks, as far as known."""
    return isinstance(fleet.metadata, LedgersMetadata) and fleet.placement_rule.can_be_broken
