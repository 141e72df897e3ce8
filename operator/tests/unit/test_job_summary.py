"""The termination message of a job: it always fits, counts stay exact, and it reads back."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from herdkeeper.protocol.audit_finding import Finding, FindingKind, Severity
from herdkeeper.protocol.job_summary import (
    AuditSummary,
    CheckpointSummary,
    FollowerComparison,
    JobOutcome,
    RestoreSummary,
    SummaryError,
    TableSummary,
)


def finding(number: int) -> Finding:
    return Finding(
        kind=FindingKind.MISSING,
        severity=Severity.UNDER_REPLICATED,
        ledger_id=number,
        first_entry_id=10,
        last_entry_id=20,
        bookie_id="orders-bookie-2-x7k",
        segment=0,
        expected_copies=3,
        actual_copies=2,
    )


def test_an_audit_summary_reads_back_as_it_was_written() -> None:
    summary = AuditSummary("run-1", JobOutcome.SUCCEEDED, ledgers=3, entries=10, under_replicated=1, findings=(finding(7),))
    assert AuditSummary.from_json(summary.to_json()) == summary


def test_a_checkpoint_summary_reads_back_as_it_was_written() -> None:
    summary = CheckpointSummary(
        "run-1", JobOutcome.ALREADY_DONE, ledger_id=4, entry_id=99, rows=5, tables=(TableSummary("t", 5, 900, "ab"),)
    )
    assert CheckpointSummary.from_json(summary.to_json()) == summary


COMPARISON = FollowerComparison("db-herddb-1.nodes:9845", "a-uuid", 4, 99)


def test_a_checkpoint_summary_tells_of_a_follower_that_is_equal_and_of_one_that_is_not() -> None:
    for comparison in (COMPARISON, replace(COMPARISON, different_tables=("airports", "flights"), different_tables_total=2)):
        summary = CheckpointSummary("run-1", JobOutcome.INVARIANT_VIOLATED, comparison=comparison)
        assert CheckpointSummary.from_json(summary.to_json()) == summary


def test_that_a_follower_differs_is_told_however_many_tables_differ() -> None:
    names = tuple(f"table_{number:060}" for number in range(300))
    comparison = replace(COMPARISON, different_tables=names, different_tables_total=300)
    tables = (TableSummary("t", 5, 900, "ab"),)
    read = CheckpointSummary.from_json(
        CheckpointSummary("r", JobOutcome.INVARIANT_VIOLATED, comparison=comparison, tables=tables).to_json()
    )
    assert read.comparison is not None
    told = read.comparison.different_tables
    assert 10 < len(told) < 300
    assert (told, read.comparison.different_tables_total, read.tables) == (names[: len(told)], 300, ())


def test_a_restore_summary_reads_back_as_it_was_written_with_its_message_cut() -> None:
    summary = RestoreSummary("run-1", JobOutcome.RETRYABLE, "m" * 9000, "restored", "/m.json", 3, 9, rows=7, rows_loaded=5, tables=2)
    read = RestoreSummary.from_json(summary.to_json())
    assert read == replace(summary, message="m" * 500)


def test_keys_are_camel_case_and_unknown_values_are_absent() -> None:
    written = json.loads(CheckpointSummary("r", JobOutcome.RETRYABLE, entries_read=3).to_json())
    assert written["entriesRead"] == 3
    assert "ledgerId" not in written


@given(st.integers(0, 400), st.text(max_size=3000))
def test_a_summary_always_fits_the_termination_message_and_counts_what_it_dropped(count: int, message: str) -> None:
    findings = tuple(finding(number) for number in range(count))
    text = AuditSummary("r", JobOutcome.SUCCEEDED, message.replace("\ud800", ""), critical=count, findings=findings).to_json()
    assert len(text.encode()) <= 4096
    read = AuditSummary.from_json(text)
    assert len(read.findings) + read.findings_omitted == count
    assert read.findings == findings[: len(read.findings)]
    assert read.critical == count


def test_as_many_findings_as_fit_are_kept() -> None:
    read = AuditSummary.from_json(AuditSummary("r", JobOutcome.SUCCEEDED, findings=tuple(finding(n) for n in range(100))).to_json())
    one_more = AuditSummary("r", JobOutcome.SUCCEEDED, findings=tuple(finding(n) for n in range(len(read.findings) + 1)))
    assert 0 < len(read.findings) < 100
    assert AuditSummary.from_json(one_more.to_json()).findings_omitted >= 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"outcome":"Succeeded"}', "runId: Field required"),
        ('{"runId":"r","outcome":"Splendid"}', "outcome: Input should be"),
        ('{"runId":"r","outcome":"Succeeded","rows":"many"}', "rows: Input should be a valid integer"),
        ("Killed", "Invalid JSON"),
    ],
)
def test_a_message_that_is_no_summary_is_refused_by_the_field(text: str, message: str) -> None:
    with pytest.raises(SummaryError, match=message):
        CheckpointSummary.from_json(text)


def test_a_key_of_a_newer_job_is_ignored() -> None:
    assert CheckpointSummary.from_json('{"runId":"r","outcome":"Succeeded","novelty":1}').run_id == "r"


def test_every_outcome_has_the_documented_exit_code() -> None:
    assert {outcome: outcome.exit_code for outcome in JobOutcome} == {
        JobOutcome.SUCCEEDED: 0,
        JobOutcome.ALREADY_DONE: 0,
        JobOutcome.PAUSED: 0,
        JobOutcome.CONFIGURATION_REFUSED: 2,
        JobOutcome.RETRYABLE: 3,
        JobOutcome.INVARIANT_VIOLATED: 42,
    }
