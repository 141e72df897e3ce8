"""When to read all ledgers to check whether their copies are in enough racks, and what the last check found.

The result is kept in the status: reading all ledgers at each reconcile would be too expensive.
"""

from __future__ import annotations

import datetime
from typing import Any

from herdkeeper.bookkeeper.state.bookies import BeingScanned, LedgersMetadata
from herdkeeper.bookkeeper.state.fleet import BookieFleet
from herdkeeper.shared.time import text_of
from herdkeeper.shared.unknown import Unknown

SHORTEST_SECONDS = 600.0
READING_SHARE = 0.01
"""Share of all time that is spent on reading ledgers for this."""


def placement_check_due(fleet: BookieFleet) -> bool:
    """Returns whether the check is due: never with one rack, else at the time that the last one set, or if a clock was ahead then."""
    if not fleet.now or not fleet.placement_rule.can_be_broken:
        return False
    status = fleet.cluster.status
    before = status.placement_check if status is not None else None
    if before is None:
        return True
    checked, now, again = map(datetime.datetime.fromisoformat, (before.checked_at, fleet.now, before.next_check_at))
    return not checked <= now < again


def placement_check(fleet: BookieFleet) -> dict[str, Any] | None:
    """Returns the field `placementCheck`: the new result, or the previous one, which another purpose's scan replaces only if it differs."""
    if isinstance(fleet.metadata, LedgersMetadata) and not fleet.placement_rule.can_be_broken:
        return None
    status = fleet.cluster.status
    found = status.placement_check if status is not None else None
    before = None if found is None else found.document()
    if fleet.scan is None or isinstance(fleet.scan, BeingScanned) or not fleet.now:
        return before
    due = placement_check_due(fleet)
    if isinstance(fleet.scan, Unknown):
        return _checked(fleet.now, SHORTEST_SECONDS, {"message": fleet.scan.why}) if due else before
    breaches = fleet.scan.breaches
    same = found is not None and (found.ledgers, found.first_ledgers) == (breaches.ledgers, breaches.first)
    if same and not due:
        return before
    seconds = max(SHORTEST_SECONDS, fleet.scan.seconds / READING_SHARE)
    return _checked(fleet.now, seconds, {"ledgers": breaches.ledgers, "firstLedgers": list(breaches.first)})


def _checked(now: str, seconds: float, found: dict[str, Any]) -> dict[str, Any]:
    again = datetime.datetime.fromisoformat(now) + datetime.timedelta(seconds=seconds)
    return {"checkedAt": now, "nextCheckAt": text_of(again), **found}
