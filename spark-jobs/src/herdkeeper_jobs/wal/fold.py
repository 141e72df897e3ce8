"""Folds a decoded log into the rows of the tables at its end, with Spark. DataFrame to DataFrame; reads and writes nothing outside.

First the control entries, which are few, are collected (`outline`) and walked in order on the driver (`timeline`). Then every row change
finds its place by itself (`batch_place`), so that the changes can be spread by key; of the changes of a key the last one in the order of
application wins (`last_writer`). Tasks do both on Arrow's columns, and Spark moves what they made of them: no row is a Python object.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark import Broadcast
from pyspark.sql import DataFrame, Row, functions

from herdkeeper.codecs.herddb.table import ColumnType
from herdkeeper_jobs.wal.batch_place import PLACED_SCHEMA, BatchPlacing
from herdkeeper_jobs.wal.blocks import Blocks
from herdkeeper_jobs.wal.last_writer import LAST_COLUMNS, SENT_COLUMNS, from_blocks, to_blocks
from herdkeeper_jobs.wal.lsn import Lsn
from herdkeeper_jobs.wal.task_log import TaskLog, Work, as_task_log
from herdkeeper_jobs.wal.timeline import Timeline

_MAX_KEY_COLUMNS = "table_index int, highest binary"
_MAX_KEY_SCHEMA = pa.schema([("table_index", pa.int32()), ("highest", pa.binary())])
_CHANGES_IN_A_PARTITION, _MOST_PARTITIONS = 500_000, 2_000
_CHANGE_NAMES = ("ledger_id", "entry_id", "type", "transaction_id", "table_name", "row_key", "row_value")


@dataclass(frozen=True, slots=True)
class BaseChanges:
    """Rows of a base checkpoint (base_table, row_key, row_value) as changes that were applied at its LSN. `places`: of each of its tables
    the index in the timeline, None for one whose rows count no more."""

    rows: DataFrame
    places: Sequence[int | None]
    at: Lsn


@dataclass(frozen=True, slots=True)
class PlacedChanges:
    """Row changes of a log, which tasks place by a timeline, on top of the rows of a base if there is one. Nothing is computed yet."""

    log: TaskLog
    placing: Broadcast[BatchPlacing]
    base: BaseChanges | None = None

    def in_tasks(self, work: Work, columns: str) -> DataFrame:
        """What `work` makes of the changes of each task (`batch_place.PLACED_SCHEMA`); `columns` are its result's, as Spark's DDL text.

        A task raises LogInconsistentError, which reaches the driver inside Spark's own exception.
        """
        placing, base = self.placing, self.base

        def place(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            return work(placing.value.place(batch) for batch in batches)

        placed = self.log.in_tasks(place, columns, _CHANGE_NAMES)
        if base is None:
            return placed

        places, at = base.places, base.at

        def place_base(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            return work(_placed_base(batch, places, at) for batch in batches)

        return placed.unionByName(base.rows.mapInArrow(place_base, columns))


def place_changes(log: DataFrame | TaskLog, timeline: Timeline) -> PlacedChanges:
    """The row changes that are part of the state at the end, each with its table's index in the timeline and its LSN of application."""
    task_log = as_task_log(log)
    return PlacedChanges(task_log, task_log.tasks.sparkSession.sparkContext.broadcast(BatchPlacing(timeline)))


def with_base(placed: PlacedChanges, base: BaseChanges) -> PlacedChanges:
    """Placed changes, and those of a base. What is placed of a log that was walked from there applies later, so each change wins over the
    base's row."""
    return replace(placed, base=base)


def _placed_base(batch: pa.RecordBatch, places: Sequence[int | None], at: Lsn) -> pa.RecordBatch:
    index = pa.array(places, pa.int32()).take(batch.column("base_table"))
    if index.null_count:
        batch, index = batch.filter(index.is_valid()), index.drop_null()
    nothing_between = pa.array(np.full(batch.num_rows, -1))
    columns = [
        index,
        batch.column("row_key"),
        batch.column("row_value"),
        pa.array(np.zeros(batch.num_rows, np.bool_)),
        pa.array(np.full(batch.num_rows, at.ledger_id)),
        pa.array(np.full(batch.num_rows, at.entry_id)),
        nothing_between,
        nothing_between,
    ]
    return pa.RecordBatch.from_arrays(columns, schema=PLACED_SCHEMA)


