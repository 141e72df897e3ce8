"""When to decide again about a leader that could not be judged or replaced yet: as soon as the decision may change.

No event reports that a silence has lasted long enough. Clients wait until then, so a fixed interval is not good enough.
"""

from __future__ import annotations

from collections.abc import Iterator

from herdkeeper.herddb.leadership.decision import (
    PAUSE_SECONDS,
    SELF_HELP_SECONDS,
    STORAGE_PAUSE_SECONDS,
    Blocked,
    Decision,
    Keep,
    Move,
    Postponed,
    Refused,
    Situation,
)
from herdkeeper.shared.unknown import Unknown

SOON_SECONDS = 1.0
LEAST_SECONDS = 0.05
REPORT_SECONDS = 0.25
"""Reports of a node come once a second. Reading them more often would show nothing new."""
OFTEN_SECONDS, CONFIRMED_SECONDS = 0.5, 2.0
"""How often, and for how long, to check whether ZooKeeper confirms a silence: heartbeats come once a second, those of a busy node later."""


def requeue_after_seconds(seen: Situation, decision: Decision) -> float | None:
    """Returns the seconds until the next decision without an event, or None."""
    match decision:
        case Keep(settled=True) | Refused():
            return None
        case Move() | Postponed():
            return SOON_SECONDS
        case Keep() | Blocked():
            moments = (*_by_own_clock(seen), *(max(REPORT_SECONDS, each) for each in _by_leaders_report(seen) if each > 0))
            return _paced(min((each for each in moments if each > 0), default=SOON_SECONDS))


def _by_own_clock(seen: Situation) -> Iterator[float]:
    """Yields the seconds until a silence or a pause ends."""
    leader = seen.nodes.get(seen.record.leader)
    if leader is not None and leader.silent_seconds is not None and isinstance(leader.copy, Unknown):
        left = seen.hung_seconds - leader.silent_seconds
        yield left if left > 0 or left < -CONFIRMED_SECONDS else OFTEN_SECONDS
    if seen.changed_at is not None:
        yield from (pause - (seen.now - seen.changed_at) for pause in (PAUSE_SECONDS, STORAGE_PAUSE_SECONDS))


def _by_leaders_report(seen: Situation) -> Iterator[float]:
    """Yields the same for the leader's report of its own connections."""
    leader = seen.nodes.get(seen.record.leader)
    if leader is None or leader.report is None:
        return
    limit = max(seen.hung_seconds, SELF_HELP_SECONDS)
    waited = leader.report.unacknowledged.get(seen.record.name, 0.0)
    yield from (limit - told for told in (leader.report.zookeeper_silent, waited) if told > 0)


def _paced(moment: float) -> float:
    """Exactly then if it is near, since an earlier check would only delay it. Otherwise soon, for other changes."""
    return max(LEAST_SECONDS, moment) if moment <= 2 * SOON_SECONDS else SOON_SECONDS
