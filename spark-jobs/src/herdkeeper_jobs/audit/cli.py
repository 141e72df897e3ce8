"""`herdkeeper-audit`: arguments, Spark, output and exit code of the audit and of the repair of its findings.

Exit codes: 0 done, with or without findings, or paused by `--read-until` (see the summary's outcome); 2 refused configuration; 3 something
was unavailable, try again; 42 an invariant is violated, never retry. The summary is the last line of standard output, and goes to the
container's termination message.

With an output directory a run continues what earlier processes with its id did (audit/progress.py); without one it starts anew.
"""

from __future__ import annotations

import sys
import time
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

import structlog

from herdkeeper.protocol.job_summary import AuditSummary, JobOutcome
from herdkeeper_jobs.audit.arguments import DRY_RUN, REPORT, ArgumentError, AuditArguments, audit_parser, validated
from herdkeeper_jobs.audit.copy_reader import TaskRunner
from herdkeeper_jobs.audit.job import AuditInvariantError, AuditResult, audit
from herdkeeper_jobs.audit.on_spark import run_on_spark
from herdkeeper_jobs.audit.orphans import LEAST_AGE_MILLIS, OrphanRule, read_tablespace_logs
from herdkeeper_jobs.audit.portion import RunProgress
from herdkeeper_jobs.audit.progress import Progress, ProgressRefusedError, RunIdentity
from herdkeeper_jobs.audit.publish import publish
from herdkeeper_jobs.audit.schema import fields_of
from herdkeeper_jobs.audit.scope import FilterRefusedError
from herdkeeper_jobs.audit.tables import AuditRun, committed_run
from herdkeeper_jobs.bookkeeper.metadata import ClusterNotFoundError, LedgerCatalog, MetadataUnavailableError, open_catalog
from herdkeeper_jobs.copies.plan import AuditBudget
from herdkeeper_jobs.repair.bookkeeper_client import BookKeeperClient
from herdkeeper_jobs.repair.rewrite import RepairSettings
from herdkeeper_jobs.repair.run import RepairResult, repair
from herdkeeper_jobs.spark_session import SparkConfigurationError, SparkSettings, session_on_demand
from herdkeeper_jobs.task_error import essence
from herdkeeper_jobs.termination_message import write_termination_message

_log = structlog.get_logger()
_BOOKKEEPER_LIBRARY = Path("/opt/bookkeeper/lib")
"""The jars of BookKeeper's client in the image, which a repair needs for damaged entries."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Entry point of the console script; returns the exit code."""
    parsed = audit_parser().parse_args(arguments)
    started = time.monotonic()
    try:
        summary = _run(validated(parsed), started)
    except (ArgumentError, SparkConfigurationError, ClusterNotFoundError, FilterRefusedError, ProgressRefusedError) as error:
        summary = _failure(parsed.run_id, JobOutcome.CONFIGURATION_REFUSED, error)
    except AuditInvariantError as error:
        summary = _failure(parsed.run_id, JobOutcome.INVARIANT_VIOLATED, error)
    except (MetadataUnavailableError, OSError) as error:
        summary = _failure(parsed.run_id, JobOutcome.RETRYABLE, error)
    except Exception as error:  # of Spark, or unforeseen: the summary must be written anyway
        traceback.print_exception(error)
        summary = _failure(parsed.run_id, JobOutcome.RETRYABLE, error)
    write_termination_message(summary.to_json())
    return summary.outcome.exit_code


def _run(arguments: AuditArguments, started: float) -> AuditSummary:
    if arguments.output is not None and (before := committed_run(arguments.output, arguments.run_id)) is not None:
        _require_same(before, arguments)
        return replace(publish(arguments.output, before), outcome=JobOutcome.ALREADY_DONE)
    budget = AuditBudget(arguments.spark.cores, arguments.bytes_per_second_per_bookie)
    # ZooKeeper first: it reports errors sooner than Spark.
    with open_catalog(arguments.zookeeper, arguments.ledgers_root) as catalog:
        rule = OrphanRule(lambda: read_tablespace_logs(catalog), int(time.time() * 1000) - LEAST_AGE_MILLIS)
        progress = _progress(arguments, catalog)
        run_progress, seconds_before = _run_progress(arguments, progress)
        with _tasks_on_spark(arguments.spark) as run_tasks:
            result = audit(catalog, replace(arguments.request, orphans=rule), budget, run_tasks, run_progress)
        paused = result.summary.outcome is JobOutcome.PAUSED
        if not paused:
            # After a crash here the next process repairs the same findings, without writing restored copies again.
            result = repaired(catalog, result, arguments)
    for row in fields_of(result.findings):
        _log.warning("finding", **{key: value for key, value in row.items() if value is not None})
    seconds = seconds_before + time.monotonic() - started
    summary = replace(result.summary, run_id=arguments.run_id, duration_seconds=round(seconds, 1))
    if arguments.output is None or paused:
        return summary
    return publish(arguments.output, AuditRun(summary, result.bookies, datetime.now(UTC), arguments.ledgers_root))


