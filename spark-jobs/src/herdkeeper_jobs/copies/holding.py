"""The result of reading one bookie's copies: runs of entries with the same state."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from herdkeeper.codecs.bookkeeper.striping import EntryRange

Share = tuple[int, int, str]
"""A bookie's share of a ledger: segment, position and bookie."""


class CopyState(StrEnum):
    VERIFIED = "Verified"
    """Read, and its digest matches."""
    UNREAD = "Unread"
    """Not read: a sample of its share was read and is good."""
    MISSING = "Missing"
    """The bookie answered that it does not hold it."""
    CORRUPT = "Corrupt"
    """The bookie holds something else than the writer sent."""
    FAILED = "Failed"
    """The bookie answered with an inconclusive error."""
    UNREACHABLE = "Unreachable"
    """The bookie did not answer."""
    WRONG_LAST_CONFIRMED = "WrongLastConfirmed"
    """Read, and its digest matches, but its LAC is impossible (copies/inspection.py)."""
    CONTRADICTED = "Contradicted"
    """Read, and its digest matches, but other such copies differ. A single task can't see that."""

    @property
    def is_suspect(self) -> bool:
        """Whether to read it again, and to report it if it stays so."""
        return self not in (CopyState.VERIFIED, CopyState.UNREAD)

    @property
    def is_intact(self) -> bool:
        """Whether it was read, and holds the entry that its digest promises."""
        return self in (CopyState.VERIFIED, CopyState.WRONG_LAST_CONFIRMED)


@dataclass(frozen=True, slots=True)
class Holding:
    """The entries from `first` to `last` that one position of a segment should hold, all in the same state.

    In a striped ledger the range includes other positions' entries; `copies` counts only its own.
    """

    ledger_id: int
    segment: int
    bookie_id: str
    position: int
    state: CopyState
    first: int
    last: int
    copies: int
    bytes_read: int
    detail: str = ""
    """For all but verified copies: the bookie's answer for the first of them."""
    content: tuple[int, ...] = ()
    """Of intact copies that were all read: sums of their content (inspection.sums_of_content), one per entry class. With E = Wq all entries
    are one class. Otherwise a class has equal remainders by E, so its copies are in the same positions."""
    length_before: int | None = None
    """Of the same: the ledger's payload bytes before the first entry, as that entry says."""
    length_after: int | None = None
    """The ledger's payload bytes up to the last entry, as that entry says."""

    @property
    def entries(self) -> EntryRange:
        return EntryRange(self.first, self.last)

    @property
    def share(self) -> Share:
        return self.segment, self.position, self.bookie_id
