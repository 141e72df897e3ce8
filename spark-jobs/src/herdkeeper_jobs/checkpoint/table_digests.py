"""Digests of folded tables, for comparison only."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa

from herdkeeper.codecs.herddb.row_digest import RowDigest
from herdkeeper.codecs.herddb.table import TableDefinition
from herdkeeper_jobs.checkpoint.stored_rows import RowsInTasks, by_table, digest_of_columns

_COLUMNS = "table_index int, rows long, digest string"
_SCHEMA = pa.schema([("table_index", pa.int32()), ("rows", pa.int64()), ("digest", pa.string())])


def table_digests(rows: RowsInTasks, tables: tuple[TableDefinition, ...]) -> dict[str, RowDigest]:
    """Returns each table's digest by name, from rows (table_index, row_key, row_value)."""
    digests = {table.name: RowDigest() for table in tables}
    for row in rows.mapInArrow(_digested, _COLUMNS).collect():
        digests[tables[row["table_index"]].name] += RowDigest.parse(row["rows"], row["digest"])
    return digests


def _digested(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        digests = {position: digest_of_columns(rows.column("row_key"), rows.column("row_value")) for position, rows in by_table(batch)}
        yield pa.RecordBatch.from_arrays(
            [
                pa.array(list(digests), pa.int32()),
                pa.array([digest.rows for digest in digests.values()], pa.int64()),
                pa.array([digest.hex for digest in digests.values()], pa.string()),
            ],
            schema=_SCHEMA,
        )
