"""Whether reads of registers never go back, on one leader and from one to the next, and show only what was written. Pure.

A register's values grow and are set by `UPDATE … WHERE value < ?`, so a late UPDATE whose answer was lost can't set it back. What a leader
has shown by a read that had ended, or has acknowledged, every read shows that begins later on it; that holds across its terms, too, since
a node that leads again has replayed the log.

Between two leaders time says nothing: one that does not know yet that it was replaced may answer what it knows. The log does: a node opens
a ledger only when it has fenced and replayed all earlier ones. So whatever a node has shown or acknowledged while it wrote a ledger, each
other node shows that writes a later one. What is left at the end is compared with every acknowledged write and every read.
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
"""Older than every value: a register that has vanished."""


def check_reads(operations: Sequence[Operation]) -> list[Violation]:
    """All contradictions inside the history. `operations` in the order of their begin."""
    reads = [operation for operation in operations if isinstance(operation.content, Read) and operation.outcome is Outcome.OK]
    writes = _writes(operations)
    found = [violation for read in reads for violation in _strangers(read, _values(read), writes)]
    return [*found, *_back_in_time(operations), *_back_between_leaders(operations)]


def check_registers(operations: Sequence[Operation], contents: Contents) -> list[Violation]:
    """All contradictions between the history and the registers at the end."""
    writes = _writes(operations)
    proved: dict[int, Operation] = {}
    for operation in operations:
        # a value that nobody has written is no loss: the reads are told of it
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
    """What an operation proves about registers once it has ended."""
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
    """Goes through the history by ledger; each operation raises the floor of all other leaders' later ledgers."""
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
