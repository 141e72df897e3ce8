"""Proves that what a draining bookie held can be read from where it was moved to: every entry, every digest.

The record says which places of which ledgers the bookie had; the metadata says who has them now. What is read is exactly these copies, each
once. A place that is gone with its ledger, or with an empty segment that recovery removed, holds nothing any more; one of an open ledger
that still names the bookie is moved, and read back, after its writer has turned away. It reads with the audit's own tasks, but in threads:
a drain shall not need Spark.

Of striped ledgers (E > Wq) what follows is read, too: the same position of the next segment, whose bookie took the place when the writer
turned away. BookKeeper's client (4.18.0, PendingAddOp.unsetSuccessAndSendWriteRequest) may acknowledge the first entries there with the
copy of the bookie that leaves, and never send them to the other one: an entry that is not on the replaced bookie has those behind it
acknowledged before they are sent anew. The copy that counted goes with the bookie, and no metadata tells.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from herdkeeper.codecs.bookkeeper.bookie_address import BookieAddress
from herdkeeper.codecs.bookkeeper.metadata import LedgerMetadata
from herdkeeper.codecs.bookkeeper.share import Place
from herdkeeper_jobs.bookkeeper.metadata import LedgerCatalog, UndecodableMetadata, VersionedMetadata
from herdkeeper_jobs.bookkeeper.reader import LastConfirmedUnknownError, ReadSettings, last_confirmed
from herdkeeper_jobs.copies.check import check_copies
from herdkeeper_jobs.copies.holding import Holding
from herdkeeper_jobs.copies.plan import AuditBudget, AuditedLedger, AuditTask, HoldingCheck, holding_checks, plan_tasks

_WAS_ACKNOWLEDGED = "though acknowledged: a ReplicationAudit with repair: Repair copies them once the ledger is closed"


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
    followed: set[tuple[int, int, int]] = set()
    reads = tuple(catalog.read_many(sorted(record)))
    addresses, settings = catalog.bookie_addresses(), ReadSettings(budget.timeout_seconds, speculative_read_seconds=math.inf)
    for found in reads:
        if isinstance(found, UndecodableMetadata):
            trouble.append(f"the metadata of ledger {found.ledger_id} can't be read: {found.reason}")
            continue
        places = _places(found.metadata, record[found.metadata.ledger_id])
        following = _following(found.metadata, places)
        try:
            ledger = _up_to_what_is_certain(found, bool(following), addresses, settings)
        except LastConfirmedUnknownError as error:
            trouble.append(str(error))
            continue
        own = [check for check in holding_checks(ledger) if (check.segment, check.position) in places | following]
        followed |= {(found.metadata.ledger_id, segment, position) for segment, position in following - places}
        if found.metadata.closed and any(check.bookie_id == bookie_id for check in own):
            trouble.append(f"ledger {found.metadata.ledger_id} still names {bookie_id}")
        checks += [check for check in own if check.bookie_id != bookie_id]
    holdings = _run(plan_tasks(checks, addresses, budget), budget.cores)
    for holding in holdings:
        if not holding.state.is_intact:
            behind = (holding.ledger_id, holding.segment, holding.position) in followed
            trouble.append(_problem_of(holding) + (f", {_WAS_ACKNOWLEDGED}" if behind else ""))
    verified = [holding for holding in holdings if holding.state.is_intact]
    missing = sum(check.copies for check in checks) - sum(holding.copies for holding in holdings)
    if missing:
        trouble.append(f"{missing} copies were not read")
    copies, size = sum(holding.copies for holding in verified), sum(holding.bytes_read for holding in holdings)
    return ReadBack(len(reads), copies, size, tuple(trouble))


def _places(metadata: LedgerMetadata, places: tuple[Place, ...]) -> set[tuple[int, int]]:
    """The recorded places that are there, as number of the segment and position."""
    firsts = [segment.first_entry_id for segment in metadata.segments]
    return {(firsts.index(place.first_entry_id), place.position) for place in places if place.first_entry_id in firsts}


def _following(metadata: LedgerMetadata, places: set[tuple[int, int]]) -> set[tuple[int, int]]:
    """Of a striped ledger the places behind these."""
    if metadata.ensemble_size == metadata.write_quorum:
        return set()
    return {(segment + 1, position) for segment, position in places if segment + 1 < len(metadata.segments)}


def _up_to_what_is_certain(
    found: VersionedMetadata, last_segment: bool, addresses: Mapping[str, BookieAddress], settings: ReadSettings
) -> AuditedLedger:
    """A closed ledger to its end. An open one up to its last segment, to which a writer adds, or with `last_segment` to its LAC. Raises
    LastConfirmedUnknownError."""
    metadata = found.metadata
    if metadata.closed or last_segment:
        return AuditedLedger(metadata, found.znode_version, last_confirmed(metadata, addresses, settings))
    return AuditedLedger(metadata, found.znode_version, metadata.segments[-1].first_entry_id - 1)


def _run(tasks: Sequence[AuditTask], threads: int) -> list[Holding]:
    with ThreadPoolExecutor(threads) as pool:
        return [holding for found in pool.map(lambda task: list(check_copies(task)), tasks) for holding in found]


def _problem_of(holding: Holding) -> str:
    where = f"entries {holding.first}-{holding.last} of ledger {holding.ledger_id}"
    return f"{where} on {holding.bookie_id}: {holding.state.value} ({holding.detail})"
