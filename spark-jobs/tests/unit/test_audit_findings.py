"""Findings from states of copies, against a brute force that judges each entry alone."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from played_bookie import ledger

from herdkeeper.codecs.bookkeeper.metadata import LedgerMetadata, LedgerState
from herdkeeper.codecs.bookkeeper.striping import EntryRange, striping
from herdkeeper.protocol.audit_finding import Finding, FindingKind, Severity
from herdkeeper_jobs.audit.bookie_health import BookieTally, copies_by_state
from herdkeeper_jobs.audit.evaluate import by_urgency, findings_of_bookies, findings_of_ledger, severity_of
from herdkeeper_jobs.copies.holding import CopyState, Holding

NAMES = ("b0", "b1", "b2", "b3")
KINDS = {
    CopyState.MISSING: FindingKind.MISSING,
    CopyState.CORRUPT: FindingKind.CORRUPT_DIGEST,
    CopyState.FAILED: FindingKind.READ_FAILED,
    CopyState.CONTRADICTED: FindingKind.CONTRADICTION,
    CopyState.WRONG_LAST_CONFIRMED: FindingKind.WRONG_LAST_CONFIRMED,
}
LAST = 11


def holding(position: int, state: CopyState, first: int, last: int, copies: int | None = None) -> Holding:
    return Holding(1, 0, NAMES[position], position, state, first, last, last - first + 1 if copies is None else copies, 0, "why")


def runs(metadata: LedgerMetadata, states: dict[tuple[int, int], CopyState]) -> list[Holding]:
    """What executors would report: runs of equal states over each position's entries."""
    found: list[Holding] = []
    for position in range(metadata.ensemble_size):
        for entry_id in striping(metadata).entries_at(position, EntryRange(0, LAST)):
            state = states.get((position, entry_id), CopyState.VERIFIED)
            if found and found[-1].position == position and found[-1].state is state:
                found[-1] = replace(found[-1], last=entry_id, copies=found[-1].copies + 1)
            else:
                found.append(holding(position, state, entry_id, entry_id))
    return found


@settings(max_examples=300)
@given(st.integers(1, 4), st.data())
def test_findings_name_exactly_the_bad_copies_with_the_severity_of_each_entry(size: int, data: st.DataObject) -> None:
    write_quorum = data.draw(st.integers(1, size))
    ack_quorum = data.draw(st.integers(1, write_quorum))
    metadata = ledger(1, data.draw(st.sampled_from([LAST, None])), NAMES[:size], (write_quorum, ack_quorum))
    spread = striping(metadata)
    copies = [(position, entry_id) for entry_id in range(LAST + 1) for position in spread.write_set(entry_id)]
    states = data.draw(st.dictionaries(st.sampled_from(copies), st.sampled_from([state for state in CopyState if state.is_suspect])))
    findings = findings_of_ledger(metadata, runs(metadata, states))
    named: dict[tuple[str, int], list[Finding]] = defaultdict(list)
    for finding in findings:
        assert finding.first_entry_id is not None
        assert finding.last_entry_id is not None
        position = NAMES.index(str(finding.bookie_id))
        assert spread.holds(position, finding.first_entry_id)
        assert spread.holds(position, finding.last_entry_id)
        for entry_id in spread.entries_at(position, EntryRange(finding.first_entry_id, finding.last_entry_id)):
            named[str(finding.bookie_id), entry_id].append(finding)
    bad = {copy: state for copy, state in states.items() if state is not CopyState.UNREACHABLE}
    assert set(named) == {(NAMES[position], entry_id) for position, entry_id in bad}
    for (position, entry_id), state in bad.items():
        (finding,) = named[NAMES[position], entry_id]
        mine = [states.get((other, entry_id)) for other in spread.write_set(entry_id)]
        good = mine.count(None) + mine.count(CopyState.WRONG_LAST_CONFIRMED)
        unknown = mine.count(CopyState.FAILED) + mine.count(CopyState.UNREACHABLE)
        assert finding.kind is KINDS[state]
        if state is CopyState.WRONG_LAST_CONFIRMED:
            assert finding.severity is (Severity.CRITICAL if metadata.closed else Severity.LOW)
            continue
        exact = severity_of(good, unknown, metadata)
        if spread.contiguous:
            assert (finding.severity, finding.actual_copies) == (exact, good)
        else:
            # A range in a striped ledger has the worst severity of its entries.
            order = [Severity.CRITICAL, Severity.UNDER_REPLICATED, Severity.PENDING, Severity.UNKNOWN]
            assert exact is not None
            assert order.index(finding.severity) <= order.index(exact)


