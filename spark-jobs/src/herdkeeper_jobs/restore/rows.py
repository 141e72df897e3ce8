"""Rows as they come from Parquet or SQL, as values that the row format knows: timestamps are milliseconds since 1970 UTC."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

import pyarrow as pa

from herdkeeper.formats.herddb_record import Stored, encode_row
from herdkeeper.formats.herddb_table import TableDefinition
from herdkeeper.formats.row_digest import RowDigest, digest_of_rows
from herdkeeper.sql.frames import Value, timestamp_millis

_BATCH = 5000


def columns_of(table: pa.Table) -> list[list[Stored]]:
    """The columns of Parquet rows, timestamps as integers: Python's datetime does not reach as far as HerdDB's."""
    return [(column.cast(pa.int64()) if pa.types.is_timestamp(column.type) else column).to_pylist() for column in table.columns]


def rows_of(table: pa.Table) -> list[tuple[Stored, ...]]:
    """Parquet rows, in their order."""
    return list(zip(*columns_of(table), strict=True))


def parameters(row: Sequence[Stored]) -> list[Value]:
    """A row as the parameters of an INSERT. HerdDB takes an integer for a timestamp."""
    return [list(value) if isinstance(value, tuple) else value for value in row]


def stored(row: Mapping[str, Value]) -> dict[str, Stored]:
    """A row of a SELECT."""
    return {name: _stored(value) for name, value in row.items()}


def _stored(value: Value) -> Stored:
    if isinstance(value, datetime):
        return timestamp_millis(value)
    return tuple(value) if isinstance(value, list) else value


def digest(table: TableDefinition, rows: Iterable[Mapping[str, Stored]]) -> RowDigest:
    """The order-free digest of rows, as HerdDB would store them in a table of this definition that was never altered."""
    total = RowDigest()
    batch: list[tuple[bytes, bytes]] = []
    for row in rows:
        batch.append(encode_row(table, row))
        if len(batch) == _BATCH:
            total += digest_of_rows(batch)
            batch = []
    return total + digest_of_rows(batch)
