"""HerdDB's stored rows as columns, a batch at a time: their digest, and their table's columns.

`herdkeeper.codecs.herddb.record` describes the format. Rows of an unexpected form (damage, a changed column type) are left to its
`RowDecoder`, which decodes them or says what is wrong.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from xxhash import xxh3_128_digest

from herdkeeper.codecs.herddb.record import RowDecoder
from herdkeeper.codecs.herddb.row_digest import RowDigest
from herdkeeper.codecs.herddb.table import TYPE_OF_CODE, ColumnType, TableDefinition
from herdkeeper_jobs.checkpoint.arrow_table import ARROW_TYPES, arrow_schema, decode_rows
from herdkeeper_jobs.packed_bytes import Flags, Integers, PackedBytes

_MODULUS = 1 << 128
_FORMS = {ColumnType.LONG: ">i8", ColumnType.TIMESTAMP: ">i8", ColumnType.INTEGER: ">i4", ColumnType.DOUBLE: ">f8"}
_FIXED_BYTES = {kind: np.dtype(form).itemsize for kind, form in _FORMS.items()} | {ColumnType.BOOLEAN: 1, ColumnType.NULL: 0}
_FLOAT_BYTES = 4
_MAX_CODE = max(TYPE_OF_CODE)
# By type code: bytes of a value, or -1 if it has a length; bytes per unit of that length; whether the code is known.
_SIZES = np.array([_FIXED_BYTES.get(TYPE_OF_CODE[code], -1) if code in TYPE_OF_CODE else 0 for code in range(_MAX_CODE + 1)], np.int64)
_UNITS = np.array([_FLOAT_BYTES if TYPE_OF_CODE.get(code) is ColumnType.FLOAT_ARRAY else 1 for code in range(_MAX_CODE + 1)], np.int64)
_KNOWN = np.array([code in TYPE_OF_CODE for code in range(_MAX_CODE + 1)], np.bool_)


def by_table(batch: pa.RecordBatch) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Yields the rows of each table that has any. The first column has the index of each row's table."""
    indexes = batch.column(0).to_numpy()
    if len(indexes) and (indexes == indexes[0]).all():
        yield int(indexes[0]), batch
        return
    order = np.argsort(indexes, kind="stable")
    tables, firsts = np.unique(indexes[order], return_index=True)
    for table, first, end in zip(tables.tolist(), firsts.tolist(), [*firsts[1:].tolist(), len(indexes)], strict=True):
        # Not a slice, which would keep the rows of all tables in memory.
        yield table, batch.take(pa.array(order[first:end]))


def digest_of_columns(keys: pa.Array, values: pa.Array) -> RowDigest:
    """As `codecs.herddb.row_digest.digest_of_rows`, from two columns."""
    framed = pc.binary_join_element_wise(_lengths(keys), keys, _lengths(values), values, b"")
    # four 32-bit numbers, highest first: Python's 128-bit numbers are slower
    words = np.frombuffer(b"".join(map(xxh3_128_digest, framed.to_pylist())), ">u4").reshape(-1, 4)
    sums = words.sum(axis=0, dtype=np.uint64).tolist()
    return RowDigest(len(keys), sum(word << shift for word, shift in zip(sums, (96, 64, 32, 0), strict=True)) % _MODULUS)


def _lengths(values: pa.Array) -> pa.Array:
    """The length of each value as four bytes, big-endian."""
    numbers = pc.binary_length(values).to_numpy(zero_copy_only=False).astype(">u4")
    bounds = np.arange(0, 4 * len(numbers) + 4, 4, dtype=np.int32)
    return pa.Array.from_buffers(pa.binary(), len(numbers), [None, pa.py_buffer(bounds), pa.py_buffer(numbers.tobytes())])


def decode_columns(decoder: RowDecoder, keys: pa.Array, values: pa.Array) -> pa.RecordBatch:
    """As `arrow_table.decode_rows`, from two columns. Raises MalformedDataError, naming table and column."""
    table = decoder.table
    in_keys, good = _key_fields([column.type for column in table.key_columns], PackedBytes.of(keys))
    in_values, whole = _value_fields(table, PackedBytes.of(values))
    good &= whole
    fields = in_values | {column.name: field for column, field in zip(table.key_columns, in_keys, strict=True)}
    columns = [_column(column.type, fields.get(column.name), len(keys)) for column in table.columns]
    common = pa.RecordBatch.from_arrays(columns, schema=arrow_schema(table))
    if good.all():
        return common
    others = np.flatnonzero(~good)
    rows = zip(keys.take(pa.array(others)).to_pylist(), values.take(pa.array(others)).to_pylist(), strict=True)
    order = np.arange(len(keys))
    order[others] = len(keys) + np.arange(len(others))
    return pa.concat_batches([common, decode_rows(decoder, list(rows))]).take(pa.array(order))


