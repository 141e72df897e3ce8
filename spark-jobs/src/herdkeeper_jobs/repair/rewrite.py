"""Rewrites entries that one bookie lacks: verified source, write, read back.

A source is a replica with a right digest that no other verified replica contradicts. While a replica does not answer, as many as the ack
quorum must agree: it may contradict a single one, whose content would then be on more bookies than the right one. Exactly the source's
bytes are written. Then the entry is read until the bookie returns it undamaged. SortedLedgerStorage acknowledges an add at once, but
reads the old bytes until its next flush (measured; DbLedgerStorage returns the new ones at once).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

from herdkeeper.codecs.bookkeeper.bookie_address import BookieAddress
from herdkeeper.codecs.bookkeeper.entry import DigestMismatchError, Entry, EntryDigest
from herdkeeper.codecs.bookkeeper.protocol import ReadCode
from herdkeeper.codecs.bookkeeper.striping import Striping
from herdkeeper_jobs.bookkeeper.connection import BookieConnection, BookieUnreachableError
from herdkeeper_jobs.bookkeeper.rate_limit import RateLimit
from herdkeeper_jobs.repair.relocation import Relocation

_AWAY_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class RepairSettings:
    owner: str
    """The holder of the locks, for people."""
    dry_run: bool = False
    timeout_seconds: float = 15.0
    bytes_per_second_per_bookie: float = float("inf")
    visible_seconds: float = 90.0
    """Time for a bookie to return a written entry: more than a flush of SortedLedgerStorage (10 s by default)."""
    poll_seconds: float = 1.0
    move: Callable[[Relocation, Mapping[str, BookieAddress], Callable[[], None]], None] | None = None
    """`BookKeeperClient.move`, which moves copies to another bookie; None without a BookKeeper client."""


@dataclass(frozen=True, slots=True)
class Replicas:
    """Where the entries of one segment are, and how to verify and write them."""

    ledger_id: int
    bookies: tuple[str, ...]
    striping: Striping
    ack_quorum: int
    digest: EntryDigest
    master_key: bytes


@dataclass(frozen=True, slots=True)
class Copy:
    """One replica's verified copy: its bytes, and the decoded entry."""

    data: bytes
    entry: Entry

    def says_the_same(self, other: Copy) -> bool:
        """Whether both are the same entry. The LAC may differ: re-replication writes another one."""
        return (self.entry.payload, self.entry.length) == (other.entry.payload, other.entry.length)


@dataclass(frozen=True, slots=True)
class NoCopy:
    """One replica gave no good copy."""

    reason: str
    may_exist: bool
    """Whether the bookie may have one all the same: it did not answer, or answered with an error."""
    damaged: bool = False
    """Whether it has a record that is not the entry."""


class NoGoodReplicaError(RuntimeError):
    """Nothing may be written: no other replica is good, good ones contradict each other, or one that may do so does not answer."""


class NotRepairedError(RuntimeError):
    """A write failed, or the bookie does not return the written entry undamaged."""


