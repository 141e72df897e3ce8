"""HerdDB's definition of a table, the value of the log entries CREATE_TABLE and ALTER_TABLE.

VLong version (1), VLong flags (0), UTF tablespace, UTF name, UTF uuid, u8 auto-increment, VInt highest serial position, u8 n and n x UTF
primary key, VInt flags (1 = foreign keys), VInt columns, each {VLong version (1), VLong flags (1 = default), UTF name, VInt type,
VInt serial position, [array default]}; with foreign keys: VInt n, each {UTF name, UTF parent table's uuid, VInt k, k x UTF column, k x UTF
parent's column, VInt on update, VInt on delete}. Source: herddb.model.Table and ColumnTypes of HerdDB 0.29.0.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from herdkeeper.codecs.java_data import JavaDataReader, JavaDataWriter, MalformedDataError

MOST_COLUMNS = 128
"""Serial positions begin with 0. HerdDB 0.29.0 takes a stored value of position 128 or higher for the end of its row
(`ByteArrayCursor.readVIntNoEOFException`): SQL returns NULL, and an UPDATE of the row loses the value."""
MOST_OF_NAME = 128
"""UTF-16 units of a name in SELECT, INSERT, UPDATE and DELETE (Calcite's limit); statements that define something have none."""


class ColumnType(Enum):
    """What a column holds; the values are the codes of (nullable, NOT NULL)."""

    STRING = (0, 11)
    LONG = (1, 13)
    INTEGER = (2, 12)
    BYTES = (3, 14)
    TIMESTAMP = (4, 15)
    NULL = (5, 5)
    DOUBLE = (6, 16)
    BOOLEAN = (7, 17)
    FLOAT_ARRAY = (8, 18)


TYPE_OF_CODE = {code: kind for kind in ColumnType for code in kind.value}
_NOT_NULL_CODES = frozenset(kind.value[1] for kind in ColumnType if kind is not ColumnType.NULL)


@dataclass(frozen=True, slots=True)
class Column:
    """A column. Stored values are found by `serial_position`, which survives a rename and is never reused."""

    name: str
    type: ColumnType
    serial_position: int
    nullable: bool = True
    default: bytes | None = None


@dataclass(frozen=True, slots=True)
class ForeignKey:
    """A reference to another table; the actions are HerdDB's codes (0 = none)."""

    name: str
    parent_uuid: str
    columns: tuple[str, ...]
    parent_columns: tuple[str, ...]
    on_update: int = 0
    on_delete: int = 0


@dataclass(frozen=True, slots=True)
class TableDefinition:
    """A table. The uuid survives ALTER and RENAME; a dropped and recreated table has another one."""

    tablespace: str
    name: str
    uuid: str
    columns: tuple[Column, ...]
    primary_key: tuple[str, ...]
    auto_increment: bool = False
    max_serial_position: int = 0
    foreign_keys: tuple[ForeignKey, ...] = ()

    @property
    def key_columns(self) -> tuple[Column, ...]:
        """The columns of the primary key, in order. Raises KeyError for an unknown column."""
        by_name = {column.name: column for column in self.columns}
        return tuple(by_name[name] for name in self.primary_key)

    @property
    def unread_columns(self) -> frozenset[str]:
        """The columns whose values HerdDB does not find. A table of few columns may have some: positions of dropped ones are not reused."""
        return frozenset(column.name for column in self.columns if column.serial_position >= MOST_COLUMNS)

    @property
    def can_be_queried(self) -> bool:
        """Whether SELECT and INSERT accept the table's name. A table with another name has rows only if it was renamed."""
        return is_queryable(self.name)


def is_queryable(name: str) -> bool:
    """Whether SELECT and INSERT accept this name of a table or a column."""
    return len(name.encode("utf-16-le", "surrogatepass")) <= 2 * MOST_OF_NAME


def beginning(name: str) -> str:
    """How a message shows a name that is too long: its first 40 characters."""
    return f"{name[:40]}…"


def decode_table(data: bytes) -> TableDefinition:
    """Decode the value of a log entry. Raises MalformedDataError for another version, unknown flags or types, or truncated bytes."""
    reader = JavaDataReader(data)
    require_version(reader, "table")
    tablespace, name, uuid = reader.utf(), reader.utf(), reader.utf()
    auto_increment = reader.boolean()
    max_serial_position = reader.v_int()
    primary_key = tuple(reader.utf() for _ in range(reader.u8()))
    flags = reader.v_int()
    columns = tuple(_decode_column(reader) for _ in range(reader.v_int()))
    foreign_keys = tuple(_decode_foreign_key(reader) for _ in range(reader.v_int())) if flags & 1 else ()
    missing = [key for key in primary_key if key not in {column.name for column in columns}]
    if missing:
        raise MalformedDataError(f"table {name!r}: its primary key names {missing[0]!r}, which is no column")
    return TableDefinition(tablespace, name, uuid, columns, primary_key, auto_increment, max_serial_position, foreign_keys)


def require_version(reader: JavaDataReader, what: str) -> None:
    version, flags = reader.v_long(), reader.v_long()
    if (version, flags) != (1, 0):
        raise MalformedDataError(f"{what} definition of version {version} with flags {flags}: only version 1 with flags 0 is known")


def _decode_column(reader: JavaDataReader) -> Column:
    version, flags = reader.v_long(), reader.v_long()
    if version != 1 or flags not in (0, 1):
        raise MalformedDataError(f"column of version {version} with flags {flags}: only version 1 with flags 0 or 1 is known")
    name, code, serial_position = reader.utf(), reader.v_int(), reader.v_int()
    if code not in TYPE_OF_CODE:
        raise MalformedDataError(f"column {name!r} has type {code}: expected one of {sorted(TYPE_OF_CODE)}")
    return Column(name, TYPE_OF_CODE[code], serial_position, code not in _NOT_NULL_CODES, reader.array() if flags else None)


def _decode_foreign_key(reader: JavaDataReader) -> ForeignKey:
    name, parent_uuid, count = reader.utf(), reader.utf(), reader.v_int()
    columns = tuple(reader.utf() for _ in range(count))
    parent_columns = tuple(reader.utf() for _ in range(count))
    return ForeignKey(name, parent_uuid, columns, parent_columns, reader.v_int(), reader.v_int())


def encode_table(table: TableDefinition) -> bytes:
    writer = JavaDataWriter().v_long(1).v_long(0).utf(table.tablespace).utf(table.name).utf(table.uuid)
    writer.boolean(table.auto_increment).v_int(table.max_serial_position).u8(len(table.primary_key))
    for key in table.primary_key:
        writer.utf(key)
    writer.v_int(1 if table.foreign_keys else 0).v_int(len(table.columns))
    for column in table.columns:
        writer.v_long(1).v_long(0 if column.default is None else 1).utf(column.name)
        writer.v_int(column.type.value[0 if column.nullable else 1]).v_int(column.serial_position)
        if column.default is not None:
            writer.array(column.default)
    if table.foreign_keys:
        writer.v_int(len(table.foreign_keys))
    for key_ in table.foreign_keys:
        writer.utf(key_.name).utf(key_.parent_uuid).v_int(len(key_.columns))
        for name in (*key_.columns, *key_.parent_columns):
            writer.utf(name)
        writer.v_int(key_.on_update).v_int(key_.on_delete)
    return writer.to_bytes()