def test_a_verified_ledger_has_no_findings() -> None:
    assert findings_of_ledger(ledger(1, LAST, NAMES[:3]), [holding(0, CopyState.VERIFIED, 0, LAST)]) == ()


def test_entries_with_fewer_copies_than_the_ack_quorum_are_separated_from_the_rest_of_the_range() -> None:
    findings = findings_of_ledger(ledger(1, LAST, NAMES[:3]), [holding(0, CopyState.MISSING, 2, 9), holding(2, CopyState.CORRUPT, 5, 6)])
    assert [
        (f.bookie_id, f.kind.value, f.first_entry_id, f.last_entry_id, f.severity.value, f.actual_copies) for f in by_urgency(findings)
    ] == [
        ("b0", "Missing", 5, 6, "Critical", 1),
        ("b2", "CorruptDigest", 5, 6, "Critical", 1),
        ("b0", "Missing", 2, 4, "UnderReplicated", 2),
        ("b0", "Missing", 7, 9, "UnderReplicated", 2),
    ]


def test_neighbouring_holdings_of_several_tasks_become_one_finding() -> None:
    parts = [holding(0, CopyState.MISSING, first, first) for first in range(3, 8)]
    (finding,) = findings_of_ledger(ledger(1, LAST, NAMES[:3]), parts)
    assert (finding.first_entry_id, finding.last_entry_id) == (3, 7)


def test_a_bookie_that_is_away_is_one_finding_and_its_copies_are_not_missing() -> None:
    assert findings_of_ledger(ledger(1, LAST, NAMES[:3]), [holding(1, CopyState.UNREACHABLE, 0, LAST)]) == ()
    tally = BookieTally(2, copies=copies_by_state({CopyState.UNREACHABLE: 24}), ledgers_away=2, why_away="why")
    (finding,) = findings_of_bookies({"b0": BookieTally(2), "b1": tally})
    assert (finding.kind, finding.severity, finding.bookie_id) == (FindingKind.BOOKIE_UNREACHABLE, Severity.UNKNOWN, "b1")
    assert finding.detail == "24 copies of 2 ledgers unknown: why"


def test_a_missing_copy_beside_an_unknown_one_is_no_proven_loss() -> None:
    bad = [holding(0, CopyState.MISSING, 3, 3), holding(1, CopyState.UNREACHABLE, 0, LAST)]
    (finding,) = findings_of_ledger(ledger(1, LAST, NAMES[:3]), bad)
    assert (finding.severity, finding.actual_copies) == (Severity.UNKNOWN, 1)


def test_a_million_missing_entries_cost_one_finding_and_no_time() -> None:
    (finding,) = findings_of_ledger(ledger(1, 10**9, NAMES[:3]), [holding(0, CopyState.MISSING, 0, 10**9)])
    assert finding.last_entry_id == 10**9


@pytest.mark.parametrize(
    ("good", "unknown", "state", "expected"),
    [
        (3, 0, LedgerState.CLOSED, None),
        (2, 0, LedgerState.CLOSED, Severity.UNDER_REPLICATED),
        (2, 0, LedgerState.OPEN, Severity.PENDING),
        (2, 0, LedgerState.IN_RECOVERY, Severity.PENDING),
        (1, 0, LedgerState.OPEN, Severity.CRITICAL),
        (0, 1, LedgerState.CLOSED, Severity.CRITICAL),
        (1, 1, LedgerState.CLOSED, Severity.UNKNOWN),
        (2, 1, LedgerState.CLOSED, Severity.UNKNOWN),
        (0, 3, LedgerState.CLOSED, Severity.UNKNOWN),
    ],
)
def test_severity_follows_the_quorums_and_an_unknown_copy_is_neither_good_nor_lost(
    good: int, unknown: int, state: LedgerState, expected: Severity | None
) -> None:
    assert severity_of(good, unknown, replace(ledger(1, LAST, NAMES[:3]), state=state)) is expected
