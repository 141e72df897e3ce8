"""When to read all ledgers to check whether their copies are in enough racks."""

from __future__ import annotations

import datetime

from herdkeeper.bookkeeper.state.fleet import BookieFleet


def placement_check_due(fleet: BookieFleet) -> bool:
    """Returns whether the check is due: never with a single rack, otherwise at the time that the last check set."""
    if not fleet.now or not fleet.placement_rule.can_be_broken:
        return False
    status = fleet.cluster.status
    before = status.placement_check if status is not None else None
    return before is None or datetime.datetime.fromisoformat(fleet.now) >= datetime.datetime.fromisoformat(before.next_check_at)
