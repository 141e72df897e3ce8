"""`herdkeeper-audit`: arguments, Spark, output and exit code of the replication audit, and of the repair of what it found.

Exit codes: 0 done, whether anything was found or not; 2 the configuration is refused; 3 something was away, try again; 42 an invariant is
violated, never retry. The summary goes to the standard output as its last line, and to the container's termination message.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

import structlog
from pyspark.errors import PySparkException

from herdkeeper.domain.audit_depth import AuditDepth
from herdkeeper.domain.job_summary import AuditSummary, JobOutcome
from herdkeeper.domain.replication import EntryRange
from herdkeeper_jobs.audit.history import AuditRun, committed_run
from herdkeeper_jobs.audit.job import AuditResult, InvariantViolatedError, audit
from herdkeeper_jobs.audit.on_spark import run_on_spark
from herdkeeper_jobs.audit.orphans import LEAST_AGE_MILLIS, OrphanRule, read_tablespace_logs
from herdkeeper_jobs.audit.placement import RackMap
from herdkeeper_jobs.audit.plan import AuditBudget
from herdkeeper_jobs.audit.publish import publish
from herdkeeper_jobs.audit.request import AuditRequest, LedgerFilter
from herdkeeper_jobs.audit.schema import fields_of
from herdkeeper_jobs.bookkeeper.metadata import ClusterNotFoundError, LedgerCatalog, MetadataUnavailableError, open_catalog
from herdkeeper_jobs.repair.bookkeeper_client import BookKeeperClient
from herdkeeper_jobs.repair.rewrite import RepairSettings
from herdkeeper_jobs.repair.run import RepairResult, repair
from herdkeeper_jobs.shared_arguments import add_cluster_arguments, add_reading_rate_argument, add_timeout_argument
from herdkeeper_jobs.spark_session import (
    SparkConfigurationError,
    SparkSettings,
    add_spark_arguments,
    spark_settings,
    start_spark,
)
from herdkeeper_jobs.termination_message import write_termination_message

_BOOKKEEPER_LIBRARY = Path("/opt/bookkeeper/lib")
_RUN_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
_REPORT, _DRY_RUN, _REPAIR = "report", "dry-run", "repair"
_log = structlog.get_logger()


class ArgumentError(ValueError):
    """An argument is refused; the message names it, its value and the fix."""


@dataclass(frozen=True, slots=True)
class AuditArguments:
    """The validated command line."""

    zookeeper: str
    ledgers_root: str
    run_id: str
    request: AuditRequest
    bytes_per_second_per_bookie: float
    timeout_seconds: float
    repair: str
    output: Path | None
    spark: SparkSettings
    bookkeeper_library: Path = _BOOKKEEPER_LIBRARY
    """The jars of BookKeeper's client, where they are."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Entry point of the console script; returns the exit code."""
    parsed = _parser().parse_args(arguments)
    started = time.monotonic()
    try:
        summary = _run(_validated(parsed), started)
    except (ArgumentError, SparkConfigurationError, ClusterNotFoundError) as error:
        summary = _failure(parsed.run_id, JobOutcome.CONFIGURATION_REFUSED, error)
    except (MetadataUnavailableError, PySparkException, OSError) as error:
        summary = _failure(parsed.run_id, JobOutcome.RETRYABLE, error)
    except InvariantViolatedError as error:
        summary = _failure(parsed.run_id, JobOutcome.INVARIANT_VIOLATED, error)
    write_termination_message(summary.to_json(), os.environ)
    return summary.outcome.exit_code


def parse_ledgers(text: str) -> LedgerFilter:
    """`1,2,5-9` as a filter; an empty text admits all. Raises ArgumentError naming the part that is wrong."""
    ranges = []
    for part in filter(None, (part.strip() for part in text.split(","))):
        match = re.fullmatch(r"(\d+)(?:-(\d+))?", part)
        first, last = (int(match.group(1)), int(match.group(2) or match.group(1))) if match else (1, 0)
        if first > last:
            raise ArgumentError(f"--ledgers: {part!r} is no ledger id and no range; write ids and ascending ranges, like 1,2,5-9")
        ranges.append(EntryRange(first, last))
    return LedgerFilter(tuple(ranges))


def parse_racks(text: str, wanted: int) -> RackMap | None:
    """`id=rack,id=rack`; None for an empty text. Raises ArgumentError naming the part that is wrong."""
    if wanted < 1:
        raise ArgumentError(f"--min-racks: {wanted} is below 1")
    rack_of: dict[str, str] = {}
    for part in filter(None, text.split(",")):
        bookie_id, equals, rack = part.partition("=")
        if not (bookie_id and equals and rack):
            raise ArgumentError(f"--racks: {part!r} names no bookie and rack; write them like bookie-0=zone-a,bookie-1=zone-b")
        rack_of[bookie_id] = rack
    return RackMap(rack_of, wanted) if rack_of else None


