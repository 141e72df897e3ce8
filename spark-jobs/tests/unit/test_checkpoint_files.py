"""Parquet files of a checkpoint: written by tasks, proven by a re-read, refused when a byte changed."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pytest
from places import write
from pyspark.sql import SparkSession

from herdkeeper.formats.herddb_record import Stored, encode_row
from herdkeeper.formats.herddb_table import Column, ColumnType, TableDefinition
from herdkeeper.formats.row_digest import digest_of_rows
from herdkeeper_jobs.checkpoint.arrow_table import arrow_schema
from herdkeeper_jobs.checkpoint.data_files import DataFile, NewParquetFile, content_fault, sync_folders, verify_files, write_tables
from herdkeeper_jobs.checkpoint.errors import InvariantViolated
from herdkeeper_jobs.encryption.parquet_folder import ParquetFolder
from herdkeeper_jobs.storage.stored_path import StoredPath, file_hash, file_size

NUMBERS = TableDefinition(
    "demo",
    "numbers",
    "u1",
    (
        Column("a", ColumnType.STRING, 0, nullable=False),
        Column("b", ColumnType.INTEGER, 1, nullable=False),
        Column("t", ColumnType.TIMESTAMP, 2),
        Column("f", ColumnType.FLOAT_ARRAY, 3),
        Column("x", ColumnType.BYTES, 4),
    ),
    ("a", "b"),
)
EMPTY = TableDefinition("demo", "empty", "u2", (Column("k", ColumnType.LONG, 0, nullable=False),), ("k",))
ROWS: list[dict[str, Stored]] = [
    {"a": f"é{number % 7}", "b": number, "t": number * 1000 if number % 2 else None, "f": (0.5, number), "x": bytes([number % 256])}
    for number in range(500)
]


def test_written_tables_are_what_was_stored_and_a_changed_byte_is_found(spark: SparkSession, place: StoredPath) -> None:
    stored = [encode_row(NUMBERS, row) for row in ROWS]
    columns = {"table_index": pa.array([0] * len(stored), pa.int32()), "row_key": [key for key, _ in stored]}
    frame = spark.createDataFrame(pa.table(columns | {"row_value": [value for _, value in stored]})).repartition(2)
    tables = (NUMBERS, EMPTY)

    folder = ParquetFolder(place)
    written = write_tables(frame, tables, folder, "run-1")
    sync_folders(place, "run-1", place)

    assert written[0].digest == digest_of_rows(stored)
    assert len(written[0].files) == 2
    assert written[1].files == ()
    content = pa.concat_tables([folder.read_parquet(file.path) for file in written[0].files])
    assert content.schema.field("t").type == pa.timestamp("ms", tz="UTC")
    unordered = content.set_column(2, "t", content["t"].cast(pa.int64())).to_pylist()
    expected = [row | {"f": list(row["f"])} for row in ROWS]  # type: ignore[arg-type]
    assert sorted(unordered, key=lambda row: row["b"]) == expected
    for file in written[0].files:
        with folder.parquet_file(file.path) as opened:
            group = opened.metadata.row_group(0)
            assert {group.column(number).compression for number in range(group.num_columns)} == {"ZSTD"}

    verify_files(spark, zip(tables, written, strict=True), folder)
    path = place / written[0].files[1].path
    write(path, path.read_bytes().replace(b"PAR1", b"PAR2", 1))
    with pytest.raises(InvariantViolated, match="has other bytes"):
        verify_files(spark, zip(tables, written, strict=True), folder)
    path.unlink()
    with pytest.raises(InvariantViolated, match="is missing"):
        verify_files(spark, zip(tables, written, strict=True), folder)


def test_a_column_whose_values_repeat_has_a_dictionary_and_one_of_which_all_differ_has_none(tmp_path: Path) -> None:
    folder, schema = ParquetFolder(tmp_path), arrow_schema(NUMBERS)
    rows = [tuple(row.values()) for row in ROWS]
    columns = [pa.array(column, field.type) for column, field in zip(zip(*rows, strict=True), schema, strict=True)]
    file = NewParquetFile(folder, "numbers.parquet", schema)
    file.write(pa.RecordBatch.from_arrays(columns, schema=schema))
    written = file.finish()
    assert content_fault(folder, written, schema) == ""
    with folder.parquet_file(written.path) as content:
        group = content.metadata.row_group(0)
        encodings = {group.column(number).path_in_schema: group.column(number).encodings for number in range(group.num_columns)}
    assert {name for name, used in encodings.items() if "RLE_DICTIONARY" in used} == {"a", "t", "f.list.element", "x"}


WIDE = TableDefinition("demo", "wide", "u3", (Column("k", ColumnType.LONG, 0, nullable=False), Column("x", ColumnType.BYTES, 1)), ("k",))
WIDE_ROWS, GROUPS, ROW_BYTES = 500, 40, 2_048


@pytest.mark.parametrize("layout", ["many row groups", "one row group"])
def test_a_file_is_verified_in_pieces_and_never_held_as_a_whole(tmp_path: Path, layout: str) -> None:
    """40 MB of rows; those of one large group repeat, since the bytes of a group's column are read at once before they are decoded."""
    folder, schema = ParquetFolder(tmp_path), arrow_schema(WIDE)
    is_one = layout == "one row group"
    repeated = _random_rows()
    numbers = pa.array(range(WIDE_ROWS), pa.int64())
    groups = [pa.record_batch([numbers, repeated if is_one else _random_rows()], schema=schema) for _ in range(GROUPS)]
    decoded = sum(group.nbytes for group in groups)
    with (folder / "wide.parquet").open("wb") as sink, folder.writer("wide.parquet", sink, schema) as writer:
        writer.write_table(pa.Table.from_batches(groups), row_group_size=WIDE_ROWS * (GROUPS if is_one else 1))
    del groups
    path = folder / "wide.parquet"
    file = DataFile("wide.parquet", GROUPS * WIDE_ROWS, file_size(path), file_hash(path))

    usual, measured = pa.default_memory_pool(), pa.proxy_memory_pool(pa.default_memory_pool())
    pa.set_memory_pool(measured)
    try:
        assert content_fault(folder, file, schema) == ""
        in_pieces = measured.max_memory()
        folder.read_parquet("wide.parquet")
        as_a_whole = measured.max_memory()
    finally:
        pa.set_memory_pool(usual)
    assert in_pieces < decoded / 4
    assert as_a_whole >= decoded
    assert content_fault(folder, DataFile(file.path, file.rows + 1, file.size, file.hash), schema).endswith("rows as written")


def _random_rows() -> list[bytes]:
    return [os.urandom(ROW_BYTES) for _ in range(WIDE_ROWS)]