@dataclass(frozen=True, slots=True)
class _Field:
    """Where a column's values are, for each row that has one."""

    source: PackedBytes
    starts: Integers
    lengths: Integers
    present: Flags

    @staticmethod
    def empty(source: PackedBytes) -> _Field:
        rows = len(source.starts)
        return _Field(source, np.zeros(rows, np.int64), np.zeros(rows, np.int64), np.zeros(rows, np.bool_))

    def set(self, rows: Integers, starts: Integers, lengths: Integers) -> None:
        self.starts[rows], self.lengths[rows], self.present[rows] = starts, lengths, True


def _key_fields(kinds: list[ColumnType], source: PackedBytes) -> tuple[list[_Field], Flags]:
    """The primary key's columns, and which rows have the expected form."""
    good = np.ones(len(source.starts), np.bool_)
    fields = []
    at, lengths = source.starts, source.ends - source.starts
    for kind in kinds:
        if len(kinds) > 1:
            at, lengths, good = source.arrays(at, source.ends, good)
        size = _FIXED_BYTES.get(kind, -1)
        good &= (lengths == size) if size >= 0 else lengths % (_FLOAT_BYTES if kind is ColumnType.FLOAT_ARRAY else 1) == 0
        fields.append(_Field(source, at, lengths, np.ones(len(at), np.bool_)))
        at = at + lengths
    return fields, good


def _value_fields(table: TableDefinition, source: PackedBytes) -> tuple[dict[str, _Field], Flags]:
    """The other columns by name, and which rows have the expected form."""
    columns = {column.serial_position << 8 | code: column for column in table.columns for code in column.type.value}
    known = {column.serial_position for column in table.columns}
    fields = {column.name: _Field.empty(source) for column in table.columns if column.name not in table.primary_key}
    good = np.ones(len(source.starts), np.bool_)
    at = source.starts.copy()
    while len(rows := np.flatnonzero(good & (at < source.ends))):
        tags, starts, lengths, fits = _next_value(source, at[rows], source.ends[rows])
        good[rows[~fits]] = False
        at[rows] = starts + lengths
        for tag in tags[:1].tolist() if (tags == tags[0]).all() else np.unique(tags[fits]).tolist():
            mine = fits & (tags == tag)
            column = columns.get(tag)
            if column is not None and column.name in fields:
                fields[column.name].set(rows[mine], starts[mine], lengths[mine])
            elif tag >> 8 in known:
                good[rows[mine]] = False
    return fields, good


def _next_value(source: PackedBytes, at: Integers, ends: Integers) -> tuple[Integers, Integers, Integers, Flags]:
    """Reads one value of each row: its tag (serial position and type code), start, length, and whether it is whole."""
    everywhere = np.ones(len(at), np.bool_)
    position, at, fits = source.v_ints(at, everywhere)
    code = source.at(at)
    fits &= (at < ends) & (code <= _MAX_CODE) & _KNOWN[np.minimum(code, _MAX_CODE)]
    code = np.where(fits, code, 0)
    counted = fits & (_SIZES[code] < 0)
    count, starts, whole = source.v_ints(at + 1, counted)
    lengths = np.where(counted, count * _UNITS[code], _SIZES[code])
    fits &= (whole | ~counted) & (starts + lengths <= ends)
    return position << 8 | code, starts, np.where(fits, lengths, 0), fits


def _column(kind: ColumnType, field: _Field | None, rows: int) -> pa.Array:
    if field is None or kind is ColumnType.NULL or not field.present.any():
        return pa.nulls(rows, ARROW_TYPES[kind])
    if kind in _FORMS:
        numbers = field.source.numbers(field.starts, _FORMS[kind])
        return pa.array(numbers.astype(numbers.dtype.newbyteorder("=")), mask=~field.present).cast(ARROW_TYPES[kind])
    if kind is ColumnType.BOOLEAN:
        return pa.array(field.source.at(field.starts) != 0, mask=~field.present)
    lengths = np.where(field.present, field.lengths, 0)
    values = field.source.slices(field.starts, lengths)
    if kind is ColumnType.FLOAT_ARRAY:
        count = int(lengths.sum()) // _FLOAT_BYTES
        floats = np.frombuffer(values.buffers()[2], ">f4", count).astype(np.float32) if count else np.zeros(0, np.float32)
        bounds = np.concatenate([[0], np.cumsum(lengths // _FLOAT_BYTES)]).astype(np.int32)
        return pa.ListArray.from_arrays(pa.array(bounds), pa.array(floats), mask=pa.array(~field.present))
    values = values if field.present.all() else pc.if_else(pa.array(field.present), values, pa.scalar(None, pa.binary()))
    return _texts(values) if kind is ColumnType.STRING else values


def _texts(values: pa.Array) -> pa.Array:
    try:
        return values.cast(pa.string())
    except pa.ArrowInvalid:  # not UTF-8: decoded as the row decoder does
        return pa.array([None if value is None else value.decode(errors="replace") for value in values.to_pylist()], pa.string())
