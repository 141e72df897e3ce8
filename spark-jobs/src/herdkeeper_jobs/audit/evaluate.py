"""Derives findings from the states of copies. Pure.

Bad copies of a segment are ranges per position. Between two neighbouring bounds of these ranges the set of bad positions is constant.
Within such a stretch of a striped ledger only the entry's remainder by the ensemble size matters. So the work grows with the number of
ranges, not of entries: a bookie that is down costs one range per segment.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from herdkeeper.codecs.bookkeeper.metadata import LedgerMetadata
from herdkeeper.codecs.bookkeeper.striping import EntryRange, Striping, striping
from herdkeeper.protocol.audit_finding import Finding, FindingKind, Severity
from herdkeeper_jobs.audit.bookie_health import BookieTally
from herdkeeper_jobs.copies.holding import CopyState, Holding

_KINDS = {
    CopyState.MISSING: FindingKind.MISSING,
    CopyState.CORRUPT: FindingKind.CORRUPT_DIGEST,
    CopyState.FAILED: FindingKind.READ_FAILED,
    CopyState.CONTRADICTED: FindingKind.CONTRADICTION,
}
_INCONCLUSIVE = (CopyState.FAILED, CopyState.UNREACHABLE)
_URGENCY = tuple(Severity)


def severity_of(good_copies: int, unknown_copies: int, metadata: LedgerMetadata) -> Severity | None:
    """Returns how urgent this number of good copies is; None if nothing is wrong.

    Unread copies count neither as good nor as lost: if they could change the verdict, it is Unknown.
    """
    if good_copies >= metadata.write_quorum:
        return None
    if good_copies + unknown_copies < metadata.ack_quorum:
        return Severity.CRITICAL
    if good_copies < metadata.ack_quorum or good_copies + unknown_copies >= metadata.write_quorum:
        return Severity.UNKNOWN
    return Severity.UNDER_REPLICATED if metadata.closed else Severity.PENDING


def findings_of_ledger(metadata: LedgerMetadata, holdings: Sequence[Holding]) -> tuple[Finding, ...]:
    """Returns what is wrong with one ledger, by segment and entry. Copies that no holding calls bad count as good.

    Copies on unreachable bookies make no finding here (`findings_of_bookies` reports each bookie once). They count as unknown in the
    severity of others.
    """
    by_segment: dict[int, list[Holding]] = {}
    for holding in holdings:
        if holding.state.is_suspect and not holding.state.is_intact:
            by_segment.setdefault(holding.segment, []).append(holding)
    bad_lacs = (_wrong_last_confirmed(metadata, holding) for holding in holdings if holding.state is CopyState.WRONG_LAST_CONFIRMED)
    return (*(finding for _, bad in sorted(by_segment.items()) for finding in _findings_of_segment(metadata, bad)), *bad_lacs)


def findings_of_bookies(tallies: Mapping[str, BookieTally]) -> tuple[Finding, ...]:
    """Returns one finding per bookie that did not answer, with the extent that could not be read."""
    return tuple(
        Finding(
            kind=FindingKind.BOOKIE_UNREACHABLE,
            severity=Severity.UNKNOWN,
            bookie_id=bookie_id,
            detail=f"{own.in_state(CopyState.UNREACHABLE)} copies of {own.ledgers_away} ledgers unknown: {own.why_away}",
        )
        for bookie_id, own in sorted(tallies.items())
        if own.ledgers_away
    )


def by_urgency(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Sorts the most urgent first, then by ledger, entry and bookie."""
    return tuple(
        sorted(
            findings,
            key=lambda finding: (
                _URGENCY.index(finding.severity),
                -1 if finding.ledger_id is None else finding.ledger_id,
                finding.first_entry_id or 0,
                finding.bookie_id or "",
            ),
        )
    )


@dataclass(frozen=True, slots=True)
class _Verdict:
    """The severity of a stretch for one of its bad holdings."""

    holding: Holding
    entries: EntryRange
    severity: Severity
    good_copies: int


def _findings_of_segment(metadata: LedgerMetadata, bad: list[Holding]) -> Iterator[Finding]:
    verdicts = (verdict for stretch in _stretches(bad) for verdict in _verdicts(metadata, *stretch))
    by_copy: dict[tuple[int, CopyState], list[_Verdict]] = {}
    for verdict in verdicts:
        by_copy.setdefault((verdict.holding.position, verdict.holding.state), []).append(verdict)
    for own in by_copy.values():
        for merged in _merge(striping(metadata), own):
            yield _finding(metadata, merged)


