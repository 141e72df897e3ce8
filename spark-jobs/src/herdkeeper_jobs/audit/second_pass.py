"""Reads bad copies once more, with fresh metadata, and decides.

A deleted ledger is no finding; a changed one is judged by its new metadata. Copies that were good stay good if the bookie still holds the
place. Each copy counts once, whichever pass read it. Good copies that disagree go to a third pass (audit/third_pass.py).
"""

from __future__ import annotations

import bisect
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import assert_never

import pyarrow as pa
import structlog

from herdkeeper.codecs.bookkeeper.striping import EntryRange
from herdkeeper.protocol.audit_finding import AuditDepth, Finding
from herdkeeper_jobs.audit.bookie_health import BookieTally, added, copies_by_state
from herdkeeper_jobs.audit.copy_reader import CopyReader
from herdkeeper_jobs.audit.evaluate import findings_of_ledger
from herdkeeper_jobs.audit.request import AuditRequest
from herdkeeper_jobs.audit.schema import holdings_by_ledger
from herdkeeper_jobs.audit.third_pass import bytes_read, third_pass
from herdkeeper_jobs.bookkeeper.metadata import LedgerCatalog, UndecodableMetadata, VersionedMetadata
from herdkeeper_jobs.copies.holding import CopyState, Holding, Share
from herdkeeper_jobs.copies.plan import AuditedLedger, HoldingCheck, Reading, holding_checks, restricted, sampled

_log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class SecondPass:
    """The result for ledgers with suspects."""

    ledgers: Mapping[int, AuditedLedger | None] = field(default_factory=dict)
    """By id, with current metadata; None for deleted ones."""
    findings: tuple[Finding, ...] = ()
    tallies: Mapping[str, BookieTally] = field(default_factory=dict)
    """By bookie: their copies, and the bytes read again."""


def second_pass(
    catalog: LedgerCatalog, before: Mapping[int, AuditedLedger], suspects: pa.Table, request: AuditRequest, reader: CopyReader
) -> SecondPass:
    """Runs the second pass. `suspects`: all holdings of ledgers with a bad copy in the first pass. Raises CopiesLostError."""
    first = holdings_by_ledger(suspects)
    if not first:
        return SecondPass()
    suspected = {holding.bookie_id for own in first.values() for holding in own if holding.state.is_suspect}
    _log.info("second pass", ledgers=len(first), bookies=sorted(suspected))
    now = read_again(catalog, {ledger_id: before[ledger_id] for ledger_id in first})
    there = {ledger_id: ledger for ledger_id, ledger in now.items() if ledger is not None}
    checks = [check for ledger_id, ledger in there.items() for check in _checks_again(ledger, first[ledger_id], request)]
    addresses = catalog.bookie_addresses()
    again = reader.holdings(checks, addresses)
    seen = {ledger_id: (ledger, [*_good(first[ledger_id]), *again.get(ledger_id, [])]) for ledger_id, ledger in there.items()}
    third = third_pass(seen, request.depth, reader, addresses)
    findings = list(third.findings)
    tallies = dict(third.tallies)
    for ledger_id, ledger in there.items():
        own, replaced = _newest(ledger, again.get(ledger_id, []), third.newest.get(ledger_id, ()))
        tallies = added(tallies, bytes_read([replaced]))
        untrusted = _not_bad_already(third.untrusted.get(ledger_id, ()), own)
        findings.extend(findings_of_ledger(ledger.metadata, [*own, *untrusted]))
        tallies = added(tallies, _tallies(ledger, first[ledger_id], own, untrusted, request))
    return SecondPass(now, tuple(findings), tallies)


def read_again(catalog: LedgerCatalog, before: Mapping[int, AuditedLedger]) -> dict[int, AuditedLedger | None]:
    """Returns the ledgers with fresh metadata, up to the same entry: what was confirmed stays confirmed. None for deleted ones."""
    now: dict[int, AuditedLedger | None] = dict.fromkeys(before)
    for read in catalog.read_many(sorted(before)):
        match read:
            case UndecodableMetadata():
                # It was decodable a moment ago, so keep that metadata.
                now[read.ledger_id] = before[read.ledger_id]
            case VersionedMetadata():
                ledger_id = read.metadata.ledger_id
                now[ledger_id] = replace(before[ledger_id], metadata=read.metadata)
            case _:
                assert_never(read)
    return now


def _checks_again(ledger: AuditedLedger, first: Sequence[Holding], request: AuditRequest) -> list[HoldingCheck]:
    """Checks whatever was not seen good where it should be now. A light audit reads bad entries on all bookies, since it does not know yet
    how many other copies are bad. It samples the rest: bookies that did not answer, or that only the new metadata names."""
    good = _by_share(_good(first))
    unseen = [
        (check, rest)
        for check in holding_checks(ledger)
        for rest in _without(check.entries, _union(holding.entries for holding in good.get(check.share, [])))
    ]
    match request.depth:
        case AuditDepth.DEEP:
            return _suspects(restricted(check, rest) for check, rest in unseen)
        case AuditDepth.LIGHT:
            bad = _union(holding.entries for holding in first if holding.state.is_suspect and holding.state is not CopyState.UNREACHABLE)
            everywhere = _suspects(restricted(check, entries) for check in holding_checks(ledger) for entries in bad)
            parts = (restricted(check, part) for check, rest in unseen for part in _without(rest, bad))
            return [*everywhere, *(sampled(part, request.seed) for part in parts if part is not None)]
        case _:
            assert_never(request.depth)


