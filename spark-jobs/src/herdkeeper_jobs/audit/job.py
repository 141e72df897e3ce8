"""The replication audit from beginning to end.

snapshot of the metadata -> confirmed ends -> plan -> look at all copies (Spark) -> look again at the suspects, against fresh metadata ->
findings -> summary. Reading never fences, so an audit may run beside writers; what a writer changes meanwhile (a new ensemble, a closed
or a deleted ledger) is settled by the second look.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import assert_never

import structlog

from herdkeeper.domain.audit_depth import AuditDepth
from herdkeeper.domain.audit_finding import Finding, FindingKind, Severity
from herdkeeper.domain.job_summary import AuditSummary, JobOutcome
from herdkeeper.domain.replication import EntryRange
from herdkeeper.formats.bookkeeper_bookie_address import BookieAddress
from herdkeeper_jobs.audit.bookie_health import BookieHealth, health_of_bookies
from herdkeeper_jobs.audit.evaluate import by_urgency, findings_of_bookies, findings_of_ledger
from herdkeeper_jobs.audit.holding import CopyState, Holding
from herdkeeper_jobs.audit.placement import RackMap, findings_of_placement
from herdkeeper_jobs.audit.plan import (
    AuditBudget,
    AuditedLedger,
    AuditTask,
    HoldingCheck,
    Reading,
    holding_checks,
    plan_tasks,
    restricted,
    sampled,
)
from herdkeeper_jobs.bookkeeper.metadata import LedgerCatalog, UndecodableMetadata, VersionedMetadata
from herdkeeper_jobs.bookkeeper.reader import LastConfirmedUnknownError, ReadSettings, last_confirmed

_OPEN_LEDGERS_AT_ONCE = 8
_log = structlog.get_logger()

TaskRunner = Callable[[Sequence[AuditTask]], list[Holding]]
"""Runs check_copies over tasks, wherever; audit/cli.py gives Spark."""


class InvariantViolatedError(RuntimeError):
    """The audit contradicts itself: its result must not be believed."""


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


@dataclass(frozen=True, slots=True)
class AuditResult:
    """What an audit found; `summary` holds the counts, `findings` all of them, most urgent first."""

    summary: AuditSummary
    findings: tuple[Finding, ...]
    bookies: tuple[BookieHealth, ...] = ()


@dataclass(frozen=True, slots=True)
class _Snapshot:
    """The ledgers as they were read, and findings about those that could not be read."""

    ledgers: tuple[AuditedLedger, ...]
    unreadable: tuple[Finding, ...]


def audit(catalog: LedgerCatalog, request: AuditRequest, budget: AuditBudget, run_tasks: TaskRunner) -> AuditResult:
    """Audits the ledgers that the request's filter admits. The summary's run id and duration are left to the caller.

    Raises MetadataUnavailableError when ZooKeeper is gone, InvariantViolatedError when copies were lost on the way.
    """
    addresses = catalog.bookie_addresses()
    admitted = [ledger_id for ledger_id in catalog.ledger_ids() if request.ledgers.admits(ledger_id)]
    snapshot = _read_snapshot(catalog, admitted, addresses, budget)
    checks = [_of_depth(check, request) for ledger in snapshot.ledgers for check in holding_checks(ledger)]
    _log.info("planned", ledgers=len(snapshot.ledgers), copies=sum(check.copies for check in checks), bookies=sorted(addresses))
    holdings = _look(checks, addresses, budget, run_tasks)
    second = _second_look(catalog, snapshot, holdings, (request, budget, run_tasks))
    findings = [finding for ledger in second.ledgers for finding in findings_of_ledger(ledger.metadata, second.of_ledger(ledger))]
    misplaced = _misplaced(catalog, second.ledgers, request.racks)
    all_findings = by_urgency([*snapshot.unreadable, *findings, *misplaced, *findings_of_bookies(second.holdings)])
    bytes_read = sum(holding.bytes_read for holding in holdings) + second.bytes_read_again
    summary = replace(_summarize(second, all_findings), depth=request.depth, instance_id=catalog.instance_id, bytes_read=bytes_read)
    bookies = health_of_bookies(second.holdings, request.racks.rack_of if request.racks else {})
    return AuditResult(replace(summary, message=_sentence(summary)), all_findings, bookies)


def _of_depth(check: HoldingCheck, request: AuditRequest) -> HoldingCheck:
    match request.depth:
        case AuditDepth.LIGHT:
            return sampled(check, request.seed)
        case AuditDepth.DEEP:
            return check
        case _:
            assert_never(request.depth)


def _misplaced(catalog: LedgerCatalog, ledgers: Iterable[AuditedLedger], racks: RackMap | None) -> list[Finding]:
    """Judged again by fresh metadata: a ledger may have moved, or be gone."""
    if racks is None:
        return []
    suspects = {ledger.metadata.ledger_id: ledger for ledger in ledgers if any(findings_of_placement(ledger, racks))}
    again = (_fresh(suspects[_id_of(read)], read) for read in catalog.read_many(sorted(suspects)))
    return [finding for ledger in again if ledger is not None for finding in findings_of_placement(ledger, racks)]


def _read_snapshot(
    catalog: LedgerCatalog, ledger_ids: Sequence[int], addresses: dict[str, BookieAddress], budget: AuditBudget
) -> _Snapshot:
    unreadable: list[Finding] = []
    readable: list[VersionedMetadata] = []
    for read in catalog.read_many(ledger_ids):
        if isinstance(read, UndecodableMetadata):
            unreadable.append(_unreadable(read.ledger_id, read.reason))
        else:
            readable.append(read)
    settings = ReadSettings(timeout_seconds=budget.timeout_seconds)
    with ThreadPoolExecutor(_OPEN_LEDGERS_AT_ONCE) as pool:
        audited = list(pool.map(lambda read: _with_confirmed_end(read, addresses, settings), readable))
    unreadable.extend(finding for _, finding in audited if finding is not None)
    return _Snapshot(tuple(ledger for ledger, _ in audited), tuple(unreadable))


def _with_confirmed_end(
    read: VersionedMetadata, addresses: dict[str, BookieAddress], settings: ReadSettings
) -> tuple[AuditedLedger, Finding | None]:
    """An open ledger of which nobody tells the LAC is audited up to its last segment, and reported."""
    try:
        return AuditedLedger(read.metadata, read.znode_version, last_confirmed(read.metadata, addresses, settings)), None
    except LastConfirmedUnknownError as error:
        certain = read.metadata.segments[-1].first_entry_id - 1
        return AuditedLedger(read.metadata, read.znode_version, certain), _unreadable(read.metadata.ledger_id, str(error))


def _unreadable(ledger_id: int, reason: str) -> Finding:
    return Finding(FindingKind.LEDGER_UNREADABLE, Severity.UNKNOWN, ledger_id=ledger_id, detail=reason)


def _look(checks: Sequence[HoldingCheck], addresses: dict[str, BookieAddress], budget: AuditBudget, run_tasks: TaskRunner) -> list[Holding]:
    """Looks at the copies of these checks; every one of them must come back in exactly one holding."""
    tasks = plan_tasks(checks, addresses, budget)
    if not tasks:
        return []
    holdings = run_tasks(tasks)
    expected = sum(check.copies for check in checks)
    seen = sum(holding.copies for holding in holdings)
    if seen != expected:
        raise InvariantViolatedError(f"{expected} copies were to be looked at, {seen} came back")
    return holdings


@dataclass(frozen=True, slots=True)
class _SecondLook:
    """What counts in the end: verified copies of the first look, and all that the second look saw."""

    ledgers: tuple[AuditedLedger, ...]
    """Without those that are gone by now."""
    holdings: tuple[Holding, ...]
    bytes_read_again: int
    bad_by_ledger: dict[int, list[Holding]]

    def of_ledger(self, ledger: AuditedLedger) -> list[Holding]:
        """The copies of a ledger that are still not verified."""
        return self.bad_by_ledger.get(ledger.metadata.ledger_id, [])


def _second_look(
    catalog: LedgerCatalog, snapshot: _Snapshot, first: list[Holding], how: tuple[AuditRequest, AuditBudget, TaskRunner]
) -> _SecondLook:
    """Reads what was not verified once more. A ledger that is gone is no finding; one that changed is judged by its new metadata."""
    request, budget, run_tasks = how
    suspects: dict[int, list[Holding]] = {}
    for holding in first:
        if holding.state.is_suspect:
            suspects.setdefault(holding.ledger_id, []).append(holding)
    if not suspects:
        return _SecondLook(snapshot.ledgers, tuple(first), 0, {})
    _log.info("second look", ledgers=len(suspects), copies=sum(holding.copies for own in suspects.values() for holding in own))
    before = {ledger.metadata.ledger_id: ledger for ledger in snapshot.ledgers}
    fresh = {ledger_id: _fresh(before[ledger_id], catalog.read_ledger_metadata(ledger_id)) for ledger_id in suspects}
    checks = [
        check
        for ledger_id, ledger in fresh.items()
        if ledger is not None
        for check in _checks_of_suspects(before[ledger_id], ledger, suspects[ledger_id], request)
    ]
    again = _look(checks, catalog.bookie_addresses(), budget, run_tasks)
    gone = {ledger_id for ledger_id, ledger in fresh.items() if ledger is None}
    kept = [holding for holding in first if not holding.state.is_suspect and holding.ledger_id not in gone]
    bad: dict[int, list[Holding]] = {}
    for holding in again:
        if holding.state.is_suspect:
            bad.setdefault(holding.ledger_id, []).append(holding)
    ledgers = tuple(fresh.get(ledger.metadata.ledger_id, ledger) for ledger in snapshot.ledgers)
    still_there = tuple(ledger for ledger in ledgers if ledger is not None)
    return _SecondLook(still_there, (*kept, *again), sum(holding.bytes_read for holding in again), bad)


def _id_of(read: VersionedMetadata | UndecodableMetadata) -> int:
    return read.metadata.ledger_id if isinstance(read, VersionedMetadata) else read.ledger_id


def _fresh(before: AuditedLedger, now: VersionedMetadata | UndecodableMetadata | None) -> AuditedLedger | None:
    """The ledger as it is now, audited up to the same entry: what was confirmed stays confirmed. None when it is gone."""
    match now:
        case None:
            return None
        case UndecodableMetadata():
            # It could be decoded a moment ago; what is known of it then is the best there is.
            return before
        case VersionedMetadata():
            return replace(before, metadata=now.metadata, znode_version=now.znode_version)
        case _:
            assert_never(now)


def _checks_of_suspects(
    before: AuditedLedger, now: AuditedLedger, suspects: Sequence[Holding], request: AuditRequest
) -> list[HoldingCheck]:
    """The same copies again if the metadata is the same; after a change the same entries on all bookies that should hold them now."""
    checks = holding_checks(now)
    if before.znode_version != now.znode_version:
        ranges = _union([EntryRange(holding.first, holding.last) for holding in suspects])
        return _suspects(restricted(check, entries) for check in checks for entries in ranges)
    own = {(check.segment, check.position): check for check in checks}
    match request.depth:
        case AuditDepth.DEEP:
            parts = (restricted(own[holding.segment, holding.position], EntryRange(holding.first, holding.last)) for holding in suspects)
            return _suspects(parts)
        case AuditDepth.LIGHT:
            return _checks_of_sampled_suspects(own, suspects, request)
        case _:
            assert_never(request.depth)


def _checks_of_sampled_suspects(
    own: Mapping[tuple[int, int], HoldingCheck], suspects: Sequence[Holding], request: AuditRequest
) -> list[HoldingCheck]:
    """What is not good is read on all bookies, since nobody has read yet how many other copies are; a bookie that did not answer is asked
    for a sample again.
    """
    ranges = _union([EntryRange(holding.first, holding.last) for holding in suspects if holding.state is not CopyState.UNREACHABLE])
    bad = _suspects(restricted(check, entries) for check in own.values() for entries in ranges)
    away = (
        restricted(own[holding.segment, holding.position], rest)
        for holding in suspects
        if holding.state is CopyState.UNREACHABLE
        for rest in _without(EntryRange(holding.first, holding.last), ranges)
    )
    return [*bad, *(sampled(part, request.seed) for part in away if part is not None)]


def _suspects(parts: Iterable[HoldingCheck | None]) -> list[HoldingCheck]:
    return [replace(part, reading=Reading.SUSPECTS, sample=()) for part in parts if part is not None]


def _without(entries: EntryRange, taken: Iterable[EntryRange]) -> Iterator[EntryRange]:
    """What is left of a range without some disjoint, ascending ones."""
    first = entries.first
    for each in taken:
        if first < each.first and first <= entries.last:
            yield EntryRange(first, min(each.first - 1, entries.last))
        first = max(first, each.last + 1)
    if first <= entries.last:
        yield EntryRange(first, entries.last)


def _union(ranges: Iterable[EntryRange]) -> list[EntryRange]:
    """Disjoint ranges that cover the same entries, so that no copy is looked at twice."""
    joined: list[EntryRange] = []
    for entries in sorted(ranges):
        if joined and entries.first <= joined[-1].last + 1:
            joined[-1] = EntryRange(joined[-1].first, max(joined[-1].last, entries.last))
        else:
            joined.append(entries)
    return joined


def _summarize(second: _SecondLook, findings: tuple[Finding, ...]) -> AuditSummary:
    copies = dict.fromkeys(CopyState, 0)
    for holding in second.holdings:
        copies[holding.state] += holding.copies
    expected = sum(copies.values())
    if copies[CopyState.UNREAD]:
        # The second look has read some of what the first one had no reason to.
        expected = sum(check.copies for ledger in second.ledgers for check in holding_checks(ledger))
        certain = expected - sum(count for state, count in copies.items() if state.is_suspect)
        copies[CopyState.VERIFIED] = min(copies[CopyState.VERIFIED], certain)
        copies[CopyState.UNREAD] = certain - copies[CopyState.VERIFIED]
    severities = [finding.severity for finding in findings]
    return AuditSummary(
        run_id="",
        outcome=JobOutcome.SUCCEEDED,
        ledgers=len(second.ledgers),
        open_ledgers=sum(1 for ledger in second.ledgers if not ledger.metadata.closed),
        entries=sum(ledger.last_entry_id + 1 for ledger in second.ledgers),
        copies_expected=expected,
        copies_verified=copies[CopyState.VERIFIED],
        copies_unread=copies[CopyState.UNREAD],
        copies_unknown=copies[CopyState.FAILED] + copies[CopyState.UNREACHABLE],
        critical=severities.count(Severity.CRITICAL),
        under_replicated=severities.count(Severity.UNDER_REPLICATED),
        at_risk=severities.count(Severity.AT_RISK),
        pending=severities.count(Severity.PENDING),
        unknown=severities.count(Severity.UNKNOWN),
        findings=findings,
    )


def _sentence(summary: AuditSummary) -> str:
    found = f"{len(summary.findings)} findings" if summary.findings else "nothing found"
    unknown = f", {summary.copies_unknown} unknown" if summary.copies_unknown else ""
    copies = f"{summary.copies_verified} of {summary.copies_expected} copies verified{unknown}"
    if summary.depth is AuditDepth.LIGHT:
        copies = f"light: {copies}, {summary.copies_unread} not read"
    return f"{summary.ledgers} ledgers, {summary.entries} entries, {copies}: {found}"
