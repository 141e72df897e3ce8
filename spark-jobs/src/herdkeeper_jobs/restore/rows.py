"""Rows from Parquet or SQL, one value per column in the table's order. Timestamps are milliseconds since 1970 UTC."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from herdkeeper.codecs.herddb.record import RowEncoder
from herdkeeper.codecs.herddb.row_digest import RowDigest, digest_of_rows
from herdkeeper.codecs.herddb.table import TableDefinition
from herdkeeper.sql.frames import Value


def sql_rows(table: TableDefinition, rows: Iterable[Mapping[str, Value]]) -> Iterator[list[Any]]:
    """Yields the rows of a SELECT. Their timestamps are milliseconds already."""
    names = [column.name for column in table.columns]
    return ([row[name] for name in names] for row in rows)


def digest(table: TableDefinition, rows: Iterable[Sequence[Any]]) -> RowDigest:
    """The order-free digest of rows as HerdDB would store them in a never altered table of this definition."""
    return digest_of_rows(map(RowEncoder(table).encode, rows))
