"""Divides a read: from the archive up to its end, from bookies behind it."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Protocol

import pyarrow as pa

from herdkeeper.codecs.bookkeeper.bookie_address import BookieAddress
from herdkeeper.codecs.bookkeeper.metadata import LedgerMetadata
from herdkeeper.codecs.bookkeeper.striping import EntryRange
from herdkeeper.codecs.herddb.log_entry import decode_log_entry
from herdkeeper_jobs.archive.segment import SegmentManifest, entry_at, holds, oldest_segment, prove, read_segment, segments_one_by_one
from herdkeeper_jobs.bookkeeper.reader import (
    DEFAULT_SETTINGS,
    EntryUnreadableError,
    LedgerPiece,
    PartitionSpec,
    ReadSettings,
    cut_pieces,
    ledger_pieces,
    read_partition,
)
from herdkeeper_jobs.errors import CheckpointRefused, LogDropped, LogTruncatedError, NotConfirmedYet
from herdkeeper_jobs.manifests.manifest import Identity
from herdkeeper_jobs.storage.stored_path import StoredPath
from herdkeeper_jobs.wal.lsn import Lsn


class Log(Protocol):
    """A log besides its archive: `LogSource` in a living cluster, else `ArchiveOnlyLog`."""

    @property
    def name(self) -> str:
        """The tablespace's name."""

    def confirmed_end(self) -> Lsn:
        """As `LogSource.confirmed_end`."""

    def ledgers_up_to(self, target: Lsn, begin: Lsn | None = None) -> list[tuple[LedgerMetadata, int]]:
        """As `LogSource.ledgers_up_to`."""

    def readable_from(self, first: Lsn | None) -> list[tuple[LedgerMetadata, int]]:
        """As `LogSource.readable_from`."""

    def ledger_behind(self, ledger_id: int) -> int | None:
        """As `LogSource.ledger_behind`."""

    def bookie_addresses(self) -> Mapping[str, BookieAddress]:
        """As `LogSource.bookie_addresses`."""


@dataclass(frozen=True, slots=True)
class LogParts:
    """A range of a log: archived segments, then pieces of ledgers. The first and last segment may exceed the range."""

    archived: tuple[SegmentManifest, ...]
    live: tuple[LedgerPiece, ...]

    @property
    def entries(self) -> int:
        return sum(segment.entries for segment in self.archived) + sum(len(piece.entries) for piece in self.live)


@dataclass(frozen=True, slots=True)
class ArchivePartition:
    """Segments that one task reads. Picklable."""

    folder: StoredPath
    segments: tuple[SegmentManifest, ...]


@dataclass(frozen=True, slots=True)
class ReadBudget:
    """The limit of a job's reads from one bookie, in bytes per second; at most `cores` of its tasks run at once."""

    cores: int
    bytes_per_second_per_bookie: float = float("inf")

    def share_of(self, tasks: int) -> ReadSettings:
        """The limits of each of `tasks` tasks: any of them may ask the same bookie."""
        return ReadSettings(bytes_per_second_per_bookie=self.bytes_per_second_per_bookie / max(1, min(tasks, self.cores)))


UNLIMITED = ReadBudget(cores=1)


@dataclass(frozen=True, slots=True)
class WholeLog:
    """A log with its archive, if there is one in `folder`, the tablespace's folder there."""

    log: Log
    folder: StoredPath
    identity: Identity

    @property
    def name(self) -> str:
        return self.log.name

    def confirmed_end(self) -> Lsn:
        """As `LogSource.confirmed_end`."""
        return self.log.confirmed_end()

    def live_up_to(self, target: Lsn, begin: Lsn | None = None) -> LogParts:
        """Returns the parts up to an LSN, from `begin` on (None: the log's beginning), from the log alone. Raises as
        `LogSource.ledgers_up_to`."""
        first = {} if begin is None else {begin.ledger_id: begin.entry_id}
        ledgers = self.log.ledgers_up_to(target, begin)
        return LogParts(
            (), tuple(piece for metadata, last in ledgers for piece in ledger_pieces(metadata, last, first.get(metadata.ledger_id, 0)))
        )

    def parts_up_to(self, target: Lsn, begin: Lsn | None = None) -> LogParts:
        """As `live_up_to`; if the log lacks something, from the archive and the log. Raises as `LogSource.ledgers_up_to` and
        `log_parts`."""
        try:
            return self.live_up_to(target, begin)
        except LogDropped:
            if oldest_segment(self.folder, self.identity) is None:
                raise
            return log_parts(self, target, begin)


