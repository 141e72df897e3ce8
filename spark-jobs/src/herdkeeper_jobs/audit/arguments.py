"""The command line of `herdkeeper-audit`: parser and validation."""

from __future__ import annotations

import argparse
import re
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from herdkeeper.codecs.bookkeeper.metadata import LedgerState
from herdkeeper.codecs.bookkeeper.striping import EntryRange
from herdkeeper.protocol.audit_finding import AuditDepth
from herdkeeper_jobs.audit.placement import RackMap
from herdkeeper_jobs.audit.request import STATES, AuditRequest, LedgerFilter, TablespaceName
from herdkeeper_jobs.shared_arguments import add_cluster_arguments, add_reading_rate_argument
from herdkeeper_jobs.spark_session import SparkSettings, add_spark_arguments, spark_settings

_RUN_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
REPORT, DRY_RUN, REPAIR = "report", "dry-run", "repair"


class ArgumentError(ValueError):
    """A refused argument; the message names it, its value and the fix."""


@dataclass(frozen=True, slots=True)
class AuditArguments:
    zookeeper: str
    ledgers_root: str
    run_id: str
    request: AuditRequest
    bytes_per_second_per_bookie: float
    repair: str
    output: Path | None
    spark: SparkSettings
    read_until: datetime | None = None
    """No portion begins at or after this time; None: no limit."""


def parse_ledgers(text: str) -> tuple[EntryRange, ...]:
    """Parses `1,2,5-9` into ranges, an empty text into none. Raises ArgumentError, naming the wrong part."""
    ranges = []
    for part in filter(None, (part.strip() for part in text.split(","))):
        match = re.fullmatch(r"(\d+)(?:-(\d+))?", part)
        first, last = (int(match.group(1)), int(match.group(2) or match.group(1))) if match else (1, 0)
        if first > last:
            raise ArgumentError(f"--ledgers: {part!r} is not a ledger id or a range; write ids and ascending ranges, like 1,2,5-9")
        ranges.append(EntryRange(first, last))
    return tuple(ranges)


def parse_states(text: str) -> frozenset[LedgerState]:
    """Parses `Closed,Open`, an empty text into no states. Raises ArgumentError, naming the wrong part."""
    named = [part.strip() for part in text.split(",") if part.strip()]
    if unknown := [part for part in named if part not in STATES]:
        raise ArgumentError(f"--states: {unknown[0]!r} is not a ledger state; use one of {', '.join(STATES)}")
    return frozenset(STATES[part] for part in named)


def parse_time(text: str | None) -> datetime | None:
    """Parses a time with its zone (RFC 3339). Raises ArgumentError."""
    if text is None:
        return None
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        found = None
    if found is None or found.tzinfo is None:
        raise ArgumentError(f"--read-until: {text!r} is not a time with a zone; write it like 2026-11-23T05:00:00Z")
    return found


def parse_racks(text: str, wanted: int) -> RackMap | None:
    """Parses `id=rack,id=rack`, an empty text into None. Raises ArgumentError, naming the wrong part."""
    if wanted < 1:
        raise ArgumentError(f"--min-racks: {wanted} is below 1; give 1 or more")
    rack_of: dict[str, str] = {}
    for part in filter(None, text.split(",")):
        bookie_id, equals, rack = part.partition("=")
        if not (bookie_id and equals and rack):
            raise ArgumentError(f"--racks: {part!r} names no bookie and rack; write them like bookie-0=zone-a,bookie-1=zone-b")
        rack_of[bookie_id] = rack
    return RackMap(rack_of, wanted) if rack_of else None


def audit_parser() -> argparse.ArgumentParser:
    """The parser of the unvalidated command line."""
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
        "--min-racks", type=int, default=2, metavar="N", help="racks over which the copies of each entry are spread (default: %(default)s)"
    )
    parser.add_argument("--ledgers", default="", metavar="IDS", help="ids and ranges, like 1,2,5-9 (default: all)")
    parser.add_argument(
        "--tablespace",
        nargs=2,
        action="append",
        default=[],
        metavar=("HERD_ROOT", "NAME"),
        help="only ledgers of this tablespace's log, for example /namespace/name/herd orders; may be repeated (default: all)",
    )
    parser.add_argument("--states", default="", metavar="STATES", help=f"only ledgers in these: {','.join(STATES)} (default: all)")
    parser.add_argument(
        "--bookies",
        default="",
        metavar="IDS",
        help="only ledgers that have one of these in an ensemble, separated by commas (default: all)",
    )
    parser.add_argument(
        "--read-until",
        metavar="TIME",
        help="start no portion of the ledgers at or after this time, and end as paused; needs --output, from which the run resumes when"
        " it is started again with its id",
    )
    add_reading_rate_argument(parser)
    parser.add_argument(
        "--repair",
        choices=(REPORT, DRY_RUN, REPAIR),
        default=REPORT,
        help="report what is found; say what would be repaired; or repair it (default: %(default)s)",
    )
    parser.add_argument(
        "--output",
        type=Path,
        metavar="DIR",
        help="add the run to the tables audit_runs, audit_findings and audit_bookies in this directory, and write its report beside them",
    )
    add_spark_arguments(parser)
    return parser


def validated(parsed: argparse.Namespace) -> AuditArguments:
    """Validates the command line. Raises ArgumentError, SparkConfigurationError."""
    if not _RUN_ID.fullmatch(parsed.run_id):
        raise ArgumentError(
            f"--run-id: {parsed.run_id!r} is not a file name; use letters, digits, dots, dashes and underscores, at most 128"
        )
    if not parsed.ledgers_root.startswith("/"):
        raise ArgumentError(f"--ledgers-root: {parsed.ledgers_root!r} is not an absolute path; begin it with a slash")
    rate = parsed.bytes_per_second_per_bookie
    if rate <= 0:
        raise ArgumentError(f"--bytes-per-second-per-bookie: {rate} is not above 0; leave the argument out for no limit")
    read_until = parse_time(parsed.read_until)
    if read_until is not None and parsed.output is None:
        raise ArgumentError("--read-until: a run resumes from its stored progress; add --output")
    return AuditArguments(
        zookeeper=parsed.zookeeper,
        ledgers_root=parsed.ledgers_root,
        run_id=parsed.run_id,
        request=AuditRequest(
            ledgers=_ledger_filter(parsed),
            depth=AuditDepth(parsed.depth.capitalize()),
            seed=parsed.run_id,
            racks=parse_racks(parsed.racks, parsed.min_racks),
        ),
        bytes_per_second_per_bookie=rate,
        repair=parsed.repair,
        output=parsed.output,
        spark=spark_settings(parsed),
        read_until=read_until,
    )


def _ledger_filter(parsed: argparse.Namespace) -> LedgerFilter:
    return LedgerFilter(
        ranges=parse_ledgers(parsed.ledgers),
        tablespaces=tuple(TablespaceName(root.rstrip("/"), name) for root, name in parsed.tablespace),
        states=parse_states(parsed.states),
        bookies=frozenset(filter(None, (part.strip() for part in parsed.bookies.split(",")))),
    )
