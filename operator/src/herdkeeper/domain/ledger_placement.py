"""Which ledgers have copies in fewer racks than the placement rule asks for and the bookies make possible.

A write set is the Wq bookies that hold one entry: positions i to i + Wq - 1 of an ensemble, around its end. BookKeeper chooses ensembles by
the rule where it can, and keeps to a choice that it made while it could not: nothing moves such a ledger later. Its own check counts them
for closed ledgers, once a day, under the rack-aware policy alone (auditorPeriodicPlacementPolicyCheckInterval, BookKeeper 4.18).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from herdkeeper.formats.bookkeeper_metadata import LedgerMetadata

MOST_SHOWN = 10


@dataclass(frozen=True)
class PlacementRule:
    """`racks` is where bookies stand, by their ids. `minimum`: racks per write quorum. `possible`: racks in which a bookie is writable."""

    racks: Mapping[str, str]
    minimum: int
    possible: int

    @property
    def can_be_broken(self) -> bool:
        """Whether any ledger's copies could be in too few racks."""
        return min(self.minimum, self.possible) > 1


@dataclass(frozen=True)
class PlacementBreaches:
    """How many ledgers break the rule, and the first of them by their ids, ten at most."""

    ledgers: int = 0
    first: tuple[int, ...] = ()

    @staticmethod
    def of(ledger_ids: Iterable[int]) -> PlacementBreaches:
        """All ledgers that break the rule."""
        found = sorted(ledger_ids)
        return PlacementBreaches(len(found), tuple(found[:MOST_SHOWN]))


def breaks_placement(metadata: LedgerMetadata, rule: PlacementRule) -> bool:
    """Whether a write set of a segment that has entries, or may still get some, is in too few racks.

    One that names a bookie of which no rack is known breaks nothing as far as is known.
    """
    wanted = min(rule.minimum, rule.possible, metadata.write_quorum)
    return wanted > 1 and any(_too_few(bookies, metadata.write_quorum, wanted, rule.racks) for bookies in _ensembles(metadata))


def _ensembles(metadata: LedgerMetadata) -> set[tuple[str, ...]]:
    """The ensembles of segments that are not empty."""
    firsts = [segment.first_entry_id for segment in metadata.segments]
    ends = [*firsts[1:], metadata.last_entry_id + 1 if metadata.last_entry_id is not None else None]
    return {segment.bookies for segment, end in zip(metadata.segments, ends, strict=True) if end is None or end > segment.first_entry_id}


def _too_few(bookies: tuple[str, ...], write_quorum: int, wanted: int, racks: Mapping[str, str]) -> bool:
    size = len(bookies)
    sets = ([racks.get(bookies[(first + step) % size]) for step in range(write_quorum)] for first in range(size))
    return any(None not in write_set and len(set(write_set)) < wanted for write_set in sets)
