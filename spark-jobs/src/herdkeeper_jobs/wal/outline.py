"""What the driver learns from one pass over a decoded log: its extent, and the entries that change no row. Tasks read few columns, and
return little."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Row

from herdkeeper.codecs.herddb.log_entry import ROW_CHANGES, LogEntryType
from herdkeeper_jobs.wal.blocks import Blocks
from herdkeeper_jobs.wal.log_state import StartingPoint
from herdkeeper_jobs.wal.lsn import Lsn
from herdkeeper_jobs.wal.spans import BOUNDARY_NAMES, BOUNDARY_SCHEMA, Control, ControlEntry
from herdkeeper_jobs.wal.task_log import Entries, TaskLog
from herdkeeper_jobs.wal.timeline import Timeline, walk

_EXTENT_NAMES = ("entries", "ledger_id", "entry_id", "timestamp", "latest")
_EXTENT_SCHEMA = pa.schema([(name, pa.int64()) for name in _EXTENT_NAMES])
_OUTLINE_SCHEMA = _EXTENT_SCHEMA.append(pa.field("block", pa.binary()))
"""An extent, or a block of control entries."""
_DEFINITION_NAMES = (*BOUNDARY_NAMES, "table_name", "row_value")
_KINDS = {int(kind): kind for kind in LogEntryType}
_BOUNDARIES = pa.array([int(kind) for kind in (LogEntryType.BEGIN, LogEntryType.COMMIT, LogEntryType.ROLLBACK)], pa.int32())
"""Boundaries of transactions: they have neither name nor value."""
_NOT_CONTROL = pa.array([int(kind) for kind in (*ROW_CHANGES, LogEntryType.NOOP, LogEntryType.CONSISTENCY_CHECK)], pa.int32())


@dataclass(frozen=True, slots=True)
class LogExtent:
    """What a log holds, to compare with what it should hold."""

    entries: int
    last_timestamp_millis: int | None
    """Of the last entry, by the clock of its leader; None for an empty log."""
    latest_timestamp_millis: int | None
    """The latest of all entries."""


@dataclass(frozen=True, slots=True)
class LogOutline:
    """A log without its row changes."""

    extent: LogExtent
    control: Control


def log_outline(log: TaskLog) -> LogOutline:
    """Scans a log once."""
    found = log.of_each_input(_outline, _OUTLINE_SCHEMA).collect()
    blocks = pa.RecordBatch.from_pydict({"block": pa.array([row["block"] for row in found if row["block"] is not None], pa.binary())})
    boundaries = [BOUNDARY_SCHEMA.empty_table()]
    definitions: list[ControlEntry] = []
    for batch in Blocks().rows([blocks]):
        if batch.schema.names == list(BOUNDARY_NAMES):
            boundaries.append(pa.Table.from_batches([batch]).cast(BOUNDARY_SCHEMA))
        else:
            definitions += _entries_of(batch)
    in_columns = pa.concat_tables(boundaries).combine_chunks()
    one = pa.RecordBatch.from_arrays([column.combine_chunks() for column in in_columns.columns], schema=BOUNDARY_SCHEMA)
    return LogOutline(_extent_of([row for row in found if row["block"] is None]), Control(one, tuple(sorted(definitions))))


def log_extent(log: TaskLog) -> LogExtent:
    """Counts the entries of a log, and finds the last entry's time and the latest time."""
    return _extent_of(log.in_tasks(_extents, _EXTENT_SCHEMA, ("ledger_id", "entry_id", "timestamp")).collect())


def _extent_of(parts: Sequence[Row]) -> LogExtent:
    last = max(((row["ledger_id"], row["entry_id"], row["timestamp"]) for row in parts), default=None)
    latest = max((row["latest"] for row in parts), default=None)
    return LogExtent(sum(row["entries"] for row in parts), None if last is None else last[2], latest)


def _extents(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yields, per batch, its number of entries, its last entry, and its latest time."""
    for batch in batches:
        if batch.num_rows:
            ledgers, entries, times = (batch.column(name).to_numpy() for name in ("ledger_id", "entry_id", "timestamp"))
            in_last_ledger = np.flatnonzero(ledgers == ledgers.max())
            last = in_last_ledger[np.argmax(entries[in_last_ledger])]
            row = [batch.num_rows, ledgers[last], entries[last], times[last], times.max()]
            yield pa.RecordBatch.from_arrays([pa.array([value], pa.int64()) for value in row], schema=_EXTENT_SCHEMA)


def _outline(entries: Entries) -> Iterator[pa.RecordBatch]:
    """Yields extents, then control entries as blocks. Names and values, the bulk of a log, are only read where definitions are, which is
    rare."""
    boundaries: list[pa.RecordBatch] = []
    defines = False
    for batch in entries((*BOUNDARY_NAMES, "timestamp")):
        for extent in _extents([batch]):
            yield pa.RecordBatch.from_arrays([*extent.columns, pa.nulls(1, pa.binary())], schema=_OUTLINE_SCHEMA)
        is_boundary = pc.is_in(batch.column("type"), _BOUNDARIES)
        boundaries.append(batch.select(BOUNDARY_NAMES).filter(is_boundary))
        defines = defines or not pc.all(pc.or_(is_boundary, pc.is_in(batch.column("type"), _NOT_CONTROL)), min_count=0).as_py()
    if boundaries:
        yield from _in_blocks([pa.concat_batches(boundaries)])
    if defines:
        yield from _in_blocks(_definitions(batch) for batch in entries(_DEFINITION_NAMES))


def _in_blocks(control: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for block in Blocks().of_batches(control):
        nothing = [pa.nulls(block.num_rows, pa.int64())] * len(_EXTENT_NAMES)
        yield pa.RecordBatch.from_arrays([*nothing, block.column("block")], schema=_OUTLINE_SCHEMA)


def _definitions(batch: pa.RecordBatch) -> pa.RecordBatch:
    kinds = batch.column("type")
    return batch.filter(pc.invert(pc.or_(pc.is_in(kinds, _BOUNDARIES), pc.is_in(kinds, _NOT_CONTROL))))


def _entries_of(batch: pa.RecordBatch) -> Iterator[ControlEntry]:
    ledgers, entries, kinds, *rest = (column.to_pylist() for column in batch.columns)
    return map(ControlEntry, map(Lsn, ledgers, entries), map(_KINDS.__getitem__, kinds), *rest)


def log_timeline(log: TaskLog, start: StartingPoint | None = None, outline: LogOutline | None = None) -> Timeline:
    """Returns the timeline of a log, continuing from `start`, or from nothing.

    `outline`: of this log, or of one that contains it; None: it is made. Raises as `timeline.walk`.
    """
    control = (log_outline(log) if outline is None else outline).control
    definitions = tuple(entry for entry in control.definitions if log.has(entry.lsn))
    return walk(Control(log.part(control.boundaries), definitions), start)
