"""The portions in which an audit goes over the ledgers, in the order of their ids: what is next, and what is known of one. Pure.

A portion is what a run that was broken off need not do again. It has some thousands of ledgers at most, and about as many bytes to read as
a bound says: a ledger belongs to one portion, so that the last one may go beyond it.
"""

from __future__ import annotations

import bisect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from herdkeeper.protocol.audit_depth import AuditDepth
from herdkeeper.protocol.audit_finding import Finding
from herdkeeper_jobs.audit.bookie_health import BookieTally, added
from herdkeeper_jobs.audit.scope import Scope
from herdkeeper_jobs.bookkeeper.metadata import UndecodableMetadata, VersionedMetadata
from herdkeeper_jobs.copies.plan import AuditBudget, estimated_ledger_bytes

LEDGERS_AT_ONCE = 20_000
"""How many ledgers are audited together: what is held in memory does not grow with the cluster."""
_SECONDS_OF_READING = 60
"""So long a portion reads where the bytes per second have a limit: a pause comes soon, and little is lost by a process that is killed."""
_LEAST_BYTES = 16 * 1024 * 1024
"""A portion costs a Spark job and some fsyncs, whatever it reads."""


@dataclass(frozen=True, slots=True)
class Counted:
    """What is known of some of the ledgers; sums over disjoint sets of them."""

    ledgers: int = 0
    open_ledgers: int = 0
    entries: int = 0
    findings: tuple[Finding, ...] = ()
    tallies: Mapping[str, BookieTally] = field(default_factory=dict)
    unreadable: tuple[int, ...] = ()
    """Ledgers of which nothing of the above tells, since they could not be read."""

    def __add__(self, other: Counted) -> Counted:
        return Counted(
            self.ledgers + other.ledgers,
            self.open_ledgers + other.open_ledgers,
            self.entries + other.entries,
            self.findings + other.findings,
            added(self.tallies, other.tallies),
            self.unreadable + other.unreadable,
        )


@dataclass(frozen=True, slots=True)
class Portion:
    """Ledgers that were audited together."""

    last_of_run: int
    """The highest id when the run began: what is created later belongs to the next run."""
    through: int
    """Ledgers up to this id are done."""
    last_try: bool
    """They are those that could not be read the first time."""
    counted: Counted


@dataclass(frozen=True, slots=True)
class Work:
    """Ledgers that are still to be audited: a portion is taken from their beginning. Never empty."""

    ledger_ids: Sequence[int]
    last_of_run: int
    last_try: bool = False


@dataclass(frozen=True, slots=True)
class RunProgress:
    """How a run goes on from what was kept of it, and what becomes of each portion. By default nothing is kept, and nothing stops it."""

    kept: tuple[Portion, ...] = ()
    """What earlier processes of the run have done, in order."""
    keep: Callable[[int, Portion], Portion] = lambda _, portion: portion
    """Given a portion and how many come before it, makes it durable; returns another process's portion when that one was first."""
    may_read: Callable[[], bool] = lambda: True
    """Whether another portion may begin now."""


def remaining_work(ledger_ids: Sequence[int], done: Sequence[Portion]) -> Work | None:
    """Of a run over these ledgers (ascending), given its portions in order; None when nothing is. What could not be read comes last."""
    last_of_run = done[0].last_of_run if done else (ledger_ids[-1] if ledger_ids else -1)
    begin = bisect.bisect_right(ledger_ids, max((each.through for each in done if not each.last_try), default=-1))
    end = min(bisect.bisect_right(ledger_ids, last_of_run), begin + LEDGERS_AT_ONCE)
    again = [each.through for each in done if each.last_try]
    if begin < end and not again:
        return Work(ledger_ids[begin:end], last_of_run)
    unreadable = sorted({ledger_id for each in done for ledger_id in each.counted.unreadable if ledger_id > max(again, default=-1)})
    return Work(unreadable[:LEDGERS_AT_ONCE], last_of_run, last_try=True) if unreadable else None


def bytes_of_portion(budget: AuditBudget, bookies: int) -> float:
    """After how many bytes a portion takes no further ledger."""
    return min(budget.portion_bytes, max(_LEAST_BYTES, budget.bytes_per_second_per_bookie * max(1, bookies) * _SECONDS_OF_READING))


@dataclass(frozen=True, slots=True)
class NextPortion:
    """The ledgers of a portion that are to be audited, as they were read."""

    reads: tuple[VersionedMetadata | UndecodableMetadata, ...]
    through: int


def next_portion(work: Work, reads: Iterable[VersionedMetadata | UndecodableMetadata], how: tuple[Scope, AuditDepth, float]) -> NextPortion:
    """The ledgers that the scope admits, until they have as many bytes as `how` says; no more than these are read.

    One that can't be decoded is taken whatever the scope wants of metadata: whether it is meant is not known.
    """
    scope, depth, most_bytes = how
    taken: list[VersionedMetadata | UndecodableMetadata] = []
    size = 0
    for read in reads:
        if isinstance(read, UndecodableMetadata):
            taken.append(read)
        elif scope.admits(read.metadata):
            taken.append(read)
            size += estimated_ledger_bytes(read.metadata, depth)
            if size >= most_bytes:
                return NextPortion(tuple(taken), read.metadata.ledger_id)
    return NextPortion(tuple(taken), work.ledger_ids[-1])
