"""Folds what was read of the log: cut -> timeline -> tables -> files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import assert_never

import pyarrow as pa
import structlog
from pyspark import StorageLevel
from pyspark.sql import SparkSession

from herdkeeper.codecs.herddb.row_digest import RowDigest
from herdkeeper_jobs.archive.parts import read_archived
from herdkeeper_jobs.bookkeeper.reader import read_partition
from herdkeeper_jobs.checkpoint.attempts import Attempt
from herdkeeper_jobs.checkpoint.base import Base, highest_keys_of
from herdkeeper_jobs.checkpoint.data_files import WrittenTable, write_tables
from herdkeeper_jobs.checkpoint.origin import Origin
from herdkeeper_jobs.checkpoint.table_digests import table_digests
from herdkeeper_jobs.checkpoint.target import Target
from herdkeeper_jobs.encryption.parquet_folder import ParquetFolder
from herdkeeper_jobs.errors import CheckpointRefused, CheckpointRetryable, InvariantViolated
from herdkeeper_jobs.spark_tasks import map_numbers
from herdkeeper_jobs.wal.blocks import BLOCK_SCHEMA, Blocks, blocks_of
from herdkeeper_jobs.wal.cut import cut_at_time
from herdkeeper_jobs.wal.decode import decode_batches
from herdkeeper_jobs.wal.fold import fold_partitions, highest_auto_increments, last_changes, place_changes
from herdkeeper_jobs.wal.lsn import Lsn
from herdkeeper_jobs.wal.moment import Time, stamp
from herdkeeper_jobs.wal.outline import LogExtent, LogOutline, log_extent, log_outline, log_timeline
from herdkeeper_jobs.wal.task_log import TaskLog
from herdkeeper_jobs.wal.timeline import Timeline

_log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Cut:
    """The LSN at which the log is cut. `left_out`: entries after it with a stamp at or before the requested time."""

    lsn: Lsn
    left_out: int = 0


@dataclass(frozen=True, slots=True)
class Folded:
    """The result of a fold: all that a manifest needs except who asked. `compared`: the tables at the end of what was read, where the
    follower was held."""

    cut: Cut
    extent: LogExtent
    timeline: Timeline
    written: list[WrittenTable]
    highest_keys: dict[str, int]
    compared: Mapping[str, RowDigest]
    base: Base | None

    @property
    def unproven_follower(self) -> str | None:
        return None if self.base is None else self.base.unproven_follower


def fold_log(spark: SparkSession, origin: Origin, target: Target, folder: ParquetFolder, attempt: Attempt) -> Folded:
    """Reads the log behind an origin up to a target, and writes its tables to files of an attempt. Raises as `run_checkpoint`."""
    with blocks_of(spark) as blocks:
        return _fold(_read(spark, origin, blocks), origin, target, folder, attempt)


def _fold(read: TaskLog, origin: Origin, target: Target, folder: ParquetFolder, attempt: Attempt) -> Folded:
    cores = read.tasks.sparkSession.sparkContext.defaultParallelism
    # On disk, so that bookies are read once: the outline and the fold each scan the log.
    read.tasks.persist(StorageLevel.DISK_ONLY)
    try:
        outline = log_outline(read)
        extent = outline.extent
        if extent.entries != origin.entries:
            raise InvariantViolated(
                f"what is read of the log up to {target.read_to} has {origin.entries} entries, {extent.entries} were read"
            )
        _log.info("log read", entries=extent.entries, archived=sum(len(part.segments) for part in origin.archived))
        entries = _within(read, origin, target.read_to)
        cut = _cut(entries, target)
        if cut.lsn > target.read_to:
            raise InvariantViolated(f"the checkpoint is to be at {cut.lsn}, but the log was read up to {target.read_to} only")
        reads_beyond = cut.lsn != target.read_to
        prefix = entries.up_to(cut.lsn) if reads_beyond else entries
        timeline = log_timeline(prefix, origin.start, outline)
        _log.info("control entries walked", tables=len(timeline.tables), open_transactions=len(timeline.open_transactions))
        placed = origin.with_rows(place_changes(prefix, timeline), timeline)
        partitions = fold_partitions(cores, extent.entries + origin.base_rows)
        written = write_tables(last_changes(placed, partitions), timeline.tables, folder, attempt, timeline.altered)
        _log.info("tables written", rows=sum(table.digest.rows for table in written), files=sum(len(table.files) for table in written))
        highest = highest_auto_increments(placed, timeline, highest_keys_of(origin.base))
        compared = {table.name: item.digest for table, item in zip(timeline.tables, written, strict=True)}
        if reads_beyond and target.follower is not None:
            compared = _digests_at_the_end(entries, origin, partitions, outline)
        return Folded(
            cut, log_extent(prefix) if reads_beyond or origin.archived else extent, timeline, written, highest, compared, origin.base
        )
    finally:
        read.tasks.unpersist()


def _read(spark: SparkSession, origin: Origin, blocks: Blocks) -> TaskLog:
    """Returns the decoded entries of the archive's and the log's partitions, one task each."""
    archived, live = origin.archived, origin.live

    def entries(number: int) -> Iterator[pa.RecordBatch]:
        return read_archived(archived[number]) if number < len(archived) else read_partition(live[number - len(archived)])

    def read(number: int) -> Iterator[pa.RecordBatch]:
        return blocks.of_batches(decode_batches(entries(number)))

    return TaskLog.of_blocks(map_numbers(spark, len(archived) + len(live), read, BLOCK_SCHEMA), blocks)


def _within(read: TaskLog, origin: Origin, read_to: Lsn) -> TaskLog:
    """Cuts off what whole archived segments hold outside of the needed range."""
    if not origin.archived:
        return read
    entries = read.up_to(read_to)
    return entries if origin.start is None else entries.since(origin.start.restart)


def _cut(entries: TaskLog, target: Target) -> Cut:
    """Finds the LSN of the requested moment."""
    match target.at:
        case Lsn():
            return Cut(target.at)
        case Time(millis, text):
            found = cut_at_time(entries, millis)
        case _:
            assert_never(target.at)
    asked = f"spec.target.timestamp (--to) is {text}"
    if found.later is None:
        stamped = "" if found.last_millis is None else f", stamped {stamp(found.last_millis)}"
        raise CheckpointRetryable(
            f"{asked}: no later entry is confirmed yet; the log is known up to {target.read_to}{stamped}; wait for the "
            "next entry, or take an earlier time"
        )
    if found.lsn is None:
        begin = "" if found.first_millis is None else f" at {stamp(found.first_millis)}"
        raise CheckpointRefused(f"{asked}: the log begins after it, with {found.later}{begin}; take a later time")
    _log.info("cut", lsn=str(found.lsn), before=str(found.later), left_out=found.left_out)
    return Cut(found.lsn, found.left_out)


def _digests_at_the_end(entries: TaskLog, origin: Origin, partitions: int, outline: LogOutline) -> dict[str, RowDigest]:
    timeline = log_timeline(entries, origin.start, outline)
    rows = last_changes(origin.with_rows(place_changes(entries, timeline), timeline), partitions)
    return dict(zip((table.name for table in timeline.tables), table_digests(rows, len(timeline.tables)), strict=True))
