"""`herdkeeper-restore`: loads a checkpoint's tables into an existing, empty tablespace, through SQL.

With `--to` it loads the tables of a moment. If the moment has no checkpoint yet, it is made first, from existing checkpoints and the log's
archive alone.

Exit codes: 0 done or already done; 2 refused (arguments, or a tablespace with something else in it); 3 worth a retry, which continues this
run; 42 an invariant is violated. HERDDB_USERNAME and HERDDB_PASSWORD have the user's name and password. HERDDB_AUTHORITIES has the
certificates (PEM) by which SQL nodes are verified, if they must be.

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
from herdkeeper.protocol.job_summary import JobOutcome, RestoreSummary
from herdkeeper.shared.names import ARCHIVE_VARIABLES, DESTINATION_VARIABLES, NODE_AUTHORITIES_VARIABLE
from herdkeeper.sql.connection import Address, Credentials
from herdkeeper.sql.errors import AuthenticationFailed, SqlError
from herdkeeper_jobs.encryption.keys import writing_key
from herdkeeper_jobs.errors import InvariantViolated, KeyUnusable, RestoreRefused, RestoreRetryable
from herdkeeper_jobs.manifests.run_id import why_no_run_id
from herdkeeper_jobs.restore.checkpoint_of_moment import MomentSource, checkpoint_of_moment, parse_restored_moment
from herdkeeper_jobs.restore.run import RestoreRequest, run_restore
from herdkeeper_jobs.restore.session import Cluster, Target
from herdkeeper_jobs.restore.source import open_source
from herdkeeper_jobs.shared_arguments import add_archive_argument, add_encryption_argument
from herdkeeper_jobs.spark_session import (
    SparkConfigurationError,
    SparkSettings,
    add_spark_arguments,
    session_on_demand,
    spark_settings,
)
from herdkeeper_jobs.storage.object_path import ObjectPath
from herdkeeper_jobs.storage.stored_path import stored_argument, why_unusable
from herdkeeper_jobs.task_error import essence, outcome_of_tasks
from herdkeeper_jobs.termination_message import write_termination_message
from herdkeeper_jobs.wal.spans import LogInconsistentError

_log = structlog.get_logger()
USERNAME, PASSWORD = "HERDDB_USERNAME", "HERDDB_PASSWORD"


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the job and returns its exit code."""
    parsed = _parser().parse_args(arguments)
    summary = _attempt(parsed)
    write_termination_message(summary.to_json())
    return summary.outcome.exit_code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="herdkeeper-restore", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument("--zookeeper", help="ZooKeeper's members, host:port separated by commas; with --herd-root")
    where.add_argument("--server", help="host:port of a HerdDB server that is alone, instead of a cluster's leader")
    parser.add_argument("--herd-root", help="HerdDB's root in ZooKeeper, for example /ns/db/herd")
    parser.add_argument("--tablespace", required=True, help="name of the tablespace to fill")
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument(
        "--manifest",
        help="file of the checkpoint's manifest, which all executor pods must mount; or s3://bucket/key, gs:// or az://",
    )
    which.add_argument(
        "--folder", help="with --to, where there is no checkpoint: the tablespace's folder with the archive, <INSTANCEID>/<tablespace uuid>"
    )
    parser.add_argument(
        "--to",
        help="the moment to restore: latest, LEDGER,ENTRY, or a time (RFC 3339) with its offset. --manifest then only names the "
        "tablespace, and the restore starts from its newest usable checkpoint up to the moment",
    )
    add_archive_argument(parser, "with --to: ")
    add_encryption_argument(parser, "with --to: ")
    parser.add_argument("--run-id", required=True, help="name of this run, for the summary")
    add_spark_arguments(parser)
    return parser


def _attempt(parsed: argparse.Namespace) -> RestoreSummary:
    try:
        return _restore(_request(parsed), spark_settings(parsed))
    except (RestoreRefused, KeyUnusable, SparkConfigurationError, AuthenticationFailed) as error:
        return _failed(parsed, JobOutcome.CONFIGURATION_REFUSED, error)
    except (InvariantViolated, LogInconsistentError, MalformedDataError) as error:
        return _failed(parsed, JobOutcome.INVARIANT_VIOLATED, error)
    except (RestoreRetryable, SqlError, OSError) as error:
        return _failed(parsed, JobOutcome.RETRYABLE, error)
    except Exception as error:  # of Spark, or unforeseen: the summary must be written anyway
        traceback.print_exception(error)
        return _failed(parsed, outcome_of_tasks(str(error)), error)


