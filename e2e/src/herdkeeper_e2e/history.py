"""The history of a writer: what it tried, what was acknowledged, and what faults happened meanwhile. Pure.

One JSON object a line. `at` is seconds of one monotonic clock, the writer's. A row is *acknowledged* when the server answered its INSERT
with success; it is *unknown* when the answer was lost, so that it may be durable or not; an attempt that failed before anything was
applied leaves no record.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from itertools import pairwise


class HistoryError(ValueError):
    """A line is no event of a history; the message names the line."""


class EventKind(StrEnum):
    """What an event is."""

    ACKNOWLEDGED = "acknowledged"
    UNKNOWN = "unknown"
    MARK = "mark"
    """Somebody outside did something to the cluster; `name` says what."""


@dataclass(frozen=True)
class Event:
    """One event. `row` is the row's id, -1 for a mark."""

    at: float
    kind: EventKind
    row: int = -1
    name: str = ""

    def to_line(self) -> str:
        """One line of JSON, without the line's end."""
        return json.dumps({"at": round(self.at, 6), "kind": self.kind.value, "row": self.row, "name": self.name})


PAUSE_SECONDS = 0.25
"""Longer than a row takes on a busy machine."""


@dataclass(frozen=True)
class Gap:
    """The longest time without an acknowledged row after a fault."""

    fault: str
    seconds: float
    unknown_rows: int
    """Rows after the fault whose answer was lost."""
    pauses: float = 0.0
    """Seconds: all times of more than PAUSE_SECONDS without an acknowledged row, together. Clients in Java don't tell it."""


@dataclass(frozen=True)
class Verdict:
    """What became of the rows of a history, compared with the rows in the table."""

    acknowledged: int
    unknown: int
    unknown_durable: int
    lost: tuple[int, ...]
    """Acknowledged, and not in the table: must be empty."""
    strangers: tuple[int, ...]
    """In the table, and neither acknowledged nor unknown: must be empty."""
    altered: tuple[int, ...] = ()
    """In the table with another payload than was written: must be empty."""

    @property
    def violation(self) -> str | None:
        """Why the history contradicts the table, None when it does not."""
        if self.lost:
            return f"{len(self.lost)} of {self.acknowledged} acknowledged rows are lost: {_shortened(self.lost)}"
        if self.strangers:
            return f"{len(self.strangers)} rows are in the table that nobody wrote: {_shortened(self.strangers)}"
        if self.altered:
            return f"{len(self.altered)} rows have another payload than was written: {_shortened(self.altered)}"
        return None


def parse_history(lines: Iterable[str]) -> list[Event]:
    """The events of a history file.

    Raises:
        HistoryError: a line is not an event.
    """
    events = []
    for number, line in enumerate(lines, start=1):
        try:
            record = json.loads(line)
            events.append(Event(float(record["at"]), EventKind(record["kind"]), int(record["row"]), str(record["name"])))
        except (ValueError, KeyError, TypeError) as error:
            raise HistoryError(f"line {number} of the history is no event: {line[:200]!r} ({error})") from error
    return events


def payload_of(row: int) -> str:
    """What a writer of rows writes beside an id."""
    return f"row {row}"


def altered_in(rows: Iterable[tuple[int, object]]) -> list[int]:
    """The ids, of (id, payload), that have another payload than was written."""
    return [row for row, payload in rows if payload != payload_of(row)]


def judge(events: Sequence[Event], rows_in_table: Iterable[int], altered: Iterable[int] = ()) -> Verdict:
    """Compares a history with the ids that a complete scan of the table returned. `altered`: those whose payload is another one."""
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
    """What a reader says of a history and the rows that are there: one line of JSON with the verdict, its violation or None, and the gaps.

    Raises:
        HistoryError: there is a mark whose gap can't be measured.
    """
    verdict = judge(events, rows, altered)
    found = {"verdict": asdict(verdict), "violation": verdict.violation, "gaps": [asdict(gap) for gap in gaps(events)]}
    return json.dumps(found)


def wrong_between(events: Sequence[Event], marks: tuple[str, str], rows: Iterable[int]) -> str | None:
    """Why these rows are not the table as it was at a moment between two marks; None when they may be that.

    A mark is recorded between two rows, never while one is tried, and a row is tried once the one before it was answered. So what was
    acknowledged before the first mark is there, nothing is there that was tried after the second one, and what was acknowledged before a
    row that is there is there as well. Of rows whose answer was lost nothing is known.

    Raises:
        HistoryError: there is no such mark, or more than one.
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
    """The rows that a history can know of: ids rise by one, and an id is recorded before the next one is tried."""
    last = max((event.row for event in events), default=-1)
    return [row for row in rows if row <= last]


def gaps(events: Sequence[Event]) -> list[Gap]:
    """For each mark the longest time between two successive acknowledgements that ends after it, until the next mark.

    The acknowledgement before the mark counts as the first one's beginning: a gap begins with the last success, not with the fault.

    Raises:
        HistoryError: no row was acknowledged before a mark, or after it: then there is no gap to measure.
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
    """The gaps as a text table."""
    width = max([len("fault"), *(len(gap.fault) for gap in found)])
    lines = [f"{'fault':<{width}}  without an acknowledged write  answers lost"]
    lines += [f"{gap.fault:<{width}}  {gap.seconds:>27.2f} s  {gap.unknown_rows:>12}" for gap in found]
    return "\n".join(lines)


def _shortened(rows: Sequence[int]) -> str:
    return ", ".join(map(str, rows[:10])) + (" …" if len(rows) > 10 else "")
