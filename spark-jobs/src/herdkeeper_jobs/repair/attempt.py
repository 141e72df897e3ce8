"""The context of one ledger's repair, and its findings' outcomes."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, replace

from herdkeeper.codecs.bookkeeper.entry import master_key
from herdkeeper.codecs.bookkeeper.metadata import LedgerMetadata
from herdkeeper.codecs.bookkeeper.striping import EntryRange, striping
from herdkeeper.protocol.audit_finding import Finding, RepairOutcome
from herdkeeper_jobs.bookkeeper.metadata import LedgerCatalog, VersionedMetadata
from herdkeeper_jobs.bookkeeper.reader import digest_of
from herdkeeper_jobs.repair.lock import LockLostError, ReplicationLock
from herdkeeper_jobs.repair.refusal import ensemble_of, positions_of
from herdkeeper_jobs.repair.rewrite import Bookies, Replicas

_ENTRIES_PER_BATCH = 64


@dataclass(frozen=True, slots=True)
class Done:
    """A finding with its outcome."""

    finding: Finding
    copies: int = 0
    """Copies that are whole again; in a dry run, that would be."""


def ended(finding: Finding, outcome: RepairOutcome, detail: str, copies: int = 0) -> Done:
    """The finding with its outcome and the details."""
    return Done(replace(finding, repair=outcome, repair_detail=detail), copies)


@dataclass(frozen=True, slots=True)
class Attempt:
    """The context of one ledger's repair. `lock` is None in a dry run, which writes nothing."""

    catalog: LedgerCatalog
    metadata: VersionedMetadata
    lock: ReplicationLock | None
    bookies: Bookies
    contradiction: Finding | None = None
    """A copy of the ledger that others contradict, as the audit found."""
    unread: tuple[Finding, ...] = ()
    """Entries of the ledger that a bookie failed to read, as the audit found."""

    @property
    def written(self) -> str:
        """The verb for damaged or missing entries with a good replica."""
        return "would be written" if self.lock is None else "were written"

    def require_unchanged(self) -> None:
        """Raises LockLostError if the lock, or the metadata read under it, may no longer hold."""
        if self.lock is None:
            return
        self.lock.require_held()
        now = metadata_of(self.catalog, self.metadata.metadata.ledger_id)
        if now is None or now.znode_version != self.metadata.znode_version:
            raise LockLostError("the ledger's metadata changed while it was locked")


def metadata_of(catalog: LedgerCatalog, ledger_id: int) -> VersionedMetadata | None:
    """Reads the newest metadata; None if the ledger is gone, or its metadata is undecodable."""
    read = catalog.read_ledger_metadata(ledger_id)
    return read if isinstance(read, VersionedMetadata) else None


def replicas_of(finding: Finding, metadata: LedgerMetadata) -> Replicas:
    """Where a finding's entries are. Only for findings that pass `why_not`."""
    return Replicas(
        ledger_id=metadata.ledger_id,
        bookies=ensemble_of(finding, metadata),
        striping=striping(metadata),
        ack_quorum=metadata.ack_quorum,
        digest=digest_of(metadata),
        master_key=master_key(metadata.password),
    )


def batches(finding: Finding, metadata: LedgerMetadata) -> Iterator[tuple[int, ...]]:
    """Yields the entries of a finding that its bookie should hold, in batches. Only for findings that pass `why_not`."""
    assert finding.first_entry_id is not None
    assert finding.last_entry_id is not None
    spread, positions = striping(metadata), positions_of(finding, metadata)
    named = EntryRange(finding.first_entry_id, finding.last_entry_id)
    entries = (entry_id for entry_id in named if any(spread.holds(position, entry_id) for position in positions))
    while batch := tuple(itertools.islice(entries, _ENTRIES_PER_BATCH)):
        yield batch