def _restore(request: RestoreRequest, settings: SparkSettings) -> RestoreSummary:
    with session_on_demand("herdkeeper-restore", settings) as start:
        path = checkpoint_of_moment(start, request.source) if isinstance(request.source, MomentSource) else request.source
        source = open_source(path)
        return run_restore(start(), source, request)


def _request(parsed: argparse.Namespace) -> RestoreRequest:
    credentials = Credentials(_variable(USERNAME), _variable(PASSWORD))
    authorities = os.environ.get(NODE_AUTHORITIES_VARIABLE)
    if authorities == "":
        why = "ca.crt of its Secret is empty yet, so no node can be verified, and no password is sent"
        raise RestoreRetryable(f"{NODE_AUTHORITIES_VARIABLE} has no certificates: {why}")
    target = Target(_database(parsed), parsed.tablespace, credentials, authorities)
    if parsed.to is None and (parsed.archive or parsed.encrypt_with):
        raise RestoreRefused(
            "--archive and --encrypt-with belong to --to: a checkpoint is restored as it is; leave them out, or name a moment"
        )
    if parsed.to is not None:
        return RestoreRequest(_moment(parsed), target, parsed.run_id)
    if parsed.manifest is None:
        raise RestoreRefused("--folder names no checkpoint: give --to with it, or --manifest")
    manifest = stored_argument("--manifest", parsed.manifest, DESTINATION_VARIABLES, RestoreRefused)
    if isinstance(manifest, ObjectPath) and (unusable := why_unusable(manifest.parent, writes=False)) is not None:
        raise RestoreRefused(f"--manifest is {parsed.manifest!r}: {unusable}")
    return RestoreRequest(manifest, target, parsed.run_id)


def _moment(parsed: argparse.Namespace) -> MomentSource:
    try:
        at = parse_restored_moment(parsed.to)
    except ValueError as error:
        raise RestoreRefused(f"spec.bootstrap.target (--to): {error}") from error
    if (why := why_no_run_id(parsed.run_id)) is not None:
        raise RestoreRefused(why)
    named = None if parsed.manifest is None else stored_argument("--manifest", parsed.manifest, DESTINATION_VARIABLES, RestoreRefused)
    folder = stored_argument("--folder", parsed.folder, DESTINATION_VARIABLES, RestoreRefused) if named is None else named.parent.parent
    place = folder.parent.parent
    archived_at = place if not parsed.archive else stored_argument("--archive", parsed.archive, ARCHIVE_VARIABLES, RestoreRefused)
    asked = "--folder" if named is None else "--manifest"
    for argument, path, writes in ((asked, place, True), ("--archive", archived_at, False)):
        if (unusable := why_unusable(path, writes=writes)) is not None:
            raise RestoreRefused(f"{argument} leads to {path}: {unusable}")
    return MomentSource(folder, archived_at, at, parsed.run_id, named, writing_key(parsed.encrypt_with))


def _database(parsed: argparse.Namespace) -> Cluster | Address:
    if parsed.server is None:
        if not parsed.herd_root:
            raise RestoreRefused("--herd-root is missing: with --zookeeper, give HerdDB's root there, for example /ns/db/herd")
        return Cluster(parsed.zookeeper, parsed.herd_root.rstrip("/"))
    host, _, port = parsed.server.rpartition(":")
    if not host or not port.isdigit():
        raise RestoreRefused(f"--server is {parsed.server!r}: give host:port, for example 127.0.0.1:7000")
    return Address(host, int(port))


def _variable(name: str) -> str:
    value = os.environ.get(name, "")
    if not value:
        raise RestoreRefused(f"the variable {name} is not set: pass it from the HerdDBCluster's Secret")
    return value


def _failed(parsed: argparse.Namespace, outcome: JobOutcome, error: Exception) -> RestoreSummary:
    _log.error("failed", outcome=outcome.value, error=str(error), kind=type(error).__name__)
    return RestoreSummary(
        run_id=parsed.run_id, outcome=outcome, message=essence(str(error)), tablespace=parsed.tablespace, manifest=parsed.manifest or ""
    )


if __name__ == "__main__":
    sys.exit(main())
