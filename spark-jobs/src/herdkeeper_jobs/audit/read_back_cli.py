"""`python -m herdkeeper_jobs.audit.read_back_cli`: arguments, output and exit code of a drain's read-back.

Exit codes: 0 everything was read and verified; 2 refused arguments; 3 something is unproven or was unavailable, try again. The result is
the last line of standard output, and goes to the container's termination message.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from herdkeeper.codecs.bookkeeper.share import read_record
from herdkeeper.protocol.job_summary import JobOutcome
from herdkeeper_jobs.audit.read_back import read_back
from herdkeeper_jobs.bookkeeper.metadata import MetadataUnavailableError, open_catalog
from herdkeeper_jobs.copies.plan import AuditBudget
from herdkeeper_jobs.shared_arguments import add_cluster_arguments
from herdkeeper_jobs.termination_message import write_termination_message

_THREADS = 4
"""Bookies that are read from at once."""


def main(arguments: Sequence[str] | None = None) -> int:
    parsed = _parser().parse_args(arguments)
    outcome, message = _run(parsed)
    write_termination_message(message[:1000])
    return outcome.exit_code


def _run(parsed: argparse.Namespace) -> tuple[JobOutcome, str]:
    try:
        record = read_record(parsed.record.read_text())
        with open_catalog(parsed.zookeeper, parsed.ledgers_root) as catalog:
            result = read_back(catalog, parsed.bookie, record, AuditBudget(_THREADS))
    except (ValueError, FileNotFoundError) as error:
        return JobOutcome.CONFIGURATION_REFUSED, f"{type(error).__name__}: {error}"
    except (MetadataUnavailableError, OSError) as error:
        return JobOutcome.RETRYABLE, f"{type(error).__name__}: {error}"
    return (JobOutcome.RETRYABLE if result.trouble else JobOutcome.SUCCEEDED), result.sentence


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        "herdkeeper-read-back", description="Reads back the entries of a draining bookie from their new bookies."
    )
    add_cluster_arguments(parser)
    parser.add_argument("--bookie", required=True, metavar="ID", help="id of the bookie that leaves")
    parser.add_argument("--record", required=True, type=Path, metavar="FILE", help="the operator's record of the bookie's ledgers")
    return parser


if __name__ == "__main__":
    sys.exit(main())