def log_parts(whole: WholeLog, target: Lsn, begin: Lsn | None = None) -> LogParts:
    """Returns the parts from the archive and the log behind it, from `begin` on (None: the log's beginning) up to an LSN.

    Raises:
        LogDropped: the archive begins later, does not meet the log, or has another entry than the log.
        CheckpointRefused: the LSN is in neither.
        NotConfirmedYet, CheckpointRetryable: as `LogSource.readable_from`.
        InvariantViolated: the archive contradicts itself up to there, or was changed; later segments are not checked.
        KeyUnusable: a segment is encrypted, and its key is missing.
    """
    needed: list[SegmentManifest] = []
    for segment in segments_one_by_one(whole.folder, whole.identity, begin):
        if not needed:
            _require_beginning(segment, begin)
        if segment.first.lsn > target:
            raise CheckpointRefused(_not_archived(needed, segment, target))
        prove(segment, whole.folder)
        needed.append(segment)
        if target <= segment.last.lsn:
            if not holds(segment, whole.folder, target):
                raise CheckpointRefused(f"spec.target.lsn (--to) is {target}: the archived log has no such entry, its ledger ends before")
            _require_same_log(whole, segment, target)
            return LogParts(tuple(needed), ())
    if needed:
        _require_same_log(whole, needed[-1], needed[-1].last.lsn)
    live = _behind(whole.log, needed[-1] if needed else None, target)
    end = Lsn(live[-1].ledger_id, live[-1].entries.last) if live else None
    if end != target:
        known = needed[-1].last.lsn if end is None and needed else end
        raise NotConfirmedYet(f"spec.target.lsn (--to) is {target}: the log is confirmed up to {known} only, or has no such entry")
    return LogParts(tuple(needed), tuple(live))


def _require_beginning(first: SegmentManifest, begin: Lsn | None) -> None:
    if begin is None and not first.begins_log:
        raise LogDropped(f"the archive of the log begins with {first.first.lsn}, and not with the log's beginning")
    if begin is not None and begin < first.first.lsn:
        raise LogDropped(f"the log would be read from {begin}, and its archive begins with {first.first.lsn}")


def _not_archived(needed: Sequence[SegmentManifest], behind: SegmentManifest, target: Lsn) -> str:
    if not needed:
        return f"spec.target.lsn (--to) is {target}: the archived log begins with {behind.first.lsn}; take an LSN from there on"
    return (
        f"spec.target.lsn (--to) is {target}: the archived log has no such entry; it continues from {needed[-1].last.lsn} to "
        f"{behind.first.lsn}; take one of these"
    )


def _require_same_log(whole: WholeLog, segment: SegmentManifest, at: Lsn) -> None:
    """Raises LogDropped unless an archived entry is also the log's, as far as that can be told."""
    try:
        why = why_of_another_log(whole, segment, at)
    except CheckpointRefused as error:
        raise LogDropped(f"the archive has the entry {at}, and {error}") from error
    if why is not None:
        raise LogDropped(why)


_PUT_BACK = "the cluster was put back to an earlier state, or another one, made from copies of its volumes, writes to the same destination"


def why_of_another_log(whole: WholeLog, segment: SegmentManifest, at: Lsn, settings: ReadSettings = DEFAULT_SETTINGS) -> str | None:
    """Returns why an archive is not of this log: the log has another entry at an LSN than this segment, or continues otherwise behind the
    segment's end. None if it has the same, or if bookies no longer have it.

    A cluster keeps its identity if it is put back to older copies of its volumes, or is made from copies of another one's. Soon it has
    other entries at the same LSNs. Raises InvariantViolated, CheckpointRefused if the log has no such ledger, and CheckpointRetryable as
    `LogSource.readable_from`.
    """
    follower = segment.next_ledger if at == segment.last.lsn else None  # of a ledger that the segment has to its end
    behind = None if follower is None else whole.log.ledger_behind(at.ledger_id)
    if follower is not None and behind is not None and behind < follower:  # a later one may only mean that the follower was dropped
        return f"the archive continues ledger {at.ledger_id} with {follower}, and the log has ledger {behind} before it: {_PUT_BACK}"
    try:
        metadata, last = whole.log.readable_from(at)[0]
        if follower is not None and last > at.entry_id:
            return f"the archive ends ledger {at.ledger_id} with the entry {at}, and the log has later ones in it: {_PUT_BACK}"
        if last < at.entry_id and not metadata.closed:
            return None  # other bookies answered, and know a lower LAC
        pieces = () if last < at.entry_id else ledger_pieces(metadata, at.entry_id, at.entry_id)
        read = read_partition(PartitionSpec(pieces, whole.log.bookie_addresses(), settings))
        ours = [payload for batch in read for payload in batch.column("payload").to_pylist()]
    except (LogTruncatedError, EntryUnreadableError):
        return None
    if ours == _payloads_at(segment, whole.folder, at):
        return None
    return f"the archive has the entry {at}, and the log has {'another' if ours else 'no such'} entry there: {_PUT_BACK}"


