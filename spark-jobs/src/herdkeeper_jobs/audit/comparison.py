"""Compares the copies of entries with each other, and the lengths of neighbouring entries. Pure.

Copies may differ although each has a right digest. Then only the ack quorum decides. Content on at least that many copies may have been
acknowledged. If no other content is on as many, it is right and the other copies are wrong. Otherwise no copy can be trusted. Payload and
length are compared (Holding.content), for a whole segment, for blocks of entries, or for single ones.

Inconsistent lengths on which all copies agree are the writer's fault: two neighbours both give the length up to the same place.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from herdkeeper.codecs.bookkeeper.striping import EntryRange, SegmentRange, Striping, merge_into_ranges, segment_ranges, striping
from herdkeeper.protocol.audit_finding import Finding, FindingKind, Severity
from herdkeeper_jobs.copies.holding import CopyState, Holding
from herdkeeper_jobs.copies.plan import AuditedLedger

_WRAP = 2**64


def segments_in_doubt(ledger: AuditedLedger, holdings: Sequence[Holding], partly_read: bool) -> frozenset[int]:
    """Returns segments in which fully read shares differ, or lengths don't add up.

    With `partly_read` also segments with a share of which only a part is read and intact: sums can't show whether that part agrees.
    """
    own = list(_of_places(ledger, holdings))
    doubted = {unit.segment.segment for unit in _units(ledger, own, None) if _differ(unit) or (partly_read and unit.is_partial)}
    broken = {entry_id for boundary in broken_lengths(own) for entry_id in (boundary, boundary + 1)}
    for segment in segment_ranges(ledger.metadata, ledger.last_entry_id):
        if any(segment.entries.first <= entry_id <= segment.entries.last for entry_id in broken):
            doubted.add(segment.segment)
    return frozenset(doubted)


def blocks_in_doubt(ledger: AuditedLedger, holdings: Sequence[Holding], block: int) -> list[tuple[int, EntryRange]]:
    """Returns segment and entries of blocks whose copies differ or are incomplete, in order. `holdings` end at blocks."""
    return [(unit.segment.segment, unit.entries) for unit in _units(ledger, holdings, block) if _differ(unit) or unit.is_partial]


def contradicted(ledger: AuditedLedger, holdings: Sequence[Holding], block: int) -> list[Holding]:
    """Returns the untrusted copies as CONTRADICTED holdings: a position's whole block if one of its entries is untrusted. `holdings` end at
    blocks."""
    found: dict[tuple[int, int, EntryRange], Holding] = {}
    for unit in _units(ledger, holdings, block):
        for position, detail in _untrusted(unit, ledger.metadata.ack_quorum):
            entries = unit.own_entries(position)
            found[unit.segment.segment, position, entries] = Holding(
                ledger_id=ledger.metadata.ledger_id,
                segment=unit.segment.segment,
                bookie_id=unit.segment.bookies[position],
                position=position,
                state=CopyState.CONTRADICTED,
                first=entries.first,
                last=entries.last,
                copies=unit.spread.count_at(position, entries),
                bytes_read=0,
                detail=detail,
            )
    return list(found.values())


def broken_lengths(holdings: Iterable[Holding]) -> dict[int, tuple[int, ...]]:
    """Returns the conflicting lengths up to an entry (-1: before the first), as its copies and the next entry give them."""
    lengths_up_to: dict[int, set[int]] = {-1: {0}}
    for holding in holdings:
        if holding.state.is_intact and holding.length_before is not None and holding.length_after is not None:
            lengths_up_to.setdefault(holding.first - 1, set()).add(holding.length_before)
            lengths_up_to.setdefault(holding.last, set()).add(holding.length_after)
    return {entry_id: tuple(sorted(lengths)) for entry_id, lengths in sorted(lengths_up_to.items()) if len(lengths) > 1}


def findings_of_lengths(ledger: AuditedLedger, holdings: Iterable[Holding], untrusted: Sequence[Holding]) -> tuple[Finding, ...]:
    """Finds entries whose length is not the previous entry's plus their own payload. Entries with an `untrusted` copy are left out."""
    broken = {
        boundary: lengths
        for boundary, lengths in broken_lengths(holdings).items()
        if not any(each.first <= boundary + 1 and boundary <= each.last for each in untrusted)
    }
    entries = merge_into_ranges(min(boundary + 1, ledger.last_entry_id) for boundary in broken)
    return tuple(
        Finding(
            kind=FindingKind.WRONG_LENGTH,
            severity=Severity.LOW,
            ledger_id=ledger.metadata.ledger_id,
            first_entry_id=part.first,
            last_entry_id=part.last,
            detail=f"payload bytes before entry {part.first} differ between it and the one before: {_numbers(broken, part.first)}",
        )
        for part in entries
    )


