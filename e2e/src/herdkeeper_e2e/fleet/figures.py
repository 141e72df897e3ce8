"""What is measured, and how it is told."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from herdkeeper_e2e.fleet.audit_log import Request

QUIET_WINDOW_SECONDS = 10.0
QUIET_FACTOR, QUIET_ADDEND = 1.25, 1.0
"""Requests are back to a rate when so many seconds have no more than so many times the rate, and one a second."""


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
    following = {id(change): math.inf for change in changes}
    last: dict[str, Change] = {}
    for change in sorted(changes, key=lambda each: each.answered_at):
        if change.namespace in last:
            following[id(last[change.namespace])] = change.answered_at
        last[change.namespace] = change
    found = []
    for change in changes:
        later = (at for at in writes.get(change.namespace, ()) if change.answered_at <= at < following[id(change)])
        found.append(min(later, default=math.inf) - change.answered_at)
    return found


def spread(seconds: Sequence[float]) -> str:
    """p50 and p99 of seconds."""
    if not seconds:
        return "no change could be made"
    missing = sum(map(math.isinf, seconds))
    without = f", {missing} without a write" if missing else ""
    return f"{shown(percentile(seconds, 50))} / {shown(percentile(seconds, 99))} (n = {len(seconds)}{without})"


def back_after(requests: Sequence[Request], end: float, until: float, quiet: float) -> float:
    """Seconds after `end` from which on QUIET_WINDOW_SECONDS have the quiet rate, in requests a second without the Lease's; infinite when
    there are none until then."""
    times = [request.at - end for request in requests if request.resource != "leases" and request.at >= end]
    most = (QUIET_FACTOR * quiet + QUIET_ADDEND) * QUIET_WINDOW_SECONDS
    for begin in range(int(until - end - QUIET_WINDOW_SECONDS) + 1):
        if sum(1 for time in times if begin <= time < begin + QUIET_WINDOW_SECONDS) <= most:
            return float(begin)
    return math.inf


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
