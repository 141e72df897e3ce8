"""Finds ledgers with copies in fewer racks than the placement rule requires and the bookies allow.

BookKeeper applies the rule at the choice of an ensemble if it can, and never moves a ledger later. Its own check counts such closed ledgers
once a day, only under the rack-aware policy (auditorPeriodicPlacementPolicyCheckInterval, BookKeeper 4.18).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from herdkeeper.codecs.bookkeeper.metadata import LedgerMetadata
from herdkeeper.codecs.bookkeeper.striping import SegmentRange, Striping, segment_ranges, striping

MOST_SHOWN = 10


@dataclass(frozen=True)
class PlacementRule:
    """`racks` are the bookies' racks, by id. `minimum`: racks per write quorum. `possible`: racks with a bookie."""

    racks: Mapping[str, str]
    minimum: int
    possible: int

    @property
    def can_be_broken(self) -> bool:
        """Whether any ledger's copies could be in too few racks."""
        return min(self.minimum, self.possible) > 1


@dataclass(frozen=True)
class PlacementBreaches:
    """How many ledgers break the rule, and the ten with the lowest ids."""

    ledgers: int = 0
    first: tuple[int, ...] = ()

    @staticmethod
    def of(ledger_ids: Iterable[int]) -> PlacementBreaches:
        """Collects all ledgers that break the rule."""
        found = sorted(ledger_ids)
        return PlacementBreaches(len(found), tuple(found[:MOST_SHOWN]))


def breaks_placement(metadata: LedgerMetadata, rule: PlacementRule) -> bool:
    """Returns whether entries of a ledger, or future ones of an open ledger, have copies in too few racks."""
    wanted = min(rule.minimum, rule.possible, metadata.write_quorum)
    if wanted < 2:
        return False
    # an open ledger's last segment grows: one round of its ensemble has all of its write sets
    last = metadata.segments[-1].first_entry_id + metadata.ensemble_size - 1 if metadata.last_entry_id is None else metadata.last_entry_id
    found = (fewest_racks(striping(metadata), segment, rule.racks) for segment in segment_ranges(metadata, last))
    return any(racks is not None and len(racks) < wanted for racks in found)


def fewest_racks(spread: Striping, segment: SegmentRange, racks: Mapping[str, str]) -> frozenset[str] | None:
    """Returns the racks of the segment's entry that is in the fewest. None if a bookie's rack is unknown: then nothing is known wrong."""
    if not all(bookie_id in racks for bookie_id in segment.bookies):
        return None
    turn = spread.one_round(segment.entries)
    return min((frozenset(racks[segment.bookies[position]] for position in spread.write_set(entry_id)) for entry_id in turn), key=len)
