"""The replication audit from beginning to end.

Some thousands of ledgers at a time, so that what is held in memory does not grow with the cluster:
snapshot of their metadata -> confirmed ends -> plan -> look at all copies (Spark) -> compare with what the metadata wants (audit/shares.py)
-> look again at the suspects, against fresh metadata (audit/second_look.py) -> findings and counts. Ledgers that can't be read as they are
(undecodable, or nobody tells what is confirmed) are left for the end and read once more then. Then the summary.
Reading never fences, so an audit may run beside writers; what a writer changes meanwhile (a new ensemble, a closed or a deleted ledger)
is settled by the second look.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import assert_never

import structlog

from herdkeeper.domain.audit_depth import AuditDepth
from herdkeeper.domain.audit_finding import Finding, FindingKind, Severity
from herdkeeper.domain.job_summary import AuditSummary, JobOutcome
from herdkeeper.formats.bookkeeper_bookie_address import BookieAddress
from herdkeeper_jobs.audit.bookie_health import BookieHealth, BookieTally, added, health_of_bookies
from herdkeeper_jobs.audit.evaluate import by_urgency, findings_of_bookies
from herdkeeper_jobs.audit.holding import CopyState
from herdkeeper_jobs.audit.look import Look, TaskRunner
from herdkeeper_jobs.audit.orphans import OrphanRule, orphans, why_orphan
from herdkeeper_jobs.audit.placement import RackMap, findings_of_placement
from herdkeeper_jobs.audit.plan import AuditBudget, AuditedLedger, HoldingCheck, holding_checks, sampled
from herdkeeper_jobs.audit.request import AuditRequest
from herdkeeper_jobs.audit.second_look import read_again, second_look
from herdkeeper_jobs.audit.shares import CopiesLostError, match, segments_of
from herdkeeper_jobs.bookkeeper.metadata import LedgerCatalog, UndecodableMetadata, VersionedMetadata
from herdkeeper_jobs.bookkeeper.reader import LastConfirmedUnknownError, ReadSettings, last_confirmed

LEDGERS_AT_ONCE = 20_000
"""How many ledgers are audited together: what is held in memory does not grow with the cluster."""
_OPEN_LEDGERS_AT_ONCE = 8
_log = structlog.get_logger()


class InvariantViolatedError(RuntimeError):
    """The audit contradicts itself: its result must not be believed."""


@dataclass(frozen=True, slots=True)
class AuditResult:
    """What an audit found; `summary` holds the counts, `findings` all of them, most urgent first."""

    summary: AuditSummary
    findings: tuple[Finding, ...]
    bookies: tuple[BookieHealth, ...] = ()


@dataclass(frozen=True, slots=True)
class _Snapshot:
    """The ledgers as they were read, and findings about those that could not be read, or only up to their last segment."""

    ledgers: tuple[AuditedLedger, ...]
    unreadable: tuple[Finding, ...]

    def without_unreadable(self) -> _Snapshot:
        """The others."""
        unreadable = {finding.ledger_id for finding in self.unreadable}
        return _Snapshot(tuple(ledger for ledger in self.ledgers if ledger.metadata.ledger_id not in unreadable), ())


def audit(catalog: LedgerCatalog, request: AuditRequest, budget: AuditBudget, run_tasks: TaskRunner) -> AuditResult:
    """Audits the ledgers that the request's filter admits. The summary's run id and duration are left to the caller.

    Raises MetadataUnavailableError when ZooKeeper is gone, InvariantViolatedError when copies were lost on the way.
    """
    admitted = [ledger_id for ledger_id in catalog.ledger_ids() if request.ledgers.admits(ledger_id)]
    total = _Part()
    try:
        for first in range(0, len(admitted), LEDGERS_AT_ONCE):
            total += _audit_part(catalog, admitted[first : first + LEDGERS_AT_ONCE], request, Look(budget, run_tasks))
        for first in range(0, len(unreadable := total.unreadable), LEDGERS_AT_ONCE):
            total += _audit_part(catalog, unreadable[first : first + LEDGERS_AT_ONCE], request, Look(budget, run_tasks), last_try=True)
    except CopiesLostError as error:
        raise InvariantViolatedError(str(error)) from error
    findings = by_urgency([*total.findings, *findings_of_bookies(total.tallies)])
    summary = replace(_summarize(total, findings), depth=request.depth, instance_id=catalog.instance_id)
    bookies = health_of_bookies(total.tallies, request.racks.rack_of if request.racks else {})
    return AuditResult(replace(summary, message=_sentence(summary)), findings, bookies)


@dataclass(frozen=True, slots=True)
class _Part:
    """What is known of some of the ledgers."""

    ledgers: int = 0
    open_ledgers: int = 0
    entries: int = 0
    findings: tuple[Finding, ...] = ()
    tallies: Mapping[str, BookieTally] = field(default_factory=dict)
    unreadable: tuple[int, ...] = ()
    """Ledgers of which nothing of the above tells, since they could not be read."""

    def __add__(self, other: _Part) -> _Part:
        return _Part(
            self.ledgers + other.ledgers,
            self.open_ledgers + other.open_ledgers,
            self.entries + other.entries,
            self.findings + other.findings,
            added(self.tallies, other.tallies),
            self.unreadable + other.unreadable,
        )


def _audit_part(catalog: LedgerCatalog, ledger_ids: Sequence[int], request: AuditRequest, look: Look, last_try: bool = False) -> _Part:
    """With `last_try` a ledger that can't be read is reported, and audited as far as it can be; else it is left out, and named."""
    addresses = catalog.bookie_addresses()
    snapshot = _read_snapshot(catalog, ledger_ids, addresses, look.budget)
    left_out = () if last_try else tuple(finding.ledger_id for finding in snapshot.unreadable if finding.ledger_id is not None)
    snapshot = snapshot if last_try else snapshot.without_unreadable()
    checks = [_of_depth(check, request) for ledger in snapshot.ledgers for check in holding_checks(ledger)]
    _log.info("planned", ledgers=len(snapshot.ledgers), copies=sum(check.copies for check in checks), bookies=sorted(addresses))
    suspects = _orphans_at_first_sight(snapshot.ledgers, request.orphans)
    first = match(segments_of(snapshot.ledgers), look.at(checks, addresses))
    second = second_look(catalog, {ledger.metadata.ledger_id: ledger for ledger in snapshot.ledgers}, first.suspects, (request, look))
    ledgers = [second.ledgers.get(ledger.metadata.ledger_id, ledger) for ledger in snapshot.ledgers]
    still_there = [ledger for ledger in ledgers if ledger is not None]
    orphaned = orphans(catalog, suspects, request.orphans) if request.orphans is not None else ()
    return _Part(
        ledgers=len(still_there),
        open_ledgers=sum(1 for ledger in still_there if not ledger.metadata.closed),
        entries=sum(ledger.last_entry_id + 1 for ledger in still_there),
        findings=(*snapshot.unreadable, *second.findings, *_misplaced(catalog, still_there, request.racks), *orphaned),
        tallies=added(first.tallies, second.tallies),
        unreadable=left_out,
    )


