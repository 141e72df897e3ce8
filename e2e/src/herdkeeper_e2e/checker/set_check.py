"""Checks that the set's rows match the history. Pure.

Each acknowledged Add is complete, a failed one absent, and an unknown one complete or absent. No row is duplicated, and none is
unexplained.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import assert_never

from herdkeeper_e2e.checker.contents import Contents
from herdkeeper_e2e.checker.operation import Add, Operation, Outcome
from herdkeeper_e2e.checker.violation import Violation, ViolationKind


def check_set(operations: Sequence[Operation], contents: Contents) -> list[Violation]:
    """Returns all contradictions between a history and the contents."""
    written = dict(contents.rows)
    adds = [(operation, operation.content) for operation in operations if isinstance(operation.content, Add)]
    found = [violation for operation, add in adds if (violation := _check_add(operation, add, written, contents.leader)) is not None]
    return [*found, *_duplicates(contents), *_strangers(adds, contents)]


def check_succession(earlier: Contents, later: Contents) -> list[Violation]:
    """Returns what one leader had at the end but the next one lacks, although nothing was deleted: including rows whose answer was lost."""
    gone = sorted({*earlier.rows} - {*later.rows})
    shown = f"{len(gone)} rows that were at {earlier.leader} are not at {later.leader}: {_shortened([row for row, _ in gone])}"
    return [Violation(ViolationKind.LOST, shown)] if gone else []


def _check_add(operation: Operation, add: Add, written: Mapping[int, str], leader: str) -> Violation | None:
    present = [row for row in add.rows if written.get(row) == operation.name]
    shown = f"{len(present)} of its {len(add.rows)} rows are at {leader}; missing {_shortened(sorted({*add.rows} - {*present}))}"
    if 0 < len(present) < len(add.rows):
        return Violation(ViolationKind.TORN, shown, (operation,))
    match operation.outcome:
        case Outcome.OK:
            return None if present else Violation(ViolationKind.LOST, shown, (operation,))
        case Outcome.FAIL:
            return Violation(ViolationKind.UNDEAD, f"its rows are at {leader}", (operation,)) if present else None
        case Outcome.UNKNOWN:
            return None
        case _:
            assert_never(operation.outcome)


def _duplicates(contents: Contents) -> Iterator[Violation]:
    for row, times in Counter(row for row, _ in contents.rows).items():
        if times > 1:
            yield Violation(ViolationKind.DUPLICATE, f"a scan at {contents.leader} returned row {row} {times} times")


def _strangers(adds: Sequence[tuple[Operation, Add]], contents: Contents) -> Iterator[Violation]:
    owner = {row: operation for operation, add in adds for row in add.rows}
    for row, name in contents.rows:
        expected = owner.get(row)
        if expected is None or expected.name != name:
            known = (expected,) if expected is not None else ()
            yield Violation(ViolationKind.STRANGER, f"row {row} at {contents.leader} carries the name {name!r}", known)


def _shortened(rows: Sequence[int]) -> str:
    return ", ".join(map(str, rows[:10])) + (" …" if len(rows) > 10 else "") if rows else "none"
