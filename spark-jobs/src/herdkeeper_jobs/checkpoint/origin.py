"""Chooses the origin of a checkpoint, the whole log or a base with the log behind it, and proves a base's files.

Checkpoints made from one another are a chain, and later ones repeat an error of an earlier one. So the whole log begins a new chain from
time to time, while bookies still have it. Dropped ledgers are read from the archive. An archive may be years long, so the whole log is
never folded from it if a base exists.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum

import structlog
from pyspark.sql import SparkSession

from herdkeeper_jobs.archive.parts import (
    UNLIMITED,
    ArchivePartition,
    LogParts,
    ReadBudget,
    WholeLog,
    archive_partitions,
    live_partitions,
    time_of,
)
from herdkeeper_jobs.archive.window import Window, recovery_window
from herdkeeper_jobs.bookkeeper.reader import EntryUnreadableError, PartitionSpec
from herdkeeper_jobs.checkpoint.base import (
    Base,
    BaseRows,
    BaseToRepair,
    BaseUnread,
    BaseUnusable,
    CheckpointBase,
    candidates,
    described,
    load_rows,
)
from herdkeeper_jobs.errors import BaseLockedAway, CheckpointRefused, CheckpointRetryable, LogDropped, NothingToBeginWith
from herdkeeper_jobs.manifests.manifest import Identity
from herdkeeper_jobs.storage.stored_path import StoredPath
from herdkeeper_jobs.wal.fold import PlacedChanges, with_base
from herdkeeper_jobs.wal.log_state import StartingPoint
from herdkeeper_jobs.wal.lsn import Lsn
from herdkeeper_jobs.wal.moment import Time
from herdkeeper_jobs.wal.timeline import Timeline

_log = structlog.get_logger()


class Mode(StrEnum):
    """What the user asks for."""

    AUTO = "Auto"
    """A base if there is one; the whole log if its chain is due for it and bookies have the log."""
    FULL = "Full"
    """The whole log, or failure."""
    INCREMENTAL = "Incremental"
    """A base if there is one, else the whole log."""


@dataclass(frozen=True, slots=True)
class Search:
    """The search for a base: checkpoints of `identity` below `folder` that hold nothing after the moment `at`.

    `due_before`, in milliseconds since the epoch: `Auto` does not continue a chain whose last whole read is older. Nor one whose last whole
    read is later than `now`: the clock of its job was ahead.
    """

    folder: StoredPath
    identity: Identity
    mode: Mode
    at: Lsn | Time
    due_before: int = 0
    now: int = sys.maxsize

    def asks_for_whole_log(self, base: CheckpointBase) -> bool:
        """Whether `Auto` prefers the whole log to this base. An unknown last whole read counts as too old."""
        return self.mode is Mode.AUTO and (base.whole_log_at is None or not self.due_before <= base.whole_log_at <= self.now)


@dataclass(frozen=True, slots=True)
class Origin:
    """What is read: partitions of the log and of its archive, and a base's rows. `entries` is their number; partitions may begin before the
    first needed LSN and end after the last. `passed_over`: newer checkpoints than the base, with why each is unusable. Call `release` when
    done."""

    archived: tuple[ArchivePartition, ...]
    live: tuple[PartitionSpec, ...]
    entries: int
    rows: BaseRows | None = None
    passed_over: tuple[BaseUnusable, ...] = ()

    @property
    def base(self) -> Base | None:
        """None for the whole log."""
        return None if self.rows is None else self.rows.base

    @property
    def start(self) -> StartingPoint | None:
        """Where the walk of the log begins."""
        return None if self.rows is None else self.rows.base.start

    @property
    def base_rows(self) -> int:
        return 0 if self.base is None else sum(table.digest.rows for table in self.base.tables)

    def with_rows(self, placed: PlacedChanges, timeline: Timeline) -> PlacedChanges:
        """Puts the placed changes of the log on top of the base's rows."""
        return placed if self.rows is None else with_base(placed, self.rows.changes, timeline)

    def release(self) -> None:
        """Frees the disk."""
        if self.rows is not None:
            self.rows.release()


def choose_origin(spark: SparkSession, log: WholeLog, search: Search, read_to: Lsn, budget: ReadBudget = UNLIMITED) -> Origin:
    """Chooses what to read for a checkpoint up to an LSN, within a budget for each bookie.

    Raises:
        NothingToBeginWith: the log is not whole and there is no base; says why each checkpoint is unusable. BaseLockedAway if one waits
            for its key.
        CheckpointRefused: the mode is Full, and the log is not whole.
        CheckpointRetryable: as `WholeLog.parts_up_to`; also if there is neither, but a checkpoint could not be read now.
    """
    if search.mode is Mode.FULL:
        try:
            return _origin(spark, log, log.parts_up_to(read_to), budget)
        except LogDropped as error:
            raise CheckpointRefused(f"{error}; spec.mode (--mode) is Full: set Auto, which continues from a checkpoint") from error
    reasons: list[BaseUnusable] = []
    for candidate in candidates(search.folder, search.identity, search.at):
        try:
            base = _usable(candidate)
            whole = whole_live_log(spark, log, read_to, budget) if search.asks_for_whole_log(base) else None
            return replace(whole or _origin_from_base(spark, log, base, read_to, budget), passed_over=tuple(reasons))
        except BaseUnusable as unusable:
            _log.warning("no base", reason=str(unusable))
            reasons.append(unusable)
    try:
        return replace(_origin(spark, log, log.parts_up_to(read_to), budget), passed_over=tuple(reasons))
    except LogDropped as error:
        raise _no_origin(str(error), reasons, lambda: recovery_window(log, search.folder, search.at)) from error


