"""What of a log is read from its archive and what from bookies: the archive up to its end, and the log itself from there on."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from herdkeeper_jobs.archive.segment import SegmentManifest, read_segment, segments
from herdkeeper_jobs.bookkeeper.reader import LedgerPiece, PartitionSpec, cut_pieces, ledger_pieces
from herdkeeper_jobs.checkpoint.errors import CheckpointRefused, LogTruncatedError, NotConfirmedYet
from herdkeeper_jobs.checkpoint.log_source import LogSource
from herdkeeper_jobs.checkpoint.manifest import Identity
from herdkeeper_jobs.wal.lsn import Lsn


@dataclass(frozen=True, slots=True)
class LogParts:
    """A log from its beginning: archived segments, then pieces of ledgers. The last segment may hold more than was asked for."""

    archived: tuple[SegmentManifest, ...]
    live: tuple[LedgerPiece, ...]

    @property
    def entries(self) -> int:
        """Entries in all parts."""
        return sum(segment.entries for segment in self.archived) + sum(len(piece.entries) for piece in self.live)


@dataclass(frozen=True, slots=True)
class ArchivePartition:
    """Segments that one task reads. Picklable."""

    folder: Path
    segments: tuple[SegmentManifest, ...]


def log_parts(log: LogSource, place: tuple[Path, Identity], target: Lsn) -> LogParts:
    """The parts that hold everything up to an LSN. `place`: the tablespace's folder at the destination, and whose log it is.

    Raises:
        CheckpointRefused: neither archive nor log begins with the log's beginning, they don't meet, or the LSN is in neither.
        NotConfirmedYet, CheckpointRetryable: as `LogSource.readable_from`.
        InvariantViolated: the archive contradicts itself.
    """
    archived = segments(*place)
    needed = tuple(segment for segment in archived if segment.first.lsn <= target)
    if needed and target <= needed[-1].last.lsn:
        return LogParts(needed, ())
    if archived and len(needed) < len(archived):
        raise CheckpointRefused(
            f"spec.target.lsn (--to) is {target}: the archived log has no such entry, it goes on from {needed[-1].last.lsn} to "
            f"{archived[len(needed)].first.lsn}"
            if needed
            else f"spec.target.lsn (--to) is {target}: the log begins with {archived[0].first.lsn}"
        )
    begin = archived[-1].resume if archived else None
    try:
        readable = log.readable_from(begin)
    except LogTruncatedError as error:
        until = f"the archive ends with {archived[-1].last.lsn}" if archived else "there is no archive at the destination"
        raise CheckpointRefused(f"{error}, and {until}: take a moment that it has, or a checkpoint that there is") from error
    live: list[LedgerPiece] = []
    for metadata, last in readable:
        if metadata.ledger_id > target.ledger_id:
            break
        first = begin.entry_id if begin is not None and begin.ledger_id == metadata.ledger_id else 0
        live.extend(ledger_pieces(metadata, min(last, target.entry_id) if metadata.ledger_id == target.ledger_id else last, first))
    end = Lsn(live[-1].ledger_id, live[-1].entries.last) if live else None
    if end != target:
        known = archived[-1].last.lsn if end is None and archived else end
        raise NotConfirmedYet(f"spec.target.lsn (--to) is {target}: the log is confirmed up to {known} only, or has no such entry")
    return LogParts(needed, tuple(live))


def archive_partitions(parts: LogParts, folder: Path, count: int) -> tuple[ArchivePartition, ...]:
    """What each of about `count` tasks reads of the archived part, in log order."""
    share = max(1, -(-len(parts.archived) // count))
    return tuple(ArchivePartition(folder, parts.archived[first : first + share]) for first in range(0, len(parts.archived), share))


def live_partitions(parts: LogParts, log: LogSource, count: int) -> tuple[PartitionSpec, ...]:
    """The same for what is read from bookies."""
    return cut_pieces(parts.live, log.catalog.bookie_addresses(), count)


def read_archived(partition: ArchivePartition) -> Iterator[pa.RecordBatch]:
    """The entries of a partition (ledger_id, entry_id, payload and more), each file's bytes verified before any of it is given."""
    for segment in partition.segments:
        yield from read_segment(segment, partition.folder).to_batches()
