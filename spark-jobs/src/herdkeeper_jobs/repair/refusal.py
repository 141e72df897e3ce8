"""Decides which findings must not be repaired, and why. Pure."""

from __future__ import annotations

from herdkeeper.codecs.bookkeeper.metadata import DigestType, LedgerMetadata
from herdkeeper.protocol.audit_finding import Finding, FindingKind

_REPAIRABLE = (FindingKind.MISSING, FindingKind.CORRUPT_DIGEST)


def concerns_entries(finding: Finding) -> bool:
    """Whether it names entries that one bookie lacks or holds damaged; other findings report failed reads."""
    return finding.kind in _REPAIRABLE


def why_not(finding: Finding, metadata: LedgerMetadata | None) -> str | None:
    """Returns why nothing may be written for a finding about entries; None if it may. `metadata` is the newest, None if the ledger is
    gone."""
    if metadata is None:
        return "the ledger is gone"
    if not metadata.closed:
        return f"the ledger is {metadata.state.name}: only closed ledgers are repaired, a writer or a recovery may still be at work"
    if metadata.digest_type is None:
        return "its metadata has no password, so its master key is not known"
    if metadata.digest_type is DigestType.DUMMY:
        return "its entries have no digest, so no replica can be verified"
    if _segment_of(finding, metadata) is None:
        return f"bookie {finding.bookie_id} is not in the ensemble of these entries any more"
    return None


def positions_of(finding: Finding, metadata: LedgerMetadata) -> tuple[int, ...]:
    """The places of the finding's bookie in its entries' ensemble, which may name it twice. Empty if `why_not` gives a reason."""
    return tuple(position for position, name in enumerate(ensemble_of(finding, metadata)) if name == finding.bookie_id)


def ensemble_of(finding: Finding, metadata: LedgerMetadata) -> tuple[str, ...]:
    """The bookies of the finding's segment."""
    segment = _segment_of(finding, metadata)
    return () if segment is None else metadata.segments[segment].bookies


def _segment_of(finding: Finding, metadata: LedgerMetadata) -> int | None:
    """The segment, if it still holds all entries of the finding and names its bookie."""
    if finding.segment is None or finding.first_entry_id is None or finding.last_entry_id is None:
        return None
    if metadata.last_entry_id is None or not finding.segment < len(metadata.segments):
        return None
    following = metadata.segments[finding.segment + 1 :]
    end = following[0].first_entry_id - 1 if following else metadata.last_entry_id
    segment = metadata.segments[finding.segment]
    within = segment.first_entry_id <= finding.first_entry_id and finding.last_entry_id <= end
    return finding.segment if within and finding.bookie_id in segment.bookies else None
