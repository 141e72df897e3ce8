"""Copies a log into its archive, from the end of the newest segment to the last confirmed entry. Never fences.

One process is enough: it only reads what one leader writes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

from herdkeeper.codecs.bookkeeper.metadata import LedgerMetadata
from herdkeeper_jobs.archive.parts import WholeLog, why_of_another_log
from herdkeeper_jobs.archive.segment import SEGMENT_SCHEMA, Link, Place, SegmentManifest, commit_segment, newest_segment, prove
from herdkeeper_jobs.bookkeeper.reader import DEFAULT_SETTINGS, PartitionSpec, ReadSettings, ledger_pieces, read_partition
from herdkeeper_jobs.errors import CheckpointRefused, CheckpointRetryable, InvariantViolated, LogTruncatedError
from herdkeeper_jobs.log_source import LogSource, Readable
from herdkeeper_jobs.wal.decode import decode_batches
from herdkeeper_jobs.wal.lsn import Lsn

SEGMENT_BYTES = 32 * 1024 * 1024
"""Payload bytes after which a segment ends. So much is in memory at once, and written again after a kill."""
MOST_SEGMENTS = 16
"""A run ends after so many segments, so that progress is reported."""


@dataclass(frozen=True, slots=True)
class Copied:
    """The result of a run: committed segments and entries, and the archive's last segment (None: empty). `complete`: it reached the end
    that was known to be confirmed at its start; `doubt`: why more may have been, or empty."""

    segments: int
    entries: int
    end: SegmentManifest | None
    complete: bool
    doubt: str = ""


def copy_log(log: LogSource, place: Place, settings: ReadSettings = DEFAULT_SETTINGS, segment_bytes: int = SEGMENT_BYTES) -> Copied:
    """Archives all that the archive lacks and the log has, from the archive's end, or from the first ledger left.

    Raises:
        CheckpointRefused: the log was dropped beyond the archive's end.
        CheckpointRetryable: another run archives the same log, or bookies don't report what is confirmed.
        InvariantViolated: the archive, or the log, contradicts itself, or they contradict each other.
    """
    end = newest_segment(place.folder, place.identity, place.known)
    if end is not None:
        prove(end, place.folder)  # it determines where to read from
        # Each time: volumes may be put back while this process lives.
        if (why := why_of_another_log(WholeLog(log, place.folder, place.identity), end, end.last.lsn, settings)) is not None:
            raise InvariantViolated(f"{why}. Nothing was archived: give each its own destination")
    begin = log.first_left() if end is None else end.resume
    readable = _readable(log, end, begin)
    copied = entries = 0
    for rows, next_ledger in _pieces(log, readable.ledgers, begin, settings, segment_bytes):
        committed = commit_segment(rows, place, Link(end, begin is None and end is None, next_ledger))
        if committed is None:
            raise CheckpointRetryable(f"another run archived the log after {'nothing' if end is None else end.last.lsn} just now")
        end, copied, entries = committed, copied + 1, entries + committed.entries
        if copied == MOST_SEGMENTS:
            return Copied(copied, entries, end, complete=False)
    return Copied(copied, entries, end, complete=True, doubt=readable.doubt)


def _readable(log: LogSource, end: SegmentManifest | None, begin: Lsn | None) -> Readable:
    try:
        return log.readable(begin)
    except LogTruncatedError as error:
        there = "the archive is empty" if end is None else f"the archive ends with {end.last.lsn}"
        raise CheckpointRefused(
            f"{there}, and {error}: the entries between them are lost to the archive. Move the folder `log` of the tablespace away from the"
            f" destination, or use another destination: a new archive begins there with the rest of the log"
        ) from error


def _pieces(
    log: LogSource, readable: list[tuple[LedgerMetadata, int]], begin: Lsn | None, settings: ReadSettings, segment_bytes: int
) -> Iterator[tuple[pa.Table, int | None]]:
    """Yields the entries behind the archive's end, in pieces, each with the ledger that follows it."""
    successors = log.successors()
    held: list[pa.RecordBatch] = []
    size = 0
    next_ledger: int | None = None
    for metadata, last in readable:
        first = begin.entry_id if begin is not None and begin.ledger_id == metadata.ledger_id else 0
        for batch in _entries(log, metadata, first, last, settings):
            held.append(batch)
            size += batch.column("payload").nbytes
            ended = metadata.last_entry_id == batch.column("entry_id")[-1].as_py()
            next_ledger = successors.get(metadata.ledger_id) if ended else None
            if size >= segment_bytes:
                yield pa.Table.from_batches(held), next_ledger
                held, size = [], 0
    if held:
        yield pa.Table.from_batches(held), next_ledger


def _entries(log: LogSource, metadata: LedgerMetadata, first: int, last: int, settings: ReadSettings) -> Iterator[pa.RecordBatch]:
    """Yields entries `first` to `last` of a ledger, as SEGMENT_SCHEMA. Raises InvariantViolated unless they are consecutive."""
    spec = PartitionSpec(ledger_pieces(metadata, last, first), log.catalog.bookie_addresses(), settings)
    expected = first
    for batch in read_partition(spec):
        stamped = next(decode_batches([batch])).column("timestamp")
        if batch.column("entry_id").to_pylist() != list(range(expected, expected + len(batch))):
            raise InvariantViolated(f"ledger {metadata.ledger_id}: entries from {expected} on came in the wrong order")
        expected += len(batch)
        columns = [batch.column("ledger_id"), batch.column("entry_id"), stamped, batch.column("payload")]
        yield pa.RecordBatch.from_arrays(columns, schema=SEGMENT_SCHEMA)
    if expected <= last:
        raise InvariantViolated(f"ledger {metadata.ledger_id} ends with entry {last}, entries up to {expected - 1} came")