@dataclass
class Bookies:
    """The connections of a repair, opened on first use."""

    addresses: Mapping[str, BookieAddress]
    settings: RepairSettings
    _open: dict[str, BookieConnection] = field(default_factory=dict)
    _away: dict[str, tuple[float, str]] = field(default_factory=dict)
    """By bookie that failed: until when it is not asked again, by the monotonic clock, and why."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        for connection in self._open.values():
            connection.close()

    def read(self, replicas: Replicas, bookie_id: str, entry_id: int) -> Copy | NoCopy:
        try:
            answer = next(self.connection(bookie_id).read_entries(replicas.ledger_id, [entry_id]))
            if answer.code is not ReadCode.OK:
                return NoCopy(f"bookie {bookie_id} answered {answer.code.name}", may_exist=not answer.code.means_absent)
            return Copy(answer.data, replicas.digest.verify_as(replicas.ledger_id, entry_id, answer.data))
        except BookieUnreachableError as error:
            self.drop(error)
            return NoCopy(str(error), may_exist=True)
        except DigestMismatchError as error:
            return NoCopy(f"bookie {bookie_id} has it damaged: {error}", may_exist=False, damaged=True)

    def connection(self, bookie_id: str) -> BookieConnection:
        """Raises BookieUnreachableError, also for a while after one: to wait at each entry would keep the ledger locked for hours."""
        if bookie_id not in self._open:
            until, why = self._away.get(bookie_id, (0.0, ""))
            if time.monotonic() < until:
                raise BookieUnreachableError(bookie_id, why)
            limit = RateLimit(self.settings.bytes_per_second_per_bookie)
            self._open[bookie_id] = BookieConnection(bookie_id, self.addresses.get(bookie_id), self.settings.timeout_seconds, limit)
        return self._open[bookie_id]

    def drop(self, error: BookieUnreachableError) -> None:
        """Forgets a broken connection, and asks its bookie nothing for a while."""
        if self._open.pop(error.bookie_id, None) or self._away.get(error.bookie_id, (0.0, ""))[0] <= time.monotonic():
            self._away[error.bookie_id] = (time.monotonic() + _AWAY_SECONDS, error.reason)


def good_source(bookies: Bookies, replicas: Replicas, bookie_id: str, entry_id: int) -> Copy:
    """Returns the copy to write on that bookie. Asks every other replica, to detect contradictions, and that bookie itself, since it may
    have got a copy meanwhile that it can't read now. Raises NoGoodReplicaError."""
    good: list[Copy] = []
    without: list[NoCopy] = []
    for other in dict.fromkeys(replicas.bookies[position] for position in replicas.striping.write_set(entry_id)):
        copy = bookies.read(replicas, other, entry_id)
        if other == bookie_id:
            without.extend([copy] if isinstance(copy, NoCopy) and copy.may_exist else [])
        elif isinstance(copy, NoCopy):
            without.append(copy)
        elif good and not copy.says_the_same(good[0]):
            raise NoGoodReplicaError(f"entry {entry_id}: bookie {other} and another one have different payloads, both with right digests")
        else:
            good.append(copy)
    reasons = "; ".join(each.reason for each in without)
    if not good:
        raise NoGoodReplicaError(f"entry {entry_id}: no good replica: {reasons or 'no other bookie should hold it'}")
    if len(good) < replicas.ack_quorum and any(each.may_exist for each in without):
        raise NoGoodReplicaError(f"entry {entry_id}: good replicas are fewer than the ack quorum, and another may contradict: {reasons}")
    return good[0]


def lacks(bookies: Bookies, replicas: Replicas, bookie_id: str, source: Copy) -> bool:
    """Whether the source is to be written there. Raises NoGoodReplicaError if the bookie has another record: one may have come since the
    audit, and none is replaced in its place (relocation.py)."""
    own = bookies.read(replicas, bookie_id, source.entry.entry_id)
    if isinstance(own, NoCopy) and own.damaged:
        raise NoGoodReplicaError(f"entry {source.entry.entry_id} was missing, and now {own.reason}: audit again")
    return not _is_the_same(own, bookie_id, source)


def is_whole(bookies: Bookies, replicas: Replicas, bookie_id: str, source: Copy) -> bool:
    """Whether the bookie returns the source's entry. Raises NoGoodReplicaError if it returns another one with a right digest."""
    return _is_the_same(bookies.read(replicas, bookie_id, source.entry.entry_id), bookie_id, source)


def _is_the_same(own: Copy | NoCopy, bookie_id: str, source: Copy) -> bool:
    if isinstance(own, NoCopy):
        return False
    if not own.says_the_same(source):
        raise NoGoodReplicaError(
            f"entry {source.entry.entry_id}: bookie {bookie_id} and another one have different payloads, both with right digests"
        )
    return True


def write(bookies: Bookies, replicas: Replicas, bookie_id: str, source: Copy) -> None:
    """Stores the copy on the bookie. Raises NotRepairedError with the bookie's answer."""
    entry_id = source.entry.entry_id
    try:
        code = bookies.connection(bookie_id).recovery_add((replicas.ledger_id, entry_id), replicas.master_key, source.data)
    except BookieUnreachableError as error:
        bookies.drop(error)
        raise NotRepairedError(f"entry {entry_id}: {error}") from error
    if code is not ReadCode.OK:
        raise NotRepairedError(f"entry {entry_id}: bookie {bookie_id} answered {code.name} to the write")


def wait_until_whole(bookies: Bookies, replicas: Replicas, bookie_id: str, sources: list[Copy]) -> None:
    """Reads all of them back. Raises NotRepairedError if one does not appear in time."""
    deadline = time.monotonic() + bookies.settings.visible_seconds
    left = list(sources)
    while left := [source for source in left if not is_whole(bookies, replicas, bookie_id, source)]:
        if time.monotonic() > deadline:
            why = bookies.read(replicas, bookie_id, left[0].entry.entry_id)
            raise NotRepairedError(
                f"entry {left[0].entry.entry_id} was written, but after {bookies.settings.visible_seconds:g} s it is not whole: "
                f"{why.reason if isinstance(why, NoCopy) else 'it came later'}"
            )
        time.sleep(bookies.settings.poll_seconds)
