"""The history of audits at a destination: the tables audit_runs, audit_findings and audit_bookies, of immutable Parquet files.

A run exists once its file is in audit_runs. That file is written under another name, fsynced and linked, so the first of two attempts wins.
Its findings and bookies are in the other tables before, under the attempt's name. Files of attempts that did not commit are named by no
run. The committing attempt removes them.
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

from herdkeeper.protocol.audit_finding import AuditDepth, Finding, RepairOutcome, Severity
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
"""At most so many ledgers are kept of a past run."""
_FINDINGS_AT_ONCE = 5_000
RUNS, FINDINGS, BOOKIES = "audit_runs", "audit_findings", "audit_bookies"


@dataclass(frozen=True, slots=True)
class AuditRun:
    """A finished audit."""

    summary: AuditSummary
    """With all findings."""
    bookies: tuple[BookieHealth, ...]
    finished_at: datetime
    """With its time zone."""
    ledgers_root: str


@dataclass(frozen=True, slots=True)
class PastRun:
    """What a later report shows of a run; small even for a run with many findings."""

    run: AuditRun
    """Without its findings."""
    entries_found: Mapping[Severity, int]
    """Entries in findings about copies, by severity."""
    worst: Mapping[int, Severity]
    """The worst severity by ledger with unrepaired findings: at most MOST_LEDGERS, the most urgent ones."""

    @classmethod
    def of(cls, run: AuditRun, findings: Iterable[Finding]) -> PastRun:
        """Condenses a run. `findings` come most urgent first, and are read once and not kept."""
        entries = dict.fromkeys(Severity, 0)
        worst: dict[int, Severity] = {}
        for each in findings:
            entries[each.severity] += each.entries_of_copies
            if each.ledger_id is not None and each.repair is not RepairOutcome.REPAIRED and len(worst) < MOST_LEDGERS:
                worst.setdefault(each.ledger_id, each.severity)
        return cls(replace(run, summary=replace(run.summary, findings=())), entries, worst)


def committed_run(destination: Path, run_id: str) -> AuditRun | None:
    """Returns the run if it is in the tables."""
    path = _run_file(destination, run_id)
    return _read_run(destination, path) if path.exists() else None


def commit_run(destination: Path, run: AuditRun) -> AuditRun:
    """Adds the run to the tables. Returns the stored run: another attempt's if that one was first."""
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
    """Returns the newest `most` runs on the cluster with this instance id, oldest first.

    Unreadable runs (deleted findings, another program's file) are left out: no later audit may fail for one.
    """
    rows = [row for path in (destination / RUNS).glob("*.parquet") for row in _readable(path, _rows)]
    own = sorted((row for row in rows if row.get("instance_id") == instance_id), key=lambda row: (row["finished_at"], row["run_id"]))
    return tuple(run for row in own[-most:] for run in _readable(row, lambda row: [_past_run(destination, row)]))


def _rows(path: Path) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = parquet.read_table(path).to_pylist()
    return rows


def _readable(what: Source, read: Callable[[Source], list[Found]]) -> list[Found]:
    """Reads something; returns nothing if that fails."""
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
    """Removes files of attempts that did not commit. They have ended: a Job runs its attempts one after the other."""
    (row,) = parquet.read_table(run_file).to_pylist()
    for name in (FINDINGS, BOOKIES):
        for path in (destination / name).glob(f"{row['run_id']}@*.parquet"):
            if path.name != _name(row):
                path.unlink(missing_ok=True)


def _read_run(destination: Path, path: Path) -> AuditRun:
    (row,) = parquet.read_table(path).to_pylist()
    run = _without_findings(destination, row)
    return replace(run, summary=replace(run.summary, findings=tuple(_findings(destination, row))))


def _past_run(destination: Path, row: dict[str, Any]) -> PastRun:
    return PastRun.of(_without_findings(destination, row), _findings(destination, row))


def _findings(destination: Path, row: dict[str, Any]) -> Iterator[Finding]:
    """Yields the findings as committed, most urgent first; some thousands at a time are in memory."""
    with parquet.ParquetFile(destination / FINDINGS / _name(row)) as file:
        for batch in file.iter_batches(_FINDINGS_AT_ONCE):
            yield from (finding_of(each) for each in batch.to_pylist())


def _name(row: Mapping[str, Any]) -> str:
    """The file name of a run's findings and bookies."""
    return f"{row['run_id']}@{row['attempt']}.parquet"


def _without_findings(destination: Path, row: dict[str, Any]) -> AuditRun:
    health = tuple(
        BookieHealth(**known_fields(BookieHealth, each)) for each in parquet.read_table(destination / BOOKIES / _name(row)).to_pylist()
    )
    summary = AuditSummary(**known_fields(AuditSummary, row) | {"outcome": JobOutcome(row["outcome"]), "depth": AuditDepth(row["depth"])})
    return AuditRun(summary, health, row["finished_at"], row["ledgers_root"])
