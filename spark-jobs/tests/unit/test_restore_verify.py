"""A restored tablespace is compared with its checkpoint: bytes of files, rows, schema."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from struct import pack
from types import SimpleNamespace
from typing import Any, cast

import pyarrow as pa
import pytest
from places import write
from pyspark.sql import SparkSession
from restore_situations import CHILD, CHILD_ROWS, PARENT, PARENT_ROWS, UNIQUE, write_checkpoint
from xxhash import xxh3_128_hexdigest

from herdkeeper.codecs.herddb.record import Stored, encode_row
from herdkeeper.codecs.herddb.row_digest import RowDigest, digest_of_rows
from herdkeeper.codecs.herddb.table import Column, ColumnType
from herdkeeper.protocol.job_summary import JobOutcome, RestoreSummary
from herdkeeper.sql.connection import Connection
from herdkeeper.sql.errors import ConnectionLost
from herdkeeper.sql.frames import Value, decode_chunk, encode_value
from herdkeeper_jobs.checkpoint.data_files import OLDER_FORMS_SCHEMA
from herdkeeper_jobs.errors import InvariantViolated
from herdkeeper_jobs.manifests.continuation import Continuation
from herdkeeper_jobs.manifests.manifest import ManifestFile
from herdkeeper_jobs.restore import verify
from herdkeeper_jobs.restore.chunks import row_groups
from herdkeeper_jobs.restore.rows import digest
from herdkeeper_jobs.restore.session import Session, Target
from herdkeeper_jobs.restore.source import Source, open_source
from herdkeeper_jobs.restore.verify import (
    Verified,
    _file_digests,
    check_files,
    digest_in_sql,
    schema_facts,
    system_facts,
    verify_content,
    verify_schema,
)
from herdkeeper_jobs.storage.stored_path import StoredPath
from herdkeeper_jobs.wal.log_state import LogState


@pytest.fixture
def source(place: StoredPath) -> Source:
    return open_source(write_checkpoint(place, {PARENT: PARENT_ROWS, CHILD: CHILD_ROWS}, (UNIQUE,)))


def test_the_rows_of_the_files_have_the_digest_that_the_manifest_says(spark: SparkSession, source: Source) -> None:
    groups = row_groups(enumerate(source.tables), source.folder, 20, 1 << 30)
    assert [found.hex for found in _file_digests(spark, source, groups)] == [table.manifest.digest for table in source.tables]


def test_a_file_with_other_bytes_and_a_missing_one_are_named(spark: SparkSession, source: Source) -> None:
    check_files(spark, source)
    path = source.folder / source.tables[0].files[0].path
    write(path, path.read_bytes()[:-1] + b"X")
    with pytest.raises(InvariantViolated, match=r"parent/p-0\.parquet has other bytes"):
        check_files(spark, source)
    path.unlink()
    with pytest.raises(InvariantViolated, match=r"parent/p-0\.parquet is missing"):
        check_files(spark, source)


# One column more in each row than its table has now: it was dropped after them.
OLDER = [(key, value + b"\x09\x01\x00\x00\x00\x07") for key, value in (encode_row(CHILD, row) for row in CHILD_ROWS)]


def stored_as(source: Source, stored: list[tuple[bytes, bytes]], *, keeps_older_forms: bool) -> Source:
    """The checkpoint with other stored rows of its table `child`, whose files decode to the same values."""
    parent, child = source.tables
    files, first = [], 0
    for file in child.files:
        older = _older_forms(source, file, [value for _, value in stored[first : first + file.rows]]) if keeps_older_forms else None
        files.append(file.model_copy(update={"older_forms": older}))
        first += file.rows
    altered = child.manifest.model_copy(update={"digest": digest_of_rows(stored).hex, "files": tuple(files)})
    manifest = source.manifest.model_copy(update={"tables": (parent.manifest, altered), "continuation": Continuation.of(LogState())})
    return replace(source, manifest=manifest, tables=(parent, replace(child, manifest=altered)))


def _older_forms(source: Source, file: ManifestFile, values: list[bytes]) -> ManifestFile:
    path, content = f"{file.path}.older", pa.BufferOutputStream()
    with source.folder.writer(path, content, OLDER_FORMS_SCHEMA) as writer:
        columns = [pa.array(range(len(values)), pa.int64()), pa.array(values, pa.binary()), pa.nulls(len(values), pa.binary())]
        writer.write_table(pa.Table.from_arrays(columns, schema=OLDER_FORMS_SCHEMA))
    data = content.getvalue().to_pybytes()
    write(source.folder / path, data)
    return ManifestFile(path=path, rows=len(values), size=len(data), hash=xxh3_128_hexdigest(data))


def verified(spark: SparkSession, source: Source, monkeypatch: pytest.MonkeyPatch) -> Verified:
    """Compares a checkpoint with a tablespace that has the rows of its files."""
    groups = row_groups(enumerate(source.tables), source.folder, 20, 1 << 30)
    loaded = _file_digests(spark, source, groups)

    def in_sql(*_: object) -> list[RowDigest]:
        return loaded

    monkeypatch.setattr(verify, "_sql_digests", in_sql)
    return verify_content(spark, source, groups, cast(Target, None))


def test_a_table_whose_files_do_not_give_the_stored_rows_is_not_taken_for_an_altered_one(
    spark: SparkSession, source: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(InvariantViolated, match="table 'child': the checkpoint's files give rows with digest"):
        verified(spark, stored_as(source, OLDER, keeps_older_forms=False), monkeypatch)


def test_an_altered_table_is_one_whose_files_give_the_stored_rows_with_their_older_forms(
    spark: SparkSession, source: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = verified(spark, stored_as(source, OLDER, keeps_older_forms=True), monkeypatch)
    assert (found.rows, found.altered) == (len(PARENT_ROWS) + len(CHILD_ROWS), ("child",))


class PlayedNode:
    """A session whose leader has these rows; the first `losses` scans break off."""

    def __init__(self, rows: list[dict[str, Stored]], losses: int) -> None:
        self._rows = rows
        self._losses = losses

    def connection(self) -> PlayedNode:
        return self

    def close(self) -> None:
        return

    def stream(self, sql: str, **options: Callable[[int], Value]) -> Iterable[dict[str, Value]]:
        assert sql == "SELECT * FROM `parent`"
        self._losses -= 1
        yield from self._answer(self._rows[: len(self._rows) // 2], **options)
        if self._losses >= 0:
            raise ConnectionLost("reset by peer")
        yield from self._answer(self._rows[len(self._rows) // 2 :], **options)

    def _answer(self, rows: list[dict[str, Stored]], **options: Callable[[int], Value]) -> Iterable[dict[str, Value]]:
        values = b"".join(on_the_wire(name, row[name]) for row in rows for name in ("id", "at", "f", "x"))
        body = pack(">q?i", 0, True, 4) + b"\x02id\x02at\x01f\x01x" + pack(">i", len(rows)) + values
        return decode_chunk(body, **options).records()


def on_the_wire(name: str, value: Stored) -> bytes:
    if name == "at" and value is not None:
        return b"\x04" + pack(">q", value)
    return encode_value(list(value) if isinstance(value, tuple) else cast(Value, value))


def test_the_rows_of_sql_have_the_same_digest_in_any_order_and_though_a_scan_broke(source: Source) -> None:
    """Also timestamps of years that Python's datetime does not have."""
    expected = digest_of_rows([encode_row(PARENT, row) for row in PARENT_ROWS])
    answered = list(reversed(PARENT_ROWS))
    assert digest_in_sql(cast(Session, PlayedNode(answered, 2)), source.tables[0]) == expected
    assert digest_in_sql(cast(Session, PlayedNode(answered[1:], 0)), source.tables[0]) != expected


