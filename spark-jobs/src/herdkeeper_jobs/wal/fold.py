"""Folds a decoded log into the rows of the tables at its end, with Spark. DataFrame to DataFrame; reads and writes nothing outside.

First the control entries, which are few, are collected and walked in order on the driver (`timeline`). Then every row change finds its
place by itself, so that the changes can be spread by key; of the changes of a key the last one in the order of application wins.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame, functions

from herdkeeper.formats.herddb_log_entry import ROW_CHANGES, LogEntryType
from herdkeeper.formats.herddb_table import ColumnType
from herdkeeper_jobs.wal.log_state import StartingPoint
from herdkeeper_jobs.wal.lsn import Lsn
from herdkeeper_jobs.wal.timeline import Begins, ControlEntry, Placement, Timeline, Touch, walk

_PLACED_COLUMNS = (
    "table_index int, row_key binary, row_value binary, deleted boolean, "
    "applied_ledger long, applied_entry long, ledger_id long, entry_id long"
)
_PLACED_SCHEMA = pa.schema(
    [
        ("table_index", pa.int32()),
        ("row_key", pa.binary()),
        ("row_value", pa.binary()),
        ("deleted", pa.bool_()),
        ("applied_ledger", pa.int64()),
        ("applied_entry", pa.int64()),
        ("ledger_id", pa.int64()),
        ("entry_id", pa.int64()),
    ]
)
_TOUCHING_COLUMNS = "ledger_id long, entry_id long, transaction_id long, table_name string, begin_ledger long, begin_entry long"
_TOUCHING_SCHEMA = pa.schema(
    [
        ("ledger_id", pa.int64()),
        ("entry_id", pa.int64()),
        ("transaction_id", pa.int64()),
        ("table_name", pa.string()),
        ("begin_ledger", pa.int64()),
        ("begin_entry", pa.int64()),
    ]
)
_NOT_CONTROL = [int(kind) for kind in (*ROW_CHANGES, LogEntryType.NOOP, LogEntryType.CONSISTENCY_CHECK)]
_CHANGES = [int(kind) for kind in ROW_CHANGES]


@dataclass(frozen=True, slots=True)
class LogExtent:
    """What a log holds, to compare with what it should hold."""

    entries: int
    last_timestamp_millis: int | None
    """Of the last entry, by the clock of its leader; None for an empty log."""
    latest_timestamp_millis: int | None
    """The latest of all entries."""


def log_extent(log: DataFrame) -> LogExtent:
    """Counts the entries of a decoded log and finds the last one's time, and the latest."""
    last = functions.max_by("timestamp", functions.struct("ledger_id", "entry_id"))
    row = log.agg(functions.count("*").alias("entries"), last.alias("last"), functions.max("timestamp").alias("latest")).first()
    assert row is not None
    return LogExtent(row["entries"], row["last"], row["latest"])


def log_timeline(log: DataFrame, start: StartingPoint | None = None) -> Timeline:
    """The timeline of a decoded log (columns `decode.LOG_COLUMNS`), which goes on from `start`, or begins with nothing.

    Raises what `timeline.walk` raises.
    """
    rows = (
        log.where(~functions.col("type").isin(_NOT_CONTROL))
        .select("ledger_id", "entry_id", "type", "transaction_id", "table_name", "row_value")
        .collect()
    )
    entries = sorted(
        ControlEntry(Lsn(row[0], row[1]), LogEntryType(row[2]), row[3], row[4], bytes(row[5]))
        for row in rows  # one per transaction boundary and definition
        if start is None or Lsn(row[0], row[1]) > start.at
    )
    truncated = sorted({entry.table for entry in entries if entry.type is LogEntryType.TRUNCATE})
    return walk(entries, _touches(log, truncated, Begins.of(entries, start)) if truncated else (), start)


