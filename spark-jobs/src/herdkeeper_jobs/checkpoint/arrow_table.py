"""HerdDB's tables in Arrow: column types, and stored rows as record batches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from herdkeeper.codecs.herddb.record import RowDecoder
from herdkeeper.codecs.herddb.table import ColumnType, TableDefinition

ARROW_TYPES = {
    ColumnType.STRING: pa.string(),
    ColumnType.LONG: pa.int64(),
    ColumnType.INTEGER: pa.int32(),
    ColumnType.BYTES: pa.binary(),
    ColumnType.TIMESTAMP: pa.timestamp("ms", tz="UTC"),
    ColumnType.NULL: pa.null(),
    ColumnType.DOUBLE: pa.float64(),
    ColumnType.BOOLEAN: pa.bool_(),
    ColumnType.FLOAT_ARRAY: pa.list_(pa.float32()),
}


def arrow_schema(table: TableDefinition) -> pa.Schema:
    """The table's columns, all nullable: rows stored before an ADD COLUMN lack its value."""
    return pa.schema([pa.field(column.name, ARROW_TYPES[column.type]) for column in table.columns])


def decode_rows(decoder: RowDecoder, rows: Sequence[tuple[bytes, bytes]]) -> pa.RecordBatch:
    """Decodes stored (key, value) pairs into a batch of `arrow_schema`. Raises MalformedDataError, naming table and column."""
    schema = arrow_schema(decoder.table)
    decoded = [decoder.decode(key, value) for key, value in rows]
    columns = zip(*decoded, strict=True) if decoded else [()] * len(schema)
    return pa.RecordBatch.from_arrays([pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)], schema=schema)


def rows_of(table: pa.Table | pa.RecordBatch) -> list[tuple[Any, ...]]:
    """Returns the rows of Parquet files in order, one value per column. Timestamps are milliseconds since 1970 UTC: Python's datetime
    covers a smaller range than HerdDB's."""
    columns = (column.cast(pa.int64()) if pa.types.is_timestamp(column.type) else column for column in table.columns)
    return list(zip(*(column.to_pylist() for column in columns), strict=True))
