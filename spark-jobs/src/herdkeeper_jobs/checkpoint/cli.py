"""`herdkeeper-checkpoint`: writes the tables of a tablespace at a moment as Parquet files and a manifest.

Exit codes: 0 done or already done, 2 refused (arguments, or a log without its beginning and no base), 3 worth a retry, 42 an invariant is
violated.

A summary always goes to the container's termination message and to standard output.
"""

from __future__ import annotations

import argparse
import os
import sys
import traceback
from collections.abc import Sequence

import structlog

from herdkeeper.codecs.java_data import MalformedDataError
from herdkeeper.protocol.job_summary import CheckpointSummary, JobOutcome
from herdkeeper.shared.names import ARCHIVE_VARIABLES, DESTINATION_VARIABLES, NODE_AUTHORITIES_VARIABLE
from herdkeeper_jobs.archive.parts import ReadBudget
from herdkeeper_jobs.bookkeeper.metadata import ClusterNotFoundError, MetadataUnavailableError, open_catalog
from herdkeeper_jobs.checkpoint.follower_base import FollowerSource
from herdkeeper_jobs.checkpoint.node_http import TlsAddress
from herdkeeper_jobs.checkpoint.origin import Mode
from herdkeeper_jobs.checkpoint.run import FULL_EVERY_SECONDS, CheckpointRequest, run_checkpoint
from herdkeeper_jobs.checkpoint.target import TargetRequest
from herdkeeper_jobs.encryption.keys import writing_key
from herdkeeper_jobs.errors import CheckpointRefused, CheckpointRetryable, FollowerDiffers, InvariantViolated
from herdkeeper_jobs.manifests.run_id import why_no_run_id
from herdkeeper_jobs.shared_arguments import (
    add_archive_argument,
    add_cluster_arguments,
    add_destination_argument,
    add_encryption_argument,
    add_reading_rate_argument,
    add_tablespace_arguments,
    why_no_reading_rate,
)
from herdkeeper_jobs.spark_session import SparkConfigurationError, SparkSettings, add_spark_arguments, session_on_demand, spark_settings
from herdkeeper_jobs.storage.stored_path import StoredPath, stored_argument, why_unusable
from herdkeeper_jobs.task_error import essence, outcome_of_tasks
from herdkeeper_jobs.termination_message import write_termination_message
from herdkeeper_jobs.wal.moment import parse_moment
from herdkeeper_jobs.wal.spans import LogInconsistentError

