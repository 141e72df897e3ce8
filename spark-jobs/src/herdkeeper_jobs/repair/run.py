"""The repair from beginning to end: for each ledger with findings, lock -> metadata again -> batches of entries -> outcome of each finding.

Only what an audit has found is looked at. Each batch begins with asking whether the lock is still held and the metadata still the same, so
that no entry is written for an ensemble that has changed. Repeating a repair is harmless: what is whole by then is not written again.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import structlog

from herdkeeper.domain.audit_finding import Finding, RepairOutcome
from herdkeeper.domain.replication import EntryRange, striping
from herdkeeper.formats.bookkeeper_entry import master_key
from herdkeeper.formats.bookkeeper_metadata import LedgerMetadata
from herdkeeper_jobs.bookkeeper.metadata import LedgerCatalog, VersionedMetadata
from herdkeeper_jobs.bookkeeper.reader import digest_of
from herdkeeper_jobs.repair.lock import LedgerLockedError, LockLostError, ReplicationLock, replication_lock
from herdkeeper_jobs.repair.refusal import concerns_entries, ensemble_of, position_of, why_not
from herdkeeper_jobs.repair.rewrite import (
    Bookies,
    Copy,
    NoGoodReplicaError,
    NotRepairedError,
    RepairSettings,
    Replicas,
    good_source,
    is_whole,
    wait_until_whole,
    write,
)

_ENTRIES_PER_BATCH = 64
_log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class RepairResult:
    """The findings, in their order, with what became of them."""

    findings: tuple[Finding, ...]
    copies_repaired: int
    copies_repairable: int = 0
    """After a dry run: copies that would have been written."""

    @property
    def not_repaired(self) -> tuple[Finding, ...]:
        """Those that were to be repaired and are not."""
        return tuple(finding for finding in self.findings if finding.repair in (RepairOutcome.REFUSED, RepairOutcome.FAILED))


def repair(catalog: LedgerCatalog, findings: Sequence[Finding], settings: RepairSettings) -> RepairResult:
    """Repairs what can be. Findings about whole bookies, whole ledgers or failed reads are returned as they are.

    Raises MetadataUnavailableError when ZooKeeper is gone.
    """
    by_ledger: dict[int, list[int]] = {}
    for index, finding in enumerate(findings):
        if concerns_entries(finding) and finding.ledger_id is not None:
            by_ledger.setdefault(finding.ledger_id, []).append(index)
    outcomes = list(findings)
    copies = 0
    with Bookies(catalog.bookie_addresses(), settings) as bookies:
        for ledger_id, indexes in sorted(by_ledger.items()):
            for index, done in zip(indexes, _repair_ledger(catalog, ledger_id, [findings[i] for i in indexes], bookies), strict=True):
                outcomes[index] = done.finding
                copies += done.copies
                _tell(done.finding)
    return RepairResult(tuple(outcomes), 0, copies) if settings.dry_run else RepairResult(tuple(outcomes), copies)


@dataclass(frozen=True, slots=True)
class _Done:
    finding: Finding
    copies: int = 0
    """Copies that were written; in a dry run, that would have been."""


def _tell(finding: Finding) -> None:
    level = _log.info if finding.repair in (RepairOutcome.REPAIRED, RepairOutcome.WOULD_REPAIR) else _log.error
    level("repair", outcome=finding.repair, ledger_id=finding.ledger_id, bookie_id=finding.bookie_id, detail=finding.repair_detail)


def _repair_ledger(catalog: LedgerCatalog, ledger_id: int, findings: list[Finding], bookies: Bookies) -> list[_Done]:
    """What became of each finding of one ledger."""
    metadata = _metadata(catalog, ledger_id)
    refused = [why_not(finding, None if metadata is None else metadata.metadata) for finding in findings]
    if metadata is None or all(refused):
        return [_ended(finding, RepairOutcome.REFUSED, why or "the ledger is gone") for finding, why in zip(findings, refused, strict=True)]
    if bookies.settings.dry_run:
        return [_repair_finding(_Attempt(catalog, metadata, None, bookies), finding) for finding in findings]
    try:
        with replication_lock(catalog.client, catalog.root, ledger_id, bookies.settings.owner) as lock:
            # Read again: whoever held the lock before may have changed the ensemble.
            locked = _metadata(catalog, ledger_id)
            if locked is None:
                return [_ended(finding, RepairOutcome.REFUSED, "the ledger is gone") for finding in findings]
            return [_repair_finding(_Attempt(catalog, locked, lock, bookies), finding) for finding in findings]
    except LedgerLockedError as error:
        return [_ended(finding, RepairOutcome.REFUSED, str(error)) for finding in findings]


def _metadata(catalog: LedgerCatalog, ledger_id: int) -> VersionedMetadata | None:
    read = catalog.read_ledger_metadata(ledger_id)
    return read if isinstance(read, VersionedMetadata) else None


def _ended(finding: Finding, outcome: RepairOutcome, detail: str, copies: int = 0) -> _Done:
    return _Done(replace(finding, repair=outcome, repair_detail=detail), copies)


@dataclass(frozen=True, slots=True)
class _Attempt:
    """What the repair of a ledger goes by. `lock` is None in a dry run, which writes nothing."""

    catalog: LedgerCatalog
    metadata: VersionedMetadata
    lock: ReplicationLock | None
    bookies: Bookies

    @property
    def written(self) -> str:
        """What is said of entries that are not whole and have a good replica."""
        return "would be written" if self.lock is None else "were written"

    def require_unchanged(self) -> None:
        """Raises LockLostError when the lock, or the metadata that was read under it, may not hold any more."""
        if self.lock is None:
            return
        self.lock.require_held()
        now = _metadata(self.catalog, self.metadata.metadata.ledger_id)
        if now is None or now.znode_version != self.metadata.znode_version:
            raise LockLostError("the ledger's metadata changed while it was locked")


@dataclass(slots=True)
class _Progress:
    copies: int = 0
    whole: int = 0


def _repair_finding(attempt: _Attempt, finding: Finding) -> _Done:
    metadata = attempt.metadata.metadata
    why = why_not(finding, metadata)
    if why is not None:
        return _ended(finding, RepairOutcome.REFUSED, why)
    assert finding.bookie_id is not None
    replicas = Replicas(
        metadata.ledger_id, ensemble_of(finding, metadata), striping(metadata), digest_of(metadata), master_key(metadata.password)
    )
    progress = _Progress()
    refused: list[str] = []
    try:
        for batch in _batches(finding, metadata):
            attempt.require_unchanged()
            refused.extend(_repair_batch(attempt, replicas, (finding.bookie_id, batch), progress))
    except (LockLostError, NotRepairedError, NoGoodReplicaError) as error:
        return _ended(finding, RepairOutcome.FAILED, str(error), progress.copies)
    if refused:
        return _ended(finding, RepairOutcome.REFUSED, _several(refused, progress, attempt.written), progress.copies)
    outcome = RepairOutcome.WOULD_REPAIR if attempt.lock is None else RepairOutcome.REPAIRED
    detail = f"{progress.copies} entries {attempt.written}, {progress.whole} were whole already"
    return _ended(finding, outcome, detail, progress.copies)


def _batches(finding: Finding, metadata: LedgerMetadata) -> Iterator[tuple[int, ...]]:
    assert finding.first_entry_id is not None
    assert finding.last_entry_id is not None
    entries = striping(metadata).entries_at(position_of(finding, metadata), EntryRange(finding.first_entry_id, finding.last_entry_id))
    while batch := tuple(itertools.islice(entries, _ENTRIES_PER_BATCH)):
        yield batch


def _repair_batch(attempt: _Attempt, replicas: Replicas, what: tuple[str, tuple[int, ...]], progress: _Progress) -> list[str]:
    """Repairs the entries of a batch that can be, and reads them back; why the others can't."""
    bookie_id, entry_ids = what
    refused: list[str] = []
    written: list[Copy] = []
    for entry_id in entry_ids:
        try:
            source = good_source(attempt.bookies, replicas, bookie_id, entry_id)
            whole = is_whole(attempt.bookies, replicas, bookie_id, source)
        except NoGoodReplicaError as error:
            refused.append(str(error))
            continue
        if whole:
            progress.whole += 1
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
