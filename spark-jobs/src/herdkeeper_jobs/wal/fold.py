"""Folds a decoded log into the rows of the tables at its end, with Spark. No I/O apart from Spark's.

The driver collects the few control entries (`outline`) and walks them in order (`timeline`). Then each row change is placed independently
(`batch_place`), so changes can be partitioned by key. The last change of a key in the order of application wins (`last_writer`). Tasks do
both on Arrow columns, and Spark moves their results: no row is a Python object.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark import Broadcast
from pyspark.sql import DataFrame, functions
from pyspark.sql.types import StructType

from herdkeeper.codecs.herddb.table import ColumnType, TableDefinition
from herdkeeper_jobs.spark_tasks import Batches, Work, map_in_tasks
from herdkeeper_jobs.wal.batch_place import PLACED_SCHEMA, BatchPlacing
from herdkeeper_jobs.wal.blocks import Blocks
from herdkeeper_jobs.wal.last_writer import SENT_SCHEMA, from_blocks, to_blocks
from herdkeeper_jobs.wal.lsn import Lsn
from herdkeeper_jobs.wal.task_log import TaskLog
from herdkeeper_jobs.wal.timeline import Timeline

_MAX_KEY_SCHEMA = pa.schema([("table_index", pa.int32()), ("highest", pa.binary())])
_NEVER_COUNTED = (1 << 63) - 1
"""HerdDB continues above the highest key plus one, and this one plus one is negative."""
_CHANGES_IN_A_PARTITION, _MOST_PARTITIONS = 500_000, 2_000
_CHANGE_NAMES = ("ledger_id", "entry_id", "type", "transaction_id", "table_name", "row_key", "row_value")


@dataclass(frozen=True, slots=True)
class BaseChanges:
    """Rows of a base (base_table, row_key, row_value) as changes applied at its LSN. `uuids`: its tables', by base_table."""

    rows: DataFrame
    uuids: Sequence[str]
    at: Lsn


@dataclass(frozen=True, slots=True)
class PlacedChanges:
    """Row changes of a log that tasks place by a timeline, on top of a base's rows if there is one. Lazy.

    `places`: the index in the timeline of each of the base's tables, None if its rows no longer count.
    """

    log: TaskLog
    placing: Broadcast[BatchPlacing]
    base: BaseChanges | None = None
    places: Sequence[int | None] = ()

    def in_tasks(self, work: Work, made: pa.Schema) -> DataFrame:
        """Applies `work` to each task's changes (`batch_place.PLACED_SCHEMA`). `made` is the result's schema.

        Tasks raise LogInconsistentError, which reaches the driver inside Spark's exception.
        """
        placing, base = self.placing, self.base

        def place(batches: Batches) -> Iterator[pa.RecordBatch]:
            return work(placing.value.place(batch) for batch in batches)

        placed = self.log.in_tasks(place, made, _CHANGE_NAMES)
        if base is None:
            return placed

        places, at = self.places, base.at

        def place_base(batches: Batches) -> Iterator[pa.RecordBatch]:
            return work(_placed_base(batch, places, at) for batch in batches)

        return placed.unionByName(map_in_tasks(base.rows, place_base, made))


def place_changes(log: TaskLog, timeline: Timeline) -> PlacedChanges:
    """Returns the row changes that are part of the final state, each with its table's index in the timeline and its LSN of application."""
    return PlacedChanges(log, log.tasks.sparkSession.sparkContext.broadcast(BatchPlacing(timeline)))


