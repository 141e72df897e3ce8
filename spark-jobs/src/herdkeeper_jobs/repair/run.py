"""The repair in order. Per ledger with findings: lock -> fresh metadata -> write missing entries in batches -> move damaged copies ->
outcomes.

It only handles an audit's findings. Before each batch and after the last one, the lock must be held and the metadata unchanged. So no entry
is written, or counted as repaired, for an outdated ensemble. A repeated repair is harmless: whole entries are not written again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import structlog

from herdkeeper.protocol.audit_finding import Finding, FindingKind, RepairOutcome
from herdkeeper_jobs.bookkeeper.metadata import LedgerCatalog
from herdkeeper_jobs.repair.attempt import Attempt, Done, batches, ended, metadata_of, replicas_of
from herdkeeper_jobs.repair.leave_behind import leave_behind
from herdkeeper_jobs.repair.lock import LedgerLockedError, LockLostError, replication_lock
from herdkeeper_jobs.repair.refusal import concerns_entries, why_not
from herdkeeper_jobs.repair.rewrite import (
    Bookies,
    Copy,
    NoGoodReplicaError,
    NotRepairedError,
    RepairSettings,
    Replicas,
    good_source,
    lacks,
    wait_until_whole,
    write,
)

_log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class RepairResult:
    """The findings in order, with their outcomes."""

    findings: tuple[Finding, ...]
    copies_repaired: int
    copies_repairable: int = 0
    """After a dry run: copies that would have been written."""

    @property
    def not_repaired(self) -> tuple[Finding, ...]:
        """Findings whose repair was refused or failed."""
        return tuple(finding for finding in self.findings if finding.repair in (RepairOutcome.REFUSED, RepairOutcome.FAILED))


def repair(catalog: LedgerCatalog, findings: Sequence[Finding], settings: RepairSettings) -> RepairResult:
    """Repairs what it can. Returns findings about whole bookies, whole ledgers or failed reads unchanged.

    Raises MetadataUnavailableError without ZooKeeper.
    """
    by_ledger: dict[int, list[int]] = {}
    unread: dict[int | None, list[Finding]] = {}
    for index, finding in enumerate(findings):
        if concerns_entries(finding) and finding.ledger_id is not None:
            by_ledger.setdefault(finding.ledger_id, []).append(index)
        elif finding.kind is FindingKind.READ_FAILED:
            unread.setdefault(finding.ledger_id, []).append(finding)
    contradictions = {finding.ledger_id: finding for finding in findings if finding.kind is FindingKind.CONTRADICTION}
    outcomes = list(findings)
    copies = 0
    with Bookies(catalog.bookie_addresses(), settings) as bookies:
        for ledger_id, indexes in sorted(by_ledger.items()):
            own = [findings[index] for index in indexes]
            others = contradictions.get(ledger_id), tuple(unread.get(ledger_id, ()))
            done_here = _repair_ledger(catalog, ledger_id, own, bookies, others)
            for index, done in zip(indexes, done_here, strict=True):
                outcomes[index] = done.finding
                copies += done.copies
                _log_outcome(done.finding)
    return RepairResult(tuple(outcomes), 0, copies) if settings.dry_run else RepairResult(tuple(outcomes), copies)


def _log_outcome(finding: Finding) -> None:
    level = _log.info if finding.repair in (RepairOutcome.REPAIRED, RepairOutcome.WOULD_REPAIR) else _log.error
    level("repair", outcome=finding.repair, ledger_id=finding.ledger_id, bookie_id=finding.bookie_id, detail=finding.repair_detail)


def _repair_ledger(
    catalog: LedgerCatalog,
    ledger_id: int,
    findings: list[Finding],
    bookies: Bookies,
    others: tuple[Finding | None, tuple[Finding, ...]],
) -> list[Done]:
    """Returns the outcome of each finding of one ledger. `others`: what the audit found there besides, as in `Attempt`."""
    metadata = metadata_of(catalog, ledger_id)
    refused = [why_not(finding, None if metadata is None else metadata.metadata) for finding in findings]
    if metadata is None or all(refused):
        return [ended(finding, RepairOutcome.REFUSED, why or "the ledger is gone") for finding, why in zip(findings, refused, strict=True)]
    if bookies.settings.dry_run:
        return _repair_findings(Attempt(catalog, metadata, None, bookies, *others), findings)
    try:
        with replication_lock(catalog.client, catalog.root, ledger_id, bookies.settings.owner) as lock:
            # Read again: the lock's previous holder may have changed the ensemble.
            locked = metadata_of(catalog, ledger_id)
            if locked is None:
                return [ended(finding, RepairOutcome.REFUSED, "the ledger is gone") for finding in findings]
            return _repair_findings(Attempt(catalog, locked, lock, bookies, *others), findings)
    except LedgerLockedError as error:
        return [ended(finding, RepairOutcome.REFUSED, str(error)) for finding in findings]


def _repair_findings(attempt: Attempt, findings: list[Finding]) -> list[Done]:
    """Writes missing entries first: after a move the metadata no longer names the bookie."""
    damaged = [index for index, finding in enumerate(findings) if finding.kind is FindingKind.CORRUPT_DIGEST]
    done = {index: _repair_finding(attempt, finding) for index, finding in enumerate(findings) if index not in damaged}
    lacking = [each.finding for each in done.values() if each.finding.repair in (RepairOutcome.REFUSED, RepairOutcome.FAILED)]
    done |= zip(damaged, leave_behind(attempt, [findings[index] for index in damaged], lacking), strict=True)
    return [done[index] for index in range(len(findings))]


@dataclass(slots=True)
class _Progress:
    copies: int = 0
    whole: int = 0


def _repair_finding(attempt: Attempt, finding: Finding) -> Done:
    metadata = attempt.metadata.metadata
    why = why_not(finding, metadata)
    if why is not None:
        return ended(finding, RepairOutcome.REFUSED, why)
    assert finding.bookie_id is not None
    replicas = replicas_of(finding, metadata)
    progress = _Progress()
    refused: list[str] = []
    try:
        for batch in batches(finding, metadata):
            attempt.require_unchanged()
            refused.extend(_repair_batch(attempt, replicas, finding.bookie_id, batch, progress))
        attempt.require_unchanged()
    except (LockLostError, NotRepairedError, NoGoodReplicaError) as error:
        return ended(finding, RepairOutcome.FAILED, str(error), progress.copies)
    if refused:
        return ended(finding, RepairOutcome.REFUSED, _several(refused, progress, attempt.written), progress.copies)
    outcome = RepairOutcome.WOULD_REPAIR if attempt.lock is None else RepairOutcome.REPAIRED
    detail = f"{progress.copies} entries {attempt.written}, {progress.whole} were whole already"
    return ended(finding, outcome, detail, progress.copies)


def _repair_batch(attempt: Attempt, replicas: Replicas, bookie_id: str, entry_ids: tuple[int, ...], progress: _Progress) -> list[str]:
    """Repairs what it can of a batch, and reads it back. Returns the reasons for the rest."""
    refused: list[str] = []
    written: list[Copy] = []
    takes_entries = bookie_id in attempt.catalog.writable_bookies()
    for entry_id in entry_ids:
        try:
            source = good_source(attempt.bookies, replicas, bookie_id, entry_id)
            lacking = lacks(attempt.bookies, replicas, bookie_id, source)
        except NoGoodReplicaError as error:
            refused.append(str(error))
            continue
        if not lacking:
            progress.whole += 1
        elif not takes_entries:
            refused.append(f"entry {entry_id}: bookie {bookie_id} takes no entries now, since it is read-only or away")
        elif attempt.lock is None:
            progress.copies += 1
        else:
            attempt.lock.require_session()
            write(attempt.bookies, replicas, bookie_id, source)
            written.append(source)
    wait_until_whole(attempt.bookies, replicas, bookie_id, written)
    progress.copies += len(written)
    return refused


def _several(refused: list[str], progress: _Progress, written: str) -> str:
    more = f"; and {len(refused) - 1} more entries" if len(refused) > 1 else ""
    done = f"; {progress.copies} others {written}" if progress.copies else ""
    return f"{refused[0]}{more}{done}"
