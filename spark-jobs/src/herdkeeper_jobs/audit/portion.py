"""The portions of an audit, in the order of ledger ids: what is next, and what is known of each. Pure.

An interrupted run need not repeat a finished portion. A portion has at most some thousands of ledgers, and about a given number of bytes.
Its last ledger may exceed that number, since ledgers are not split.
"""

from __future__ import annotations

import bisect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from herdkeeper.protocol.audit_finding import AuditDepth, Finding
from herdkeeper_jobs.audit.bookie_health import BookieTally, added
from herdkeeper_jobs.audit.scope import Scope
from herdkeeper_jobs.bookkeeper.metadata import UndecodableMetadata, VersionedMetadata
from herdkeeper_jobs.copies.plan import AuditBudget, estimated_ledger_bytes

LEDGERS_AT_ONCE = 20_000
"""Ledgers that are audited together at most, so that memory does not grow with the cluster."""
_SECONDS_OF_READING = 60
"""Reading time of a portion under a rate limit. A pause comes soon, and a killed process loses little."""
_LEAST_BYTES = 16 * 1024 * 1024
"""Lower limit: each portion costs a Spark job and some fsyncs."""


@dataclass(frozen=True, slots=True)
class Counted:
    """Counts and findings of some ledgers; can be added over disjoint sets."""

    ledgers: int = 0
    open_ledgers: int = 0
    entries: int = 0
    findings: tuple[Finding, ...] = ()
    tallies: Mapping[str, BookieTally] = field(default_factory=dict)
    unreadable: tuple[int, ...] = ()
    """Ledgers that the other fields exclude, since they could not be read."""

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
    """The highest id at the start of the run; later ledgers belong to the next run."""
    through: int
    """Ledgers up to this id are done."""
    last_try: bool
    """The ledgers were unreadable the first time."""
    counted: Counted


@dataclass(frozen=True, slots=True)
class Work:
    """Ledgers still to be audited, never empty. A portion is taken from their beginning."""

    ledger_ids: Sequence[int]
    last_of_run: int
    last_try: bool = False


@dataclass(frozen=True, slots=True)
class RunProgress:
    """How a run continues and keeps its portions. By default nothing is kept, and nothing stops it."""

    kept: tuple[Portion, ...] = ()
    """The portions of the run's earlier processes, in order."""
    keep: Callable[[int, Portion], Portion] = lambda _, portion: portion
    """Makes a portion durable, given its number; returns another process's portion if that one was first."""
    may_read: Callable[[], bool] = lambda: True
    """Whether another portion may begin now."""


def remaining_work(ledger_ids: Sequence[int], done: Sequence[Portion]) -> Work | None:
    """Returns what is left of `ledger_ids` (ascending) after the portions in order; None if nothing is. Unreadable ledgers come last."""
    last_of_run = done[0].last_of_run if done else (ledger_ids[-1] if ledger_ids else -1)
    begin = bisect.bisect_right(ledger_ids, max((each.through for each in done if not each.last_try), default=-1))
    end = min(bisect.bisect_right(ledger_ids, last_of_run), begin + LEDGERS_AT_ONCE)
    again = [each.through for each in done if each.last_try]
    if begin < end and not again:
        return Work(ledger_ids[begin:end], last_of_run)
    unreadable = sorted({ledger_id for each in done for ledger_id in each.counted.unreadable if ledger_id > max(again, default=-1)})
    return Work(unreadable[:LEDGERS_AT_ONCE], last_of_run, last_try=True) if unreadable else None


def bytes_of_portion(budget: AuditBudget, bookies: int) -> float:
    """The number of bytes after which a portion takes no further ledger."""
    return min(budget.portion_bytes, max(_LEAST_BYTES, budget.bytes_per_second_per_bookie * max(1, bookies) * _SECONDS_OF_READING))


@dataclass(frozen=True, slots=True)
class NextPortion:
    """The ledgers of a portion, as read."""

    reads: tuple[VersionedMetadata | UndecodableMetadata, ...]
    through: int


def next_portion(
    work: Work, reads: Iterable[VersionedMetadata | UndecodableMetadata], scope: Scope, depth: AuditDepth, most_bytes: float
) -> NextPortion:
    """Takes the ledgers that the scope admits, up to `most_bytes`, and reads no more than these.

    An undecodable ledger is always taken, since it may be meant.
    """
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
