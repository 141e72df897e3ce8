"""A writer's history: attempts, acknowledgements, and faults. Pure.

One JSON object per line. `at` is seconds of the writer's monotonic clock. A row is *acknowledged* if the server answered its INSERT with
success. It is *unknown* if the answer was lost, so it may be durable. An attempt that failed before anything was applied leaves no record.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from itertools import pairwise


class HistoryError(ValueError):
    """A line is not an event of a history. The message has the line."""


class EventKind(StrEnum):
    ACKNOWLEDGED = "acknowledged"
    UNKNOWN = "unknown"
    MARK = "mark"
    """A fault or change from outside, named by `name`."""


@dataclass(frozen=True)
class Event:
    """One event. `row` is the row's id, -1 for a mark."""

    at: float
    kind: EventKind
    row: int = -1
    name: str = ""

    def to_line(self) -> str:
        """Returns one line of JSON, without the line end."""
        return json.dumps({"at": round(self.at, 6), "kind": self.kind.value, "row": self.row, "name": self.name})


PAUSE_SECONDS = 0.25
"""Longer than a row takes on a busy machine."""


@dataclass(frozen=True)
class Gap:
    """The longest time without an acknowledged row after a fault."""

    fault: str
    seconds: float
    unknown_rows: int
    """Rows after the fault with a lost answer."""
    pauses: float = 0.0
    """Seconds: the sum of all times over PAUSE_SECONDS without an acknowledged row. Java clients don't report it."""


@dataclass(frozen=True)
class Verdict:
    """The rows of a history, compared with the table."""

    acknowledged: int
    unknown: int
    unknown_durable: int
    lost: tuple[int, ...]
    """Acknowledged but missing in the table: must be empty."""
    strangers: tuple[int, ...]
    """In the table, but neither acknowledged nor unknown: must be empty."""
    altered: tuple[int, ...] = ()
    """In the table with another payload than written: must be empty."""

    @property
    def violation(self) -> str | None:
        """Returns why the history contradicts the table, or None."""
        if self.lost:
            return f"{len(self.lost)} of {self.acknowledged} acknowledged rows are lost: {_shortened(self.lost)}"
        if self.strangers:
            return f"{len(self.strangers)} rows are in the table that nobody wrote: {_shortened(self.strangers)}"
        if self.altered:
            return f"{len(self.altered)} rows have another payload than was written: {_shortened(self.altered)}"
        return None


def parse_history(lines: Iterable[str]) -> list[Event]:
    """Returns the events of a history file. Raises HistoryError for an invalid line."""
    events = []
    for number, line in enumerate(lines, start=1):
        try:
            record = json.loads(line)
            events.append(Event(float(record["at"]), EventKind(record["kind"]), int(record["row"]), str(record["name"])))
        except (ValueError, KeyError, TypeError) as error:
            raise HistoryError(f"line {number} of the history is no event: {line[:200]!r} ({error})") from error
    return events


def payload_of(row: int) -> str:
    """Returns the payload that a writer writes with an id."""
    return f"row {row}"


def altered_in(rows: Iterable[tuple[int, object]]) -> list[int]:
    """Returns the ids, of (id, payload), whose payload differs from the written one."""
    return [row for row, payload in rows if payload != payload_of(row)]


def judge(events: Sequence[Event], rows_in_table: Iterable[int], altered: Iterable[int] = ()) -> Verdict:
    """Compares a history with the ids from a complete scan of the table. `altered`: those with another payload."""
    present = set(rows_in_table)
    acknowledged = {event.row for event in events if event.kind is EventKind.ACKNOWLEDGED}
    unknown = {event.row for event in events if event.kind is EventKind.UNKNOWN} - acknowledged
    return Verdict(
        acknowledged=len(acknowledged),
        unknown=len(unknown),
        unknown_durable=len(unknown & present),
        lost=tuple(sorted(acknowledged - present)),
        strangers=tuple(sorted(present - acknowledged - unknown)),
        altered=tuple(sorted(altered)),
    )