def _stretches(bad: list[Holding]) -> Iterator[tuple[EntryRange, list[Holding]]]:
    """Yields ranges of entries with the bad holdings that span them, ascending."""
    bounds = sorted({holding.first for holding in bad} | {holding.last + 1 for holding in bad})
    ordered = sorted(bad, key=lambda holding: holding.first)
    active: list[Holding] = []
    upcoming = 0
    for start, end in itertools.pairwise(bounds):
        active = [holding for holding in active if holding.last >= start]
        while upcoming < len(ordered) and ordered[upcoming].first <= start:
            active.append(ordered[upcoming])
            upcoming += 1
        if active:
            yield EntryRange(start, end - 1), active


def _verdicts(metadata: LedgerMetadata, stretch: EntryRange, active: list[Holding]) -> Iterator[_Verdict]:
    """Yields, for each bad holding, the worst severity among its own entries in the stretch."""
    spread = striping(metadata)
    for holding in active:
        if holding.state is CopyState.UNREACHABLE:
            continue
        worst: tuple[int, Severity, int] | None = None
        for entry_id in spread.one_round(stretch):
            if spread.holds(holding.position, entry_id):
                good, unknown = _count(spread, metadata.segments[holding.segment].bookies, entry_id, active)
                severity = severity_of(good, unknown, metadata)
                assert severity is not None  # this holding alone leaves less than the write quorum
                worst = min(worst or (99, severity, good), (_URGENCY.index(severity), severity, good))
        if worst is not None:
            yield _Verdict(holding, _own_range(spread, holding, stretch), worst[1], worst[2])


def _count(spread: Striping, bookies: Sequence[str], entry_id: int, active: list[Holding]) -> tuple[int, int]:
    """Counts the bookies with a good copy of an entry, and those with an unknown one: an ensemble may name a bookie twice."""
    bad = {holding.position: holding for holding in active if spread.holds(holding.position, entry_id)}
    good = {bookies[position] for position in spread.write_set(entry_id) if position not in bad}
    return len(good), len({bookies[position] for position, holding in bad.items() if holding.state in _INCONCLUSIVE} - good)


def _own_range(spread: Striping, holding: Holding, stretch: EntryRange) -> EntryRange:
    """The stretch, trimmed to the position's first and last entry."""
    first, last = stretch.first, stretch.last
    while not spread.holds(holding.position, first):
        first += 1
    while not spread.holds(holding.position, last):
        last -= 1
    return EntryRange(first, last)


def _merge(spread: Striping, verdicts: list[_Verdict]) -> Iterator[_Verdict]:
    """Joins equal verdicts of one position if it holds nothing in between. Input and output ascend."""
    merged: _Verdict | None = None
    for verdict in verdicts:
        if merged is not None and _continues(spread, merged, verdict):
            merged = replace(merged, entries=EntryRange(merged.entries.first, verdict.entries.last))
            continue
        if merged is not None:
            yield merged
        merged = verdict
    if merged is not None:
        yield merged


def _continues(spread: Striping, before: _Verdict, after: _Verdict) -> bool:
    between = range(before.entries.last + 1, after.entries.first)
    gap = len(between) >= spread.ensemble_size or any(spread.holds(after.holding.position, entry_id) for entry_id in between)
    return not gap and (before.severity, before.good_copies) == (after.severity, after.good_copies)


def _wrong_last_confirmed(metadata: LedgerMetadata, holding: Holding) -> Finding:
    """No copy is lost. But on a closed ledger it proves that confirmed entries are missing."""
    return Finding(
        kind=FindingKind.WRONG_LAST_CONFIRMED,
        severity=Severity.CRITICAL if metadata.closed else Severity.LOW,
        ledger_id=metadata.ledger_id,
        first_entry_id=holding.first,
        last_entry_id=holding.last,
        bookie_id=holding.bookie_id,
        segment=holding.segment,
        detail=holding.detail,
    )


def _finding(metadata: LedgerMetadata, verdict: _Verdict) -> Finding:
    return Finding(
        kind=_KINDS[verdict.holding.state],
        severity=verdict.severity,
        ledger_id=metadata.ledger_id,
        first_entry_id=verdict.entries.first,
        last_entry_id=verdict.entries.last,
        bookie_id=verdict.holding.bookie_id,
        segment=verdict.holding.segment,
        expected_copies=metadata.write_quorum,
        actual_copies=verdict.good_copies,
        detail=verdict.holding.detail,
    )
