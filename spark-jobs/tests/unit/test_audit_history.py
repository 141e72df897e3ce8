"""The tables of an audit: a run is in them once and whole, whatever happens to its attempts."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pandas as pd
import pytest

from herdkeeper.protocol.audit_finding import AuditDepth, Finding, FindingKind, RepairOutcome, Severity
from herdkeeper.protocol.job_summary import AuditSummary, JobOutcome
from herdkeeper_jobs import durable_file
from herdkeeper_jobs.audit import cli, tables
from herdkeeper_jobs.audit.bookie_health import BookieHealth
from herdkeeper_jobs.audit.tables import MOST_LEDGERS, AuditRun, PastRun, commit_run, committed_run, read_history

MISSING = Finding(FindingKind.MISSING, Severity.CRITICAL, 3, 5, 6, "b1", 0, 3, 0, "NO_ENTRY", RepairOutcome.REFUSED, "no good replica")
AWAY = Finding(FindingKind.BOOKIE_UNREACHABLE, Severity.UNKNOWN, bookie_id="b2")
WHEN = datetime(2026, 5, 4, 3, 2, 1, tzinfo=UTC)


def run_of(run_id: str, *findings: Finding, days: int = 0) -> AuditRun:
    summary = AuditSummary(
        run_id, JobOutcome.SUCCEEDED, f"message of {run_id}", "instance-1", ledgers=2, entries=9, depth=AuditDepth.LIGHT, findings=findings
    )
    bookies = (BookieHealth("b1", "east", 2, 900, 7, 1, 2, 0, 0), BookieHealth("b2", None, 2, 0, 0, 0, 0, 0, 10))
    return AuditRun(replace(summary, critical=len(findings)), bookies, WHEN + timedelta(days=days), "/demo/bk/ledgers")


def files(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def test_a_run_reads_back_as_it_was_committed(tmp_path: Path) -> None:
    run = run_of("r1", MISSING, AWAY)
    assert committed_run(tmp_path, "r1") is None
    assert commit_run(tmp_path, run) == run
    assert committed_run(tmp_path, "r1") == run


def test_a_run_of_chosen_ledgers_tells_which_and_one_of_an_earlier_version_reads_back_too(tmp_path: Path) -> None:
    run = run_of("r1", MISSING)
    commit_run(tmp_path, replace(run, summary=replace(run.summary, ledger_filter="states Closed")))
    assert list(pd.read_parquet(tmp_path / "audit_runs")["ledger_filter"]) == ["states Closed"]
    path = tmp_path / "audit_runs" / "r1.parquet"
    pd.read_parquet(path).drop(columns="ledger_filter").to_parquet(path)
    found = committed_run(tmp_path, "r1")
    assert found is not None
    assert found.summary.ledger_filter == ""


def test_any_reader_of_parquet_can_join_the_tables(tmp_path: Path) -> None:
    commit_run(tmp_path, run_of("r1", MISSING, AWAY))
    commit_run(tmp_path, run_of("r2", days=1))
    runs, findings = (pd.read_parquet(tmp_path / name) for name in ("audit_runs", "audit_findings"))
    joined = runs.merge(findings, on=["run_id", "attempt"])
    assert sorted(runs["run_id"]) == ["r1", "r2"]
    assert sorted(zip(joined["run_id"], joined["kind"], strict=True)) == [("r1", "BookieUnreachable"), ("r1", "Missing")]
    assert sorted(pd.read_parquet(tmp_path / "audit_bookies")["copies_unknown"]) == [0, 0, 10, 10]


def test_a_second_attempt_of_a_committed_run_changes_nothing(tmp_path: Path) -> None:
    first = commit_run(tmp_path, run_of("r1", MISSING))
    before = {name: (tmp_path / name).read_bytes() for name in files(tmp_path)}
    assert commit_run(tmp_path, run_of("r1", AWAY, AWAY, days=3)) == first
    assert {name: (tmp_path / name).read_bytes() for name in files(tmp_path)} == before


@pytest.mark.parametrize("step", ["first table", "all tables", "link"])
def test_an_interrupted_attempt_leaves_no_run_and_the_next_one_removes_its_files(
    step: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise OSError("the pod was killed")

    with monkeypatch.context() as patched:
        match step:
            case "first table":
                patched.setattr(tables, "sync_folder", broken)
            case "all tables":
                patched.setattr(tables, "_run_file", broken)
            case _:
                patched.setattr(durable_file.os, "link", broken)
        with pytest.raises(OSError, match="killed"):
            commit_run(tmp_path, run_of("r1", MISSING))
    assert committed_run(tmp_path, "r1") is None
    assert read_history(tmp_path, "instance-1", 30) == ()
    done = commit_run(tmp_path, run_of("r1", AWAY))
    assert read_history(tmp_path, "instance-1", 30) == (PastRun.of(done, done.summary.findings),)
    assert [name.split("/")[0] for name in files(tmp_path)] == ["audit_bookies", "audit_findings", "audit_runs"]
    assert list(pd.read_parquet(tmp_path / "audit_findings")["kind"]) == ["BookieUnreachable"]


def test_a_run_whose_id_begins_like_anothers_is_left_alone(tmp_path: Path) -> None:
    longer = commit_run(tmp_path, run_of("r1.a", MISSING))
    commit_run(tmp_path, run_of("r1", AWAY))
    assert committed_run(tmp_path, "r1.a") == longer


def test_a_history_covers_one_cluster_in_the_order_of_time(tmp_path: Path) -> None:
    for run in (run_of("b", days=2), run_of("c", days=1), run_of("a", days=3)):
        commit_run(tmp_path, run)
    other = run_of("other")
    commit_run(tmp_path, replace(other, summary=replace(other.summary, instance_id="instance-2")))
    assert [past.run.summary.run_id for past in read_history(tmp_path, "instance-1", 30)] == ["c", "b", "a"]
    assert [past.run.summary.run_id for past in read_history(tmp_path, "instance-1", 2)] == ["b", "a"]


def test_a_past_run_with_very_many_findings_keeps_little_and_exact_sums(tmp_path: Path) -> None:
    repaired = replace(MISSING, repair=RepairOutcome.REPAIRED)
    findings = [repaired, *(replace(MISSING, ledger_id=ledger, first_entry_id=3, last_entry_id=4) for ledger in range(3 * MOST_LEDGERS))]
    commit_run(tmp_path, run_of("r1", *findings))
    (past,) = read_history(tmp_path, "instance-1", 30)
    assert past.run.summary.findings == ()
    assert past.entries_found[MISSING.severity] == repaired.entries_of_copies + 2 * 3 * MOST_LEDGERS
    assert past.worst == dict.fromkeys(range(MOST_LEDGERS), MISSING.severity)


def test_unreadable_older_runs_are_left_out_and_fail_no_later_one(tmp_path: Path) -> None:
    for days, run_id in enumerate(("deleted", "newer", "good")):
        commit_run(tmp_path, run_of(run_id, MISSING, days=days))
    (tmp_path / "audit_runs" / "empty.parquet").touch()
    pd.DataFrame({"a": [1]}).to_parquet(tmp_path / "audit_runs" / "foreign.parquet")
    for path in (tmp_path / "audit_findings").glob("deleted@*"):
        path.unlink()
    for path in (tmp_path / "audit_findings").glob("newer@*"):
        pd.read_parquet(path).assign(kind="OfALaterVersion").to_parquet(path)
    assert [past.run.summary.run_id for past in read_history(tmp_path, "instance-1", 30)] == ["good"]


def test_a_retry_of_a_run_that_is_in_the_tables_returns_its_result_and_audits_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    commit_run(tmp_path, run_of("r1", MISSING))
    arguments = ["--zookeeper", "127.0.0.1:1", "--ledgers-root", "/demo/bk/ledgers", "--run-id", "r1", "--output", str(tmp_path)]
    assert cli.main([*arguments, "--depth", "light"]) == 0
    said = AuditSummary.from_json(capsys.readouterr().out.splitlines()[-1])
    assert (said.outcome, said.message, said.findings) == (JobOutcome.ALREADY_DONE, "message of r1", (MISSING,))
