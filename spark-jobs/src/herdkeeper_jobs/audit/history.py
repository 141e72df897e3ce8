"""The history of audits at a destination: the tables audit_runs, audit_findings and audit_bookies, of Parquet files that are never changed.

A run exists once its file is in audit_runs (written under another name, fsynced, linked, so that the second of two attempts leaves the
first one's as it is). What it found lies in the other two tables by then, under the name of the attempt: an attempt that was broken off
before it committed leaves files there that no run names, until the attempt that commits takes them away.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa
import structlog
from pyarrow import parquet

from herdkeeper.protocol.audit_depth import AuditDepth
from herdkeeper.protocol.audit_finding import Finding, RepairOutcome, Severity
from herdkeeper.protocol.job_summary import AuditSummary, JobOutcome
from herdkeeper_jobs.audit.bookie_health import BookieHealth
from herdkeeper_jobs.audit.finding_rows import finding_of, known_fields
from herdkeeper_jobs.audit.schema import BOOKIES_ARROW, FINDINGS_ARROW, RUNS_ARROW, fields_of
from herdkeeper_jobs.durable_file import link_once, written_beside
from herdkeeper_jobs.storage.stored_path import sync_folder

Source = TypeVar("Source")
Found = TypeVar("Found")
_log = structlog.get_logger()

MOST_LEDGERS = 1_000
"""So many ledgers of a past run are known."""
_FINDINGS_AT_ONCE = 5_000
RUNS, FINDINGS, BOOKIES = "audit_runs", "audit_findings", "audit_bookies"


@dataclass(frozen=True, slots=True)
class AuditRun:
    """One audit that is over."""

    summary: AuditSummary
    """With all findings."""
    bookies: tuple[BookieHealth, ...]
    finished_at: datetime
    """With its time zone."""
    ledgers_root: str


@dataclass(frozen=True, slots=True)
class PastRun:
    """What a later report shows of a run: little, however many findings it had."""

    run: AuditRun
    """Without its findings."""
    entries_found: Mapping[Severity, int]
    """Entries in findings about copies, by severity."""
    worst: Mapping[int, Severity]
    """By ledger with a finding that no repair has ended: at most MOST_LEDGERS of them, the most urgent ones."""

    @classmethod
    def of(cls, run: AuditRun, findings: Iterable[Finding]) -> PastRun:
        """From the run's findings, most urgent first, which are read once and not kept."""
        entries = dict.fromkeys(Severity, 0)
        worst: dict[int, Severity] = {}
        for each in findings:
            entries[each.severity] += each.entries_of_copies
            if each.ledger_id is not None and each.repair is not RepairOutcome.REPAIRED and len(worst) < MOST_LEDGERS:
                worst.setdefault(each.ledger_id, each.severity)
        return cls(replace(run, summary=replace(run.summary, findings=())), entries, worst)


def committed_run(destination: Path, run_id: str) -> AuditRun | None:
    """The run, when it is in the tables."""
    path = _run_file(destination, run_id)
    return _read_run(destination, path) if path.exists() else None


def commit_run(destination: Path, run: AuditRun) -> AuditRun:
    """Adds the run to the tables; when another attempt has added it, that one's stays and is returned."""
    run_id, attempt = run.summary.run_id, uuid.uuid4().hex
    named = {"run_id": run_id, "attempt": attempt}
    findings = pa.Table.from_pylist([named | row for row in fields_of(run.summary.findings)], schema=FINDINGS_ARROW)
    bookies = pa.Table.from_pylist([named | row for row in fields_of(run.bookies)], schema=BOOKIES_ARROW)
    (row,) = fields_of([run.summary])
    row = {name: value for name, value in row.items() if name in RUNS_ARROW.names}
    row |= named | {"finished_at": run.finished_at, "ledgers_root": run.ledgers_root}
    for name, table in ((FINDINGS, findings), (BOOKIES, bookies)):
        path = destination / name / f"{run_id}@{attempt}.parquet"
        _written(path, table).rename(path)
        sync_folder(path.parent)
    path = _run_file(destination, run_id)
    if not link_once(_written(path, pa.Table.from_pylist([row], schema=RUNS_ARROW)), path):
        run = _read_run(destination, path)
    sync_folder(path.parent)
    _sweep(destination, path)
    return run


def read_history(destination: Path, instance_id: str, most: int) -> tuple[PastRun, ...]:
    """The newest runs, `most` of them, on the cluster of this instance id, oldest first.

    A run that can't be read (its findings were deleted, or its file is another program's) is left out: no later audit may fail for it.
    """
    rows = [row for path in (destination / RUNS).glob("*.parquet") for row in _readable(path, _rows)]
    own = sorted((row for row in rows if row.get("instance_id") == instance_id), key=lambda row: (row["finished_at"], row["run_id"]))
    return tuple(run for row in own[-most:] for run in _readable(row, lambda row: [_past_run(destination, row)]))


def _rows(path: Path) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = parquet.read_table(path).to_pylist()
    return rows


def _readable(what: Source, read: Callable[[Source], list[Found]]) -> list[Found]:
    """What is read; nothing where that fails."""
    try:
        return read(what)
    except (OSError, ValueError, KeyError, TypeError) as error:
        _log.warning("left out of the history", what=str(what)[:200], error=str(error)[:500])
        return []


def _run_file(destination: Path, run_id: str) -> Path:
    return destination / RUNS / f"{run_id}.parquet"


def _written(path: Path, table: pa.Table) -> Path:
    return written_beside(path, lambda stream: parquet.write_table(table, stream, compression="zstd"))


def _sweep(destination: Path, run_file: Path) -> None:
    """Takes away what attempts left that did not commit. They have ended: a Job starts the next one after the last one."""
    (row,) = parquet.read_table(run_file).to_pylist()
    for name in (FINDINGS, BOOKIES):
        for path in (destination / name).glob(f"{row['run_id']}@*.parquet"):
            if path.stem != f"{row['run_id']}@{row['attempt']}":
                path.unlink(missing_ok=True)


def _read_run(destination: Path, path: Path) -> AuditRun:
    (row,) = parquet.read_table(path).to_pylist()
    return _with_findings(destination, row)


def _past_run(destination: Path, row: dict[str, Any]) -> PastRun:
    return PastRun.of(_without_findings(destination, row), _findings(destination, row))


def _findings(destination: Path, row: dict[str, Any]) -> Iterator[Finding]:
    """As they were committed, the most urgent first; some thousands at a time are in memory."""
    with parquet.ParquetFile(destination / FINDINGS / _name(row)) as file:
        for batch in file.iter_batches(_FINDINGS_AT_ONCE):
            yield from (finding_of(each) for each in batch.to_pylist())


def _name(row: Mapping[str, Any]) -> str:
    """Of the files of a run's findings and bookies."""
    return f"{row['run_id']}@{row['attempt']}.parquet"


def _with_findings(destination: Path, row: dict[str, Any]) -> AuditRun:
    run = _without_findings(destination, row)
    return replace(run, summary=replace(run.summary, findings=tuple(_findings(destination, row))))


def _without_findings(destination: Path, row: dict[str, Any]) -> AuditRun:
    health = tuple(
        BookieHealth(**known_fields(BookieHealth, each)) for each in parquet.read_table(destination / BOOKIES / _name(row)).to_pylist()
    )
    summary = AuditSummary(**known_fields(AuditSummary, row) | {"outcome": JobOutcome(row["outcome"]), "depth": AuditDepth(row["depth"])})
    return AuditRun(summary, health, row["finished_at"], row["ledgers_root"])