_log = structlog.get_logger()
_TOKEN = "HERDDB_TOKEN"  # noqa: S105 - the name of a variable


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the job and returns its exit code."""
    parsed = _parser().parse_args(arguments)
    summary = _attempt(parsed)
    write_termination_message(summary.to_json())
    return summary.outcome.exit_code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="herdkeeper-checkpoint", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add_cluster_arguments(parser)
    add_tablespace_arguments(parser)
    parser.add_argument("--to", default="now", help="now, LEDGER,ENTRY, or a time (RFC 3339) with its offset (default: %(default)s)")
    parser.add_argument(
        "--mode",
        default=Mode.AUTO.value,
        choices=[mode.value for mode in Mode],
        help="Full: from the whole log. Incremental: from the newest usable checkpoint at the destination and the log after it, or from "
        "the whole log if there is none. Auto: Incremental, but Full if the bookies have the whole log and it was last read too long ago "
        "(default: %(default)s)",
    )
    parser.add_argument(
        "--full-every-seconds",
        type=int,
        default=FULL_EVERY_SECONDS,
        help="the limit for Auto (default: %(default)s, a week)",
    )
    add_destination_argument(parser, "folder for checkpoints, which all executor pods must mount")
    add_archive_argument(parser)
    add_encryption_argument(parser)
    parser.add_argument("--run-id", required=True, help="name of this run; a retry keeps it")
    add_reading_rate_argument(parser)
    parser.add_argument(
        "--verify-against",
        default="",
        metavar="HOST:PORT",
        help="HTTP port of a follower, compared at the LSN; it is shown the token in HERDDB_TOKEN",
    )
    parser.add_argument("--leader-http", default="", metavar="HOST:PORT", help="HTTP port of the leader, whose position is `now`")
    parser.add_argument(
        "--base-follower",
        default="",
        metavar="HOST:PORT",
        help="HTTP port of a follower, whose tables are the base if neither the log, nor a checkpoint, nor an archive has a beginning; it "
        "gets the same token. The result is compared with --base-witness, or without one with this follower",
    )
    parser.add_argument("--base-witness", default="", metavar="HOST:PORT", help="HTTP port of another follower than --base-follower")
    parser.add_argument(
        "--nodes-with-tls",
        default="",
        metavar="HOST:PORT,…",
        help=f"those of the ports above that speak TLS, whose nodes are verified by the certificates in {NODE_AUTHORITIES_VARIABLE}",
    )
    add_spark_arguments(parser)
    return parser


def _attempt(parsed: argparse.Namespace) -> CheckpointSummary:
    try:
        settings = spark_settings(parsed)
        return _checkpoint(parsed, _request(parsed, settings.cores), settings)
    except (CheckpointRefused, SparkConfigurationError, ClusterNotFoundError) as error:
        return _failed(parsed, JobOutcome.CONFIGURATION_REFUSED, error)
    except (InvariantViolated, LogInconsistentError, MalformedDataError) as error:
        return _failed(parsed, JobOutcome.INVARIANT_VIOLATED, error)
    except (CheckpointRetryable, MetadataUnavailableError, OSError) as error:
        return _failed(parsed, JobOutcome.RETRYABLE, error)
    except Exception as error:  # of Spark, or unforeseen: the summary must be written anyway
        traceback.print_exception(error)
        return _failed(parsed, outcome_of_tasks(str(error)), error)


def _checkpoint(parsed: argparse.Namespace, request: CheckpointRequest, settings: SparkSettings) -> CheckpointSummary:
    with (
        open_catalog(parsed.zookeeper, parsed.ledgers_root) as catalog,
        session_on_demand("herdkeeper-checkpoint", settings) as start,
    ):
        return run_checkpoint(start, catalog, request)


def _request(parsed: argparse.Namespace, cores: int) -> CheckpointRequest:
    if (why := why_no_run_id(parsed.run_id)) is not None:
        raise CheckpointRefused(why)
    if (why := why_no_reading_rate(parsed)) is not None:
        raise CheckpointRefused(why)
    if parsed.full_every_seconds <= 0:
        raise CheckpointRefused(f"--full-every-seconds is {parsed.full_every_seconds}: give more than 0")
    destination = _usable("--destination", parsed.destination, DESTINATION_VARIABLES, writes=True)
    archive = _usable("--archive", parsed.archive, ARCHIVE_VARIABLES, writes=False) if parsed.archive else None
    try:
        moment = parse_moment(parsed.to)
    except ValueError as error:
        raise CheckpointRefused(f"spec.target (--to): {error}") from error
    target = TargetRequest(moment, _node(parsed, parsed.leader_http), _node(parsed, parsed.verify_against), os.environ.get(_TOKEN, ""))
    key = writing_key(parsed.encrypt_with)
    return CheckpointRequest(
        herd_root=parsed.herd_root,
        tablespace=parsed.tablespace,
        target=target,
        destination=destination,
        run_id=parsed.run_id,
        mode=Mode(parsed.mode),
        archive=archive,
        key=key,
        budget=ReadBudget(cores, parsed.bytes_per_second_per_bookie),
        follower=_follower(parsed),
        full_every_seconds=parsed.full_every_seconds,
    )


def _follower(parsed: argparse.Namespace) -> FollowerSource | None:
    if not parsed.base_follower:
        return None
    if parsed.base_witness == parsed.base_follower:
        raise CheckpointRefused(f"--base-witness is {parsed.base_witness}, the same as --base-follower: name another follower, or none")
    return FollowerSource(_node(parsed, parsed.base_follower), os.environ.get(_TOKEN, ""), _node(parsed, parsed.base_witness))


def _node(parsed: argparse.Namespace, address: str) -> str:
    if not address or address not in parsed.nodes_with_tls.split(","):
        return address
    authorities = os.environ.get(NODE_AUTHORITIES_VARIABLE, "")
    if not authorities:
        raise CheckpointRefused(f"--nodes-with-tls names {address}: give the certificates that verify it in {NODE_AUTHORITIES_VARIABLE}")
    return TlsAddress(address, authorities)


def _usable(argument: str, text: str, variables: str, *, writes: bool) -> StoredPath:
    path = stored_argument(argument, text, variables, CheckpointRefused)
    if (unusable := why_unusable(path, writes=writes)) is not None:
        raise CheckpointRefused(f"{argument} is {str(path)!r}: {unusable}")
    return path


def _failed(parsed: argparse.Namespace, outcome: JobOutcome, error: Exception) -> CheckpointSummary:
    _log.error("failed", outcome=outcome.value, error=str(error), kind=type(error).__name__)
    return CheckpointSummary(
        run_id=parsed.run_id,
        outcome=outcome,
        message=essence(str(error)),
        tablespace=parsed.tablespace,
        comparison=error.comparison if isinstance(error, FollowerDiffers) else None,
    )


if __name__ == "__main__":
    sys.exit(main())