def _touches(log: DataFrame, tables: list[str], begins: Begins) -> list[Touch]:
    """The first change of each of these tables by each transaction."""
    broadcast = log.sparkSession.sparkContext.broadcast(begins)

    def with_begin(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return (_touching(batch, broadcast.value) for batch in batches)

    changes = log.where(
        functions.col("type").isin(_CHANGES) & (functions.col("transaction_id") > 0) & functions.col("table_name").isin(tables)
    ).select("ledger_id", "entry_id", "transaction_id", "table_name")
    first = functions.min(functions.struct("ledger_id", "entry_id"))
    rows = (
        changes.mapInArrow(with_begin, _TOUCHING_COLUMNS)
        .groupBy("transaction_id", "table_name", "begin_ledger", "begin_entry")
        .agg(first.alias("first"))
        .collect()
    )
    return [
        Touch(row["transaction_id"], row["table_name"], Lsn(row["begin_ledger"], row["begin_entry"]), Lsn(*row["first"])) for row in rows
    ]


def _touching(batch: pa.RecordBatch, begins: Begins) -> pa.RecordBatch:
    """Changes with the begin of their transaction. Those without one are left out: their placing fails and names them."""
    ledgers, entries, transactions = (batch.column(name).to_pylist() for name in ("ledger_id", "entry_id", "transaction_id"))
    found = [
        begins.of_change(Lsn(ledger, entry), transaction) for ledger, entry, transaction in zip(ledgers, entries, transactions, strict=True)
    ]
    kept = batch.filter(pa.array([begin is not None for begin in found], pa.bool_()))
    lives = [begin for begin in found if begin is not None]
    begun = [pa.array([begin.ledger_id for begin in lives], pa.int64()), pa.array([begin.entry_id for begin in lives], pa.int64())]
    return pa.RecordBatch.from_arrays([*kept.columns, *begun], schema=_TOUCHING_SCHEMA)


def place_changes(log: DataFrame, timeline: Timeline) -> DataFrame:
    """The row changes that are part of the state at the end, each with its table's index in the timeline and its LSN of application.

    A task raises LogInconsistentError, which reaches the driver inside Spark's own exception.
    """
    broadcast = log.sparkSession.sparkContext.broadcast(timeline)

    def place(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return _placed(batches, broadcast.value.place)

    return log.where(functions.col("type").isin(_CHANGES)).mapInArrow(place, _PLACED_COLUMNS)


def _placed(batches: Iterable[pa.RecordBatch], place: Callable[[Lsn, int, str], Placement | None]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        ledgers, entries, transactions, tables = (
            batch.column(name).to_pylist() for name in ("ledger_id", "entry_id", "transaction_id", "table_name")
        )
        kept: list[int] = []
        indexes: list[int] = []
        applied: list[Lsn] = []
        for row, (ledger, entry, transaction, table) in enumerate(zip(ledgers, entries, transactions, tables, strict=True)):
            placement = place(Lsn(ledger, entry), transaction, table)
            if placement is not None:
                kept.append(row)
                indexes.append(placement.table)
                applied.append(placement.applied)
        rows = batch.take(pa.array(kept, pa.int64()))
        deleted = pa.array([kind == LogEntryType.DELETE for kind in rows.column("type").to_pylist()], pa.bool_())
        columns = [
            pa.array(indexes, pa.int32()),
            rows.column("row_key"),
            rows.column("row_value"),
            deleted,
            pa.array([lsn.ledger_id for lsn in applied], pa.int64()),
            pa.array([lsn.entry_id for lsn in applied], pa.int64()),
            rows.column("ledger_id"),
            rows.column("entry_id"),
        ]
        yield pa.RecordBatch.from_arrays(columns, schema=_PLACED_SCHEMA)


def with_base(placed: DataFrame, base: DataFrame, at: Lsn) -> DataFrame:
    """Placed changes, and the rows of a base checkpoint at an LSN (table_index, row_key, row_value) as changes that were applied there.

    What is placed of a log that was walked from there applies later, so each change wins over the base's row.
    """
    nothing_between = functions.lit(-1).cast("long")
    rows = base.select(
        "table_index",
        "row_key",
        "row_value",
        functions.lit(col=False).alias("deleted"),
        functions.lit(at.ledger_id).cast("long").alias("applied_ledger"),
        functions.lit(at.entry_id).cast("long").alias("applied_entry"),
        nothing_between.alias("ledger_id"),
        nothing_between.alias("entry_id"),
    )
    return placed.unionByName(rows)


def last_changes(placed: DataFrame, partitions: int) -> DataFrame:
    """The rows that are left: table_index, row_key, row_value, partitioned by table and key.

    repartition before max_by lets the aggregation run without a second shuffle (measured: 13.5 s against 15.1 s for 20M changes).
    """
    order = functions.struct("applied_ledger", "applied_entry", "ledger_id", "entry_id")
    return (
        placed.repartition(partitions, "table_index", "row_key")
        .groupBy("table_index", "row_key")
        .agg(functions.max_by(functions.struct("deleted", "row_value"), order).alias("last"))
        .where(~functions.col("last.deleted"))
        .select("table_index", "row_key", functions.col("last.row_value").alias("row_value"))
    )


def highest_auto_increments(placed: DataFrame, timeline: Timeline, base: Mapping[str, int] | None = None) -> dict[str, int]:
    """Per uuid of a table with auto-increment, the highest key that any applied change named: a deleted top row counts too.

    A restore needs it, or ids would be given twice. `base` has the highest keys at the start of the timeline.
    """
    wanted = {position: table for position, table in enumerate(timeline.tables) if table.auto_increment}
    if not wanted:
        return {}
    known = {uuid: key for uuid, key in (base or {}).items() if timeline.place_of_base(uuid) in wanted}
    sizes = {position: 8 if table.key_columns[0].type is ColumnType.LONG else 4 for position, table in wanted.items()}
    # As unsigned text the highest key of positive numbers is the highest number; negative ones are told apart by their first bit.
    keys = functions.hex("row_key")
    rows = (
        placed.where(functions.col("table_index").isin(list(wanted)) & (functions.substring(keys, 1, 1) < "8"))
        .groupBy("table_index")
        .agg(functions.max(keys).alias("highest"))
        .collect()
    )
    found = {
        wanted[row["table_index"]].uuid: int.from_bytes(bytes.fromhex(row["highest"]), "big")
        for row in rows
        if len(row["highest"]) == 2 * sizes[row["table_index"]]
    }
    return {uuid: max(keys_[uuid] for keys_ in (known, found) if uuid in keys_) for uuid in known.keys() | found.keys()}
