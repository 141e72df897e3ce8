"""A part of a tablespace's log: the entries to read for it, and the changes committed in it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc

from herdkeeper.codecs.bookkeeper.metadata import LedgerMetadata
from herdkeeper.codecs.bookkeeper.striping import EntryRange
from herdkeeper_jobs.bookkeeper.reader import LedgerPiece, PartitionSpec, ledger_pieces, read_partition
from herdkeeper_jobs.datasource.changes import CommittedChanges
from herdkeeper_jobs.datasource.options import Range, SourceOptions
from herdkeeper_jobs.errors import CheckpointRefused, NotConfirmedYet
from herdkeeper_jobs.log_source import LogSource
from herdkeeper_jobs.wal.decode import decode_batches
from herdkeeper_jobs.wal.lsn import Lsn


@dataclass(frozen=True, slots=True)
class LogRange:
    """What one reader reads, in order. Picklable."""

    spec: PartitionSpec
    after: Lsn | None
    """Commits up to there are left out."""
    end: Lsn | None
    """The last entry to read; None without one after `after`."""


def log_range(log: LogSource, wanted: Range, options: SourceOptions, most: int | None) -> LogRange:
    """Returns the confirmed part of the log that is wanted, at most `most` entries after `wanted.after`; without `most` all of it.

    Raises LogTruncatedError, CheckpointRefused and CheckpointRetryable as `LogSource.readable_from`, CheckpointRefused if `wanted.after` is
    beyond its ledger's end, and without `most` NotConfirmedYet if `wanted.up_to` can't be read yet.
    """
    begin = wanted.after if wanted.restart is None else wanted.restart
    readable = log.readable_from(begin)
    _require_within(log, readable, wanted.after)
    if most is None and wanted.up_to is not None:
        _require_confirmed(log, readable, wanted.up_to)
    kept: list[LedgerPiece] = []
    left = most
    for metadata, last in readable:
        first = 0
        if begin is not None and metadata.ledger_id == begin.ledger_id:
            first = begin.entry_id + (1 if wanted.restart is None else 0)
        for piece in ledger_pieces(metadata, last_to_read(Lsn(metadata.ledger_id, last), wanted.up_to), first):
            taken, left = _taken(piece, wanted.after, left)
            kept.extend(taken)
    end = Lsn(kept[-1].ledger_id, kept[-1].entries.last) if kept else None
    return LogRange(PartitionSpec(tuple(verified(kept, options)), log.catalog.bookie_addresses(), options.read), wanted.after, end)


def verified(pieces: Sequence[LedgerPiece], options: SourceOptions) -> list[LedgerPiece]:
    """The pieces, with their entries' digests checked if the options say so."""
    return [replace(piece, digest=replace(piece.digest, checked=options.verify)) for piece in pieces]


def last_to_read(end: Lsn, up_to: Lsn | None) -> int:
    """The last entry to read of a ledger that ends at `end`; -1 for none."""
    if up_to is None or end <= up_to:
        return end.entry_id
    return up_to.entry_id if end.ledger_id == up_to.ledger_id else -1


def _taken(piece: LedgerPiece, after: Lsn | None, left: int | None) -> tuple[list[LedgerPiece], int | None]:
    """Returns what to read of a piece, and how many entries are left. Entries up to `after` are read again and don't count."""
    if left is None:
        return [piece], None
    again = 0
    if after is not None and piece.ledger_id <= after.ledger_id:
        last_again = after.entry_id if piece.ledger_id == after.ledger_id else piece.entries.last
        again = max(0, min(last_again, piece.entries.last) - piece.entries.first + 1)
    count = min(len(piece.entries), again + left)
    if count == 0:
        return [], 0
    first = piece.entries.first
    return [replace(piece, entries=EntryRange(first, first + count - 1))], left - max(0, count - again)


