"""`python -m herdkeeper_jobs.archive.cli`: copies a tablespace's log into its archive, from the archive's end to the last confirmed entry.
With `--place` it also deletes the segments that the operator has released.

It runs once, or with `--every` repeatedly until SIGTERM. Then failures are reported in ZooKeeper, where the operator reads them, and
retried. Exit codes: 0 archived, nothing new, or ended by SIGTERM; 2 refused (arguments, an unusable destination, or a log that was dropped
beyond the archive's end); 3 worth a retry; 42 the archive or the log contradicts itself. One sentence goes to the container's termination
message and to standard output. It may be repeated, killed, and run twice at once. Needs no Spark.
"""

from __future__ import annotations

import argparse
import signal
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

import structlog

from herdkeeper.codecs.java_data import MalformedDataError
from herdkeeper.protocol.job_summary import JobOutcome
from herdkeeper.protocol.log_archive import ArchivedRange, ArchiveProgress
from herdkeeper.shared.names import DESTINATION_VARIABLES
from herdkeeper_jobs.archive.copying import Copied, copy_log
from herdkeeper_jobs.archive.expiry import delete_segments, due, sweep
from herdkeeper_jobs.archive.segment import Place, SegmentManifest, newest_segment, oldest_segment, prove
from herdkeeper_jobs.archive.znodes import expiry_order, held_from, publish_progress, published_progress
from herdkeeper_jobs.bookkeeper.metadata import ClusterNotFoundError, LedgerCatalog, MetadataUnavailableError, open_catalog
from herdkeeper_jobs.bookkeeper.reader import EntryUnreadableError, ReadSettings
from herdkeeper_jobs.durable_file import FULL
from herdkeeper_jobs.encryption.keys import writing_key
from herdkeeper_jobs.errors import CheckpointRefused, CheckpointRetryable, InvariantViolated, KeyUnusable, LogTruncatedError
from herdkeeper_jobs.log_source import LogSource, open_log
from herdkeeper_jobs.manifests.manifest import tablespace_folder
from herdkeeper_jobs.manifests.run_id import why_no_run_id
from herdkeeper_jobs.shared_arguments import (
    add_cluster_arguments,
    add_destination_argument,
    add_encryption_argument,
    add_reading_rate_argument,
    add_tablespace_arguments,
    why_no_reading_rate,
)
from herdkeeper_jobs.storage.stored_path import stored_argument, stored_path, why_unusable
from herdkeeper_jobs.termination_message import write_termination_message
from herdkeeper_jobs.wal.lsn import Lsn
from herdkeeper_jobs.wal.moment import stamp

_log = structlog.get_logger()
_MOST_TROUBLE = 500
"""Characters of a reported failure."""


def main(arguments: Sequence[str] | None = None, stop: threading.Event | None = None) -> int:
    """Archives and returns the exit code. `stop` ends the loop of `--every`."""
    parsed = _parser().parse_args(arguments)
    try:
        _require_valid(parsed)
    except CheckpointRefused as error:
        write_termination_message(str(error)[:1000])
        return JobOutcome.CONFIGURATION_REFUSED.exit_code
    if parsed.every is None:
        run = _run(parsed, _Known())
        write_termination_message(run.sentence[:1000])
        return run.outcome.exit_code
    ended, known = stop or _ended_by_sigterm(), _Known()
    while not ended.is_set():
        run = _run(parsed, known)
        known = _Known(known.usable or run.outcome.exit_code == 0, run.newest or known.newest)
        _log.info("archived" if run.outcome.exit_code == 0 else "not archived", outcome=run.outcome.value, sentence=run.sentence)
        if run.complete:
            ended.wait(parsed.every)
    return 0


def _ended_by_sigterm() -> threading.Event:
    ended = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: ended.set())
    return ended


@dataclass(frozen=True, slots=True)
class _Run:
    """The result of one run over the log. `complete`: the next run may wait."""

    outcome: JobOutcome
    sentence: str
    complete: bool = True
    newest: Lsn | None = None
    """Where the newest segment begins, if known."""


