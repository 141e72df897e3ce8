"""Replication audits: their depth, kinds and severities of findings, and a finding."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar

from pydantic import ConfigDict
from pydantic.alias_generators import to_camel


class FindingKind(StrEnum):
    """What is wrong with the copies of a range of entries."""

    MISSING = "Missing"
    """The bookie should hold the entries, but answered that it does not."""
    CORRUPT_DIGEST = "CorruptDigest"
    """The bookie holds the entries, but the digest does not match the bytes."""
    BOOKIE_UNREACHABLE = "BookieUnreachable"
    """The bookie is not registered, refused the connection or did not answer: the state of its copies is unknown, not missing."""
    READ_FAILED = "ReadFailed"
    """The bookie answered with an error (e.g. an I/O error): the state of its copies is unknown."""
    LEDGER_UNREADABLE = "LedgerUnreadable"
    """The ledger's metadata could not be decoded, or is gone although a log lists the ledger."""
    END_UNKNOWN = "EndUnknown"
    """Too few bookies reported the LAC of an open ledger's last segment: entries that were not read may be confirmed, too."""
    TOO_FEW_RACKS = "TooFewRacks"
    """The copies of an entry are in fewer racks than the cluster requires and has."""
    NAMED_TWICE = "NamedTwice"
    """The ensemble names the bookie in two places of an entry: what counts as two copies is one."""
    CONTRADICTION = "Contradiction"
    """The bookie holds the entries with valid digests, but other copies with valid digests have other content."""
    WRONG_LENGTH = "WrongLength"
    """All copies of the entry agree, but its cumulative length is not that of the previous entry plus its payload."""
    WRONG_LAST_CONFIRMED = "WrongLastConfirmed"
    """The entry's digest is valid, but its LAC is not: in a closed ledger it is after the end."""
    ORPHAN = "Orphan"
    """A ledger of a HerdDB tablespace that is on no tablespace's ledger list: nothing reads or deletes it."""


class Severity(StrEnum):
    """How urgent a finding is, from the number of good copies against the ledger's quorums. The most urgent one comes first."""

    CRITICAL = "Critical"
    """Fewer good copies than the ack quorum: acknowledged data is closer to loss than promised."""
    UNDER_REPLICATED = "UnderReplicated"
    """At least the ack quorum, but fewer than the write quorum, in a closed ledger: legitimate after a crash, and repairable."""
    AT_RISK = "AtRisk"
    """Nothing is missing, but the loss of one rack would take too many copies."""
    PENDING = "Pending"
    """Fewer than the write quorum in an open ledger: the writer may still be sending the last copies."""
    UNKNOWN = "Unknown"
    """The copies could not be checked."""
    LOW = "Low"
    """Every entry has its copies, and they agree: a person should know, in time."""


class RepairOutcome(StrEnum):
    """Result of a finding that was to be repaired."""

    REPAIRED = "Repaired"
    """Every entry was written from a verified replica, or replaced with its bookie's whole share of the ledger, and read back."""
    WOULD_REPAIR = "WouldRepair"
    """Dry run: every entry has a verified replica to write from."""
    REFUSED = "Refused"
    """At least one entry was not written, since that would be wrong or there is no good copy; the detail says which."""
    FAILED = "Failed"
    """Something was written or moved but could not be read back, BookKeeper's client failed, or the lock was lost."""


@dataclass(frozen=True, slots=True)
class Finding:
    """Entries `first_entry_id`..`last_entry_id` (inclusive) of one segment of a ledger, on one bookie.

    A finding about a whole bookie has no ledger; one about a whole ledger or its placement has no bookie. `expected_copies` is the write
    quorum, `actual_copies` the number of good copies over all bookies, None if unknown.
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
    """None if no repair was requested."""
    repair_detail: str = ""

    @property
    def entries_of_copies(self) -> int:
        """Number of entries of a finding about copies; 0 of one about a placement, a whole bookie, or entries with all copies."""
        if (
            self.severity is Severity.LOW
            or self.kind is FindingKind.TOO_FEW_RACKS
            or self.first_entry_id is None
            or self.last_entry_id is None
        ):
            return 0
        return self.last_entry_id - self.first_entry_id + 1


class AuditDepth(StrEnum):
    """Which copies are read."""

    LIGHT = "Light"
    """Of each bookie's share of a segment: the first entry, the last, and some in between, different ones in each run. All of the share if
    one of them is bad."""
    DEEP = "Deep"
    """Every copy of every entry."""
