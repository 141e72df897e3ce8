"""Finds ledgers whose copies are in fewer racks than wanted, or in fewer bookies than their number says. Pure.

BookKeeper places ensembles by rack if it can, and otherwise anywhere, unless placement is enforced. So a ledger written while a rack was
away stays in too few racks. Nothing moves it, and BookKeeper's own check only counts it, once a day.

An ensemble may name a bookie twice. Who copies the share of one bookie replaces it in the ensemble, whatever the other places are by then
(LedgerFragmentReplicator.updateEnsembleInfo of BookKeeper 4.18.0). BookKeeper's own tools take no lock of the ledger. A drain or a
replication worker may have lost its own. So two of them may choose the same new bookie. Each place answers, and BookKeeper's own check
finds nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from herdkeeper.codecs.bookkeeper.placement import fewest_racks
from herdkeeper.codecs.bookkeeper.striping import segment_ranges, striping
from herdkeeper.protocol.audit_finding import Finding, FindingKind, Severity
from herdkeeper_jobs.audit.evaluate import severity_of
from herdkeeper_jobs.copies.plan import AuditedLedger


@dataclass(frozen=True, slots=True)
class RackMap:
    """The racks of bookies, and the number of racks wanted for the copies of each entry."""

    rack_of: Mapping[str, str]
    """By bookie id. An ensemble with an unlisted bookie is not judged."""
    wanted: int

    def required(self, write_quorum: int) -> int:
        """The wanted number, limited by the number of racks and of copies."""
        return min(self.wanted, write_quorum, len(set(self.rack_of.values())))


def findings_of_placement(ledger: AuditedLedger, racks: RackMap) -> Iterator[Finding]:
    """Yields one finding per segment that has an entry with copies in too few racks."""
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


def findings_of_names(ledger: AuditedLedger) -> Iterator[Finding]:
    """Yields one finding per segment and bookie that the segment names in two places of an entry."""
    metadata, spread = ledger.metadata, striping(ledger.metadata)
    for segment in segment_ranges(metadata, ledger.last_entry_id):
        if len(set(segment.bookies)) == len(segment.bookies):
            continue
        named = [[segment.bookies[position] for position in spread.write_set(entry_id)] for entry_id in spread.one_round(segment.entries)]
        for bookie_id in sorted({each for names in named for each in names if names.count(each) > 1}):
            copies = min(len(set(names)) for names in named if names.count(bookie_id) > 1)
            severity = severity_of(copies, 0, metadata)
            assert severity is not None  # fewer bookies than the write quorum
            yield Finding(
                kind=FindingKind.NAMED_TWICE,
                severity=severity,
                ledger_id=metadata.ledger_id,
                first_entry_id=segment.entries.first,
                last_entry_id=segment.entries.last,
                bookie_id=bookie_id,
                segment=segment.segment,
                expected_copies=metadata.write_quorum,
                actual_copies=copies,
                detail=f"the ensemble is {', '.join(segment.bookies)}: an entry in two places of {bookie_id} has one copy there",
            )
