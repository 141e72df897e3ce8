"""Checks that reads of registers never go back, on one leader or between leaders, and return only written values. Pure.

A register's values grow, and `UPDATE … WHERE value < ?` sets them, so a late UPDATE can't reset it. What a leader has acknowledged, or
returned in a finished read, every later read on it must return, even in a later term: a node that leads again has replayed the log.

Between two leaders, time proves nothing: one that was replaced unknowingly may return old values. The log does: a node opens a ledger only
after it has fenced and replayed all earlier ones. So what a node acknowledged or returned while it wrote a ledger, each other node that
writes a later one must return. The final content is compared with every acknowledged write and every read.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from operator import itemgetter

from herdkeeper_e2e.checker.contents import Contents
from herdkeeper_e2e.checker.operation import Operation, Outcome, Read, Write
from herdkeeper_e2e.checker.violation import Violation, ViolationKind

ABSENT = -1
"""Older than every value: the register has vanished."""


def check_reads(operations: Sequence[Operation]) -> list[Violation]:
    """Returns all contradictions in the history. `operations` are in the order of their begins."""
    reads = [operation for operation in operations if isinstance(operation.content, Read) and operation.outcome is Outcome.OK]
    writes = _writes(operations)
    found = [violation for read in reads for violation in _strangers(read, _values(read), writes)]
    return [*found, *_back_in_time(operations), *_back_between_leaders(operations)]


def check_registers(operations: Sequence[Operation], contents: Contents) -> list[Violation]:
    """Returns all contradictions between the history and the final registers."""
    writes = _writes(operations)
    proved: dict[int, Operation] = {}
    for operation in operations:
        # a value that nobody wrote is no loss: the reads report it
        if operation.outcome is Outcome.OK and all(each in writes or each[1] == 0 for each in _values(operation).items()):
            _raise_to(proved, operation)
    lost = [
        Violation(ViolationKind.LOST, f"register {register} is {_shown(contents.registers, register)} at {contents.leader}", (operation,))
        for register, operation in proved.items()
        if contents.registers.get(register, ABSENT) < _values(operation)[register]
    ]
    return [*lost, *_strangers(None, contents.registers, writes)]


def _writes(operations: Sequence[Operation]) -> dict[tuple[int, int], Operation]:
    return {(each.content.register, each.content.value): each for each in operations if isinstance(each.content, Write)}


def _values(operation: Operation) -> Mapping[int, int]:
    """Returns what a finished operation proves about registers."""
    match operation.content:
        case Read(values):
            return values
        case Write(register, value):
            return {register: value}
        case _:
            return {}


def _shown(values: Mapping[int, int], register: int) -> str:
    return str(values.get(register, "not there"))


def _strangers(read: Operation | None, values: Mapping[int, int], writes: Mapping[tuple[int, int], Operation]) -> Iterator[Violation]:
    """Yields values that nobody wrote, that failed, or (in a read) that were written only later. Registers start with zero."""
    readers = (read,) if read is not None else ()
    for register, value in values.items():
        write = writes.get((register, value))
        if value == 0:
            continue
        if write is None:
            yield Violation(ViolationKind.STRANGER, f"register {register} is {value}", readers)
        elif write.outcome is Outcome.FAIL:
            yield Violation(ViolationKind.UNDEAD, f"register {register} is {value}", (write, *readers))
        elif read is not None and read.ended is not None and write.begun > read.ended:
            yield Violation(ViolationKind.STRANGER, f"register {register} is {value} before that was written", (write, *readers))


def _back_in_time(operations: Sequence[Operation]) -> Iterator[Violation]:
    """Scans the history by begin. Finished operations raise the lower bound of their leader and register."""
    floors: dict[str, dict[int, Operation]] = defaultdict(dict)
    under_way: dict[str, list[tuple[float, int, Operation]]] = defaultdict(list)
    for order, operation in enumerate(operations):
        if not operation.leader or operation.ended is None or operation.outcome is not Outcome.OK:
            continue
        ended = under_way[operation.leader]
        while ended and ended[0][0] < operation.begun:
            _raise_to(floors[operation.leader], heapq.heappop(ended)[2])
        if isinstance(operation.content, Read):
            yield from _below(floors[operation.leader], operation, operation.content, ViolationKind.BACK_IN_TIME)
        heapq.heappush(ended, (operation.ended, order, operation))


def _back_between_leaders(operations: Sequence[Operation]) -> Iterator[Violation]:
    """Scans the history by ledger. Each operation raises the lower bound of other leaders' later ledgers."""
    floors: dict[str, dict[int, Operation]] = defaultdict(dict)
    placed = [(each.ledger, each) for each in operations if each.ledger is not None and each.leader and each.outcome is Outcome.OK]
    for _, group in groupby(sorted(placed, key=itemgetter(0)), key=itemgetter(0)):
        same = [operation for _, operation in group]
        for operation in same:
            if isinstance(operation.content, Read):
                for leader in floors.keys() - {operation.leader}:
                    yield from _below(floors[leader], operation, operation.content, ViolationKind.BACK_BETWEEN_LEADERS)
        for operation in same:
            _raise_to(floors[operation.leader], operation)


def _raise_to(floor: dict[int, Operation], operation: Operation) -> None:
    for register, value in _values(operation).items():
        if register not in floor or value > _values(floor[register])[register]:
            floor[register] = operation


def _below(floor: Mapping[int, Operation], operation: Operation, read: Read, kind: ViolationKind) -> Iterator[Violation]:
    for register, known in floor.items():
        if read.values.get(register, ABSENT) < _values(known)[register]:
            explanation = f"register {register} is {_shown(read.values, register)} after {_values(known)[register]}"
            yield Violation(kind, explanation, (known, operation))