def test_of_many_altered_tables_some_are_named_so_that_the_summary_fits() -> None:
    few = Verified(9, 3, ("a", "b"))
    many = Verified(9, 900, tuple(str(number) + "\U0001d11e" * 120 for number in range(900)))
    assert few.sentence == "9 rows of 3 tables compared with the checkpoint's by digest; altered tables, compared with its files: a, b"
    assert many.sentence.endswith(" and 895 more")
    summary = RestoreSummary("r", JobOutcome.SUCCEEDED, "\U0001d11e" * 500, verified=many.sentence)
    assert RestoreSummary.from_json(summary.to_json()).verified == many.sentence


def test_large_rows_are_digested_one_after_the_other_and_not_held() -> None:
    tracemalloc.start()
    try:
        found = digest(PARENT, ([number, None, None, bytes(1_000_000)] for number in range(200)))
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert found.rows == 200
    assert most < 20e6


SYSTEM: dict[str, list[dict[str, object]]] = {
    "syscolumns": [
        {
            "table_name": table,
            "column_name": name,
            "ordinal_position": position,
            "type_name": kind,
            "auto_increment": auto,
            "default_value": "NULL",
        }
        for table, name, position, kind, auto in (
            ("parent", "id", 1, "long not null", 0),
            ("parent", "at", 2, "timestamp", 0),
            ("parent", "f", 3, "floatarray", 0),
            ("parent", "x", 4, "bytearray", 0),
            ("child", "k", 1, "integer", 1),
            ("child", "p", 2, "long", 0),
            ("sysnodes", "nodeid", 1, "string", 0),
        )
    ],
    "sysindexcolumns": [
        {"table_name": table, "index_name": index, "index_type": kind, "unique": 1, "column_name": name, "ordinal_position": 0}
        for table, index, kind, name in (
            ("parent", "parent_primary", "pk", "id"),
            ("child", "child_primary", "pk", "k"),
            ("child", "child_unique_p", "brin", "p"),
        )
    ],
    "sysforeignkeys": [
        {
            "child_table_name": "child",
            "child_table_cons_name": "fk",
            "child_table_column_name": "p",
            "parent_table_name": "parent",
            "parent_table_column_name": "id",
            "on_delete_action": "importedKeyCascade",
        }
    ],
}
"""HerdDB 0.29.0's answers for these tables."""


