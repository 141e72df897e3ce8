"""Reads the copies that a task expects on its bookie, and determines their states. Runs on executors."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import assert_never

import numpy as np

from herdkeeper.codecs.bookkeeper.entry import DigestMismatchError
from herdkeeper.codecs.bookkeeper.protocol import ReadCode
from herdkeeper.codecs.bookkeeper.striping import EntryRange
from herdkeeper_jobs.bookkeeper.connection import BookieConnection, BookieUnreachableError, EntryAnswer, EntryRun, Grouped, grouped
from herdkeeper_jobs.bookkeeper.rate_limit import RateLimit
from herdkeeper_jobs.copies.holding import CopyState, Holding
from herdkeeper_jobs.copies.inspection import Flags, Inspected, Numbers, inspect, lac_is_possible, sums_of_content
from herdkeeper_jobs.copies.plan import AuditTask, HoldingCheck, Reading, restricted

_MOST_CONTRADICTIONS = 1_000
"""Contradictions between neighbours of one share that are reported one by one."""


def check_copies(task: AuditTask) -> Iterator[Holding]:
    """Yields the states of all copies of the task, each copy in exactly one Holding.

    It uses one connection. If that breaks, the rest of the task is unreachable: the audit reads it again later.
    """
    try:
        connection = BookieConnection(task.bookie_id, task.address, task.timeout_seconds, RateLimit(task.bytes_per_second))
    except BookieUnreachableError as error:
        for check in task.checks:
            yield from _unreachable(check, check.entries.first, error)
        return
    with connection:
        yield from _check_over(connection, task)


def _check_over(connection: BookieConnection, task: AuditTask) -> Iterator[Holding]:
    broken: BookieUnreachableError | None = None
    for check in task.checks:
        if broken is not None:
            yield from _unreachable(check, check.entries.first, broken)
            continue
        run = _RunOfEqualStates(check)
        try:
            if settled := _settled_by_a_few(connection, check):
                yield from settled
            else:
                for part in _answers(connection, check):
                    yield from run.add(part)
        except BookieUnreachableError as error:
            broken = error
        yield from run.finish()
        if broken is not None:
            yield from _unreachable(check, run.next_entry_id, broken)


def _settled_by_a_few(connection: BookieConnection, check: HoldingCheck) -> list[Holding]:
    """Returns all copies of the check if a few reads suffice; nothing if all must be read."""
    asked: tuple[int, ...]
    match check.reading:
        case Reading.EVERY_COPY | Reading.SUSPECTS:
            asked = (check.striping.nth_at(check.position, check.entries, 0),)
        case Reading.SAMPLE:
            asked = check.sample
        case _:
            assert_never(check.reading)
    answers = list(connection.read_entries(check.ledger_id, asked))
    if all(answer.code is ReadCode.NO_LEDGER for answer in answers):
        return list(_unseen(check, CopyState.MISSING, check.entries, ReadCode.NO_LEDGER.name))
    if check.reading is not Reading.SAMPLE or any(_judge(check, answer)[0] is not CopyState.VERIFIED for answer in answers):
        return []
    first, last = check.entries.first, check.entries.last
    return [
        _holding(check, CopyState.VERIFIED, _Piece(first, last, len(answers), sum(len(answer.data) for answer in answers)), ""),
        _holding(check, CopyState.UNREAD, _Piece(first, last, check.copies - len(answers), 0), ""),
    ]


def _answers(connection: BookieConnection, check: HoldingCheck) -> Iterator[Grouped]:
    """Yields the bookie's answers for all entries of the check, in order."""
    if check.striping.contiguous:
        return grouped(connection.read_runs(check.ledger_id, check.entries.first, check.entries.last))
    return grouped(connection.read_entries(check.ledger_id, check.striping.entries_at(check.position, check.entries)))


def _judge(check: HoldingCheck, answer: EntryAnswer) -> tuple[CopyState, str]:
    if answer.code.means_absent:
        return CopyState.MISSING, answer.code.name
    if answer.code is not ReadCode.OK:
        return CopyState.FAILED, answer.code.name
    try:
        entry = check.digest.verify_as(check.ledger_id, answer.entry_id, answer.data)
    except DigestMismatchError as error:
        return CopyState.CORRUPT, str(error)
    if not -1 <= entry.lac <= (entry.entry_id - 1 if check.highest_lac is None else check.highest_lac):
        return CopyState.WRONG_LAST_CONFIRMED, _wrong_lac(check, entry.lac)
    return CopyState.VERIFIED, ""


def _wrong_lac(check: HoldingCheck, lac: int) -> str:
    if check.highest_lac is None or lac < -1:
        return f"its LAC is {lac}"
    return f"its LAC is {lac}, but the ledger was closed with entry {check.highest_lac}: confirmed entries after it are missing"


@dataclass(frozen=True, slots=True)
class _Piece:
    """Consecutive entries with the same state; the last three fields are those of Holding."""

    first: int
    last: int
    copies: int
    bytes_read: int
    content: tuple[int, ...] = ()
    length_before: int | None = None
    length_after: int | None = None

    def with_next(self, other: _Piece) -> _Piece:
        content = tuple(_wrapped(mine + its) for mine, its in zip(self.content, other.content, strict=True))
        copies, size = self.copies + other.copies, self.bytes_read + other.bytes_read
        return _Piece(self.first, other.last, copies, size, content, self.length_before, other.length_after)


