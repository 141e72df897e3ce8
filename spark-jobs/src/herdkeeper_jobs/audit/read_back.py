"""Proves that what a draining bookie held can be read from where it was moved to: every entry, every digest.

The record says which places of which ledgers the bookie had; the metadata says who has them now. What is read is exactly these copies, each
once. A place that is gone with its ledger, or with an empty segment that recovery removed, holds nothing any more; one of an open ledger
that still names the bookie is moved, and read back, after its writer has turned away. It reads with the audit's own tasks, but in threads:
a drain shall not need Spark.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from herdkeeper.domain.bookie_share import Place
from herdkeeper.formats.bookkeeper_metadata import LedgerMetadata
from herdkeeper_jobs.audit.check import check_copies
from herdkeeper_jobs.audit.holding import CopyState, Holding
from herdkeeper_jobs.audit.plan import AuditBudget, AuditedLedger, AuditTask, HoldingCheck, holding_checks, plan_tasks
from herdkeeper_jobs.bookkeeper.metadata import LedgerCatalog, UndecodableMetadata


@dataclass(frozen=True, slots=True)
class ReadBack:
    """What was read. `trouble` is a sentence for each ledger or copy that is not proven; the bookie is needed while there is one."""

    ledgers: int
    copies: int
    bytes_read: int
    trouble: tuple[str, ...]

    @property
    def sentence(self) -> str:
        """The result for people, the first three troubles included."""
        read = f"{self.copies} entries of {self.ledgers} ledgers read back, {self.bytes_read} bytes"
        more = f" and {len(self.trouble) - 3} more" if len(self.trouble) > 3 else ""
        return f"{read}: {'; '.join(self.trouble[:3])}{more}" if self.trouble else read


def read_back(catalog: LedgerCatalog, bookie_id: str, record: Mapping[int, tuple[Place, ...]], budget: AuditBudget) -> ReadBack:
    """Read every copy that the record names from the bookie that has its place now. Raises MetadataUnavailableError."""
    trouble: list[str] = []
    checks: list[HoldingCheck] = []
    ledgers = 0
    for found in catalog.read_many(sorted(record)):
        ledgers += 1
        if isinstance(found, UndecodableMetadata):
            trouble.append(f"the metadata of ledger {found.ledger_id} can't be read: {found.reason}")
            continue
        own = _checks_of(found.metadata, record[found.metadata.ledger_id])
        if found.metadata.closed and any(check.bookie_id == bookie_id for check in own):
            trouble.append(f"ledger {found.metadata.ledger_id} still names {bookie_id}")
        checks += [check for check in own if check.bookie_id != bookie_id]
    holdings = _run(plan_tasks(checks, catalog.bookie_addresses(), budget), budget.cores)
    trouble += [_said(holding) for holding in holdings if holding.state is not CopyState.VERIFIED]
    verified = [holding for holding in holdings if holding.state is CopyState.VERIFIED]
    missing = sum(check.copies for check in checks) - sum(holding.copies for holding in holdings)
    if missing:
        trouble.append(f"{missing} copies were not looked at")
    copies, size = sum(holding.copies for holding in verified), sum(holding.bytes_read for holding in holdings)
    return ReadBack(ledgers, copies, size, tuple(trouble))


def _checks_of(metadata: LedgerMetadata, places: tuple[Place, ...]) -> list[HoldingCheck]:
    """The checks of the recorded places. Of an open ledger only what lies before its last segment: no writer adds to that."""
    last = metadata.last_entry_id if metadata.last_entry_id is not None else metadata.segments[-1].first_entry_id - 1
    firsts = [segment.first_entry_id for segment in metadata.segments]
    wanted = {(firsts.index(place.first_entry_id), place.position) for place in places if place.first_entry_id in firsts}
    checks = holding_checks(AuditedLedger(metadata, 0, last))
    return [check for check in checks if (check.segment, check.position) in wanted]


def _run(tasks: Sequence[AuditTask], threads: int) -> list[Holding]:
    with ThreadPoolExecutor(threads) as pool:
        return [holding for found in pool.map(lambda task: list(check_copies(task)), tasks) for holding in found]


def _said(holding: Holding) -> str:
    where = f"entries {holding.first}-{holding.last} of ledger {holding.ledger_id}"
    return f"{where} on {holding.bookie_id}: {holding.state.value} ({holding.detail})"
