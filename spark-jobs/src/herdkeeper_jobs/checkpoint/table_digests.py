"""Digests of tables, for comparison only: tasks make them of parts, and they add up."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

import pyarrow as pa
from pyspark.sql import Row, SparkSession

from herdkeeper.codecs.herddb.row_digest import RowDigest
from herdkeeper_jobs.checkpoint.stored_rows import by_table, digest_of_columns
from herdkeeper_jobs.spark_tasks import Batches, RowsInTasks, map_in_tasks, map_numbers

_SCHEMA = pa.schema([("table_index", pa.int32()), ("rows", pa.int64()), ("digest", pa.string())])


def table_digests(rows: RowsInTasks, tables: int) -> list[RowDigest]:
    """Returns each table's digest by index, from rows (index of the table, row_key, row_value)."""
    return _added_up(map_in_tasks(rows, _digested, _SCHEMA).collect(), tables)


def digests_of_parts(spark: SparkSession, parts: int, digest_of: Callable[[int], tuple[int, RowDigest]], tables: int) -> list[RowDigest]:
    """Returns each table's digest by index. `digest_of` gives the table's index and the digest of a part, in tasks, one per part."""

    def of_part(number: int) -> Iterator[pa.RecordBatch]:
        yield _batch(dict([digest_of(number)]))

    return _added_up(map_numbers(spark, parts, of_part, _SCHEMA).collect() if parts else (), tables)


def _digested(batches: Batches) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        yield _batch({table: digest_of_columns(rows.column("row_key"), rows.column("row_value")) for table, rows in by_table(batch)})


def _batch(digests: Mapping[int, RowDigest]) -> pa.RecordBatch:
    rows = [{"table_index": table, "rows": digest.rows, "digest": digest.hex} for table, digest in digests.items()]
    return pa.RecordBatch.from_pylist(rows, schema=_SCHEMA)


def _added_up(found: Iterable[Row], tables: int) -> list[RowDigest]:
    totals = [RowDigest()] * tables
    for row in found:
        totals[row["table_index"]] += RowDigest.parse(row["rows"], row["digest"])
    return totals
