"""Decodes and digests stored rows at once, against one by one."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from herdkeeper.codecs.herddb.record import RowDecoder, Stored, encode_row
from herdkeeper.codecs.herddb.row_digest import digest_of_rows
from herdkeeper.codecs.herddb.table import Column, ColumnType, TableDefinition
from herdkeeper.codecs.java_data import MalformedDataError
from herdkeeper_jobs.checkpoint.arrow_table import decode_rows
from herdkeeper_jobs.checkpoint.stored_rows import by_table, decode_columns, digest_of_columns

Stock = tuple[TableDefinition, list[tuple[bytes, bytes]]]
"""A table and its stored rows."""
_I64, _I32 = st.integers(-(2**63), 2**63 - 1), st.integers(-(2**31), 2**31 - 1)
VALUES: dict[ColumnType, st.SearchStrategy[Any]] = {
    ColumnType.STRING: st.text(max_size=200),
    ColumnType.LONG: _I64,
    ColumnType.INTEGER: _I32,
    ColumnType.BYTES: st.binary(max_size=300),
    ColumnType.TIMESTAMP: _I64,
    ColumnType.NULL: st.none(),
    ColumnType.DOUBLE: st.floats(allow_nan=False),
    ColumnType.BOOLEAN: st.booleans(),
    ColumnType.FLOAT_ARRAY: st.lists(st.floats(width=32, allow_nan=False), max_size=5).map(tuple),
}
_IN_KEYS = [kind for kind in ColumnType if kind is not ColumnType.NULL]


@st.composite
def tables(draw: st.DrawFn) -> TableDefinition:
    in_key = draw(st.lists(st.sampled_from(_IN_KEYS), min_size=1, max_size=3))
    others = draw(st.lists(st.sampled_from(list(ColumnType)), max_size=6))
    columns = tuple(
        Column(f"c{number}", kind, number * draw(st.sampled_from([1, 40])), nullable=number >= len(in_key) and draw(st.booleans()))
        for number, kind in enumerate([*in_key, *others])
    )
    positions = [column.serial_position for column in columns]
    if len(set(positions)) < len(positions):
        columns = tuple(Column(column.name, column.type, number, column.nullable) for number, column in enumerate(columns))
    return TableDefinition("demo", "t", "u", columns, tuple(f"c{number}" for number in range(len(in_key))))


@st.composite
def stored(draw: st.DrawFn) -> Stock:
    """Rows of a table, some of them stored before a column was dropped."""
    table = draw(tables())
    earlier = [table]
    if draw(st.booleans()):
        dropped = Column("dropped", draw(st.sampled_from(list(ColumnType))), 999)
        earlier.append(TableDefinition("demo", "t", "u", (*table.columns, dropped), table.primary_key))
    rows = []
    for _ in range(draw(st.integers(0, 12))):
        form = draw(st.sampled_from(earlier))
        row: dict[str, Stored] = {
            column.name: draw(VALUES[column.type] if column.name in form.primary_key else st.one_of(st.none(), VALUES[column.type]))
            for column in form.columns
        }
        rows.append(encode_row(form, row))
    return table, rows


def columns_of(rows: list[tuple[bytes, bytes]]) -> tuple[pa.Array, pa.Array]:
    """Slices of longer arrays, as tasks may get them."""
    keys = pa.array([b"before", *(key for key, _ in rows), b"behind"], pa.binary())
    values = pa.array([b"", *(value for _, value in rows), b"behind"], pa.binary())
    return keys.slice(1, len(rows)), values.slice(1, len(rows))


def outcome(decode: Callable[[], pa.RecordBatch]) -> pa.RecordBatch | str:
    """The rows, or the error."""
    try:
        return decode()
    except (MalformedDataError, pa.ArrowInvalid) as error:
        return str(error)


@settings(max_examples=300, deadline=None)
@given(stored())
def test_decoding_all_rows_at_once_gives_what_decoding_them_one_by_one_gives(found: Stock) -> None:
    table, rows = found
    decoded = decode_columns(RowDecoder(table), *columns_of(rows))
    decoded.validate(full=True)
    assert decoded.equals(decode_rows(RowDecoder(table), rows))


@settings(max_examples=200, deadline=None)
@given(stored(), st.data())
def test_damaged_rows_give_equal_errors(found: Stock, data: st.DataObject) -> None:
    table, rows = found
    damaged = [
        (key, value[: data.draw(st.integers(0, len(value)))] + data.draw(st.sampled_from([b"", b"\xff", b"\x01\x13", b"\x07\x00\xff\xff"])))
        for key, value in rows
    ]
    one_by_one = outcome(lambda: decode_rows(RowDecoder(table), damaged))
    at_once = outcome(lambda: decode_columns(RowDecoder(table), *columns_of(damaged)))
    assert type(at_once) is type(one_by_one)
    assert at_once == one_by_one


@pytest.mark.parametrize("size", [3, 9])
def test_a_key_of_the_wrong_length_names_its_column(size: int) -> None:
    table = TableDefinition("demo", "t", "u", (Column("k", ColumnType.LONG, 0, nullable=False),), ("k",))
    with pytest.raises(MalformedDataError, match=f"{size} bytes of key column 'k'"):
        decode_columns(RowDecoder(table), *columns_of([(bytes(8), b""), (bytes(size), b"")]))


def test_text_that_is_no_utf_8_is_replaced_and_not_a_number_stays_one() -> None:
    columns = (Column("k", ColumnType.STRING, 0, nullable=False), Column("d", ColumnType.DOUBLE, 1))
    table = TableDefinition("demo", "t", "u", columns, ("k",))
    _, value = encode_row(table, {"k": "", "d": math.nan})
    found = decode_columns(RowDecoder(table), *columns_of([(b"\xffa", value)]))
    assert found.column("k").to_pylist() == ["�a"]
    assert math.isnan(found.column("d")[0].as_py())


@given(st.lists(st.tuples(st.binary(max_size=300), st.binary(max_size=300)), max_size=20))
def test_the_digest_of_columns_is_that_of_their_rows(rows: list[tuple[bytes, bytes]]) -> None:
    assert digest_of_columns(*columns_of(rows)) == digest_of_rows(rows)


def test_rows_are_told_apart_by_table() -> None:
    batch = pa.RecordBatch.from_pydict({"table_index": pa.array([3, 1, 3], pa.int32()), "row_key": [b"a", b"b", b"c"]})
    assert [(table, rows.column("row_key").to_pylist()) for table, rows in by_table(batch)] == [(1, [b"b"]), (3, [b"a", b"c"])]
