"""A checkpoint's Parquet files: written by tasks, proven by a re-read, refused after any change."""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import object_store_server
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from places import all_files, write
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from herdkeeper.codecs.herddb.record import Stored, encode_row
from herdkeeper.codecs.herddb.row_digest import RowDigest, digest_of_rows
from herdkeeper.codecs.herddb.table import Column, ColumnType, TableDefinition
from herdkeeper_jobs.checkpoint import data_files
from herdkeeper_jobs.checkpoint.arrow_table import arrow_schema
from herdkeeper_jobs.checkpoint.attempts import Attempt
from herdkeeper_jobs.checkpoint.base import stored_rows
from herdkeeper_jobs.checkpoint.data_files import (
    NewParquetFile,
    WrittenTable,
    content_fault,
    folder_of,
    sync_folders,
    verify_files,
    write_tables,
)
from herdkeeper_jobs.checkpoint.folded_log import Folded
from herdkeeper_jobs.checkpoint.restorability import what_a_restore_changes, why_unrestorable
from herdkeeper_jobs.encryption.parquet_folder import ParquetFolder
from herdkeeper_jobs.errors import InvariantViolated
from herdkeeper_jobs.manifests.manifest import ManifestFile
from herdkeeper_jobs.storage.object_path import ObjectWriter
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
    written = write_tables(frame, tables, folder, Attempt.begin(folder.place, "run-1"))
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


def test_a_run_of_which_a_task_failed_leaves_no_file_of_it(spark: SparkSession, place: StoredPath) -> None:
    """The archive may be on the same volume: it would have no room until somebody deletes the failed run."""
    key, value = encode_row(NUMBERS, ROWS[0])
    columns = {"table_index": pa.array([0, 1], pa.int32()), "row_key": [key, b"no long"], "row_value": [value, b""]}
    of_another_driver = "data/run-1/numbers/p-00000-0-another.parquet"
    write(place / of_another_driver, b"rows")
    attempt = Attempt.begin(place, "run-1")
    with pytest.raises(PySparkException, match="7 bytes of key column 'k'"):
        write_tables(spark.createDataFrame(pa.table(columns)).coalesce(1), (NUMBERS, EMPTY), ParquetFolder(place), attempt)
    assert all_files(place) == {of_another_driver, f"attempts/run-1.{attempt.token}"}, "the note stays for tasks that still run"


def test_each_table_has_a_folder_of_its_own_in_that_of_its_run_whatever_its_name(tmp_path: Path) -> None:
    odd = ("../../out", "a/b", "a", "./a", ".", "..", "/a", "a/", "a.", "~u0", "u0", "#?%41* \n", "x" * 300, "漢" * 60, "naïve")
    folders = [folder_of(replace(NUMBERS, name=name, uuid=f"u{number}")) for number, name in enumerate(odd)]
    assert dict(zip(odd, folders, strict=True)).items() >= {"a": "a", "naïve": "naïve", "漢" * 60: "漢" * 60}.items()
    for folder in folders:
        (tmp_path / folder).mkdir()
    assert len(list(tmp_path.iterdir())) == len(odd)


def test_a_column_gets_a_dictionary_only_if_its_values_repeat(tmp_path: Path) -> None:
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


def test_a_file_with_the_columns_of_another_table_is_not_as_written(tmp_path: Path) -> None:
    new = data_files.NewParquetFile(ParquetFolder(tmp_path), "f.parquet", arrow_schema(EMPTY))
    new.write(pa.record_batch([pa.array([1], pa.int64())], schema=arrow_schema(EMPTY)))
    file = new.finish()
    assert content_fault(ParquetFolder(tmp_path), file, arrow_schema(EMPTY)) == ""
    found = content_fault(ParquetFolder(tmp_path), file, arrow_schema(WIDE))
    assert found.endswith("f.parquet: 1 rows with ['k'] instead of 1 rows as written")


WIDE = TableDefinition("demo", "wide", "u3", (Column("k", ColumnType.LONG, 0, nullable=False), Column("x", ColumnType.BYTES, 1)), ("k",))
WIDE_ROWS, GROUPS, ROW_BYTES = 500, 40, 2_048


@pytest.mark.parametrize("layout", ["many row groups", "one row group"])
def test_a_file_is_verified_in_pieces_and_never_held_as_a_whole(tmp_path: Path, layout: str) -> None:
    """40 MB of rows. In the one large group they repeat, since a group's column is read as a whole before decoding."""
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
    file = ManifestFile(path="wide.parquet", rows=GROUPS * WIDE_ROWS, size=file_size(path), hash=file_hash(path))

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
    assert content_fault(folder, file.model_copy(update={"rows": file.rows + 1}), schema).endswith("rows as written")


def _random_rows() -> list[bytes]:
    return [os.urandom(ROW_BYTES) for _ in range(WIDE_ROWS)]


