"""Copies a log into its archive, from where the newest segment ends to what is confirmed now. Fences nothing.

One process: what it reads is confirmed already, and of the same order as what one leader writes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

from herdkeeper.codecs.bookkeeper.metadata import LedgerMetadata
from herdkeeper_jobs.archive.segment import SEGMENT_SCHEMA, Link, Place, SegmentManifest, commit_segment, newest_segment, proven
from herdkeeper_jobs.bookkeeper.reader import DEFAULT_SETTINGS, PartitionSpec, ReadSettings, ledger_pieces, read_partition
from herdkeeper_jobs.errors import CheckpointRefused, CheckpointRetryable, InvariantViolated, LogTruncatedError
from herdkeeper_jobs.log_source import LogSource
from herdkeeper_jobs.wal.decode import decode_batches
from herdkeeper_jobs.wal.lsn import Lsn

SEGMENT_BYTES = 32 * 1024 * 1024
"""Payload after which a segment ends: what is in memory at once, and written again by a run that was killed."""
MOST_SEGMENTS = 16
"""After which a run ends, so that it is told how far a long way has been gone."""


@dataclass(frozen=True, slots=True)
class Copied:
    """What a run did: segments and entries that it committed, where the archive ends now (None: it is empty), and whether it came to what
    was the log's confirmed end when it began."""

    segments: int
    entries: int
    end: SegmentManifest | None
    complete: bool


def copy_log(log: LogSource, place: Place, settings: ReadSettings = DEFAULT_SETTINGS, segment_bytes: int = SEGMENT_BYTES) -> Copied:
    """Archives what the archive lacks and the log has: from the archive's end, or the beginning of what is left of the log.

    Raises:
        CheckpointRefused: the log was dropped beyond the end of the archive.
        CheckpointRetryable: another run archives the same log, or bookies do not tell what is confirmed.
        InvariantViolated: the archive, or the log, contradicts itself.
    """
    end = newest_segment(place.folder, place.identity, place.known)
    if end is not None:
        proven(end, place.folder)  # it says from where on the log is read
    begin = log.first_left() if end is None else end.resume
    copied = entries = 0
    for rows, next_ledger in _pieces(log, (end, begin), settings, segment_bytes):
        committed = commit_segment(rows, place, Link(end, begin is None and end is None, next_ledger))
        if committed is None:
            raise CheckpointRetryable(f"another run has archived the log behind {'nothing' if end is None else end.last.lsn} just now")
        end, copied, entries = committed, copied + 1, entries + committed.entries
        if copied == MOST_SEGMENTS:
            return Copied(copied, entries, end, complete=False)
    return Copied(copied, entries, end, complete=True)


def _pieces(
    log: LogSource, behind: tuple[SegmentManifest | None, Lsn | None], settings: ReadSettings, segment_bytes: int
) -> Iterator[tuple[pa.Table, int | None]]:
    """The entries behind the archive's end, from an LSN on, each piece with the ledger that goes on behind it."""
    end, begin = behind
    try:
        readable = log.readable_from(begin)
    except LogTruncatedError as error:
        there = "the archive is empty" if end is None else f"the archive ends with {end.last.lsn}"
        raise CheckpointRefused(
            f"{there}, and {error}: the archive can't get the entries between. Move the folder `log` of the tablespace away from the"
            f" destination, or use another destination: a new archive begins there with the rest of the log"
        ) from error
    successors = log.successors()
    held: list[pa.RecordBatch] = []
    size = 0
    for metadata, last in readable:
        first = begin.entry_id if begin is not None and begin.ledger_id == metadata.ledger_id else 0
        for batch in _entries(log, (metadata, first, last), settings):
            held.append(batch)
            size += batch.column("payload").nbytes
            ended = metadata.last_entry_id == batch.column("entry_id")[-1].as_py()
            if size >= segment_bytes:
                yield pa.Table.from_batches(held), successors.get(metadata.ledger_id) if ended else None
                held, size = [], 0
    if held:
        at = Lsn(held[-1].column("ledger_id")[-1].as_py(), held[-1].column("entry_id")[-1].as_py())
        ends = {metadata.ledger_id: metadata.last_entry_id for metadata, _ in readable}
        yield pa.Table.from_batches(held), successors.get(at.ledger_id) if ends[at.ledger_id] == at.entry_id else None


def _entries(log: LogSource, what: tuple[LedgerMetadata, int, int], settings: ReadSettings) -> Iterator[pa.RecordBatch]:
    """Entries `first` to `last` of a ledger, as SEGMENT_SCHEMA. Raises InvariantViolated unless each comes after the one before."""
    metadata, first, last = what
    spec = PartitionSpec(ledger_pieces(metadata, last, first), log.catalog.bookie_addresses(), settings)
    expected = first
    for batch in read_partition(spec):
        stamped = next(decode_batches([batch])).column("timestamp")
        if batch.column("entry_id").to_pylist() != list(range(expected, expected + len(batch))):
            raise InvariantViolated(f"ledger {metadata.ledger_id}: entries from {expected} on came in another order")
        expected += len(batch)
        columns = [batch.column("ledger_id"), batch.column("entry_id"), stamped, batch.column("payload")]
        yield pa.RecordBatch.from_arrays(columns, schema=SEGMENT_SCHEMA)
    if expected <= last:
        raise InvariantViolated(f"ledger {metadata.ledger_id} ends with entry {last}, entries up to {expected - 1} came")