def changes_in(part: LogRange) -> Iterator[pa.RecordBatch]:
    """Yields the changes that are committed in a part of a log (`CHANGES_ARROW`).

    Raises EntryUnreadableError, MalformedDataError naming the LSN, and TransactionBeganEarlierError.
    """
    committed = CommittedChanges(part.after)
    for entries in decode_batches(read_partition(part.spec)):
        yield from committed.take(entries)


@dataclass(frozen=True, slots=True)
class Stamped:
    """An entry's LSN, and its time by its leader's clock, in milliseconds. Together they tell it from one that a cluster writes at the same
    LSN after it was put back to older copies of its volumes."""

    lsn: Lsn
    millis: int


@dataclass(frozen=True, slots=True)
class ReadChanges:
    """Changes committed in the entries up to `end`."""

    batches: list[pa.RecordBatch]
    """`CHANGES_ARROW`."""
    end: Stamped | None
    """None if there was nothing to read."""


def read_changes(part: LogRange, committed: CommittedChanges, most_bytes: float, known: Sequence[Stamped] = ()) -> ReadChanges:
    """Reads the changes committed in a part of a log. It stops early after the batch of entries that fills `most_bytes` of memory. Entries
    up to `part.after` don't count. `committed` knows the transactions open before the part, `known` entries of it from an earlier read.

    Raises as `changes_in`, and CheckpointRefused if a known entry is another one now, or gone.
    """
    batches: list[pa.RecordBatch] = []
    size, end = 0, None
    not_found = list(known)
    with closing(read_partition(part.spec)) as read:
        for entries in decode_batches(read):
            not_found = [one for one in not_found if not _has_entry(entries, one)]
            batches += committed.take(entries)
            ledger_id, entry_id, millis = (entries.column(name)[-1].as_py() for name in ("ledger_id", "entry_id", "timestamp"))
            end = Stamped(Lsn(ledger_id, entry_id), millis)
            if part.after is None or end.lsn > part.after:
                size += entries.nbytes
            if size >= most_bytes:
                break
    if not_found:
        raise _put_back(not_found[0].lsn, "no entry")
    return ReadChanges(batches, end)


def _has_entry(entries: pa.RecordBatch, known: Stamped) -> bool:
    """Whether the entry is among these. Raises CheckpointRefused if another one is there."""
    is_it = pc.and_(pc.equal(entries.column("ledger_id"), known.lsn.ledger_id), pc.equal(entries.column("entry_id"), known.lsn.entry_id))
    found = entries.column("timestamp").filter(is_it).to_pylist()
    if found not in ([], [known.millis]):
        raise _put_back(known.lsn, "another entry")
    return bool(found)


def _put_back(lsn: Lsn, found: str) -> CheckpointRefused:
    return CheckpointRefused(
        f"the query has read up to {lsn}, and the log has {found} there now: the cluster was put back to an earlier state. Make a new "
        "Checkpoint, and start the query behind it with a new checkpointLocation"
    )


def _require_within(log: LogSource, readable: Sequence[tuple[LedgerMetadata, int]], after: Lsn | None) -> None:
    for metadata, last in readable:
        if after is not None and metadata.ledger_id == after.ledger_id and metadata.closed and after.entry_id > last:
            raise CheckpointRefused(
                f"the LSN to start after is {after}: ledger {after.ledger_id} of {log.tablespace.name!r} is closed and ends with entry "
                f"{last}; start after {after.ledger_id},{last} or earlier"
            )


def _require_confirmed(log: LogSource, readable: Sequence[tuple[LedgerMetadata, int]], up_to: Lsn) -> None:
    """Whoever goes on behind `up_to` would miss what can't be read now. A silent bookie may hide what was confirmed before."""
    end = max((Lsn(metadata.ledger_id, last) for metadata, last in readable), default=None)
    complete = any(metadata.ledger_id == up_to.ledger_id and metadata.closed for metadata, _ in readable)
    if not complete and (end is None or end < up_to):
        there = "has no entry" if end is None else f"can be read up to {end}"
        raise NotConfirmedYet(f"LSN {up_to} is not confirmed: the log of {log.name!r} {there} now; try again later")
