"""An audit's counts of each bookie's copies. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from herdkeeper_jobs.copies.holding import CopyState

_STATES = tuple(CopyState)


@dataclass(frozen=True, slots=True)
class BookieTally:
    """Counts of a bookie; can be added over disjoint sets of ledgers."""

    ledgers: int = 0
    bytes_read: int = 0
    copies: tuple[int, ...] = (0,) * len(_STATES)
    """By state, in the order of CopyState. Each copy that it should hold counts once."""
    ledgers_away: int = 0
    """Ledgers with unread copies, since the bookie did not answer."""
    why_away: str = ""

    def __add__(self, other: BookieTally) -> BookieTally:
        return BookieTally(
            self.ledgers + other.ledgers,
            self.bytes_read + other.bytes_read,
            tuple(mine + its for mine, its in zip(self.copies, other.copies, strict=True)),
            self.ledgers_away + other.ledgers_away,
            self.why_away or other.why_away,
        )

    def in_state(self, *states: CopyState) -> int:
        """The number of its copies in any of these states."""
        return sum(self.copies[_STATES.index(state)] for state in states)


def added(one: Mapping[str, BookieTally], other: Mapping[str, BookieTally]) -> dict[str, BookieTally]:
    """Adds the tallies of two disjoint sets of ledgers, by bookie."""
    nothing = BookieTally()
    return dict(one) | {bookie: one.get(bookie, nothing) + tally for bookie, tally in other.items()}


def copies_by_state(counts: Mapping[CopyState, int]) -> tuple[int, ...]:
    """Counts in the order of `BookieTally.copies`."""
    return tuple(counts.get(state, 0) for state in _STATES)


@dataclass(frozen=True, slots=True)
class BookieHealth:
    """The copies that a bookie should hold, by result. The last five numbers count each copy exactly once."""

    bookie_id: str
    rack: str | None
    """None if unknown."""
    ledgers: int
    bytes_read: int
    copies_verified: int
    copies_unread: int
    copies_missing: int
    copies_damaged: int
    copies_unknown: int

    @property
    def copies(self) -> int:
        """The number of copies that it should hold."""
        return self.copies_verified + self.copies_unread + self.copies_missing + self.copies_damaged + self.copies_unknown


def health_of_bookies(tallies: Mapping[str, BookieTally], rack_of: Mapping[str, str]) -> tuple[BookieHealth, ...]:
    """Returns one for each bookie that should hold anything, sorted by id."""
    return tuple(_health(bookie_id, own, rack_of.get(bookie_id)) for bookie_id, own in sorted(tallies.items()) if own.ledgers)


def _health(bookie_id: str, own: BookieTally, rack: str | None) -> BookieHealth:
    return BookieHealth(
        bookie_id=bookie_id,
        rack=rack,
        ledgers=own.ledgers,
        bytes_read=own.bytes_read,
        copies_verified=own.in_state(CopyState.VERIFIED, CopyState.WRONG_LAST_CONFIRMED),
        copies_unread=own.in_state(CopyState.UNREAD),
        copies_missing=own.in_state(CopyState.MISSING),
        copies_damaged=own.in_state(CopyState.CORRUPT, CopyState.CONTRADICTED),
        copies_unknown=own.in_state(CopyState.FAILED, CopyState.UNREACHABLE),
    )