def _numbers(broken: dict[int, tuple[int, ...]], first: int) -> str:
    return " and ".join(str(length) for length in broken.get(first - 1, broken.get(first, ())))


@dataclass(slots=True)
class _Unit:
    """The copies of some entries of a segment, by position: their number and content."""

    segment: SegmentRange
    entries: EntryRange
    spread: Striping
    copies: dict[int, int] = field(default_factory=dict)
    content: dict[int, tuple[int, ...]] = field(default_factory=dict)

    def add(self, holding: Holding) -> None:
        """Adds a part of a position's copies."""
        before = self.content.get(holding.position, (0,) * len(holding.content))
        self.copies[holding.position] = self.copies.get(holding.position, 0) + holding.copies
        self.content[holding.position] = tuple((mine + its) % _WRAP for mine, its in zip(before, holding.content, strict=True))

    @property
    def is_partial(self) -> bool:
        """Whether a position has only some of its copies here, and another one has any."""
        return len(self.copies) > 1 and any(count < self.spread.count_at(at, self.entries) for at, count in self.copies.items())

    def versions(self) -> Iterator[list[tuple[int, ...]]]:
        """Yields, for each class of entries, groups of complete positions with equal content, the largest group first."""
        whole = [at for at, count in self.copies.items() if count == self.spread.count_at(at, self.entries)]
        for each in range(self.spread.classes):
            by_content: dict[int, list[int]] = {}
            for position in sorted(whole):
                if self.spread.contiguous or self.spread.holds(position, each):
                    by_content.setdefault(self.content[position][each], []).append(position)
            yield sorted((tuple(positions) for positions in by_content.values()), key=len, reverse=True)

    def own_entries(self, position: int) -> EntryRange:
        """The range from the position's first to its last entry here."""
        own = list(self.spread.entries_at(position, self.entries)) if len(self.entries) < 2 * self.spread.ensemble_size else []
        return EntryRange(own[0], own[-1]) if own else self.entries


def _units(ledger: AuditedLedger, holdings: Iterable[Holding], block: int | None) -> list[_Unit]:
    """Returns the units, segments or blocks, of which something is fully read and intact."""
    segments = {segment.segment: segment for segment in segment_ranges(ledger.metadata, ledger.last_entry_id)}
    units: dict[tuple[int, int], _Unit] = {}
    for holding in holdings:
        if not (holding.state.is_intact and holding.content and holding.segment in segments):
            continue
        segment, number = segments[holding.segment], 0 if block is None else holding.first // block
        if (unit := units.get((holding.segment, number))) is None:
            unit = units[holding.segment, number] = _Unit(segment, _within(segment.entries, number, block), striping(ledger.metadata))
        unit.add(holding)
    return [unit for _, unit in sorted(units.items())]


def _within(entries: EntryRange, number: int, block: int | None) -> EntryRange:
    if block is None:
        return entries
    return EntryRange(max(entries.first, number * block), min(entries.last, (number + 1) * block - 1))


def _of_places(ledger: AuditedLedger, holdings: Iterable[Holding]) -> Iterator[Holding]:
    """Yields intact holdings in their current place. Skips positions with overlapping holdings, since a sum can't be split."""
    segments = {segment.segment: segment for segment in segment_ranges(ledger.metadata, ledger.last_entry_id)}
    by_place: dict[tuple[int, int], list[Holding]] = {}
    for holding in holdings:
        segment = segments.get(holding.segment)
        if segment is None or segment.bookies[holding.position] != holding.bookie_id or not holding.state.is_intact:
            continue
        if segment.entries.first <= holding.first and holding.last <= segment.entries.last:
            by_place.setdefault((holding.segment, holding.position), []).append(holding)
    for own in by_place.values():
        own.sort(key=lambda holding: holding.first)
        if all(before.last < after.first for before, after in itertools.pairwise(own)):
            yield from own


def _differ(unit: _Unit) -> bool:
    return any(len(versions) > 1 for versions in unit.versions())


def _untrusted(unit: _Unit, ack_quorum: int) -> Iterator[tuple[int, str]]:
    """Yields untrusted positions, each with the reason."""
    for versions in unit.versions():
        if len(versions) < 2:
            continue
        supported = [positions for positions in versions if len({unit.segment.bookies[position] for position in positions}) >= ack_quorum]
        named = " | ".join(", ".join(unit.segment.bookies[position] for position in positions) for positions in versions)
        trusted = supported[0] if len(supported) == 1 else ()
        verdict = "those on an ack quorum of bookies are right" if trusted else "it is unknown which of them is right"
        for positions in versions:
            if positions is not trusted:
                yield from ((position, f"right digests, but payload or length differ ({named}): {verdict}") for position in positions)
