"""`python -m herdkeeper_jobs.archive.cli`: copies a tablespace's log into its archive, from the archive's end to what is confirmed now.

Exit codes: 0 archived, or there was nothing new; 2 refused (arguments, or a log that was dropped beyond the archive's end); 3 worth a
retry; 42 the archive or the log contradicts itself. One sentence goes to the container's termination message and to standard output. It
may be repeated, killed, and run twice at once. Needs no Spark.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from herdkeeper.domain.job_summary import JobOutcome
from herdkeeper.formats.java_data import MalformedDataError
from herdkeeper_jobs.archive.copying import Copied, copy_log
from herdkeeper_jobs.archive.segment import Place
from herdkeeper_jobs.bookkeeper.metadata import ClusterNotFoundError, MetadataUnavailableError, open_catalog
from herdkeeper_jobs.bookkeeper.reader import EntryUnreadableError, ReadSettings
from herdkeeper_jobs.checkpoint.errors import CheckpointRefused, CheckpointRetryable, InvariantViolated
from herdkeeper_jobs.checkpoint.log_source import open_log
from herdkeeper_jobs.checkpoint.manifest import Identity, tablespace_folder
from herdkeeper_jobs.checkpoint.moment import stamp
from herdkeeper_jobs.checkpoint.removal import RUN_ID
from herdkeeper_jobs.termination_message import write_termination_message


def main(arguments: Sequence[str] | None = None) -> int:
    """Archives and returns the exit code."""
    parsed = _parser().parse_args(arguments)
    outcome, sentence = _attempt(parsed)
    write_termination_message(sentence[:1000], os.environ)
    return outcome.exit_code


def _attempt(parsed: argparse.Namespace) -> tuple[JobOutcome, str]:
    try:
        copied = _copy(parsed)
    except (CheckpointRefused, ClusterNotFoundError) as error:
        return JobOutcome.CONFIGURATION_REFUSED, str(error)
    except (InvariantViolated, MalformedDataError) as error:
        return JobOutcome.INVARIANT_VIOLATED, str(error)
    except (CheckpointRetryable, MetadataUnavailableError, EntryUnreadableError, OSError) as error:
        return JobOutcome.RETRYABLE, f"{type(error).__name__}: {error}"
    return JobOutcome.SUCCEEDED if copied.segments else JobOutcome.ALREADY_DONE, _sentence(copied)


def _copy(parsed: argparse.Namespace) -> Copied:
    destination = Path(parsed.destination)
    if not destination.is_dir():
        raise CheckpointRefused(f"--destination is {str(destination)!r}: no such folder; mount the volume there")
    if RUN_ID.fullmatch(parsed.run_id) is None:
        raise CheckpointRefused(f"--run-id is {parsed.run_id!r}: it names a folder, take letters, digits, '.', '_' and '-'")
    if parsed.bytes_per_second_per_bookie <= 0:
        raise CheckpointRefused(
            f"--bytes-per-second-per-bookie is {parsed.bytes_per_second_per_bookie:g}: give more than 0, or leave it out for no limit"
        )
    with open_catalog(parsed.zookeeper, parsed.ledgers_root) as catalog:
        log = open_log(catalog, parsed.herd_root, parsed.tablespace)
        identity = Identity(
            instance_id=catalog.instance_id,
            tablespace_uuid=log.tablespace.uuid,
            tablespace=log.tablespace.name,
            ledgers_root=catalog.root,
            herd_root=log.herd_root,
        )
        place = Place(tablespace_folder(destination, identity), identity, parsed.run_id)
        return copy_log(log, place, ReadSettings(bytes_per_second_per_bookie=parsed.bytes_per_second_per_bookie))


def _sentence(copied: Copied) -> str:
    if copied.end is None:
        return "the log has no confirmed entry yet"
    end = f"the archive ends with {copied.end.last.lsn}, and holds moments up to {stamp(copied.end.highest_timestamp_millis)}"
    return f"{copied.entries} entries in {copied.segments} segments were archived; {end}" if copied.segments else f"nothing was new; {end}"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="herdkeeper_jobs.archive.cli", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--zookeeper", required=True, help="ZooKeeper's members, host:port separated by commas")
    parser.add_argument("--ledgers-root", required=True, help="BookKeeper's root in ZooKeeper, for example /ns/bk/ledgers")
    parser.add_argument("--herd-root", required=True, help="HerdDB's root in ZooKeeper, for example /ns/db/herd")
    parser.add_argument("--tablespace", required=True, help="name of the tablespace")
    parser.add_argument("--destination", required=True, help="folder for archives and checkpoints")
    parser.add_argument("--run-id", required=True, help="name of this run; a retry keeps it")
    parser.add_argument(
        "--bytes-per-second-per-bookie",
        type=float,
        default=float("inf"),
        metavar="N",
        help="upper limit of what is read from a bookie (default: none)",
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