def test_large_rows_are_written_in_row_groups_of_some_megabytes_and_no_more_of_them_is_held(tmp_path: Path) -> None:
    """Rows of 100 KB in some tables, 120 MB in all: a few thousand such rows would not fit into a pod."""
    tables = [replace(WIDE, name=f"t{number}", uuid=f"u{number}") for number in range(4)]
    value = os.urandom(100_000)
    begun, most = pa.total_allocated_bytes(), 0

    def batches() -> Iterator[pa.RecordBatch]:
        nonlocal most
        for first in range(0, 1_200, 50):
            rows = [encode_row(WIDE, {"k": number, "x": value}) for number in range(first, first + 50)]
            keys, values = zip(*rows, strict=True)
            most = max(most, pa.total_allocated_bytes() - begun)
            yield pa.RecordBatch.from_pydict(
                {"table_index": pa.array([number % 4 for number in range(50)], pa.int32()), "row_key": keys, "row_value": values}
            )

    def open_table(position: int) -> data_files._TableWriter:
        return data_files._TableWriter(tables[position], ParquetFolder(tmp_path), f"{position}.parquet", keeps_older_forms=False)

    (result,) = data_files._write_task(batches(), open_table)
    groups = [pq.ParquetFile(tmp_path / path).metadata for path in result.column("path").to_pylist()]
    assert sum(metadata.num_rows for metadata in groups) == 1_200
    assert max(metadata.row_group(number).num_rows for metadata in groups for number in range(metadata.num_row_groups)) * 100_000 < 40e6
    print(f"at most {most / 1e6:.0f} MB of 120 MB were held")
    assert most < 60e6


def test_large_rows_are_read_again_by_row_groups_and_never_hundreds_of_them_at_once(tmp_path: Path) -> None:
    """A thousand rows of 100 KB: they have nine times the megabytes of a row group."""
    folder = ParquetFolder(tmp_path)
    writer = data_files._TableWriter(WIDE, folder, "t.parquet", keeps_older_forms=False)
    for first in range(0, 1_000, 100):
        rows = [encode_row(WIDE, {"k": number, "x": os.urandom(100_000)}) for number in range(first, first + 100)]
        keys, values = zip(*rows, strict=True)
        writer.add(pa.RecordBatch.from_pydict({"row_key": keys, "row_value": values}))
        writer.flush()
    _, file = writer.finish()
    usual, counted = pa.default_memory_pool(), pa.proxy_memory_pool(pa.default_memory_pool())
    pa.set_memory_pool(counted)
    try:
        assert content_fault(folder, file, arrow_schema(WIDE)) == ""
        largest = max(sum(len(value) for _, value in rows) for rows in stored_rows(folder, file, WIDE))
    finally:
        pa.set_memory_pool(usual)
    assert largest < 11e6
    assert counted.max_memory() < 50e6


def test_what_many_tables_upload_to_an_object_store_at_once_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Four tables with 5 MB each, of which their open files may hold 3 MB. A store's writer holds a part of 8 MB of each."""
    monkeypatch.setattr(data_files, "_UPLOADED_BYTES", 3_000_000)
    monkeypatch.setattr(data_files, "_HELD_BYTES", 500_000)
    folder = ParquetFolder(object_store_server.new_bucket())
    held: dict[int, int] = {}
    most, write_part, close = 0, ObjectWriter.write, ObjectWriter.close

    def counted(writer: ObjectWriter, data: bytes) -> int:
        nonlocal most
        held[id(writer)] = held.get(id(writer), 0) + len(data)
        most = max(most, sum(held.values()))
        return write_part(writer, data)

    def closed(writer: ObjectWriter) -> None:
        held.pop(id(writer), None)
        close(writer)

    monkeypatch.setattr(ObjectWriter, "write", counted)
    monkeypatch.setattr(ObjectWriter, "close", closed)
    stored = [encode_row(WIDE, {"k": number, "x": os.urandom(50_000)}) for number in range(400)]
    columns = {"table_index": pa.array([number % 4 for number in range(400)], pa.int32()), "row_key": [key for key, _ in stored]}
    batch = pa.RecordBatch.from_pydict(columns | {"row_value": [value for _, value in stored]})
    opened = itertools.count()

    def open_table(_: int) -> data_files._TableWriter:
        return data_files._TableWriter(WIDE, folder, f"{next(opened)}.parquet", keeps_older_forms=False)

    (result,) = data_files._write_task((batch.slice(first, 8) for first in range(0, 400, 8)), open_table)
    assert most < 4_500_000
    assert len(result) == next(opened) > 4
    for position in range(4):
        files = [row for row in result.to_pylist() if row["table_index"] == position]
        digests = [RowDigest.parse(row["rows"], row["digest"]) for row in files]
        assert sum(digests, RowDigest()) == digest_of_rows(stored[position::4])
        for row in files:
            file = ManifestFile(**{name: row[name] for name in ("path", "rows", "size", "hash")})
            assert content_fault(folder, file, arrow_schema(WIDE)) == ""


