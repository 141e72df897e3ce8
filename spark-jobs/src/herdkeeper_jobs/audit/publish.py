"""Publishes an audit at its destination: the run in the tables, then its report beside them. Its progress goes then."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from herdkeeper.protocol.job_summary import AuditSummary
from herdkeeper_jobs.audit.progress import forget_progress
from herdkeeper_jobs.audit.report import MOST_RUNS, render_report
from herdkeeper_jobs.audit.tables import AuditRun, commit_run, read_history
from herdkeeper_jobs.storage.stored_path import replace_file

REPORTS = "audit_reports"


def publish(destination: Path, run: AuditRun) -> AuditSummary:
    """Returns the run's stored summary, with the path of its report below the destination. Idempotent."""
    committed = commit_run(destination, run)
    name = f"{REPORTS}/{committed.summary.run_id}.html"
    path = destination / name
    if not path.exists():
        history = read_history(destination, committed.summary.instance_id, MOST_RUNS)
        replace_file(path, render_report(committed, history).encode())
    forget_progress(destination, committed.summary.run_id)
    return replace(committed.summary, report=name)
