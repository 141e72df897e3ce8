"""Reads the copies that a task should find on its bookie, and says what they are. Runs on executors."""

from __future__ import annotations

from collections.abc import Iterator
from typing import assert_never

from herdkeeper.domain.replication import EntryRange
from herdkeeper.formats.bookkeeper_entry import DigestMismatchError
from herdkeeper.formats.bookkeeper_protocol import ReadCode
from herdkeeper_jobs.audit.holding import CopyState, Holding
from herdkeeper_jobs.audit.plan import AuditTask, HoldingCheck, Reading, restricted
from herdkeeper_jobs.bookkeeper.connection import BookieConnection, BookieUnreachableError, EntryAnswer, EntryRun
from herdkeeper_jobs.bookkeeper.rate_limit import RateLimit


def check_copies(task: AuditTask) -> Iterator[Holding]:
    """The states of all copies of the task, each copy in exactly one Holding.

    One connection reads everything. When it breaks, what is left of the task is unreachable: the audit asks once more later anyway.
    """
    try:
        if task.address is None:
            raise BookieUnreachableError(task.bookie_id, "not registered in ZooKeeper")
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
                    yield from run.add(part) if isinstance(part, EntryAnswer) else run.add_run(part)
        except BookieUnreachableError as error:
            broken = error
        yield from run.finish()
        if broken is not None:
            yield from _unreachable(check, run.next_entry_id, broken)


def _settled_by_a_few(connection: BookieConnection, check: HoldingCheck) -> list[Holding]:
    """All copies of the check, when reading a few of them tells enough; nothing when all are to be read."""
    asked: tuple[int, ...]
    match check.reading:
        case Reading.EVERY_COPY:
            return []
        case Reading.SUSPECTS:
            asked = (check.striping.nth_at(check.position, check.entries, 0),)
        case Reading.SAMPLE:
            asked = check.sample
        case _:
            assert_never(check.reading)
    answers = list(connection.read_entries(check.ledger_id, asked))
    if all(answer.code is ReadCode.NO_LEDGER for answer in answers):
        return [_holding(check, CopyState.MISSING, check.entries, (check.copies, 0, ReadCode.NO_LEDGER.name))]
    if check.reading is Reading.SUSPECTS or any(_judge(check, answer)[0] is not CopyState.VERIFIED for answer in answers):
        return []
    return [
        _holding(check, CopyState.VERIFIED, check.entries, (len(answers), sum(len(answer.data) for answer in answers), "")),
        _holding(check, CopyState.UNREAD, check.entries, (check.copies - len(answers), 0, "")),
    ]


def _answers(connection: BookieConnection, check: HoldingCheck) -> Iterator[EntryRun | EntryAnswer]:
    if check.striping.contiguous:
        return connection.read_runs(check.ledger_id, check.entries.first, check.entries.last)
    return connection.read_entries(check.ledger_id, check.striping.entries_at(check.position, check.entries))


def _judge(check: HoldingCheck, answer: EntryAnswer) -> tuple[CopyState, str]:
    if answer.code.means_absent:
        return CopyState.MISSING, answer.code.name
    if answer.code is not ReadCode.OK:
        return CopyState.FAILED, answer.code.name
    try:
        check.digest.verify_as(check.ledger_id, answer.entry_id, answer.data)
    except DigestMismatchError as error:
        return CopyState.CORRUPT, str(error)
    return CopyState.VERIFIED, ""


class _RunOfEqualStates:
    """Collects answers, in order, into as few Holdings as there are changes of state."""

    def __init__(self, check: HoldingCheck) -> None:
        self._check = check
        self._state = CopyState.VERIFIED
        self._detail = ""
        self._first = self._last = check.entries.first
        self._copies = 0
        self._bytes = 0

    @property
    def next_entry_id(self) -> int:
        """The first entry that no answer came for."""
        return self._last + 1 if self._copies else self._first

    def add(self, answer: EntryAnswer) -> Iterator[Holding]:
        """Takes one more answer; yields the run before it when its state differs."""
        return self._add(*_judge(self._check, answer), EntryRun(answer.entry_id, (answer.data,)))

    def add_run(self, run: EntryRun) -> Iterator[Holding]:
        """The same for entries that the bookie has: the intact ones among them are only counted."""
        first, entries = run.first, run.entries
        while entries:
            if good := self._check.digest.intact(self._check.ledger_id, first, entries):
                yield from self._add(CopyState.VERIFIED, "", EntryRun(first, entries[:good]))
            if bad := entries[good : good + 1]:
                yield from self.add(EntryAnswer(first + good, ReadCode.OK, *bad))
            first, entries = first + good + 1, entries[good + 1 :]

    def _add(self, state: CopyState, detail: str, answered: EntryRun) -> Iterator[Holding]:
        if state is not self._state or not self._copies:
            yield from self.finish()
            self._state, self._detail, self._first, self._copies, self._bytes = state, detail, answered.first, 0, 0
        self._last = answered.first + len(answered.entries) - 1
        self._copies += len(answered.entries)
        self._bytes += sum(map(len, answered.entries))

    def finish(self) -> Iterator[Holding]:
        """The run that is open, if there is one."""
        if self._copies:
            yield _holding(self._check, self._state, EntryRange(self._first, self._last), (self._copies, self._bytes, self._detail))


def _unreachable(check: HoldingCheck, first: int, error: BookieUnreachableError) -> Iterator[Holding]:
    """Everything of a check from entry `first` on; nothing when it holds nothing there."""
    if first > check.entries.last:
        return
    rest = restricted(check, EntryRange(first, check.entries.last))
    if rest is not None:
        yield _holding(rest, CopyState.UNREACHABLE, rest.entries, (rest.copies, 0, error.reason))


def _holding(check: HoldingCheck, state: CopyState, entries: EntryRange, counts: tuple[int, int, str]) -> Holding:
    copies, bytes_read, detail = counts
    return Holding(
        ledger_id=check.ledger_id,
        segment=check.segment,
        bookie_id=check.bookie_id,
        position=check.position,
        state=state,
        first=entries.first,
        last=entries.last,
        copies=copies,
        bytes_read=bytes_read,
        detail=detail,
    )