def _run(arguments: AuditArguments, started: float) -> AuditSummary:
    if arguments.output is not None and (before := committed_run(arguments.output, arguments.run_id)) is not None:
        return replace(publish(arguments.output, before), outcome=JobOutcome.ALREADY_DONE)
    budget = AuditBudget(arguments.spark.cores, arguments.bytes_per_second_per_bookie, arguments.timeout_seconds)
    # ZooKeeper first: it is the quicker one to say that something is wrong.
    with open_catalog(arguments.zookeeper, arguments.ledgers_root) as catalog:
        rule = OrphanRule(lambda: read_tablespace_logs(catalog), int(time.time() * 1000) - LEAST_AGE_MILLIS)
        spark = start_spark("herdkeeper-audit", arguments.spark)
        try:
            result = audit(catalog, replace(arguments.request, orphans=rule), budget, lambda tasks: run_on_spark(spark, tasks))
        finally:
            spark.stop()
        result = repaired(catalog, result, arguments)
    for row in fields_of(result.findings):
        _log.warning("finding", **{key: value for key, value in row.items() if value is not None})
    summary = replace(result.summary, run_id=arguments.run_id, duration_seconds=round(time.monotonic() - started, 1))
    if arguments.output is None:
        return summary
    return publish(arguments.output, AuditRun(summary, result.bookies, datetime.now(UTC), arguments.ledgers_root))


def repaired(catalog: LedgerCatalog, result: AuditResult, arguments: AuditArguments) -> AuditResult:
    """The result with what became of its findings, when they are to be repaired. Not in tasks: who holds the lock must write."""
    if arguments.repair == _REPORT:
        return result
    settings = RepairSettings(
        owner=f"herdkeeper-audit {arguments.run_id}",
        dry_run=arguments.repair == _DRY_RUN,
        timeout_seconds=arguments.timeout_seconds,
        bytes_per_second_per_bookie=arguments.bytes_per_second_per_bookie,
        mover=_bookkeeper_client(arguments) if arguments.bookkeeper_library.is_dir() else None,
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
    return replace(result, summary=summary, findings=done.findings)


def _bookkeeper_client(arguments: AuditArguments) -> BookKeeperClient:
    racks = arguments.request.racks
    return BookKeeperClient(
        library=arguments.bookkeeper_library,
        zookeeper=arguments.zookeeper,
        ledgers_root=arguments.ledgers_root.rstrip("/"),
        rack_of={} if racks is None else racks.rack_of,
        min_racks=1 if racks is None else racks.wanted,
        bytes_per_second=arguments.bytes_per_second_per_bookie,
    )


def _repair_sentence(done: RepairResult, dry_run: bool) -> str:
    """What a person must know first stands first: what is not repaired, and why."""
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
    return AuditSummary(run_id=run_id, outcome=outcome, message=f"{type(error).__name__}: {error}")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        "herdkeeper-audit", description="Verifies every copy of every confirmed entry of a BookKeeper cluster."
    )
    add_cluster_arguments(parser)
    parser.add_argument("--run-id", required=True, metavar="ID", help="name of this run, in the summary and in the findings")
    parser.add_argument(
        "--depth",
        choices=[depth.value.lower() for depth in AuditDepth],
        default="deep",
        help="read a sample of each bookie's share of a ledger, or every copy (default: %(default)s)",
    )
    parser.add_argument(
        "--racks", default="", metavar="MAP", help="where bookies stand: id=rack,id=rack (default: placement is not judged)"
    )
    parser.add_argument(
        "--min-racks", type=int, default=2, metavar="N", help="racks that the copies of each entry shall be in (default: %(default)s)"
    )
    parser.add_argument("--ledgers", default="", metavar="IDS", help="ids and ranges, like 1,2,5-9 (default: all)")
    add_reading_rate_argument(parser)
    add_timeout_argument(parser)
    parser.add_argument(
        "--repair",
        choices=(_REPORT, _DRY_RUN, _REPAIR),
        default=_REPORT,
        help="report what is found; say what would be repaired; or repair it (default: %(default)s)",
    )
    parser.add_argument(
        "--output",
        type=Path,
        metavar="DIR",
        help="add the run to the tables audit_runs, audit_findings and audit_bookies in this directory, and write its report beside them",
    )
    parser.add_argument(
        "--bookkeeper-library",
        type=Path,
        default=_BOOKKEEPER_LIBRARY,
        metavar="DIR",
        help="jars of BookKeeper's client, which a repair needs for damaged entries (default: %(default)s)",
    )
    add_spark_arguments(parser)
    return parser


def _validated(parsed: argparse.Namespace) -> AuditArguments:
    if not _RUN_ID.fullmatch(parsed.run_id):
        raise ArgumentError(f"--run-id: {parsed.run_id!r} is no file name; use letters, digits, dots, dashes and underscores, at most 128")
    if not parsed.ledgers_root.startswith("/"):
        raise ArgumentError(f"--ledgers-root: {parsed.ledgers_root!r} is no absolute path; begin it with a slash")
    rate = parsed.bytes_per_second_per_bookie
    if rate <= 0:
        raise ArgumentError(f"--bytes-per-second-per-bookie: {rate} is not above 0; leave the argument out for no limit")
    if parsed.timeout_seconds <= 0:
        raise ArgumentError(f"--timeout-seconds: {parsed.timeout_seconds} is not above 0")
    return AuditArguments(
        zookeeper=parsed.zookeeper,
        ledgers_root=parsed.ledgers_root,
        run_id=parsed.run_id,
        request=AuditRequest(
            ledgers=parse_ledgers(parsed.ledgers),
            depth=AuditDepth(parsed.depth.capitalize()),
            seed=parsed.run_id,
            racks=parse_racks(parsed.racks, parsed.min_racks),
        ),
        bytes_per_second_per_bookie=rate,
        timeout_seconds=parsed.timeout_seconds,
        repair=parsed.repair,
        output=parsed.output,
        spark=spark_settings(parsed),
        bookkeeper_library=parsed.bookkeeper_library,
    )


if __name__ == "__main__":
    sys.exit(main())
