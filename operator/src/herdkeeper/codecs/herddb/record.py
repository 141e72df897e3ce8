"""HerdDB's stored rows: key and value bytes, to columns and back.

Key: for one primary key column its raw bytes without a length; for several, each column's bytes as an array (VInt length, bytes). Raw
bytes: string UTF-8; integer i32; long and timestamp i64; double IEEE 754; boolean u8; float array n x f32. Value: repeated {VInt serial
position, VInt type, payload}; payload of string and bytes: VInt length, bytes; float array: VInt count, f32; others as raw bytes. Nulls and
key columns are left out; an unknown serial position is a dropped column. Source: herddb.codec.RecordSerializer of HerdDB 0.29.0. Timestamps
are int here: milliseconds since 1970 UTC.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from herdkeeper.codecs.herddb.table import TYPE_OF_CODE, Column, ColumnType, TableDefinition
from herdkeeper.codecs.java_data import JavaDataReader, JavaDataWriter, MalformedDataError

Stored = None | bool | int | float | str | bytes | tuple[float, ...]

_I32 = struct.Struct(">i")
_I64 = struct.Struct(">q")
_F64 = struct.Struct(">d")


def _floats(data: bytes) -> tuple[float, ...]:
    return struct.unpack(f">{len(data) // 4}f", data)


_FROM_RAW: dict[ColumnType, Callable[[bytes], Stored]] = {
    ColumnType.STRING: lambda data: data.decode(errors="replace"),
    ColumnType.LONG: lambda data: int(_I64.unpack(data)[0]),
    ColumnType.INTEGER: lambda data: int(_I32.unpack(data)[0]),
    ColumnType.BYTES: bytes,
    ColumnType.TIMESTAMP: lambda data: int(_I64.unpack(data)[0]),
    ColumnType.NULL: lambda _: None,
    ColumnType.DOUBLE: lambda data: float(_F64.unpack(data)[0]),
    ColumnType.BOOLEAN: lambda data: data != b"\0",
    ColumnType.FLOAT_ARRAY: _floats,
}
_FIXED_SIZE = {
    ColumnType.LONG: 8,
    ColumnType.INTEGER: 4,
    ColumnType.TIMESTAMP: 8,
    ColumnType.NULL: 0,
    ColumnType.DOUBLE: 8,
    ColumnType.BOOLEAN: 1,
}
_SIZES = {code: _FIXED_SIZE.get(kind, -4 if kind is ColumnType.FLOAT_ARRAY else -1) for code, kind in TYPE_OF_CODE.items()}
_READERS = {code: _FROM_RAW[kind] for code, kind in TYPE_OF_CODE.items()}


class RowDecoder:
    """Decodes the rows of one table into its columns, in the order of the definition."""

    def __init__(self, table: TableDefinition) -> None:
        self.table = table
        indexes = {column.name: index for index, column in enumerate(table.columns)}
        self._key = [(indexes[column.name], _FROM_RAW[column.type], column.name) for column in table.key_columns]
        self._by_position = {column.serial_position: column for column in table.columns}
        self._plain = {(column.serial_position, code): indexes[column.name] for column in table.columns for code in column.type.value}

    def decode(self, key: bytes, value: bytes) -> list[Stored]:
        """Returns one value per column; None if nothing is stored.

        Raises MalformedDataError, naming table and column, for truncated bytes, an unknown type, or a value that does not fit its column.
        """
        row: list[Stored] = [None] * len(self.table.columns)
        self._decode_key(key, row)
        # Hundreds of thousands of rows pass here: plain indexing, since a reader's method calls cost five times as much.
        offset, end = 0, len(value)
        try:
            while offset < end:
                position, offset = _length(value, offset)
                code = value[offset]
                start, offset = _extent(value, offset + 1, _SIZES[code])
                index = self._plain.get((position, code))
                if index is not None:
                    row[index] = _READERS[code](value[start:offset])
                else:
                    self._require_dropped(position, code)
        except (KeyError, IndexError, struct.error) as error:
            raise MalformedDataError(f"table {self.table.name!r}: no stored value before byte {offset} of {value[:80]!r}") from error
        if offset != end:
            raise MalformedDataError(f"table {self.table.name!r}: a stored value ends {offset - end} bytes behind the end of {end} bytes")
        return row

    def _require_dropped(self, position: int, code: int) -> None:
        """A value is not of its column's type: of a column that was dropped, or a null. HerdDB changes no column's type."""
        column = self._by_position.get(position)
        if column is not None and TYPE_OF_CODE[code] is not ColumnType.NULL:
            kind = TYPE_OF_CODE[code].name
            raise MalformedDataError(f"table {self.table.name!r}: column {column.name!r} is {column.type.name}, but a row holds {kind}")

    def _decode_key(self, key: bytes, row: list[Stored]) -> None:
        if len(self._key) == 1:
            index, convert, name = self._key[0]
            row[index] = self._convert(convert, key, name)
            return
        reader = JavaDataReader(key)
        for index, convert, name in self._key:
            row[index] = self._convert(convert, reader.array() or b"", name)

    def _convert(self, convert: Callable[[bytes], Stored], data: bytes, name: str) -> Stored:
        try:
            return convert(data)
        except struct.error as error:
            raise MalformedDataError(f"table {self.table.name!r}: {len(data)} bytes of key column {name!r}: {error}") from error


def _length(data: bytes, offset: int) -> tuple[int, int]:
    """A VInt, and the offset after it."""
    number = data[offset]
    if number < 0x80:
        return number, offset + 1
    number &= 0x7F
    for shift in (7, 14, 21, 28):
        offset += 1
        number |= (data[offset] & 0x7F) << shift
        if data[offset] < 0x80:
            break
    return number, offset + 1


def _extent(data: bytes, offset: int, size: int) -> tuple[int, int]:
    """Where a payload begins and ends. `size` is negative for a counted one: minus the size of each item."""
    if size >= 0:
        return offset, offset + size
    count, start = _length(data, offset)
    return start, start - count * size


_TO_RAW: dict[ColumnType, Callable[[Any], bytes]] = {
    ColumnType.STRING: str.encode,
    ColumnType.LONG: _I64.pack,
    ColumnType.INTEGER: _I32.pack,
    ColumnType.BYTES: bytes,
    ColumnType.TIMESTAMP: _I64.pack,
    ColumnType.NULL: lambda _: b"",
    ColumnType.DOUBLE: _F64.pack,
    ColumnType.BOOLEAN: lambda value: b"\1" if value else b"\0",
    ColumnType.FLOAT_ARRAY: lambda floats: struct.pack(f">{len(floats)}f", *floats),
}


class RowEncoder:
    """Encodes the rows of one table as HerdDB stores them: null and key columns are left out of the value. The inverse of RowDecoder."""

    def __init__(self, table: TableDefinition) -> None:
        indexes = {column.name: index for index, column in enumerate(table.columns)}
        self._key = [(indexes[column.name], _TO_RAW[column.type]) for column in table.key_columns]
        # Millions of rows pass here, so constant parts are built once.
        self._value = [
            (indexes[column.name], _prefix(column), _TO_RAW[column.type], _SIZES[column.type.value[0]])
            for column in table.columns
            if column.name not in table.primary_key
        ]

    def encode(self, row: Sequence[Stored]) -> tuple[bytes, bytes]:
        """Key and value bytes of a row with one value per column. Raises TypeError or struct.error for a value of another type."""
        raw = [convert(row[index]) for index, convert in self._key]
        key = raw[0] if len(raw) == 1 else b"".join(_v_int(len(part)) + part for part in raw)
        parts = []
        for index, prefix, convert, size in self._value:
            stored = row[index]
            if stored is not None:
                data = convert(stored)
                parts.append(prefix + data if size >= 0 else prefix + _v_int(len(data) // -size) + data)
        return key, b"".join(parts)


def _prefix(column: Column) -> bytes:
    return _v_int(column.serial_position) + _v_int(column.type.value[0 if column.nullable else 1])


def _v_int(number: int) -> bytes:
    return bytes((number,)) if number < 0x80 else JavaDataWriter().v_int(number).to_bytes()


def encode_row(table: TableDefinition, row: Mapping[str, Stored]) -> tuple[bytes, bytes]:
    """Key and value bytes of one row as HerdDB would store them; columns that are missing or None are left out of the value."""
    return RowEncoder(table).encode([row.get(column.name) for column in table.columns])