@lru_cache(maxsize=1)
def _payloads_at(segment: SegmentManifest, folder: StoredPath, at: Lsn) -> list[bytes]:
    """The payload of an entry of a segment, or none. Raises as `read_segment`.

    An archiver asks at each look, and while its log is idle for the same one. A segment has up to 32 MiB.
    """
    found: list[bytes] = entry_at(read_segment(segment, folder), at).column("payload").to_pylist()
    return found


def _behind(log: Log, end: SegmentManifest | None, target: Lsn) -> list[LedgerPiece]:
    """The log behind the archive's end, up to an LSN."""
    begin = None if end is None else end.resume
    try:
        readable = log.readable_from(begin)
    except (LogTruncatedError, CheckpointRefused) as error:
        until = "it has no archive" if end is None else f"its archive ends with {end.last.lsn}"
        raise LogDropped(f"{error}, and {until}: choose a moment in it, or an existing checkpoint") from error
    live: list[LedgerPiece] = []
    for metadata, last in readable:
        if metadata.ledger_id > target.ledger_id:
            break
        first = begin.entry_id if begin is not None and begin.ledger_id == metadata.ledger_id else 0
        live.extend(ledger_pieces(metadata, min(last, target.entry_id) if metadata.ledger_id == target.ledger_id else last, first))
    return live


def time_of(parts: LogParts, whole: WholeLog, lsn: Lsn) -> int | None:
    """Reads one entry of these parts, and returns its time, in milliseconds by its leader's clock; None if they have no such entry.

    Raises EntryUnreadableError, MalformedDataError, and as `read_segment`.
    """
    archived = (
        entry_at(read_segment(segment, whole.folder), lsn) for segment in parts.archived if segment.first.lsn <= lsn <= segment.last.lsn
    )
    alone = EntryRange(lsn.entry_id, lsn.entry_id)
    pieces = tuple(
        replace(piece, entries=alone)
        for piece in parts.live
        if piece.ledger_id == lsn.ledger_id and piece.entries.first <= lsn.entry_id <= piece.entries.last
    )
    live = read_partition(PartitionSpec(pieces, whole.log.bookie_addresses()))
    payloads = (payload for rows in itertools.chain(archived, live) for payload in rows.column("payload").to_pylist())
    return next((decode_log_entry(payload).timestamp_millis for payload in payloads), None)


def archive_partitions(parts: LogParts, folder: StoredPath, count: int) -> tuple[ArchivePartition, ...]:
    """Divides the archived part, in log order, among about `count` tasks."""
    share = max(1, -(-len(parts.archived) // count))
    return tuple(ArchivePartition(folder, parts.archived[first : first + share]) for first in range(0, len(parts.archived), share))


def live_partitions(parts: LogParts, log: Log, count: int, budget: ReadBudget = UNLIMITED) -> tuple[PartitionSpec, ...]:
    """Divides the live part; tasks that run at once share the budget."""
    partitions = cut_pieces(parts.live, log.bookie_addresses(), count)
    settings = budget.share_of(len(partitions))
    return tuple(replace(partition, settings=settings) for partition in partitions)


def read_archived(partition: ArchivePartition) -> Iterator[pa.RecordBatch]:
    """Yields the entries of a partition (ledger_id, entry_id, payload and more). A file's bytes are verified before any of it is
    yielded."""
    for segment in partition.segments:
        yield from read_segment(segment, partition.folder).to_batches()