def _good(holdings: Iterable[Holding]) -> list[Holding]:
    return [holding for holding in holdings if not holding.state.is_suspect]


def _newest(ledger: AuditedLedger, again: Sequence[Holding], newest: Sequence[Holding]) -> tuple[list[Holding], list[Holding]]:
    """Returns the second pass's holdings with `newest` in their places, and those that they replace. What was bad stays."""
    newer = _by_share(newest)
    kept: list[Holding] = []
    replaced: list[Holding] = []
    for each in again:
        was_bad = each.state.is_suspect and not each.state.is_intact
        (kept if was_bad or each.share not in newer else replaced).append(each)
    bad = _by_share(kept)
    for check in holding_checks(ledger) if newer else ():
        taken = _union(each.entries for each in bad.get(check.share, ()))
        for each in newer.get(check.share, ()):
            parts = (restricted(check, rest) for rest in _without(each.entries, taken))
            kept += [replace(each, first=part.entries.first, last=part.entries.last, copies=part.copies) for part in parts if part]
    return kept, replaced


def _not_bad_already(untrusted: Sequence[Holding], again: Iterable[Holding]) -> list[Holding]:
    """Drops copies that the second pass already found bad, so that each counts once."""
    by_share = _by_share(holding for holding in again if holding.state.is_suspect and not holding.state.is_intact)
    bad = {share: _union(each.entries for each in own) for share, own in by_share.items()}
    found = ((each, bad.get(each.share, ())) for each in untrusted)
    return [each for each, taken in found if list(_without(each.entries, taken)) == [each.entries]]


def _suspects(parts: Iterable[HoldingCheck | None]) -> list[HoldingCheck]:
    return [replace(part, reading=Reading.SUSPECTS, sample=()) for part in parts if part is not None]


def _tallies(
    ledger: AuditedLedger, first: Sequence[Holding], again: Sequence[Holding], untrusted: Sequence[Holding], request: AuditRequest
) -> dict[str, BookieTally]:
    """Counts one ledger's copies by bookie. The second pass overrides the first. Of the third holdings, which others contradict, each
    counts as contradicted."""
    verified = _by_share(holding for holding in first if holding.state is CopyState.VERIFIED)
    seen_again, not_trusted = _by_share(again), _by_share(untrusted)
    tallies: dict[str, BookieTally] = {}
    for check in holding_checks(ledger):
        own = seen_again.get(check.share, [])
        counts = dict.fromkeys(CopyState, 0)
        for holding in own:
            counts[holding.state] += holding.copies
        reread = _union(holding.entries for holding in own)
        counts[CopyState.VERIFIED] += sum(_outside(check, holding, reread, request) for holding in verified.get(check.share, []))
        refuted = sum(holding.copies for holding in not_trusted.get(check.share, []))
        counts[CopyState.CONTRADICTED] = min(refuted, counts[CopyState.VERIFIED])
        counts[CopyState.VERIFIED] -= counts[CopyState.CONTRADICTED]
        counts[CopyState.UNREAD] = 0
        counts[CopyState.UNREAD] = check.copies - sum(counts.values())
        tally = BookieTally(bytes_read=sum(holding.bytes_read for holding in own), copies=copies_by_state(counts))
        tallies = added(tallies, {check.bookie_id: tally})
    away = {holding.bookie_id: holding.detail for holding in reversed(again) if holding.state is CopyState.UNREACHABLE}
    once = {bookie: BookieTally(ledgers=1, ledgers_away=int(bookie in away), why_away=away.get(bookie, "")) for bookie in tallies}
    return added(tallies, once)


def _outside(check: HoldingCheck, holding: Holding, reread: Sequence[EntryRange], request: AuditRequest) -> int:
    """Counts the copies of a verified holding outside of what was read again."""
    whole = restricted(check, holding.entries)
    if whole is not None and holding.copies < whole.copies:
        # A sample stands for its share, and the same seed reproduces it.
        entries = sampled(check, request.seed).sample
        return sum(1 for entry_id in entries if not any(part.first <= entry_id <= part.last for part in reread))
    parts = (restricted(check, rest) for rest in _without(holding.entries, reread))
    return sum(part.copies for part in parts if part is not None)


def _by_share(holdings: Iterable[Holding]) -> dict[Share, list[Holding]]:
    by_share: dict[Share, list[Holding]] = {}
    for holding in holdings:
        by_share.setdefault(holding.share, []).append(holding)
    return by_share


def _without(entries: EntryRange, taken: Sequence[EntryRange]) -> Iterator[EntryRange]:
    """Yields what is left of a range without disjoint, ascending ranges. Looks at no other range: there may be one for each entry."""
    first = entries.first
    begin = bisect.bisect_left(taken, first, key=lambda each: each.last)
    for index in range(begin, bisect.bisect_right(taken, entries.last, key=lambda each: each.first)):
        each = taken[index]
        if first < each.first:
            yield EntryRange(first, each.first - 1)
        first = max(first, each.last + 1)
    if first <= entries.last:
        yield EntryRange(first, entries.last)


def _union(ranges: Iterable[EntryRange]) -> list[EntryRange]:
    """Returns disjoint, ascending ranges over the same entries, so that no copy is read twice."""
    joined: list[EntryRange] = []
    for entries in sorted(ranges):
        if joined and entries.first <= joined[-1].last + 1:
            joined[-1] = EntryRange(joined[-1].first, max(joined[-1].last, entries.last))
        else:
            joined.append(entries)
    return joined
