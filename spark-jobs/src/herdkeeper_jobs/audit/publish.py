"""What an audit leaves at its destination: its run in the tables, then its report beside them."""

from __future__ import annotations

import uuid
from dataclasses import replace
from pathlib import Path

from herdkeeper.domain.job_summary import AuditSummary
from herdkeeper_jobs.audit.history import AuditRun, commit_run, read_history
from herdkeeper_jobs.audit.report import MOST_RUNS, render_report

REPORTS = "audit_reports"


def publish(destination: Path, run: AuditRun) -> AuditSummary:
    """The summary of the run as it is in the tables, with the path of its report below the destination. Repeating it changes nothing."""
    committed = commit_run(destination, run)
    name = f"{REPORTS}/{committed.summary.run_id}.html"
    path = destination / name
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
        history = read_history(destination, committed.summary.instance_id, MOST_RUNS)
        partial.write_text(render_report(committed, history), encoding="utf-8")
        partial.rename(path)
    return replace(committed.summary, report=name)
