"""When servers were away, from watch events of their pods. Pure.

A server is away from the moment its pod stops being Ready, is told to stop or is gone. It is back once a pod of its name is Ready. A server
that was never Ready is not away.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import combinations

from herdkeeper_e2e.conditions import condition
from herdkeeper_e2e.kubectl import Object

NOT_READY = "not Ready"
_MEMBER = re.compile(r"(.+-zookeeper)-\d+")


@dataclass(frozen=True)
class Sight:
    """A pod in an event at a time (seconds of any clock). `why_away` is None if it serves and stays."""

    at: float
    pod: str
    why_away: str | None


@dataclass(frozen=True)
class Absence:
    """A server was away from `since` until `until` (None: still). `why` is the cause: NOT_READY only if its pod stayed."""

    pod: str
    since: float
    until: float | None
    why: str

    @property
    def sentence(self) -> str:
        end = "until the end" if self.until is None else f"for {self.until - self.since:.1f} s"
        return f"{self.pod} away from {self.since:.1f} {end} ({self.why})"


def sight(at: float, event: Mapping[str, Object | str]) -> Sight:
    """Returns the content of a watch event (`{"type": …, "object": …}`)."""
    pod = event["object"]
    if isinstance(pod, str):
        raise TypeError(f"no pod: {pod}")
    ready = condition(pod, "Ready")
    why = None
    if event["type"] == "DELETED":
        why = "gone"
    elif pod["metadata"].get("deletionTimestamp"):
        why = "told to stop"
    elif ready is None or ready["status"] != "True":
        why = NOT_READY
    return Sight(at, str(pod["metadata"]["name"]), why)


def absences(sights: Iterable[Sight]) -> list[Absence]:
    """Returns when each server was away, in the order of the beginnings."""
    served: set[str] = set()
    away: dict[str, Absence] = {}
    ended: list[Absence] = []
    for seen in sights:
        if seen.why_away is None:
            served.add(seen.pod)
            if (before := away.pop(seen.pod, None)) is not None:
                ended.append(Absence(seen.pod, before.since, seen.at, before.why))
        elif seen.pod in served and seen.pod not in away:
            away[seen.pod] = Absence(seen.pod, seen.at, None, seen.why_away)
        elif seen.pod in served and away[seen.pod].why == NOT_READY:
            away[seen.pod] = replace(away[seen.pod], why=seen.why_away)
    return sorted([*ended, *away.values()], key=lambda absence: absence.since)


def together(found: Iterable[Absence]) -> Iterator[tuple[Absence, Absence]]:
    """Yields pairs of servers that were away at the same time, but for members of ZooKeeper that only wait for an election."""
    for first, second in combinations(sorted(found, key=lambda absence: absence.since), 2):
        if first.pod != second.pod and (first.until is None or second.since < first.until) and not _waits_for_election(first, second):
            yield first, second


def _waits_for_election(first: Absence, second: Absence) -> bool:
    """Returns whether the second is a member whose pod stayed, and the first is another member of its ensemble. Nobody disrupted the second
    one: without a leader none serves, on a busy machine for longer than the ten seconds that make it not Ready.
    """
    one, other = _MEMBER.fullmatch(first.pod), _MEMBER.fullmatch(second.pod)
    return one is not None and other is not None and one[1] == other[1] and second.why == NOT_READY
