"""The replication audit from beginning to end.

It works in portions (audit/portion.py). So memory does not grow with the cluster, and an interrupted run can continue. Per portion:
metadata of the ledgers that the filter admits -> confirmed ends -> plan -> read all copies (Spark) -> compare with the metadata
(audit/shares.py) -> read suspects again with fresh metadata (audit/second_pass.py) -> durable findings and counts. Unreadable ledgers
(undecodable, or too few bookies report the LAC) are read once more at the end. Then comes the summary.

Reading never fences, so an audit may run beside writers. A writer may change a ledger meanwhile (new ensemble, closed, deleted); the second
pass settles that. Findings of a ledger that is deleted later are dropped at the end.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from textwrap import shorten
from typing import assert_never

import structlog

from herdkeeper.codecs.bookkeeper.bookie_address import BookieAddress
from herdkeeper.protocol.audit_finding import AuditDepth, Finding, FindingKind, Severity
from herdkeeper.protocol.job_summary import AuditSummary, JobOutcome
from herdkeeper_jobs.audit.bookie_health import BookieHealth, BookieTally, added, health_of_bookies
from herdkeeper_jobs.audit.copy_reader import CopyReader, TaskRunner
from herdkeeper_jobs.audit.evaluate import by_urgency, findings_of_bookies
from herdkeeper_jobs.audit.orphans import OrphanRule, lost_ledgers, orphans, why_orphan
from herdkeeper_jobs.audit.placement import RackMap, findings_of_names, findings_of_placement
from herdkeeper_jobs.audit.portion import Counted, Portion, RunProgress, Work, bytes_of_portion, next_portion, remaining_work
from herdkeeper_jobs.audit.request import AuditRequest
from herdkeeper_jobs.audit.scope import Scope, scope_of
from herdkeeper_jobs.audit.second_pass import read_again, second_pass
from herdkeeper_jobs.audit.shares import CopiesLostError, match, segments_of
from herdkeeper_jobs.bookkeeper.metadata import LedgerCatalog, UndecodableMetadata, VersionedMetadata
from herdkeeper_jobs.bookkeeper.reader import LastConfirmed, LastConfirmedUnknownError, ReadSettings, end_of_confirmed
from herdkeeper_jobs.copies.holding import CopyState
from herdkeeper_jobs.copies.plan import AuditBudget, AuditedLedger, HoldingCheck, holding_checks, sampled
from herdkeeper_jobs.report.page import many

_OPEN_LEDGERS_AT_ONCE = 8
_MOST_OF_FILTER = 160
UNKEPT = RunProgress()
_log = structlog.get_logger()


class AuditInvariantError(RuntimeError):
    """The audit contradicts itself: do not trust its result."""


@dataclass(frozen=True, slots=True)
class AuditResult:
    """The result of an audit."""

    summary: AuditSummary
    bookies: tuple[BookieHealth, ...]

    @property
    def findings(self) -> tuple[Finding, ...]:
        """The most urgent first."""
        return self.summary.findings


@dataclass(frozen=True, slots=True)
class _Snapshot:
    """The ledgers as read, and findings about those that could not be read, or only up to their last segment."""

    ledgers: tuple[AuditedLedger, ...]
    unreadable: tuple[Finding, ...]

    def without_unreadable(self) -> _Snapshot:
        unreadable = {finding.ledger_id for finding in self.unreadable}
        return _Snapshot(tuple(ledger for ledger in self.ledgers if ledger.metadata.ledger_id not in unreadable), ())


def audit(
    catalog: LedgerCatalog, request: AuditRequest, budget: AuditBudget, run_tasks: TaskRunner, run_progress: RunProgress = UNKEPT
) -> AuditResult:
    """Audits the ledgers that the request's filter admits, continuing from `run_progress`. The caller sets the summary's run id and
    duration. A run that must stop has the outcome PAUSED, and the counts so far.

    Raises MetadataUnavailableError without ZooKeeper, FilterRefusedError, and AuditInvariantError if copies were lost on the way.
    """
    scope = scope_of(catalog, request.ledgers, begun=bool(run_progress.kept))
    admitted = [ledger_id for ledger_id in catalog.ledger_ids() if scope.admits_id(ledger_id)]
    reader = CopyReader(budget, run_tasks)
    portions = list(run_progress.kept)
    outcome = JobOutcome.SUCCEEDED
    try:
        while (work := remaining_work(admitted, portions)) is not None:
            if not run_progress.may_read():
                outcome = JobOutcome.PAUSED
                break
            portions.append(run_progress.keep(len(portions), _audit_portion(catalog, work, scope, request, reader)))
    except CopiesLostError as error:
        raise AuditInvariantError(str(error)) from error
    total = sum((portion.counted for portion in portions), Counted())
    lost = lost_ledgers(catalog, request.orphans, scope.admits_id) if request.orphans is not None else ()
    findings = by_urgency([*_without_deleted(catalog, total.findings), *lost, *findings_of_bookies(total.tallies)])
    known = _summarize(total, findings)
    summary = replace(known, outcome=outcome, depth=request.depth, instance_id=catalog.instance_id, ledger_filter=request.ledgers.described)
    bookies = health_of_bookies(total.tallies, request.racks.rack_of if request.racks else {})
    return AuditResult(replace(summary, message=_sentence(summary)), bookies)


def _without_deleted(catalog: LedgerCatalog, findings: Sequence[Finding]) -> list[Finding]:
    """Drops findings on ledgers deleted since their audit, which may be days ago in a long run."""
    named = sorted({finding.ledger_id for finding in findings if finding.ledger_id is not None})
    there = {read.ledger_id if isinstance(read, UndecodableMetadata) else read.metadata.ledger_id for read in catalog.read_many(named)}
    return [finding for finding in findings if finding.ledger_id is None or finding.ledger_id in there]


def _audit_portion(catalog: LedgerCatalog, work: Work, scope: Scope, request: AuditRequest, reader: CopyReader) -> Portion:
    """Audits one portion. An unreadable ledger is left out and named; on the last try it is reported, and audited as far as possible."""
    addresses = catalog.bookie_addresses()
    taken = next_portion(work, catalog.read_many(work.ledger_ids), scope, request.depth, bytes_of_portion(reader.budget, len(addresses)))
    snapshot = _snapshot(taken.reads, addresses, reader.budget)
    left_out = () if work.last_try else tuple(finding.ledger_id for finding in snapshot.unreadable if finding.ledger_id is not None)
    snapshot = snapshot if work.last_try else snapshot.without_unreadable()
    checks = [_at_depth(check, request) for ledger in snapshot.ledgers for check in holding_checks(ledger)]
    _log.info("planned", ledgers=len(snapshot.ledgers), copies=sum(check.copies for check in checks), bookies=sorted(addresses))
    suspects = _orphan_candidates(snapshot.ledgers, request.orphans)
    first = match(segments_of(snapshot.ledgers), reader.at(checks, addresses))
    second = second_pass(catalog, {ledger.metadata.ledger_id: ledger for ledger in snapshot.ledgers}, first.suspects, request, reader)
    ledgers = [second.ledgers.get(ledger.metadata.ledger_id, ledger) for ledger in snapshot.ledgers]
    still_there = [ledger for ledger in ledgers if ledger is not None]
    orphaned = orphans(catalog, suspects, request.orphans) if request.orphans is not None else ()
    counted = Counted(
        ledgers=len(still_there),
        open_ledgers=sum(1 for ledger in still_there if not ledger.metadata.closed),
        entries=sum(ledger.last_entry_id + 1 for ledger in still_there),
        findings=(*snapshot.unreadable, *second.findings, *_misplaced(catalog, still_there, request.racks), *orphaned),
        tallies=added(first.tallies, second.tallies),
        unreadable=left_out,
    )
    return Portion(work.last_of_run, taken.through, work.last_try, counted)


def _orphan_candidates(ledgers: Iterable[AuditedLedger], rule: OrphanRule | None) -> list[int]:
    """Returns ids. Lists are read after the ledgers' metadata, so that a ledger listed meanwhile is not a suspect."""
    if rule is None:
        return []
    logs = rule.read()
    return [ledger.metadata.ledger_id for ledger in ledgers if why_orphan(ledger.metadata, logs) is not None]


