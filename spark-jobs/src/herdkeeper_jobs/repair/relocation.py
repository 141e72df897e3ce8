"""Plans which copies must leave a bookie with a damaged entry, whether they can, and checks whether they did. Pure.

A damaged entry can't be repaired in place. DbLedgerStorage (BookKeeper 4.18.0) keeps the old record in its entry log beside the new one,
and returns to it in three ways. Its read cache comes before its index, and keeps what it read before the rewrite. A read of an entry up to
100 records before the old one loads that into the cache again (SingleDirectoryDbLedgerStorage, fillReadAheadCache). A compaction of the
entry log copies each record and writes its place to the index, even if the index points elsewhere (EntryLogCompactor). No client's write
can prevent that. So BookKeeper's client copies the ledger's entries to another bookie and names it in the metadata. The old bookie deletes
what no metadata names (ScanAndCompareGarbageCollector, a day later by default).
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from herdkeeper.codecs.bookkeeper.metadata import LedgerMetadata
from herdkeeper.codecs.bookkeeper.share import Place
from herdkeeper_jobs.copies.plan import AuditedLedger, HoldingCheck, holding_checks

_LOT_BYTES, _MOST_IN_LOT = 8 * 1024 * 1024, 100


@dataclass(frozen=True, slots=True)
class Relocation:
    """All copies of a closed ledger on some bookies, to be copied to others. `places` may include empty segments; `checks` are where copies
    are."""

    metadata: LedgerMetadata
    bookie_ids: tuple[str, ...]
    places: tuple[Place, ...]
    checks: tuple[HoldingCheck, ...]
    targets: tuple[str, ...]
    """The bookies that BookKeeper may choose for some of the copies."""

    @property
    def copies(self) -> int:
        return sum(check.copies for check in self.checks)

    def for_target(self, target: str) -> tuple[HoldingCheck, ...]:
        """The copies that may come to this bookie."""
        return tuple(check for check in self.checks if target not in self.metadata.segments[check.segment].bookies)

    @property
    def entries_in_lot(self) -> int:
        """Entries that may be in memory at once. The client waits for each lot, so small lots cost time."""
        entries, length = (self.metadata.last_entry_id or 0) + 1, self.metadata.length or 0
        return max(1, min(_MOST_IN_LOT, _LOT_BYTES * entries // max(1, length)))


def relocation(metadata: LedgerMetadata, bookie_ids: Collection[str], writable: Collection[str]) -> Relocation | str:
    """Returns what to copy, or why it can't be copied. `writable`: bookies that take entries now. `why_not` decides whether the ledger may
    be touched at all.

    All damaged bookies go at once. One by one, the second one's copies might go to the first one, which still has its damaged record.
    """
    places = tuple(
        Place(segment.first_entry_id, position)
        for segment in metadata.segments
        for position, name in enumerate(segment.bookies)
        if name in bookie_ids
    )
    targets: set[str] = set()
    for segment in metadata.segments:
        leaving, free = set(bookie_ids) & set(segment.bookies), set(writable) - set(segment.bookies)
        if len(free) < len(leaving):
            return (
                f"damaged copies can't be repaired in place, and too few writable bookies can take them: {len(leaving)} of the"
                f" bookies that hold entries from {segment.first_entry_id} on have some damaged, and {len(free)} others are writable;"
                " add bookies"
            )
        targets |= free if leaving else set()
    return Relocation(metadata, tuple(sorted(bookie_ids)), places, _checks(metadata, places), tuple(sorted(targets)))


def moved(planned: Relocation, after: LedgerMetadata | None) -> tuple[HoldingCheck, ...] | str:
    """Returns the copies to read back after the client's success, or what is wrong with the new metadata."""
    before = planned.metadata
    if after is None:
        return "the ledger is gone"
    if (after.state, after.last_entry_id, after.length) != (before.state, before.last_entry_id, before.length):
        return "the ledger's end changed while its copies were moved"
    if left := {name for segment in after.segments for name in segment.bookies} & set(planned.bookie_ids):
        return f"the metadata still names {' and '.join(sorted(left))}"
    if _without(planned.places, before) != _without(planned.places, after):
        return "the metadata names other bookies or segments than before, among those that must stay"
    return _checks(after, planned.places)


def _without(places: tuple[Place, ...], metadata: LedgerMetadata) -> list[tuple[int, list[str]]]:
    """Each segment's first entry and its bookies in all other places."""
    return [
        (segment.first_entry_id, [name for at, name in enumerate(segment.bookies) if Place(segment.first_entry_id, at) not in places])
        for segment in metadata.segments
    ]


def _checks(metadata: LedgerMetadata, places: tuple[Place, ...]) -> tuple[HoldingCheck, ...]:
    last = -1 if metadata.last_entry_id is None else metadata.last_entry_id
    firsts = [segment.first_entry_id for segment in metadata.segments]
    every = holding_checks(AuditedLedger(metadata, last))
    return tuple(check for check in every if Place(firsts[check.segment], check.position) in places)
