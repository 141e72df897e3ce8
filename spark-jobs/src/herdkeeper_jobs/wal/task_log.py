"""A decoded log that only tasks read, batch by batch. In Spark it consists of blocks (`blocks`), or of anything that tasks convert to
entries. Queries return few rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame

from herdkeeper_jobs.spark_tasks import Batches, Work, map_in_tasks
from herdkeeper_jobs.wal.blocks import Blocks
from herdkeeper_jobs.wal.decode import LOG_SCHEMA
from herdkeeper_jobs.wal.lsn import Lsn

_LSN = ("ledger_id", "entry_id")
Read = Callable[[Batches, Sequence[str]], Iterator[pa.RecordBatch]]
"""Makes entries of a task's input, in batches with the requested columns of LOG_SCHEMA, or more. Repeatable."""
Entries = Callable[[Sequence[str]], Iterator[pa.RecordBatch]]
"""Yields some entries of a log with the requested columns; may be called repeatedly."""


@dataclass(frozen=True, slots=True)
class TaskLog:
    """The entries from `first` to `last`, both included, that `read` makes of each task's input."""

    tasks: DataFrame
    read: Read
    first: Lsn | None = None
    last: Lsn | None = None
    blocks: Blocks = field(default_factory=Blocks)
    """How results travel to other tasks."""

    @staticmethod
    def of_blocks(log: DataFrame, blocks: Blocks) -> TaskLog:
        """From a log in blocks (made by `Blocks.of_batches`)."""
        return TaskLog(log, lambda batches, _: blocks.rows(batches), blocks=blocks)

    def since(self, lsn: Lsn) -> TaskLog:
        return replace(self, first=lsn if self.first is None else max(self.first, lsn))

    def up_to(self, lsn: Lsn) -> TaskLog:
        return replace(self, last=lsn if self.last is None else min(self.last, lsn))

    def has(self, lsn: Lsn) -> bool:
        """Whether an LSN is between the first and the last one."""
        return (self.first is None or self.first <= lsn) and (self.last is None or lsn <= self.last)

    def part(self, entries: pa.RecordBatch) -> pa.RecordBatch:
        """Those of `entries` between the first and the last one."""
        return _within(entries, self.first, self.last)

    def in_tasks(self, work: Work, made: pa.Schema, columns: Sequence[str] = LOG_SCHEMA.names) -> DataFrame:
        """Applies `work` to each task's entries, with these columns. `made` is the result's schema."""
        entries = partial(_entries, self.read, self.first, self.last)

        def of_task(batches: Batches) -> Iterator[pa.RecordBatch]:
            return work(entries(batches, columns))

        return map_in_tasks(self.tasks, of_task, made)

    def of_each_input(self, work: Callable[[Entries], Iterator[pa.RecordBatch]], made: pa.Schema) -> DataFrame:
        """Applies `work` to the entries of each input batch. It may read them repeatedly, first with few columns, so that rare columns are
        only read where needed. `made` is the result's schema."""
        entries = partial(_entries, self.read, self.first, self.last)

        def of_task(batches: Batches) -> Iterator[pa.RecordBatch]:
            for batch in batches:
                yield from work(partial(entries, [batch]))

        return map_in_tasks(self.tasks, of_task, made)

    def rows(self, *columns: str) -> DataFrame:
        """These columns of the entries, as rows."""
        return self.in_tasks(iter, pa.schema([LOG_SCHEMA.field(name) for name in columns]), columns)


def _entries(read: Read, first: Lsn | None, last: Lsn | None, batches: Batches, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """What a task reads of a log. Apart from TaskLog, which has what tasks can't get."""
    needed = [*columns, *(name for name in _LSN if name not in columns)]
    for batch in read(batches, needed):
        yield _within(batch.select(needed), first, last).select(columns)


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