def _at_depth(check: HoldingCheck, request: AuditRequest) -> HoldingCheck:
    match request.depth:
        case AuditDepth.LIGHT:
            return sampled(check, request.seed)
        case AuditDepth.DEEP:
            return check
        case _:
            assert_never(request.depth)


def _misplaced(catalog: LedgerCatalog, ledgers: Iterable[AuditedLedger], racks: RackMap | None) -> list[Finding]:
    """Judges suspects again by fresh metadata: a ledger may have moved, or be gone."""

    def found(ledger: AuditedLedger) -> list[Finding]:
        return [*findings_of_names(ledger), *(() if racks is None else findings_of_placement(ledger, racks))]

    suspects = {ledger.metadata.ledger_id: ledger for ledger in ledgers if found(ledger)}
    if not suspects:
        return []
    return [finding for ledger in read_again(catalog, suspects).values() if ledger is not None for finding in found(ledger)]


def _snapshot(
    reads: Iterable[VersionedMetadata | UndecodableMetadata], addresses: dict[str, BookieAddress], budget: AuditBudget
) -> _Snapshot:
    unreadable: list[Finding] = []
    readable: list[VersionedMetadata] = []
    for read in reads:
        if isinstance(read, UndecodableMetadata):
            unreadable.append(_unknown(FindingKind.LEDGER_UNREADABLE, read.ledger_id, read.reason))
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
    """Determines the confirmed end. An open ledger that may have later confirmed entries is audited up to what is certain, and reported: if
    no bookie of its last segment tells its LAC, up to that segment."""
    try:
        end = end_of_confirmed(read.metadata, addresses, settings)
    except LastConfirmedUnknownError as error:
        end = LastConfirmed(read.metadata.segments[-1].first_entry_id - 1, str(error))
    finding = _unknown(FindingKind.END_UNKNOWN, read.metadata.ledger_id, end.doubt) if end.doubt else None
    return AuditedLedger(read.metadata, end.entry_id), finding


