"""Whether reads of registers never go back in time on one leader, and show only what was written. Pure.

A register's values grow and are set by `UPDATE … WHERE value < ?`, so a late UPDATE whose answer was lost can't set it back. What a leader
has shown by a read that had ended, or has acknowledged, every read shows that begins later on it; that holds across its terms, too, since
a node that leads again has replayed the log. Between two leaders nothing is compared while the history goes on: one that does not know yet
that it was replaced may answer what it knows. What is left at the end is compared with every acknowledged write.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from herdkeeper_e2e.checker.contents import Contents
from herdkeeper_e2e.checker.operation import Operation, Outcome, Read, Write
from herdkeeper_e2e.checker.violation import Violation, ViolationKind

ABSENT = -1
"""Older than every value: a register that has vanished."""


def check_reads(operations: Sequence[Operation]) -> list[Violation]:
    """All contradictions inside the history. `operations` in the order of their begin."""
    reads = [operation for operation in operations if isinstance(operation.content, Read) and operation.outcome is Outcome.OK]
    writes = _writes(operations)
    found = [violation for read in reads for violation in _strangers(read, _values(read), writes)]
    return [*found, *_back_in_time(operations)]


def check_registers(operations: Sequence[Operation], contents: Contents) -> list[Violation]:
    """All contradictions between the history and the registers at the end."""
    writes = _writes(operations)
    acknowledged: dict[int, Operation] = {}
    for (register, value), operation in writes.items():
        if operation.outcome is Outcome.OK and value > _written(acknowledged.get(register)):
            acknowledged[register] = operation
    lost = [
        Violation(ViolationKind.LOST, f"register {register} is {_shown(contents.registers, register)} at {contents.leader}", (operation,))
        for register, operation in acknowledged.items()
        if contents.registers.get(register, ABSENT) < _written(operation)
    ]
    return [*lost, *_strangers(None, contents.registers, writes)]


def _writes(operations: Sequence[Operation]) -> dict[tuple[int, int], Operation]:
    return {(each.content.register, each.content.value): each for each in operations if isinstance(each.content, Write)}


def _values(operation: Operation) -> Mapping[int, int]:
    """What an operation proves about registers once it has ended."""
    match operation.content:
        case Read(values):
            return values
        case Write(register, value):
            return {register: value}
        case _:
            return {}


def _written(operation: Operation | None) -> int:
    return operation.content.value if operation is not None and isinstance(operation.content, Write) else ABSENT


def _shown(values: Mapping[int, int], register: int) -> str:
    return str(values.get(register, "not there"))


def _strangers(read: Operation | None, values: Mapping[int, int], writes: Mapping[tuple[int, int], Operation]) -> Iterator[Violation]:
    """Values that nobody wrote, that failed, or (in a read) that were written only after it. Zero is where registers begin."""
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
    """Goes through the history by begin; what has ended before raises the floor of its leader and register."""
    floors: dict[tuple[str, int], Operation] = {}
    under_way: dict[str, list[tuple[float, int, Operation]]] = defaultdict(list)
    for order, operation in enumerate(operations):
        if not operation.leader or operation.ended is None or operation.outcome is not Outcome.OK:
            continue
        ended = under_way[operation.leader]
        while ended and ended[0][0] < operation.begun:
            _raise(floors, heapq.heappop(ended)[2])
        if isinstance(operation.content, Read):
            yield from _below(floors, operation, operation.content.values)
        heapq.heappush(ended, (operation.ended, order, operation))


def _raise(floors: dict[tuple[str, int], Operation], operation: Operation) -> None:
    for register, value in _values(operation).items():
        key = (operation.leader, register)
        if key not in floors or value > _values(floors[key])[register]:
            floors[key] = operation


def _below(floors: Mapping[tuple[str, int], Operation], read: Operation, values: Mapping[int, int]) -> Iterator[Violation]:
    for (leader, register), floor in floors.items():
        if leader == read.leader and values.get(register, ABSENT) < _values(floor)[register]:
            explanation = f"register {register} is {_shown(values, register)} after {_values(floor)[register]}"
            yield Violation(ViolationKind.BACK_IN_TIME, explanation, (floor, read))
