"""What is measured, and how it is told."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from herdkeeper_e2e.audit_log import Request

WINDOW_SECONDS = 10
TOLERANCE = 1.25
"""Requests are back to a rate once no window has more than so many times the most of any window before."""


def percentile(values: Iterable[float], percent: float) -> float:
    """By the nearest rank: the smallest value that so many percent of all are not above. ValueError for no values."""
    ordered = sorted(values)
    if not ordered:
        raise ValueError("no values: expected at least one")
    return ordered[max(0, math.ceil(percent / 100 * len(ordered)) - 1)]


def shown(seconds: float) -> str:
    """Seconds for the table; what never came is not waited for longer than the benchmark did."""
    return "never" if math.isinf(seconds) else f"{seconds:.2f} s" if seconds < 10 else f"{seconds:.0f} s"


@dataclass(frozen=True)
class Change:
    """One that a user made to a stack: when its answer came, in seconds since 1970."""

    namespace: str
    answered_at: float


def waits(changes: Sequence[Change], requests: Iterable[Request]) -> list[float]:
    """For each change the seconds until the operator's first write to its stack; infinite where none came before the stack's next one."""
    writes: dict[str, list[float]] = {}
    for request in requests:
        if request.writes:
            writes.setdefault(request.namespace, []).append(request.at)
    found = []
    for change in changes:
        others = (other.answered_at for other in changes if other.namespace == change.namespace)
        next_one = min((at for at in others if at > change.answered_at), default=math.inf)
        answers = (at for at in writes.get(change.namespace, ()) if change.answered_at <= at < next_one)
        found.append(min(answers, default=math.inf) - change.answered_at)
    return found


def spread(seconds: Sequence[float]) -> str:
    """p50 and p99 of seconds."""
    if not seconds:
        return "no change could be made"
    missing = sum(map(math.isinf, seconds))
    without = f", {missing} without a write" if missing else ""
    return f"{shown(percentile(seconds, 50))} / {shown(percentile(seconds, 99))} (n = {len(seconds)}{without})"


def windows(requests: Iterable[Request], begin: float, end: float) -> list[int]:
    """How many requests, without the Lease's, each window between two moments has; one begins each second."""
    seconds = Counter(int(request.at - begin) for request in requests if request.resource != "leases" and begin <= request.at < end)
    return [sum(seconds[first + more] for more in range(WINDOW_SECONDS)) for first in range(int(end - begin) - WINDOW_SECONDS + 1)]


def back_after(found: Sequence[int], most: int) -> float:
    """The end, in seconds, of the last window that has more requests than usual; infinite when that is the last of all."""
    above = [first for first, count in enumerate(found) if count > TOLERANCE * most]
    if not above:
        return 0.0
    return math.inf if above[-1] == len(found) - 1 else float(above[-1] + WINDOW_SECONDS)


def rates(requests: Iterable[Request], seconds: float) -> list[tuple[str, float]]:
    """Requests a second by verb and resource, the most frequent first."""
    counted = Counter(f"{request.verb} {request.resource}" for request in requests)
    return [(what, count / seconds) for what, count in counted.most_common()]


def table(columns: dict[str, dict[str, str]]) -> str:
    """A Markdown table: a row a figure, a column a fleet."""
    rows = list(dict.fromkeys(row for column in columns.values() for row in column))
    lines = ["| | " + " | ".join(columns) + " |", "|---|" + "---|" * len(columns)]
    lines += [f"| {row} | " + " | ".join(column.get(row, "–") for column in columns.values()) + " |" for row in rows]
    return "\n".join(lines)