def _unknown(kind: FindingKind, ledger_id: int, reason: str) -> Finding:
    return Finding(kind, Severity.UNKNOWN, ledger_id=ledger_id, detail=reason)


def _summarize(total: Counted, findings: tuple[Finding, ...]) -> AuditSummary:
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
    found = many(len(summary.findings), "finding") if summary.findings else "nothing found"
    unknown = f", {summary.copies_unknown} unknown" if summary.copies_unknown else ""
    copies = f"{summary.copies_verified} of {summary.copies_expected} copies verified{unknown}"
    if summary.depth is AuditDepth.LIGHT:
        copies = f"light: {copies}, {summary.copies_unread} not read"
    ledgers = many(summary.ledgers, "ledger")
    whole = f"{ledgers}{_only(summary)}, {summary.entries} entries, {copies}: {found}"
    if summary.outcome is JobOutcome.PAUSED:
        return f"paused; so far {whole}"
    if summary.ledger_filter and not summary.ledgers and not summary.findings:
        return f"nothing was audited: no ledger matches{_only(summary)}"
    return whole


def _only(summary: AuditSummary) -> str:
    """Shortens a filter, which may have a thousand ids, to keep the findings visible."""
    return f" (only {shorten(summary.ledger_filter, _MOST_OF_FILTER, placeholder=' …')})" if summary.ledger_filter else ""