@dataclass(frozen=True, slots=True)
class _Known:
    """What earlier runs of this process found: whether the destination is usable, and where a recent segment begins."""

    usable: bool = False
    newest: Lsn | None = None


def _run(parsed: argparse.Namespace, known: _Known) -> _Run:
    try:
        with open_catalog(parsed.zookeeper, parsed.ledgers_root) as catalog:
            return _archive(parsed, catalog, known)
    except Exception as error:
        return _failed(error)


def _failed(error: Exception) -> _Run:
    match error:
        case CheckpointRefused() | ClusterNotFoundError():
            return _Run(JobOutcome.CONFIGURATION_REFUSED, str(error))
        case InvariantViolated() | MalformedDataError():
            return _Run(JobOutcome.INVARIANT_VIOLATED, str(error))
        case CheckpointRetryable() | MetadataUnavailableError() | EntryUnreadableError() | OSError():
            return _Run(JobOutcome.RETRYABLE, f"{type(error).__name__}: {error}")
        case _:
            raise error


def _archive(parsed: argparse.Namespace, catalog: LedgerCatalog, known: _Known) -> _Run:
    log = open_log(catalog, parsed.herd_root, parsed.tablespace)
    identity = log.identity
    destination = stored_path(parsed.destination, DESTINATION_VARIABLES)
    place = Place(tablespace_folder(destination, identity), identity, parsed.run_id, known=known.newest)
    before, began = published_progress(catalog.client, place, parsed.place), time.time()
    try:
        if (unusable := why_unusable(destination, writes=not known.usable)) is not None:
            raise CheckpointRefused(f"spec.log.archive.destination (--destination) is {parsed.destination!r}: {unusable}")
        # Read each time: a mounted Secret may change.
        place = replace(place, key=writing_key(parsed.encrypt_with))
        _require_held(log, place, before.held)
        copied = copy_log(log, place, ReadSettings(bytes_per_second_per_bookie=parsed.bytes_per_second_per_bookie))
        if parsed.place:
            told = _with_beginning(_progress(before, copied, began), copied.end, place)
            publish_progress(catalog.client, place, _expire(catalog, place, told))
    except Exception as error:
        failed = _failed(error)
        if parsed.place:
            told = replace(before, trouble=failed.sentence[:_MOST_TROUBLE])
            is_full = isinstance(error, OSError) and error.errno in FULL
            publish_progress(catalog.client, place, _expire(catalog, place, told) if is_full else told)
        return failed
    newest = None if copied.end is None else copied.end.first.lsn
    return _Run(JobOutcome.SUCCEEDED if copied.segments else JobOutcome.ALREADY_DONE, _sentence(copied), copied.complete, newest)


def _require_held(log: LogSource, place: Place, held: ArchivedRange | None) -> None:
    """Checks that an archive that had entries still has some, if the log could continue it. If an empty volume took the
    right one's place, another archive would begin there. Then the log that the right one lacks would be released. Raises CheckpointRefused.
    """
    if held is None or newest_segment(place.folder, place.identity, place.known) is not None:
        return
    try:
        log.readable_from(Lsn(*held.resume))
    except (LogTruncatedError, CheckpointRefused):
        return  # a new archive is all that is left
    raise CheckpointRefused(
        f"the archive had everything up to {Lsn(*held.last)}, and is empty now: its files are gone, or another volume is mounted. Nothing "
        "is archived until they are back, and the log is kept; or name another destination, where a new archive begins"
    )


