"""Ledgers whose copies stand in fewer racks than the cluster wants. Pure.

BookKeeper chooses ensembles by rack when it can and takes others when it can't (unless it is told to enforce), so a ledger that was
written while a rack was away stays where it is: nothing moves it, and BookKeeper's own check only counts it, once a day.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from herdkeeper.codecs.bookkeeper.placement import fewest_racks
from herdkeeper.codecs.bookkeeper.striping import segment_ranges, striping
from herdkeeper.protocol.audit_finding import Finding, FindingKind, Severity
from herdkeeper_jobs.copies.plan import AuditedLedger


@dataclass(frozen=True, slots=True)
class RackMap:
    """Where the bookies stand, and over how many racks the copies of each entry shall be spread."""

    rack_of: Mapping[str, str]
    """By bookie id. An ensemble with a bookie that is not in it is not judged."""
    wanted: int

    def required(self, write_quorum: int) -> int:
        """No more than there are racks, or copies."""
        return min(self.wanted, write_quorum, len(set(self.rack_of.values())))


def findings_of_placement(ledger: AuditedLedger, racks: RackMap) -> Iterator[Finding]:
    """One finding for each segment with an entry whose copies are in too few racks."""
    metadata = ledger.metadata
    required = racks.required(metadata.write_quorum)
    for segment in segment_ranges(metadata, ledger.last_entry_id):
        fewest = fewest_racks(striping(metadata), segment, racks.rack_of)
        if fewest is not None and len(fewest) < required:
            yield Finding(
                kind=FindingKind.TOO_FEW_RACKS,
                severity=Severity.AT_RISK,
                ledger_id=metadata.ledger_id,
                first_entry_id=segment.entries.first,
                last_entry_id=segment.entries.last,
                segment=segment.segment,
                expected_copies=metadata.write_quorum,
                detail=f"bookies {', '.join(segment.bookies)}: all copies of an entry in {', '.join(sorted(fewest))}; "
                f"wanted: {required} racks",
            )