def with_base(placed: PlacedChanges, base: BaseChanges, timeline: Timeline) -> PlacedChanges:
    """Adds a base. Changes of a log that was walked from the base apply later, so they win over its rows."""
    return replace(placed, base=base, places=[timeline.place_of_base(uuid) for uuid in base.uuids])


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
    """The number of partitions to fold in. A task's changes fit into memory unless rows are large; then it uses its disk."""
    return max(2 * cores, min(-(-changes // _CHANGES_IN_A_PARTITION), _MOST_PARTITIONS))


@dataclass(frozen=True, slots=True)
class LastRows:
    """The remaining rows, made by tasks from blocks of changes. Further work runs in the same tasks."""

    sent: DataFrame
    blocks: Blocks

    def mapInArrow(self, func: Work, schema: StructType) -> DataFrame:  # noqa: N802 - Spark's name, so that rows in Spark serve as well
        """Applies `func` to each task's rows."""

        blocks = self.blocks

        def of_task(batches: Batches) -> Iterator[pa.RecordBatch]:
            return func(from_blocks(batches, blocks))

        return self.sent.mapInArrow(of_task, schema)


def last_changes(placed: PlacedChanges, partitions: int) -> LastRows:
    """Returns the remaining rows (table_index, row_key, row_value), partitioned by key."""
    blocks = placed.log.blocks

    def send(batches: Batches) -> Iterator[pa.RecordBatch]:
        return to_blocks(batches, partitions, blocks)

    return LastRows(placed.in_tasks(send, SENT_SCHEMA).repartitionById(partitions, functions.col("bucket")), blocks)


def highest_auto_increments(placed: PlacedChanges, timeline: Timeline, base: Mapping[str, int] | None = None) -> dict[str, int]:
    """Returns the highest key that any applied change named, by table uuid, of tables that have auto-increment or may have had it: HerdDB
    continues above it also after AUTO_INCREMENT was off. Deleted and truncated rows count, since HerdDB continues above both. The largest
    long does not. A text has no next key, though HerdDB lets one declare it AUTO_INCREMENT.

    A restore needs it to give no id twice. `base`: the highest keys at the start of the timeline.
    """
    numbered = {table.uuid: (position, table) for position, table in enumerate(timeline.tables) if _has_numeric_key(table)}
    known = {uuid: key for uuid, key in (base or {}).items() if uuid in numbered and key != _NEVER_COUNTED}
    wanted = dict(found for uuid, found in numbered.items() if found[1].auto_increment or uuid in known.keys() | timeline.altered)
    if not wanted:
        return known
    if timeline.truncated.keys() & {table.uuid for table in wanted.values()}:
        placed = _placed_by(replace(timeline, truncated={}), placed)
    sizes = {position: 8 if table.key_columns[0].type is ColumnType.LONG else 4 for position, table in wanted.items()}
    positions = pa.array(wanted, pa.int32())

    def highest(batches: Batches) -> Iterator[pa.RecordBatch]:
        return (found for batch in batches for found in _highest_keys(batch, positions))

    rows = placed.in_tasks(highest, _MAX_KEY_SCHEMA).groupBy("table_index").agg(functions.max("highest").alias("highest")).collect()
    found = {
        wanted[row["table_index"]].uuid: int.from_bytes(row["highest"], "big")
        for row in rows
        if len(row["highest"]) == sizes[row["table_index"]]
    }
    return {uuid: max(keys_[uuid] for keys_ in (known, found) if uuid in keys_) for uuid in known.keys() | found.keys()}


def _placed_by(timeline: Timeline, placed: PlacedChanges) -> PlacedChanges:
    """Returns the same changes, placed by another timeline."""
    again = place_changes(placed.log, timeline)
    return again if placed.base is None else with_base(again, placed.base, timeline)


def _has_numeric_key(table: TableDefinition) -> bool:
    """Returns whether the table may have auto-increment."""
    return [column.type for column in table.key_columns] in ([ColumnType.LONG], [ColumnType.INTEGER])


def _highest_keys(batch: pa.RecordBatch, tables: pa.Array) -> list[pa.RecordBatch]:
    """Returns each table's highest key. Big-endian bytes order positive numbers; negative ones come behind the largest long."""
    is_positive = pc.less(batch.column("row_key"), pa.scalar(_NEVER_COUNTED.to_bytes(8, "big"), pa.binary()))
    counted = batch.filter(pc.and_(is_positive, pc.is_in(batch.column("table_index"), tables)))
    highest = pa.Table.from_batches([counted]).group_by("table_index", use_threads=False).aggregate([("row_key", "max")])
    found: list[pa.RecordBatch] = highest.rename_columns(["table_index", "highest"]).to_batches()
    return found
