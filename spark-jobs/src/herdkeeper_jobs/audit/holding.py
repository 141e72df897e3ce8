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

    @property
    def is_suspect(self) -> bool:
        """Whether it is to be looked at again, and reported if it stays so."""
        return self not in (CopyState.VERIFIED, CopyState.UNREAD)


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
