"""A decoded log that only tasks look into, batch by batch: in Spark it is blocks of many entries, or whatever else tasks make entries of.

Spark turns each row over several times between a task of Python and the next one, and whenever it keeps rows or reads what it kept. That
costs more than all that is done with an entry here, and nothing of it with blocks. What is asked of a log is few rows, so these are rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame

from herdkeeper_jobs.wal.decode import LOG_COLUMNS, LOG_SCHEMA
from herdkeeper_jobs.wal.lsn import Lsn

BLOCK_COLUMNS = "block binary"
BLOCK_BYTES = 4 * 1024 * 1024
_BLOCK_SCHEMA = pa.schema([("block", pa.binary())])
_LSN = ("ledger_id", "entry_id")
_DDL = dict(zip(LOG_SCHEMA.names, LOG_COLUMNS.split(", "), strict=True))
Batches = Iterable[pa.RecordBatch]
Work = Callable[[Batches], Iterator[pa.RecordBatch]]


@dataclass(frozen=True, slots=True)
class TaskLog:
    """The entries from `first` to `last`, both included, that `read` makes of what tasks get."""

    tasks: DataFrame
    read: Callable[[Batches, Sequence[str]], Iterator[pa.RecordBatch]]
    """Batches with the columns of LOG_SCHEMA that are asked for, and may have more of them."""
    first: Lsn | None = None
    last: Lsn | None = None

    @staticmethod
    def of_rows(log: DataFrame) -> TaskLog:
        """One that Spark has as rows (`decode.LOG_COLUMNS`)."""
        return TaskLog(log, lambda batches, _: iter(batches))

    @staticmethod
    def of_blocks(log: DataFrame) -> TaskLog:
        """One that Spark has as blocks (BLOCK_COLUMNS, made by `in_blocks`)."""
        return TaskLog(log, lambda batches, _: _from_blocks(batches))

    def since(self, lsn: Lsn) -> TaskLog:
        """The entries from an LSN on."""
        return replace(self, first=lsn if self.first is None else max(self.first, lsn))

    def up_to(self, lsn: Lsn) -> TaskLog:
        """The entries up to an LSN."""
        return replace(self, last=lsn if self.last is None else min(self.last, lsn))

    def in_tasks(self, work: Work, made: str, columns: Sequence[str] = LOG_SCHEMA.names) -> DataFrame:
        """What `work` makes of the entries of each task, which come with these columns; `made` are its result's, as Spark's DDL text."""
        read, first, last = self.read, self.first, self.last
        needed = [*columns, *(name for name in _LSN if name not in columns)]

        def of_task(batches: Batches) -> Iterator[pa.RecordBatch]:
            entries = (batch.select(needed) for batch in read(batches, needed))
            return work(_within(batch, first, last).select(columns) for batch in entries)

        return self.tasks.mapInArrow(of_task, made)

    def rows(self, *columns: str) -> DataFrame:
        """These columns of the entries, as rows."""
        return self.in_tasks(iter, ", ".join(_DDL[name] for name in columns), columns)


def as_task_log(log: DataFrame | TaskLog) -> TaskLog:
    """A log in either form."""
    return log if isinstance(log, TaskLog) else TaskLog.of_rows(log)


def in_blocks(batches: Batches) -> Iterator[pa.RecordBatch]:
    """Entries (LOG_SCHEMA) as blocks."""
    for batch in batches:
        rows = max(1, batch.num_rows * BLOCK_BYTES // max(1, batch.nbytes))
        for first in range(0, batch.num_rows, rows):
            yield pa.RecordBatch.from_arrays([packed(batch.slice(first, rows))], schema=_BLOCK_SCHEMA)


def packed(rows: pa.RecordBatch) -> pa.Array:
    """Rows in one binary value, as Arrow's stream."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as stream:
        stream.write_batch(rows)
    written = sink.getvalue()
    bounds = pa.py_buffer(np.array([0, written.size], np.int32))
    return pa.Array.from_buffers(pa.binary(), 1, [None, bounds, written])


def unpacked(blocks: pa.Array) -> Iterator[pa.RecordBatch]:
    """The rows of such values, which share their memory."""
    for block in blocks:
        with pa.ipc.open_stream(block.as_buffer()) as stream:
            yield from stream


def _from_blocks(batches: Batches) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        yield from unpacked(batch.column("block"))


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
