"""Which bookie holds which entry, by BookKeeper's round-robin rule.

A segment has the ensemble size E and the write quorum Wq. Entry e is written to the Wq positions e mod E, e+1 mod E, …. So position i holds
e exactly when (i - e) mod E < Wq. With E = Wq each position holds all. A segment ends before the next one's first entry. The last one ends
with the ledger's last entry (closed) or its LAC (open). Segments may be empty. Source: RoundRobinDistributionSchedule and
LedgerMetadataUtils of BookKeeper 4.18.0.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from herdkeeper.codecs.bookkeeper.metadata import LedgerMetadata


@dataclass(frozen=True, slots=True, order=True)
class EntryRange:
    """Entries `first`..`last`, both inclusive, at least one."""

    first: int
    last: int

    def __post_init__(self) -> None:
        if not 0 <= self.first <= self.last:
            raise ValueError(f"entry range {self.first}..{self.last}: expected 0 <= first <= last")

    def __len__(self) -> int:
        return self.last - self.first + 1

    def __iter__(self) -> Iterator[int]:
        return iter(range(self.first, self.last + 1))


@dataclass(frozen=True, slots=True)
class SegmentRange:
    """The entries of one segment that certainly exist, and the bookies that should hold them."""

    segment: int
    """Position in the ledger's metadata, from 0."""
    entries: EntryRange
    bookies: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Striping:
    """How the entries of a ledger are spread over the positions of an ensemble."""

    ensemble_size: int
    write_quorum: int

    @property
    def contiguous(self) -> bool:
        """Whether each bookie holds every entry (E = Wq)."""
        return self.ensemble_size == self.write_quorum

    @property
    def classes(self) -> int:
        """How many classes of entries have copies in the same positions: an entry's class is its remainder by this number."""
        return 1 if self.contiguous else self.ensemble_size

    def holds(self, position: int, entry_id: int) -> bool:
        """Returns whether the bookie at `position` (from 0) should hold the entry."""
        return (position - entry_id) % self.ensemble_size < self.write_quorum

    def write_set(self, entry_id: int) -> tuple[int, ...]:
        """Returns the positions that hold the entry, in the order in which a reader asks them."""
        return tuple((entry_id + offset) % self.ensemble_size for offset in range(self.write_quorum))

    def one_round(self, entries: EntryRange) -> EntryRange:
        """Returns the first entries, of each write set one."""
        return EntryRange(entries.first, min(entries.last, entries.first + self.ensemble_size - 1))

    def entries_at(self, position: int, entries: EntryRange) -> Iterator[int]:
        """The entries that the bookie at `position` should hold, ascending."""
        return (entry_id for entry_id in entries if self.holds(position, entry_id))

    def count_at(self, position: int, entries: EntryRange) -> int:
        """Returns their number without iteration: whole rounds of E entries have Wq each; the rest is less than one round."""
        if self.contiguous:
            return len(entries)
        turns, rest = divmod(len(entries), self.ensemble_size)
        tail = range(entries.last - rest + 1, entries.last + 1)
        return turns * self.write_quorum + sum(1 for entry_id in tail if self.holds(position, entry_id))

    def nth_at(self, position: int, entries: EntryRange, index: int) -> int:
        """Returns the entry at `index` (from 0) of `entries_at`, without iteration."""
        if self.contiguous:
            return entries.first + index
        turn = EntryRange(entries.first, entries.first + self.ensemble_size - 1)
        turns, rest = divmod(index, self.write_quorum)
        return turns * self.ensemble_size + list(self.entries_at(position, turn))[rest]


def striping(metadata: LedgerMetadata) -> Striping:
    return Striping(metadata.ensemble_size, metadata.write_quorum)


def segment_ranges(metadata: LedgerMetadata, last_confirmed: int) -> tuple[SegmentRange, ...]:
    """Returns the segments that hold entries up to `last_confirmed` (-1: none), cut there; empty segments are left out."""
    ranges = []
    ends = [segment.first_entry_id - 1 for segment in metadata.segments[1:]] + [last_confirmed]
    for index, (segment, end) in enumerate(zip(metadata.segments, ends, strict=True)):
        last = min(end, last_confirmed)
        if segment.first_entry_id <= last:
            ranges.append(SegmentRange(index, EntryRange(segment.first_entry_id, last), segment.bookies))
    return tuple(ranges)


def has_entries_only_on(metadata: LedgerMetadata, bookies: frozenset[str]) -> bool:
    """Returns whether all copies of an entry are on these bookies. The last segment of an open ledger has no known entries."""
    spread, last = striping(metadata), metadata.last_entry_id
    found = segment_ranges(metadata, metadata.segments[-1].first_entry_id - 1 if last is None else last)
    named = (segment for segment in found if not bookies.isdisjoint(segment.bookies))
    entries = ((segment, entry_id) for segment in named for entry_id in spread.one_round(segment.entries))
    return any(all(segment.bookies[position] in bookies for position in spread.write_set(entry_id)) for segment, entry_id in entries)


def merge_into_ranges(entry_ids: Iterable[int]) -> tuple[EntryRange, ...]:
    """Returns the fewest ranges that hold exactly these entries, ascending; duplicates count once."""
    merged: list[EntryRange] = []
    for entry_id in sorted(set(entry_ids)):
        if merged and merged[-1].last + 1 == entry_id:
            merged[-1] = EntryRange(merged[-1].first, entry_id)
        else:
            merged.append(EntryRange(entry_id, entry_id))
    return tuple(merged)