def fold_partitions(cores: int, changes: int) -> int:
    """In how many partitions to fold: each is a task, whose changes fit into memory unless rows are large (then it uses its disk)."""
    return max(2 * cores, min(-(-changes // _CHANGES_IN_A_PARTITION), _MOST_PARTITIONS))


@dataclass(frozen=True, slots=True)
class LastRows:
    """Rows that tasks make of blocks of changes: what comes next is done in the same tasks."""

    sent: DataFrame
    blocks: Blocks

    def mapInArrow(self, func: Work, schema: str) -> DataFrame:  # noqa: N802 - Spark's name, so that rows in Spark serve as well
        """What `func` makes of the rows of each task."""

        blocks = self.blocks

        def of_task(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            return func(from_blocks(batches, blocks))

        return self.sent.mapInArrow(of_task, schema)

    def collect(self) -> list[Row]:
        """The rows, on the driver."""
        return self.mapInArrow(iter, LAST_COLUMNS).collect()


def last_changes(placed: PlacedChanges, partitions: int) -> LastRows:
    """The rows that are left: table_index, row_key, row_value, partitioned by key."""
    blocks = placed.log.blocks

    def send(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return to_blocks(batches, partitions, blocks)

    return LastRows(placed.in_tasks(send, SENT_COLUMNS).repartitionById(partitions, functions.col("bucket")), blocks)


def highest_auto_increments(placed: PlacedChanges, timeline: Timeline, base: Mapping[str, int] | None = None) -> dict[str, int]:
    """Per uuid of a table with auto-increment, the highest key that any applied change named: a deleted top row counts too, and so does
    what a TRUNCATE took, since HerdDB goes on above both.

    A restore needs it, or ids would be given twice. `base` has the highest keys at the start of the timeline.
    """
    wanted = {position: table for position, table in enumerate(timeline.tables) if table.auto_increment}
    if not wanted:
        return {}
    known = {uuid: key for uuid, key in (base or {}).items() if timeline.positions.get(uuid) in wanted}
    if timeline.truncated.keys() & {table.uuid for table in wanted.values()}:
        placed = place_changes(placed.log, replace(timeline, truncated={}))
    sizes = {position: 8 if table.key_columns[0].type is ColumnType.LONG else 4 for position, table in wanted.items()}
    positions = list(wanted)

    def highest(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return (_highest_keys(batch, positions) for batch in batches)

    rows = placed.in_tasks(highest, _MAX_KEY_COLUMNS).groupBy("table_index").agg(functions.max("highest").alias("highest")).collect()
    found = {
        wanted[row["table_index"]].uuid: int.from_bytes(row["highest"], "big")
        for row in rows
        if len(row["highest"]) == sizes[row["table_index"]]
    }
    return {uuid: max(keys_[uuid] for keys_ in (known, found) if uuid in keys_) for uuid in known.keys() | found.keys()}


def _highest_keys(batch: pa.RecordBatch, tables: Sequence[int]) -> pa.RecordBatch:
    """Of each of these tables the highest key. As bytes the highest key of positive numbers is the highest number; negative ones are told
    apart by their first bit."""
    positive = batch.filter(pc.less(batch.column("row_key"), pa.scalar(b"\x80", pa.binary())))
    indexes = positive.column("table_index")
    found = [(table, pc.max(positive.filter(pc.equal(indexes, pa.scalar(table, pa.int32()))).column("row_key"))) for table in tables]
    rows = [{"table_index": table, "highest": key.as_py()} for table, key in found if key.is_valid]
    return pa.RecordBatch.from_pylist(rows, schema=_MAX_KEY_SCHEMA)
