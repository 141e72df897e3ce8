"""What a replication audit can find: kinds, severities, and one finding."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar

from pydantic import ConfigDict
from pydantic.alias_generators import to_camel


class FindingKind(StrEnum):
    """What is wrong with the copies of a range of entries."""

    MISSING = "Missing"
    """The bookie should hold the entries and answered that it does not."""
    CORRUPT_DIGEST = "CorruptDigest"
    """The bookie holds the entries, but the digest does not match the bytes."""
    BOOKIE_UNREACHABLE = "BookieUnreachable"
    """The bookie is not registered, refused the connection or did not answer: its copies are unknown, not missing."""
    READ_FAILED = "ReadFailed"
    """The bookie answered with an error for these entries (an I/O error, for example): their copies are unknown."""
    LEDGER_UNREADABLE = "LedgerUnreadable"
    """The ledger's metadata could not be decoded, or what is confirmed of an open ledger could not be learned."""
    TOO_FEW_RACKS = "TooFewRacks"
    """The copies of an entry are spread over fewer racks than the cluster wants, and has."""
    CONTRADICTION = "Contradiction"
    """The bookie holds the entries with right digests, and other copies of them, also with right digests, say something else."""
    WRONG_LENGTH = "WrongLength"
    """All copies of the entry agree, but its cumulative length is not that of the entry before it and its own payload together."""
    WRONG_LAST_CONFIRMED = "WrongLastConfirmed"
    """The entry's digest is right, but the LAC in it can't be: of a closed ledger it lies behind the end."""
    ORPHAN = "Orphan"
    """A ledger of a HerdDB tablespace that is on no tablespace's list of ledgers: nobody reads it, and nobody will delete it."""


class Severity(StrEnum):
    """How urgent a finding is, from the number of good copies against the ledger's quorums."""

    CRITICAL = "Critical"
    """Fewer good copies than the ack quorum: what was acknowledged is one or more failures closer to loss than promised."""
    UNDER_REPLICATED = "UnderReplicated"
    """At least the ack quorum, fewer than the write quorum, on a closed ledger: legitimate after a crash, and repairable."""
    AT_RISK = "AtRisk"
    """Nothing is missing, but one rack's loss would take more copies than it should."""
    PENDING = "Pending"
    """The same on an open ledger: the writer may still be sending the last copies."""
    UNKNOWN = "Unknown"
    """The copies could not be looked at."""
    LOW = "Low"
    """Every entry has its copies, and they agree: something that a person should know of, in time."""


class RepairOutcome(StrEnum):
    """What became of a finding that an audit was told to repair."""

    REPAIRED = "Repaired"
    """Every entry was written from a verified replica, or left behind with all that its bookie had of the ledger, and read back."""
    WOULD_REPAIR = "WouldRepair"
    """A dry run: every entry has a verified replica to write from."""
    REFUSED = "Refused"
    """Nothing was written for at least one entry, since that would be wrong or there is nothing good to write; the detail says which."""
    FAILED = "Failed"
    """Something was written or moved and could not be read back, BookKeeper's client failed, or the lock was lost."""


@dataclass(frozen=True, slots=True)
class Finding:
    """Entries `first_entry_id`..`last_entry_id` (both inclusive) of one segment of a ledger, on one bookie.

    A finding about a whole bookie has no ledger, one about a whole ledger or about where a segment's copies stand has no bookie.
    `expected_copies` is the write quorum, `actual_copies` the number of good copies over all bookies; None where it could not be counted.
    """

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(alias_generator=to_camel, populate_by_name=True, extra="ignore")

    kind: FindingKind
    severity: Severity
    ledger_id: int | None = None
    first_entry_id: int | None = None
    last_entry_id: int | None = None
    bookie_id: str | None = None
    segment: int | None = None
    """Position of the segment in the ledger's metadata, from 0."""
    expected_copies: int | None = None
    actual_copies: int | None = None
    detail: str = ""
    repair: RepairOutcome | None = None
    """None: nobody was told to repair it."""
    repair_detail: str = ""

    @property
    def entries_of_copies(self) -> int:
        """Entries from the first to the last of a finding about copies; those of a placement or of a whole bookie don't count as lost, nor
        those of which every copy is there."""
        if (
            self.severity is Severity.LOW
            or self.kind is FindingKind.TOO_FEW_RACKS
            or self.first_entry_id is None
            or self.last_entry_id is None
        ):
            return 0
        return self.last_entry_id - self.first_entry_id + 1
