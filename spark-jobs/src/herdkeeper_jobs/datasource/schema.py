"""The columns of the data source, as Spark and as Arrow see them. They are fixed: a reader of a stream can rely on them."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.types import BinaryType, LongType, StringType, StructField, StructType, TimestampType

from herdkeeper_jobs.bookkeeper.reader import ENTRY_SCHEMA
from herdkeeper_jobs.datasource.changes import Change

_ROWS_PER_BATCH = 10_000

ENTRIES: StructType = from_arrow_schema(ENTRY_SCHEMA)
"""One row per entry (bookkeeper/reader.py); `bookie` is the replica that gave it."""

CHANGES = StructType(
    [
        StructField("commit_ledger_id", LongType(), nullable=False),
        StructField("commit_entry_id", LongType(), nullable=False),
        StructField("ledger_id", LongType(), nullable=False),
        StructField("entry_id", LongType(), nullable=False),
        StructField("timestamp", TimestampType(), nullable=False),
        StructField("operation", StringType(), nullable=False),
        StructField("transaction_id", LongType(), nullable=False),
        StructField("table_name", StringType(), nullable=False),
        StructField("row_key", BinaryType(), nullable=False),
        StructField("row_value", BinaryType(), nullable=False),
    ]
)
"""One row per committed change. `operation` is the name of a LogEntryType; `row_value` is the whole new row, or a definition, as HerdDB
stores it, empty for DELETE; `timestamp` is the leader's clock before the append."""

_CHANGES_ARROW = to_arrow_schema(CHANGES, timezone="UTC")


def changes_to_batches(changes: Iterable[Change]) -> Iterator[pa.RecordBatch]:
    """Rows of CHANGES."""
    remaining = iter(changes)
    while rows := list(itertools.islice(remaining, _ROWS_PER_BATCH)):
        yield _to_batch(rows)


def _to_batch(rows: Sequence[Change]) -> pa.RecordBatch:
    columns: list[list[object]] = [
        [change.committed.ledger_id for change in rows],
        [change.committed.entry_id for change in rows],
        [change.lsn.ledger_id for change in rows],
        [change.lsn.entry_id for change in rows],
        [change.entry.timestamp_millis * 1000 for change in rows],
        [change.entry.type.name for change in rows],
        [change.entry.transaction_id for change in rows],
        [change.entry.table for change in rows],
        [change.entry.key for change in rows],
        [change.entry.value for change in rows],
    ]
    arrays = [pa.array(column, type=field.type) for column, field in zip(columns, _CHANGES_ARROW, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=_CHANGES_ARROW)