def _require_same(before: AuditRun, arguments: AuditArguments) -> None:
    """Raises ArgumentError if the run at the destination is another one with this id, such as of another cluster."""
    mine = {
        "ledgers_root": (before.ledgers_root, arguments.ledgers_root),
        "depth": (before.summary.depth.value, arguments.request.depth.value),
        "ledger_filter": (before.summary.ledger_filter or "", arguments.request.ledgers.described),
    }
    for name, (theirs, own) in mine.items():
        if theirs != own:
            raise ArgumentError(f"the run {arguments.run_id} was of {name} {theirs!r}, not {own!r}: give another --run-id")


def _progress(arguments: AuditArguments, catalog: LedgerCatalog) -> Progress | None:
    """None without an output directory."""
    if arguments.output is None:
        return None
    request = arguments.request
    return Progress(arguments.output, RunIdentity(arguments.run_id, catalog.instance_id, request.depth, request.ledgers.described))


def _run_progress(arguments: AuditArguments, progress: Progress | None) -> tuple[RunProgress, float]:
    """Returns the progress to continue from, and the seconds that earlier processes spent on it."""

    def may_read() -> bool:
        return arguments.read_until is None or datetime.now(UTC) < arguments.read_until

    if progress is None:
        return RunProgress(may_read=may_read), 0.0
    kept = progress.read()
    if kept.portions:
        _log.info("going on", portions=len(kept.portions), ledgers_through=kept.portions[-1].through)
    clock = _Clock()
    return RunProgress(kept.portions, lambda number, portion: progress.keep(number, portion, clock.lap()), may_read), kept.seconds


@dataclass(slots=True)
class _Clock:
    """A stopwatch: seconds since the previous lap."""

    since: float = field(default_factory=time.monotonic)

    def lap(self) -> float:
        before, self.since = self.since, time.monotonic()
        return self.since - before


@contextmanager
def _tasks_on_spark(settings: SparkSettings) -> Iterator[TaskRunner]:
    """Starts Spark with the first tasks. A run that has nothing to read, or must not read now, needs none."""
    with session_on_demand("herdkeeper-audit", settings) as spark:
        yield lambda tasks: run_on_spark(spark(), tasks)


def repaired(catalog: LedgerCatalog, result: AuditResult, arguments: AuditArguments) -> AuditResult:
    """Repairs the findings if asked and returns the result with their outcomes. Not in tasks: the holder of the lock must write."""
    if arguments.repair == REPORT:
        return result
    settings = RepairSettings(
        owner=f"herdkeeper-audit {arguments.run_id}",
        dry_run=arguments.repair == DRY_RUN,
        bytes_per_second_per_bookie=arguments.bytes_per_second_per_bookie,
        move=_bookkeeper_client(arguments).move if _BOOKKEEPER_LIBRARY.is_dir() else None,
    )
    done = repair(catalog, result.findings, settings)
    summary = replace(
        result.summary,
        message=f"{result.summary.message}{_repair_sentence(done, settings.dry_run)}",
        copies_repaired=done.copies_repaired,
        copies_repairable=done.copies_repairable,
        not_repaired=len(done.not_repaired),
        findings=done.findings,
    )
    return replace(result, summary=summary)


def _bookkeeper_client(arguments: AuditArguments) -> BookKeeperClient:
    racks = arguments.request.racks
    return BookKeeperClient(
        library=_BOOKKEEPER_LIBRARY,
        zookeeper=arguments.zookeeper,
        ledgers_root=arguments.ledgers_root.rstrip("/"),
        rack_of={} if racks is None else racks.rack_of,
        min_racks=1 if racks is None else racks.wanted,
        bytes_per_second=arguments.bytes_per_second_per_bookie,
    )


def _repair_sentence(done: RepairResult, dry_run: bool) -> str:
    """Puts first what matters most: what was not repaired, and why."""
    failed = done.not_repaired
    sentence = f"; a repair would write {done.copies_repairable} copies" if dry_run else ""
    sentence = f"; {done.copies_repaired} copies repaired" if done.copies_repaired else sentence
    if failed:
        first = failed[0]
        where = f"ledger {first.ledger_id} on bookie {first.bookie_id}"
        loudly = "NOT REPAIRABLE" if dry_run else "NOT REPAIRED"
        return f"; {loudly}: {len(failed)} findings, the first in {where}: {first.repair_detail}{sentence}"
    return sentence


def _failure(run_id: str, outcome: JobOutcome, error: Exception) -> AuditSummary:
    _log.error("failed", outcome=outcome.value, error=str(error), kind=type(error).__name__)
    return AuditSummary(run_id=run_id, outcome=outcome, message=f"{type(error).__name__}: {essence(str(error))}")


if __name__ == "__main__":
    sys.exit(main())