def comparison(events: Sequence[Event], rows: Iterable[int], altered: Iterable[int] = ()) -> str:
    """Returns a reader's result as one line of JSON: the verdict, its violation or None, and the gaps.

    Raises HistoryError for a mark whose gap can't be measured.
    """
    verdict = judge(events, rows, altered)
    found = {"verdict": asdict(verdict), "violation": verdict.violation, "gaps": [asdict(gap) for gap in gaps(events)]}
    return json.dumps(found)


def wrong_between(events: Sequence[Event], marks: tuple[str, str], rows: Iterable[int]) -> str | None:
    """Returns why these rows are not the table at a moment between two marks, or None.

    A mark is recorded between two rows, never during an attempt, and each row is tried after the answer to the previous one. So rows
    acknowledged before the first mark must exist, and none tried after the second may. Rows acknowledged before an existing row must exist,
    too. Rows with lost answers prove nothing.

    Raises HistoryError unless each mark exists exactly once.
    """
    present = set(rows)
    first, second = (_place_of(events, name) for name in marks)
    before = {event.row for event in events[:first] if event.kind is EventKind.ACKNOWLEDGED}
    tried = {event.row for event in events[:second] if event.kind is not EventKind.MARK}
    acknowledged = {event.row for event in events if event.kind is EventKind.ACKNOWLEDGED}
    newest = max(present & acknowledged, default=-1)
    found = (
        (before - present, f"were acknowledged before the mark {marks[0]!r} and are not there"),
        (present - tried, f"are there and were not tried before the mark {marks[1]!r}"),
        ({row for row in acknowledged if row < newest} - present, f"were acknowledged before row {newest}, which is there, and are not"),
    )
    wrong = [f"{len(of)} rows {what}: {_shortened(sorted(of))}" for of, what in found if of]
    return "; ".join(wrong) or None


def _place_of(events: Sequence[Event], mark: str) -> int:
    places = [place for place, event in enumerate(events) if event.kind is EventKind.MARK and event.name == mark]
    if len(places) != 1:
        raise HistoryError(f"the mark {mark!r} is in the history {len(places)} times: it shall be there once")
    return places[0]


def recorded(events: Sequence[Event], rows: Iterable[int]) -> list[int]:
    """Returns the rows that a history can cover: ids rise by one, and an id is recorded before the next one is tried."""
    last = max((event.row for event in events), default=-1)
    return [row for row in rows if row <= last]


def gaps(events: Sequence[Event]) -> list[Gap]:
    """Returns for each mark the longest time between two successive acknowledgements that ends after it and before the next mark.

    A gap begins with the last success before the mark, not with the fault.

    Raises HistoryError if no row was acknowledged before or after a mark.
    """
    marks = [event for event in events if event.kind is EventKind.MARK]
    return [_gap(events, mark, marks[index + 1].at if index + 1 < len(marks) else None) for index, mark in enumerate(marks)]


def _gap(events: Sequence[Event], mark: Event, until: float | None) -> Gap:
    times = [event.at for event in events if event.kind is EventKind.ACKNOWLEDGED]
    before = [at for at in times if at <= mark.at]
    after = [at for at in times if at > mark.at and (until is None or at <= until)]
    if not before or not after:
        missing = "before" if not before else "after"
        raise HistoryError(f"no row was acknowledged {missing} the mark {mark.name!r}")
    points = [before[-1], *after]
    unknown = [event for event in events if event.kind is EventKind.UNKNOWN and event.at > mark.at and (until is None or event.at <= until)]
    waits = [later - earlier for earlier, later in pairwise(points)]
    return Gap(mark.name, max(waits), len(unknown), sum(wait for wait in waits if wait > PAUSE_SECONDS))


def gap_table(found: Sequence[Gap]) -> str:
    width = max([len("fault"), *(len(gap.fault) for gap in found)])
    lines = [f"{'fault':<{width}}  without an acknowledged write  answers lost"]
    lines += [f"{gap.fault:<{width}}  {gap.seconds:>27.2f} s  {gap.unknown_rows:>12}" for gap in found]
    return "\n".join(lines)


def _shortened(rows: Sequence[int]) -> str:
    return ", ".join(map(str, rows[:10])) + (" …" if len(rows) > 10 else "")