def whole_live_log(spark: SparkSession, log: WholeLog, read_to: Lsn, budget: ReadBudget) -> Origin | None:
    """The whole log from bookies; None if they lack a part. Raises CheckpointRetryable as `WholeLog.live_up_to`."""
    try:
        return _origin(spark, log, log.live_up_to(read_to), budget)
    except LogDropped as error:
        _log.info("log not whole", reason=str(error))
        return None


def _no_origin(missing: str, reasons: list[BaseUnusable], window: Callable[[], Window | None]) -> CheckpointRefused | CheckpointRetryable:
    """The error without an origin: NothingToBeginWith only if every existing checkpoint proved unusable."""
    unread = [reason for reason in reasons if isinstance(reason, BaseUnread)]
    if unread:
        return CheckpointRetryable(f"{missing}, and whether a checkpoint at the destination is a base is not known ({described(unread)})")
    to_repair = [reason for reason in reasons if isinstance(reason, BaseToRepair)]
    no_base = described([*to_repair, *(reason for reason in reasons if reason not in to_repair)])
    kind = BaseLockedAway if to_repair else NothingToBeginWith
    return kind(_refusal(missing, no_base, window()), missing, no_base)


def _refusal(missing: str, no_base: str, window: Window | None) -> str:
    """Names the possible moments first: a long list of reasons may be cut off."""
    if window is not None:
        return f"{missing}. With the archive, {window}: take one of these. No checkpoint at the destination is a base ({no_base})"
    return (
        f"{missing}, and no checkpoint at the destination is a base ({no_base}). Copy the tables into a new tablespace, "
        "whose log is whole, and archive it (spec.log.archive of the Tablespace), or make checkpoints less than retentionHours apart"
    )


def _origin(spark: SparkSession, log: WholeLog, parts: LogParts, budget: ReadBudget, rows: BaseRows | None = None) -> Origin:
    tasks = 3 * spark.sparkContext.defaultParallelism
    archived = archive_partitions(parts, log.folder, tasks)
    live = live_partitions(parts, log.log, tasks, budget)
    return Origin(archived, live, parts.entries, rows)


def origin_from(spark: SparkSession, log: WholeLog, rows: BaseRows, read_to: Lsn, budget: ReadBudget) -> Origin:
    """Returns what to read behind these rows. Raises CheckpointRefused if the log behind them is gone, and CheckpointRetryable as
    `WholeLog.parts_up_to`."""
    return _origin(spark, log, log.parts_up_to(read_to, rows.base.start.restart), budget, rows)


def _usable(candidate: CheckpointBase | BaseUnusable) -> CheckpointBase:
    if isinstance(candidate, BaseUnusable):
        raise candidate
    return candidate


def require_its_log(log: WholeLog, parts: LogParts, base: CheckpointBase) -> None:
    """Checks that the base's last entry is the log's. `parts` continue the base, and begin with that entry or before.

    A cluster that was put back to older copies of its volumes has the same identity, and writes its lost LSNs anew. It writes them later,
    so an entry's time tells the two logs apart. Raises BaseUnusable, or BaseUnread if the entry can't be read now.
    """
    try:
        found = time_of(parts, log, base.start.at)
    except EntryUnreadableError as error:
        raise BaseUnread(f"{base.path.stem}: {error}") from error
    if found is None or base.manifest.lsn_timestamp_millis not in (None, found):
        raise BaseUnusable(
            f"{base.path.stem}: the log has {'no entry' if found is None else 'another entry'} at its LSN: the cluster was put back to an "
            "earlier state, or made from copies of another one's volumes"
        )


def _origin_from_base(spark: SparkSession, log: WholeLog, base: CheckpointBase, read_to: Lsn, budget: ReadBudget) -> Origin:
    if base.start.at > read_to:
        raise BaseUnusable(f"{base.path.stem}: the log is confirmed up to {read_to} only")
    try:
        parts = log.parts_up_to(read_to, base.start.restart)
    except LogDropped as error:
        raise BaseUnusable(f"{base.path.stem}: {error}") from error
    require_its_log(log, parts, base)
    rows = load_rows(spark, base)
    _log.info("base", lsn=str(base.start.at), restart=str(base.start.restart), rows=sum(table.rows for table in base.manifest.tables))
    return _origin(spark, log, parts, budget, rows)
