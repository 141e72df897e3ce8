"""The columns of the data source, for Spark and for Arrow. They are stable: readers of a stream may rely on them."""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.types import BinaryType, LongType, StringType, StructField, StructType, TimestampType

from herdkeeper_jobs.bookkeeper.reader import ENTRY_SCHEMA

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
"""One row per committed change. `operation`: the name of a LogEntryType. `row_value`: the whole new row, or a definition, as HerdDB stores
it; empty for DELETE. `timestamp`: the leader's clock before the append."""

CHANGES_ARROW: pa.Schema = to_arrow_schema(CHANGES, timezone="UTC")
"""CHANGES in Arrow."""
