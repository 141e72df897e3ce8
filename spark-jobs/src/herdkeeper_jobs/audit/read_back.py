"""Proves that all that a draining bookie held can be read at its new place: every entry, every digest.

The record lists the bookie's places by ledger; the metadata lists who holds them now. Exactly these copies are read, each once. A place
that vanished with its ledger, or with an empty segment that recovery removed, holds nothing. A place in an open ledger that still names the
bookie is in the next round's record, too: it is read once its writer left the bookie, or autorecovery moved it. So is a ledger that got
another place on the bookie since the record: the next round moves it (io.herdkeeper.bookie.MoveLedgers). It uses the audit's tasks, but in
threads: a drain must not need Spark.

In striped ledgers (E > Wq) the next segment's same position is read, too: its bookie replaced this one. BookKeeper's client (4.18.0,
PendingAddOp.unsetSuccessAndSendWriteRequest) may acknowledge the first entries there with the leaving bookie's copy, and never send them to
the new one. An entry with a write set without the replaced bookie may complete meanwhile. Its completion acknowledges those behind it
before they are sent again. The counted copy leaves with the bookie, and no metadata shows it.

A new place on a bookie that has another place of the same entries is no new copy (audit/placement.py): the drained one is still needed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from herdkeeper.codecs.bookkeeper.bookie_address import BookieAddress
from herdkeeper.codecs.bookkeeper.metadata import LedgerMetadata
from herdkeeper.codecs.bookkeeper.share import Place, share_of
from herdkeeper_jobs.audit.placement import findings_of_names
from herdkeeper_jobs.bookkeeper.metadata import LedgerCatalog, UndecodableMetadata, VersionedMetadata
from herdkeeper_jobs.bookkeeper.reader import LastConfirmedUnknownError, ReadSettings, end_of_confirmed
from herdkeeper_jobs.copies.check import check_copies
from herdkeeper_jobs.copies.holding import Holding
from herdkeeper_jobs.copies.plan import AuditBudget, AuditedLedger, AuditTask, HoldingCheck, holding_checks, plan_tasks

_WAS_ACKNOWLEDGED = "though acknowledged: a ReplicationAudit with repair: Repair copies them once the ledger is closed"


@dataclass(frozen=True, slots=True)
class ReadBack:
    """What was read. `trouble` has a sentence per unproven ledger or copy; while there is one, the bookie is needed."""

    ledgers: int
    copies: int
    bytes_read: int
    trouble: tuple[str, ...]

    @property
    def sentence(self) -> str:
        """The result for people, with the first three troubles."""
        read = f"{self.copies} entries of {self.ledgers} ledgers read back, {self.bytes_read} bytes"
        more = f" and {len(self.trouble) - 3} more" if len(self.trouble) > 3 else ""
        return f"{read}: {'; '.join(self.trouble[:3])}{more}" if self.trouble else read


def read_back(catalog: LedgerCatalog, bookie_id: str, record: Mapping[int, tuple[Place, ...]], budget: AuditBudget) -> ReadBack:
    """Reads every copy that the record names from the bookie that holds its place now. Raises MetadataUnavailableError."""
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
            ledger = _certain_part(found, bool(following), addresses, settings)
        except LastConfirmedUnknownError as error:
            trouble.append(str(error))
            continue
        trouble += _without_a_new_copy(ledger, places, bookie_id)
        own = [check for check in holding_checks(ledger) if (check.segment, check.position) in places | following]
        followed |= {(found.metadata.ledger_id, segment, position) for segment, position in following - places}
        held = share_of(found.metadata, bookie_id)
        was_moved = held is None or set(held.places).issubset(record[found.metadata.ledger_id])
        if found.metadata.closed and was_moved and any(check.bookie_id == bookie_id for check in own):
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
    """The recorded places that still exist, as (segment number, position)."""
    firsts = [segment.first_entry_id for segment in metadata.segments]
    return {(firsts.index(place.first_entry_id), place.position) for place in places if place.first_entry_id in firsts}


def _without_a_new_copy(ledger: AuditedLedger, places: set[tuple[int, int]], bookie_id: str) -> list[str]:
    """Names the bookies with a place of the drained one besides their own."""
    segments = ledger.metadata.segments
    new = {(segment, segments[segment].bookies[position]) for segment, position in places}
    return [
        f"entries {each.first_entry_id}-{each.last_entry_id} of ledger {each.ledger_id} are on {each.bookie_id} in two places, so the copy "
        f"on {bookie_id} was not replaced: keep this bookie until the ledger is gone"
        for each in findings_of_names(ledger)
        if (each.segment, each.bookie_id) in new
    ]


def _following(metadata: LedgerMetadata, places: set[tuple[int, int]]) -> set[tuple[int, int]]:
    """The same positions in the next segments; empty unless striped."""
    if metadata.ensemble_size == metadata.write_quorum:
        return set()
    return {(segment + 1, position) for segment, position in places if segment + 1 < len(metadata.segments)}


def _certain_part(
    found: VersionedMetadata, last_segment: bool, addresses: Mapping[str, BookieAddress], settings: ReadSettings
) -> AuditedLedger:
    """Returns a closed ledger to its end, an open one up to its last segment, or with `last_segment` to its LAC. Raises
    LastConfirmedUnknownError, also if bookies that don't tell may have later entries."""
    metadata = found.metadata
    if metadata.closed or last_segment:
        end = end_of_confirmed(metadata, addresses, settings)
        if end.doubt:
            raise LastConfirmedUnknownError(end.doubt)
        return AuditedLedger(metadata, end.entry_id)
    return AuditedLedger(metadata, metadata.segments[-1].first_entry_id - 1)


def _run(tasks: Sequence[AuditTask], threads: int) -> list[Holding]:
    with ThreadPoolExecutor(threads) as pool:
        return [holding for found in pool.map(lambda task: list(check_copies(task)), tasks) for holding in found]


def _problem_of(holding: Holding) -> str:
    where = f"entries {holding.first}-{holding.last} of ledger {holding.ledger_id}"
    return f"{where} on {holding.bookie_id}: {holding.state.value} ({holding.detail})"