def test_a_null_in_a_column_that_is_declared_not_null_is_reported_by_name(tmp_path: Path) -> None:
    """HerdDB stores it so for a column with a default: the row has no value for it."""
    key, required = WIDE.columns[0], Column("a", ColumnType.STRING, 1, nullable=False, default=b"x")
    strict = replace(WIDE, columns=(key, required, Column("b", ColumnType.STRING, 2)))
    rows = [encode_row(replace(strict, columns=(key, replace(required, nullable=True), strict.columns[2])), {"k": 1, "a": None, "b": None})]
    batch = pa.RecordBatch.from_pydict({"table_index": pa.array([0], pa.int32()), "row_key": [rows[0][0]], "row_value": [rows[0][1]]})

    def open_table(position: int) -> data_files._TableWriter:
        return data_files._TableWriter(strict, ParquetFolder(tmp_path), "t.parquet", keeps_older_forms=False)

    (result,) = data_files._write_task([batch], open_table)
    assert result.column("not_null").to_pylist() == [["a"]]


def test_a_text_that_is_no_utf_8_is_reported_by_its_column_and_keeps_its_stored_bytes(tmp_path: Path) -> None:
    """Java's clients send none, and HerdDB takes it from any other. A base with other rows than the log's ends its chain."""
    table = replace(
        WIDE, columns=(Column("k", ColumnType.STRING, 0), *(Column(name, ColumnType.STRING, at) for at, name in enumerate("ab", 1)))
    )
    rows = [
        encode_row(table, {"k": key, "a": "\ufffd", "b": text})
        for key, text in (("x", "plain"), ("y", "caf\N{LATIN SMALL LETTER E WITH ACUTE}"))
    ]
    stored = [(b"\xff", rows[0][1]), (b"\xfe", rows[0][1]), rows[0], (b"y", rows[1][1].replace(b"\xc3\xa9", b"\xe9\xe9"))]
    keys, values = zip(*stored, strict=True)
    batch = pa.RecordBatch.from_pydict({"table_index": pa.array([0] * len(stored), pa.int32()), "row_key": keys, "row_value": values})
    folder = ParquetFolder(tmp_path)

    def open_table(position: int) -> data_files._TableWriter:
        return data_files._TableWriter(table, folder, "t.parquet", keeps_older_forms=False)

    (result,) = data_files._write_task([batch], open_table)
    assert result.column("invalid_text").to_pylist() == [["b", "k"]], "a replacement character that was written is a text"
    (row,) = result.to_pylist()
    file = data_files._data_file(row)
    assert [row for part in stored_rows(folder, file, table) for row in part] == stored
    assert folder.read_parquet("t.parquet").column("k").to_pylist() == ["\ufffd", "\ufffd", "x", "y"]


def test_a_checkpoint_names_what_a_restore_loads_not_at_all_or_not_as_it_is() -> None:
    key = Column("k", ColumnType.LONG, 0)
    renamed, wide = (
        replace(EMPTY, name="n" * 129),
        replace(EMPTY, name="wide", columns=(key, *(Column("x", ColumnType.LONG, at) for at in (127, 128)))),
    )
    written = WrittenTable(RowDigest(1), (), frozenset({"a"}), frozenset({"b"}))
    named = {
        replace(EMPTY, name="t"): ("t.a hold a NULL", "t.b hold text that is not UTF-8"),
        renamed: ("no INSERT accepts the name n{40}…", ""),
        replace(wide, columns=wide.columns[:2]): ("", ""),
        replace(wide, columns=tuple(Column(f"x{at}", ColumnType.LONG, at) for at in range(129))): (
            "no statement makes table 'wide': it has 129 columns, and HerdDB reads 128",
            "wide.x128",
        ),
        replace(wide, columns=(key, wide.columns[2])): ("", "HerdDB returns NULL for whatever is stored in wide.x, and an UPDATE"),
        replace(EMPTY, name='"a`b"'): (r"no statement makes table '\"a`b\"': the name '\"a`b\"' has a back-tick", ""),
        replace(EMPTY, name="herdkeeper_restore"): ("a restore still filled the tablespace .*Wait for its end", ""),
    }
    for table, (prevents, changes) in named.items():
        parts = written if table.name == "t" else WrittenTable(RowDigest(1), ())
        folded = _folded(table, parts)
        for words, found in ((prevents, why_unrestorable(folded)), (changes, what_a_restore_changes(folded))):
            assert re.search(words, "; ".join(found)) if words else not found
    empty, numbered = WrittenTable(RowDigest(), ()), replace(renamed, auto_increment=True)
    assert [why_unrestorable(_folded(table, empty, highest)) for table, highest in ((renamed, 5), (numbered, None))] == [[], []]
    (why,) = why_unrestorable(_folded(numbered, empty, 5))
    assert "no INSERT accepts the name n" in why, "a restore inserts a row for a moment, to give no key again"


def _folded(table: TableDefinition, written: WrittenTable, highest_key: int | None = None) -> Folded:
    """A fold of one table."""
    highest = {} if highest_key is None else {table.uuid: highest_key}
    timeline = SimpleNamespace(tables=(table,), indexes=())
    return cast(Folded, SimpleNamespace(timeline=timeline, written=[written], highest_keys=highest))
