"""What a checkpoint is made from: the whole log, or another checkpoint and the log behind it. One is chosen here, and its files proven."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

import structlog
from pyspark.sql import DataFrame, SparkSession

from herdkeeper_jobs.bookkeeper.reader import PartitionSpec
from herdkeeper_jobs.checkpoint.base import Base, BaseRows, BaseUnusable, candidates, described, load_rows
from herdkeeper_jobs.checkpoint.errors import CheckpointRefused, LogDropped
from herdkeeper_jobs.checkpoint.log_source import LogSource
from herdkeeper_jobs.checkpoint.manifest import Identity
from herdkeeper_jobs.checkpoint.moment import Time
from herdkeeper_jobs.wal.fold import with_base
from herdkeeper_jobs.wal.log_state import StartingPoint
from herdkeeper_jobs.wal.lsn import Lsn
from herdkeeper_jobs.wal.timeline import Timeline

_log = structlog.get_logger()


class Mode(StrEnum):
    """What a user asks for."""

    AUTO = "Auto"
    """The whole log while it begins with its first ledger, else a base."""
    FULL = "Full"
    """The whole log, or nothing."""
    INCREMENTAL = "Incremental"
    """A base when there is one, else the whole log."""


@dataclass(frozen=True, slots=True)
class Search:
    """Where bases are looked for, and what for: those of `identity` below `folder` that hold nothing behind the moment `at`."""

    folder: Path
    identity: Identity
    mode: Mode
    at: Lsn | Time


@dataclass(frozen=True, slots=True)
class Origin:
    """What is read: these partitions of the log, up to an LSN that was asked for, and the rows of a base. `release` it."""

    partitions: tuple[PartitionSpec, ...]
    rows: BaseRows | None = None

    @property
    def base(self) -> Base | None:
        """None for the whole log."""
        return None if self.rows is None else self.rows.base

    @property
    def start(self) -> StartingPoint | None:
        """Where the log's walk begins."""
        return None if self.rows is None else self.rows.base.start

    @property
    def entries(self) -> int:
        """How many entries of the log are read."""
        return sum(len(piece.entries) for partition in self.partitions for piece in partition.pieces)

    def with_rows(self, placed: DataFrame, timeline: Timeline) -> DataFrame:
        """The changes that are placed of the log, on top of the base's rows."""
        return placed if self.rows is None else with_base(placed, self.rows.placed(timeline), self.rows.base.start.at)

    def release(self) -> None:
        """Frees the disk."""
        if self.rows is not None:
            self.rows.release()


def choose_origin(spark: SparkSession, log: LogSource, search: Search, read_to: Lsn) -> Origin:
    """What to read for a checkpoint from a log that is read up to an LSN.

    Raises:
        CheckpointRefused: neither is the log whole nor is there a base; says which checkpoints were looked at, and why each is none.
        CheckpointRetryable: as `LogSource.ledgers_up_to`.
    """
    count = 3 * spark.sparkContext.defaultParallelism
    dropped: LogDropped | None = None
    if search.mode is not Mode.INCREMENTAL:
        try:
            return _whole(log, read_to, count)
        except LogDropped as error:
            dropped = error
            if search.mode is Mode.FULL:
                raise CheckpointRefused(f"{error}; spec.mode (--mode) is Full: take Auto, which goes on from a checkpoint") from error
    reasons: list[BaseUnusable] = []
    for candidate in candidates(search.folder, search.identity, search.at):
        try:
            return _from(spark, log, _usable(candidate), (read_to, count))
        except BaseUnusable as unusable:
            _log.warning("no base", reason=str(unusable))
            reasons.append(unusable)
    if dropped is None:
        return _whole(log, read_to, count)
    raise CheckpointRefused(
        f"{dropped}, and no checkpoint at the destination is a base ({described(reasons)}). Copy the tables into a new tablespace, "
        "whose log is whole, and make checkpoints more often than retentionHours"
    )


def _whole(log: LogSource, read_to: Lsn, count: int) -> Origin:
    return Origin(log.partitions(log.ledgers_up_to(read_to), count))


def _usable(candidate: Base | BaseUnusable) -> Base:
    if isinstance(candidate, BaseUnusable):
        raise candidate
    return candidate


def _from(spark: SparkSession, log: LogSource, base: Base, reading: tuple[Lsn, int]) -> Origin:
    read_to, count = reading
    try:
        ledgers = log.ledgers_up_to(read_to, base.start.restart)
    except LogDropped as error:
        raise BaseUnusable(f"{base.path.stem}: {error}") from error
    rows = load_rows(spark, base)
    _log.info("base", lsn=str(base.start.at), restart=str(base.start.restart), rows=sum(table.rows for table in base.manifest.tables))
    return Origin(log.partitions(ledgers, count, base.start.restart), rows)
