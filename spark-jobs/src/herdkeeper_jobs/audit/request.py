"""What an audit is asked for."""

from __future__ import annotations

from dataclasses import dataclass

from herdkeeper.domain.audit_depth import AuditDepth
from herdkeeper.domain.replication import EntryRange
from herdkeeper_jobs.audit.orphans import OrphanRule
from herdkeeper_jobs.audit.placement import RackMap


@dataclass(frozen=True, slots=True)
class LedgerFilter:
    """Which ledgers to audit; none given means all."""

    ranges: tuple[EntryRange, ...] = ()

    def admits(self, ledger_id: int) -> bool:
        """Whether this ledger is to be audited."""
        return not self.ranges or any(part.first <= ledger_id <= part.last for part in self.ranges)


@dataclass(frozen=True, slots=True)
class AuditRequest:
    """What is to be audited, and how closely."""

    ledgers: LedgerFilter = LedgerFilter()
    depth: AuditDepth = AuditDepth.DEEP
    seed: str = ""
    """Of the samples of a light audit; the run's id, so that each run reads others and a retry the same."""
    racks: RackMap | None = None
    """None: where copies stand is not judged."""
    orphans: OrphanRule | None = None
    """None: whether a log still has a ledger is not judged."""
