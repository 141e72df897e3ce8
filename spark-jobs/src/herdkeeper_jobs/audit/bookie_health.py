"""What an audit learned of each bookie, by counting its copies. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from herdkeeper_jobs.audit.holding import CopyState, Holding


@dataclass(frozen=True, slots=True)
class BookieHealth:
    """Copies that a bookie should hold, by what became of them; each is counted in exactly one of the five last numbers."""

    bookie_id: str
    rack: str | None
    """None where it is not known."""
    ledgers: int
    bytes_read: int
    copies_verified: int
    copies_unread: int
    copies_missing: int
    copies_damaged: int
    copies_unknown: int

    @property
    def copies(self) -> int:
        """Copies that it should hold."""
        return self.copies_verified + self.copies_unread + self.copies_missing + self.copies_damaged + self.copies_unknown


def health_of_bookies(holdings: Iterable[Holding], rack_of: Mapping[str, str]) -> tuple[BookieHealth, ...]:
    """One for each bookie that should hold anything, by id."""
    by_bookie: dict[str, list[Holding]] = {}
    for holding in holdings:
        by_bookie.setdefault(holding.bookie_id, []).append(holding)
    return tuple(_health(bookie_id, own, rack_of.get(bookie_id)) for bookie_id, own in sorted(by_bookie.items()))


def _health(bookie_id: str, own: list[Holding], rack: str | None) -> BookieHealth:
    copies = dict.fromkeys(CopyState, 0)
    for holding in own:
        copies[holding.state] += holding.copies
    return BookieHealth(
        bookie_id=bookie_id,
        rack=rack,
        ledgers=len({holding.ledger_id for holding in own}),
        bytes_read=sum(holding.bytes_read for holding in own),
        copies_verified=copies[CopyState.VERIFIED],
        copies_unread=copies[CopyState.UNREAD],
        copies_missing=copies[CopyState.MISSING],
        copies_damaged=copies[CopyState.CORRUPT],
        copies_unknown=copies[CopyState.FAILED] + copies[CopyState.UNREACHABLE],
    )
