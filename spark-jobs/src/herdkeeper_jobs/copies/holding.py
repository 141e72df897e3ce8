"""The result of looking at one bookie's copies: runs of entries with the same state."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class CopyState(StrEnum):
    """What a copy turned out to be."""

    VERIFIED = "Verified"
    """Read, and its digest matches."""
    UNREAD = "Unread"
    """Not asked for: a sample of its neighbours in the same share was read and is good."""
    MISSING = "Missing"
    """The bookie answered that it does not hold it."""
    CORRUPT = "Corrupt"
    """The bookie holds something else than the writer sent."""
    FAILED = "Failed"
    """The bookie answered with an error that leaves it open."""
    UNREACHABLE = "Unreachable"
    """The bookie did not answer."""
    WRONG_LAST_CONFIRMED = "WrongLastConfirmed"
    """Read, and its digest matches, but its LAC can't be (copies/inspection.py)."""
    CONTRADICTED = "Contradicted"
    """Read, and its digest matches, but other such copies say something else. What a single task sees can't tell."""

    @property
    def is_suspect(self) -> bool:
        """Whether it is to be looked at again, and reported if it stays so."""
        return self not in (CopyState.VERIFIED, CopyState.UNREAD)

    @property
    def is_intact(self) -> bool:
        """Whether it was read, and holds the entry as its digest promises."""
        return self in (CopyState.VERIFIED, CopyState.WRONG_LAST_CONFIRMED)


@dataclass(frozen=True, slots=True)
class Holding:
    """The entries from `first` to `last` that one position of a segment should hold, all in the same state.

    In a striped ledger the range also spans entries that are other positions' alone; `copies` counts only its own.
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
    """For anything but verified copies: what the bookie said about the first of them."""
    content: tuple[int, ...] = ()
    """Of intact copies that were all read: the sums of what they say (inspection.sums_of_content), one for each entry class: all entries of
    a ledger with E = Wq, else those with the same remainder by E, which have their copies in the same positions."""
    length_before: int | None = None
    """Of the same: bytes of payloads of the ledger before the first entry, as that entry tells."""
    length_after: int | None = None
    """Up to the last entry, as that one tells."""
