"""A decoded log that only tasks look into, batch by batch: in Spark it is blocks of many entries (`blocks`), or whatever else tasks make
entries of. What is asked of a log is few rows, so these are rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame

from herdkeeper_jobs.wal.blocks import Batches, Blocks
from herdkeeper_jobs.wal.decode import LOG_COLUMNS, LOG_SCHEMA
from herdkeeper_jobs.wal.lsn import Lsn

_LSN = ("ledger_id", "entry_id")
_DDL = dict(zip(LOG_SCHEMA.names, LOG_COLUMNS.split(", "), strict=True))
Work = Callable[[Batches], Iterator[pa.RecordBatch]]
Entries = Callable[[Sequence[str]], Iterator[pa.RecordBatch]]
"""Some entries of a log, with the columns that are asked for, as often as it is asked."""


@dataclass(frozen=True, slots=True)
class TaskLog:
    """The entries from `first` to `last`, both included, that `read` makes of what tasks get."""

    tasks: DataFrame
    read: Callable[[Batches, Sequence[str]], Iterator[pa.RecordBatch]]
    """Batches with the columns of LOG_SCHEMA that are asked for, and may have more of them. The same ones each time."""
    first: Lsn | None = None
    last: Lsn | None = None
    blocks: Blocks = field(default_factory=Blocks)
    """How what tasks make of it travels to other tasks."""

    @staticmethod
    def of_rows(log: DataFrame) -> TaskLog:
        """One that Spark has as rows (`decode.LOG_COLUMNS`)."""
        return TaskLog(log, lambda batches, _: iter(batches))

    @staticmethod
    def of_blocks(log: DataFrame, blocks: Blocks) -> TaskLog:
        """One that Spark has as blocks (made by `Blocks.of_batches`)."""
        return TaskLog(log, lambda batches, _: blocks.rows(batches), blocks=blocks)

    def since(self, lsn: Lsn) -> TaskLog:
        """The entries from an LSN on."""
        return replace(self, first=lsn if self.first is None else max(self.first, lsn))

    def up_to(self, lsn: Lsn) -> TaskLog:
        """The entries up to an LSN."""
        return replace(self, last=lsn if self.last is None else min(self.last, lsn))

    def has(self, lsn: Lsn) -> bool:
        """Whether an LSN lies between the first and the last one."""
        return (self.first is None or self.first <= lsn) and (self.last is None or lsn <= self.last)

    def part(self, entries: pa.RecordBatch) -> pa.RecordBatch:
        """Those of some entries that lie between the first and the last one."""
        return _within(entries, self.first, self.last)

    def in_tasks(self, work: Work, made: str, columns: Sequence[str] = LOG_SCHEMA.names) -> DataFrame:
        """What `work` makes of the entries of each task, which come with these columns; `made` are its result's, as Spark's DDL text."""
        reader = _Reader(self.read, self.first, self.last)

        def of_task(batches: Batches) -> Iterator[pa.RecordBatch]:
            return work(reader.entries(batches, columns))

        return self.tasks.mapInArrow(of_task, made)

    def of_each_input(self, work: Callable[[Entries], Iterator[pa.RecordBatch]], made: str) -> DataFrame:
        """What `work` makes of the entries of each batch that a task gets. It may read them more than once, first with few columns, so that
        columns which only some entries have are read where those are; `made` are its result's, as Spark's DDL text."""
        reader = _Reader(self.read, self.first, self.last)

        def of_task(batches: Batches) -> Iterator[pa.RecordBatch]:
            for batch in batches:
                yield from work(partial(reader.entries, [batch]))

        return self.tasks.mapInArrow(of_task, made)

    def rows(self, *columns: str) -> DataFrame:
        """These columns of the entries, as rows."""
        return self.in_tasks(iter, ", ".join(_DDL[name] for name in columns), columns)


@dataclass(frozen=True, slots=True)
class _Reader:
    """What tasks need of a TaskLog."""

    read: Callable[[Batches, Sequence[str]], Iterator[pa.RecordBatch]]
    first: Lsn | None
    last: Lsn | None

    def entries(self, batches: Batches, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        needed = [*columns, *(name for name in _LSN if name not in columns)]
        for batch in self.read(batches, needed):
            yield _within(batch.select(needed), self.first, self.last).select(columns)


def as_task_log(log: DataFrame | TaskLog) -> TaskLog:
    """A log in either form."""
    return log if isinstance(log, TaskLog) else TaskLog.of_rows(log)


def _within(batch: pa.RecordBatch, first: Lsn | None, last: Lsn | None) -> pa.RecordBatch:
    if first is None and last is None:
        return batch
    ledgers, entries = (batch.column(name).to_numpy() for name in _LSN)
    kept = np.ones(batch.num_rows, np.bool_)
    if first is not None:
        kept &= (ledgers > first.ledger_id) | ((ledgers == first.ledger_id) & (entries >= first.entry_id))
    if last is not None:
        kept &= (ledgers < last.ledger_id) | ((ledgers == last.ledger_id) & (entries <= last.entry_id))
    return batch if kept.all() else batch.filter(pa.array(kept))