def _expire(catalog: LedgerCatalog, place: Place, progress: ArchiveProgress) -> ArchiveProgress:
    """Deletes released segments and returns the progress to report. Failures must not stop archiving."""
    try:
        order = expiry_order(catalog.client, place, progress.destination)
        expiring = None if order is None else due(place, order)
        if expiring is None:
            sweep(place.folder)
            return replace(progress, expiry_trouble="")
        newest = newest_segment(place.folder, place.identity, place.known) or expiring.oldest_left
        # From here on failures report this range, too: some segments may be gone then.
        progress = replace(progress, held=held_from(expiring.oldest_left, newest))
        publish_progress(catalog.client, place, progress)
        _log.info("expiring", segments=len(expiring.going), up_to=str(expiring.going[-1].last.lsn))
        delete_segments(place.folder, expiring.going)
        return replace(progress, expiry_trouble="")
    except Exception as error:
        failed = _failed(error)
        _log.warning("nothing expires", outcome=failed.outcome.value, sentence=failed.sentence)
        return replace(progress, expiry_trouble=failed.sentence[:_MOST_TROUBLE])


def _with_beginning(progress: ArchiveProgress, end: SegmentManifest | None, place: Place) -> ArchiveProgress:
    """Adds where the archive begins, and why its oldest segment can't be read. Keys are rotated: it has the oldest one still needed.
    What is archived counts all the same, or the bookies would keep the log for a file that nobody can mend.
    """
    try:
        oldest = oldest_segment(place.folder, place.identity)
        progress = replace(progress, held=None if oldest is None or end is None else held_from(oldest, end))
        if oldest is not None:
            prove(oldest, place.folder)
    except KeyUnusable as error:
        return replace(progress, locked=str(error)[:_MOST_TROUBLE])
    except (InvariantViolated, OSError) as error:
        return replace(progress, trouble=_failed(error).sentence[:_MOST_TROUBLE])
    return replace(progress, locked="")


def _progress(before: ArchiveProgress, copied: Copied, began: float) -> ArchiveProgress:
    """The progress of a run that began at a time, in seconds: all that was confirmed then is archived now, unless that is in doubt. The
    archive begins where the last report said.
    """
    end, held = copied.end, before.held
    if held is not None and end is not None:
        held = replace(held, last=end.last.lsn, last_millis=end.highest_timestamp_millis, resume=end.resume)
    if not copied.complete or copied.doubt:
        return replace(before, held=held, trouble=copied.doubt)
    since = began if before.current_at_millis is None else before.current_at_millis / 1000
    lag = max(0.0, time.time() - since) if copied.segments else before.lag_seconds
    return ArchiveProgress(before.destination, held, int(began * 1000), lag)


def _require_valid(parsed: argparse.Namespace) -> None:
    stored_argument("--destination", parsed.destination, DESTINATION_VARIABLES, CheckpointRefused)
    if (why := why_no_run_id(parsed.run_id)) is not None:
        raise CheckpointRefused(why)
    if (why := why_no_reading_rate(parsed)) is not None:
        raise CheckpointRefused(why)
    if parsed.every is not None and parsed.every <= 0:
        raise CheckpointRefused(f"--every is {parsed.every:g}: give seconds, more than 0")


def _sentence(copied: Copied) -> str:
    doubt = f"; {copied.doubt}, so later entries may be confirmed" if copied.doubt else ""
    if copied.end is None:
        return f"the log has no confirmed entry yet{doubt}"
    end = f"the archive ends with {copied.end.last.lsn}, and holds moments up to {stamp(copied.end.highest_timestamp_millis)}{doubt}"
    return f"{copied.entries} entries in {copied.segments} segments were archived; {end}" if copied.segments else f"nothing was new; {end}"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="herdkeeper_jobs.archive.cli", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add_cluster_arguments(parser)
    add_tablespace_arguments(parser)
    add_destination_argument(parser, "folder for archives and checkpoints")
    parser.add_argument(
        "--place",
        default="",
        help="the operator's name of the destination, its volume claim or its store's address; with it the archive is reported to the"
        " operator",
    )
    add_encryption_argument(parser)
    parser.add_argument("--run-id", required=True, help="name of this run; a retry keeps it")
    parser.add_argument("--every", type=float, metavar="SECONDS", help="run continuously, this many seconds between two looks at the log")
    add_reading_rate_argument(parser)
    return parser


if __name__ == "__main__":
    sys.exit(main())