def _orphans_at_first_sight(ledgers: Iterable[AuditedLedger], rule: OrphanRule | None) -> list[int]:
    """Ids. The lists are read after the ledgers' metadata, so that a ledger that was listed meanwhile is none."""
    if rule is None:
        return []
    logs = rule.read()
    return [ledger.metadata.ledger_id for ledger in ledgers if why_orphan(ledger.metadata, logs) is not None]


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
    again = read_again(catalog, suspects).values()
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
    settings = ReadSettings(budget.timeout_seconds, speculative_read_seconds=math.inf)
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


def _summarize(total: _Part, findings: tuple[Finding, ...]) -> AuditSummary:
    severities = [finding.severity for finding in findings]
    whole = sum(total.tallies.values(), BookieTally())
    return AuditSummary(
        run_id="",
        outcome=JobOutcome.SUCCEEDED,
        ledgers=total.ledgers,
        open_ledgers=total.open_ledgers,
        entries=total.entries,
        copies_expected=whole.in_state(*CopyState),
        copies_verified=whole.in_state(CopyState.VERIFIED, CopyState.WRONG_LAST_CONFIRMED),
        copies_unread=whole.in_state(CopyState.UNREAD),
        copies_unknown=whole.in_state(CopyState.FAILED, CopyState.UNREACHABLE),
        bytes_read=whole.bytes_read,
        critical=severities.count(Severity.CRITICAL),
        under_replicated=severities.count(Severity.UNDER_REPLICATED),
        at_risk=severities.count(Severity.AT_RISK),
        pending=severities.count(Severity.PENDING),
        unknown=severities.count(Severity.UNKNOWN),
        low=severities.count(Severity.LOW),
        findings=findings,
    )


def _sentence(summary: AuditSummary) -> str:
    found = f"{len(summary.findings)} findings" if summary.findings else "nothing found"
    unknown = f", {summary.copies_unknown} unknown" if summary.copies_unknown else ""
    copies = f"{summary.copies_verified} of {summary.copies_expected} copies verified{unknown}"
    if summary.depth is AuditDepth.LIGHT:
        copies = f"light: {copies}, {summary.copies_unread} not read"
    return f"{summary.ledgers} ledgers, {summary.entries} entries, {copies}: {found}"