def test_the_schema_in_the_system_tables_is_the_checkpoint_s(source: Source) -> None:
    assert system_facts(lambda sql: SYSTEM[sql.split()[-1]], {"parent", "child"}) == schema_facts(source)


@pytest.mark.parametrize("table", ["syscolumns", "sysindexcolumns", "sysforeignkeys"])
def test_a_missing_column_key_or_foreign_key_is_seen(source: Source, table: str) -> None:
    fewer = SYSTEM | {table: SYSTEM[table][1:]}
    assert len(schema_facts(source) - system_facts(lambda sql: fewer[sql.split()[-1]], {"parent", "child"})) == 1


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda rows: rows[:-1], "key child child_unique_p brin 1 p 0 is missing"),
        (lambda rows: [*rows, rows[-1] | {"index_name": "late"}], "key child late brin 1 p 0 is not in the checkpoint"),
    ],
)
def test_an_index_that_is_missing_or_too_much_is_named(source: Source, change: Callable[[list[Any]], list[Any]], words: str) -> None:
    found = SYSTEM | {"sysindexcolumns": change(SYSTEM["sysindexcolumns"])}
    with pytest.raises(InvariantViolated, match=f"^{words}$"):
        verify_schema(cast(Connection, SimpleNamespace(query=lambda sql: found[sql.split()[-1]])), source)


def test_a_default_of_another_spelling_is_the_same_default(tmp_path: Path) -> None:
    table = replace(PARENT, columns=(PARENT.columns[0], Column("d", ColumnType.DOUBLE, 1, default=pack(">d", -1.5e10))))
    facts = schema_facts(open_source(write_checkpoint(tmp_path, {table: []})))
    row = {
        "table_name": "parent",
        "column_name": "d",
        "ordinal_position": 2,
        "type_name": "double",
        "auto_increment": 0,
        "default_value": "-1.5E10",
    }
    assert system_facts(lambda sql: [row] if "syscolumns" in sql else [], {"parent"}) <= facts


def test_a_float_array_that_is_not_null_has_no_name_in_herddb(tmp_path: Path) -> None:
    table = replace(PARENT, columns=(PARENT.columns[0], Column("f", ColumnType.FLOAT_ARRAY, 1, nullable=False)))
    facts = schema_facts(open_source(write_checkpoint(tmp_path, {table: []})))
    row = {
        "table_name": "parent",
        "column_name": "f",
        "ordinal_position": 2,
        "type_name": "type?18",
        "auto_increment": 0,
        "default_value": "NULL",
    }
    assert system_facts(lambda sql: [row] if "syscolumns" in sql else [], {"parent"}) <= facts