class _RunOfEqualStates:
    """Collects answers, in order, into as few Holdings as there are changes of state.

    It starts another Holding where neighbours' lengths contradict each other, so that their ends show it.
    """

    def __init__(self, check: HoldingCheck) -> None:
        self._check = check
        self._state = CopyState.VERIFIED
        self._detail = ""
        self._piece: _Piece | None = None
        self._contradictions = 0
        self.next_entry_id = check.entries.first
        """The first entry without an answer."""

    def add(self, part: Grouped) -> Iterator[Holding]:
        """Adds what the bookie answered; yields finished runs."""
        match part:
            case EntryAnswer():
                yield from self._add(*_judge(self._check, part), _Piece(part.entry_id, part.entry_id, 1, 0))
            case EntryRun(first, entries):
                yield from self._add_entries(np.arange(first, first + len(entries)), entries)
            case list():
                yield from self._add_entries(np.array([answer.entry_id for answer in part]), [answer.data for answer in part])
            case _:
                assert_never(part)

    def _add_entries(self, ids: Numbers, entries: Sequence[bytes]) -> Iterator[Holding]:
        check = self._check
        found = inspect(check.digest, check.ledger_id, ids, entries)
        possible = lac_is_possible(found.lac, found.ids, check.highest_lac)
        begins = np.flatnonzero(_begins(found, possible, check.block)) + 1
        for begin, end in itertools.pairwise([0, *begins.tolist(), len(ids)]):
            first, last, size = int(ids[begin]), int(ids[end - 1]), int(found.sizes[begin:end].sum())
            if not found.sound[begin]:
                answer = EntryAnswer(first, ReadCode.OK, entries[begin])
                yield from self._add(*_judge(check, answer), _Piece(first, last, end - begin, size))
                continue
            content = sums_of_content(found.content[begin:end], ids[begin:end], check.striping.classes)
            lengths = int(found.length_before[begin]), int(found.length_after[end - 1])
            piece = _Piece(first, last, end - begin, size, content, *lengths)
            if possible[begin]:
                yield from self._add(CopyState.VERIFIED, "", piece)
            else:
                yield from self._add(CopyState.WRONG_LAST_CONFIRMED, _wrong_lac(check, int(found.lac[begin])), piece)

    def _add(self, state: CopyState, detail: str, piece: _Piece) -> Iterator[Holding]:
        if self._piece is not None and state is self._state and self._may_be_one(self._piece, piece):
            self._piece = self._piece.with_next(piece)
        else:
            yield from self.finish()
            self._state, self._detail, self._piece = state, detail, piece
        self.next_entry_id = piece.last + 1

    def _may_be_one(self, before: _Piece, after: _Piece) -> bool:
        if self._check.block is not None and before.last // self._check.block != after.first // self._check.block:
            return False
        if before.length_after == after.length_before or before.last + 1 != after.first or not before.content:
            return True
        # A writer may have counted anything: bound the number of holdings.
        self._contradictions += 1
        return self._contradictions > _MOST_CONTRADICTIONS

    def finish(self) -> Iterator[Holding]:
        """Yields the open run, if there is one."""
        if self._piece is not None:
            yield _holding(self._check, self._state, self._piece, self._detail)
            self._piece = None


def _begins(found: Inspected, possible: Flags, block: int | None) -> Flags:
    """Returns, per entry but the first, whether it starts a new piece. Each unsound entry is a piece of its own."""
    sound, ids = found.sound, found.ids
    begins: Flags = ~sound[1:] | ~sound[:-1] | (possible[1:] != possible[:-1])
    begins |= (ids[1:] == ids[:-1] + 1) & (found.length_before[1:] != found.length_after[:-1])
    if block is not None:
        begins |= ids[1:] // block != ids[:-1] // block
    return begins


def _wrapped(number: int) -> int:
    """Wraps to a signed 64-bit number."""
    return (number + 2**63) % 2**64 - 2**63


def _unreachable(check: HoldingCheck, first: int, error: BookieUnreachableError) -> Iterator[Holding]:
    """Yields a check's entries from `first` on as unreachable; nothing if it has none there."""
    if first > check.entries.last:
        return
    yield from _unseen(check, CopyState.UNREACHABLE, EntryRange(first, check.entries.last), error.reason)


def _unseen(check: HoldingCheck, state: CopyState, entries: EntryRange, detail: str) -> Iterator[Holding]:
    """Yields a check's copies within `entries`, which have the same state without being read one by one."""
    block = check.block or entries.last + 1
    for number in range(entries.first // block, entries.last // block + 1):
        part = restricted(check, EntryRange(max(entries.first, number * block), min(entries.last, (number + 1) * block - 1)))
        if part is not None:
            yield _holding(part, state, _Piece(part.entries.first, part.entries.last, part.copies, 0), detail)


def _holding(check: HoldingCheck, state: CopyState, piece: _Piece, detail: str) -> Holding:
    return Holding(
        ledger_id=check.ledger_id,
        segment=check.segment,
        bookie_id=check.bookie_id,
        position=check.position,
        state=state,
        first=piece.first,
        last=piece.last,
        copies=piece.copies,
        bytes_read=piece.bytes_read,
        detail=detail,
        content=piece.content,
        length_before=piece.length_before,
        length_after=piece.length_after,
    )
