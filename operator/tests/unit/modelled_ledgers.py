"""Ledgers on modelled bookies: whom their metadata name, and who has their entries on disk.

As in BookKeeper 4.18 (ReplicationWorker, LedgerFragmentReplicator): a bookie is replaced in a segment only after its entries were copied,
and a segment that is still written is left alone.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple


class Segment(NamedTuple):
    """`bookies` are named by the metadata, `copies` have the entries on their disks."""

    bookies: frozenset[int]
    copies: frozenset[int]


class Ledger(NamedTuple):
    """A writer adds to the last segment of an open one."""

    segments: tuple[Segment, ...]
    open: bool

    def names(self, bookie: int) -> bool:
        return any(bookie in segment.bookies for segment in self.segments)

    def is_written_on(self, bookie: int) -> bool:
        return self.open and bookie in self.segments[-1].bookies

    def can_leave(self, bookie: int) -> bool:
        """Whether the bookie has a part of it, and no writer writes it there."""
        return self.names(bookie) and not self.is_written_on(bookie)

    def read_back(self, leaving: int) -> tuple[Segment, ...]:
        """What a read-back reads: of an open ledger not the last segment, nor what is still on the bookie that leaves."""
        return tuple(segment for segment in self.segments[:-1] if leaving not in segment.bookies) if self.open else self.segments

    def having(self, place: int, segment: Segment) -> Ledger:
        return self._replace(segments=(*self.segments[:place], segment, *self.segments[place + 1 :]))


def elsewhere(segment: Segment, gone: int, free: Collection[int], serving: frozenset[int]) -> Segment | None:
    """The segment with a copy on another bookie, the first of those that are free. None when there is nothing to copy it from, or nowhere
    to copy it to."""
    to = sorted(set(free) - segment.bookies)
    if not to or not segment.copies & serving:
        return None
    return Segment(segment.bookies - {gone} | {to[0]}, segment.copies | {to[0]})
