"""HerdDB's definition of an index, the value of the log entry CREATE_INDEX.

VLong version (1), VLong flags (0), UTF tablespace, UTF name, UTF uuid, UTF table, VInt properties (1 = unique), UTF type, VInt columns.
Each column: {VLong version (1), VLong flags (0), UTF name, VInt type, VInt serial position, VInt flags}. Source: herddb.model.Index of
HerdDB 0.29.0.
"""

from __future__ import annotations

from dataclasses import dataclass

from herdkeeper.codecs.herddb.table import require_version
from herdkeeper.codecs.java_data import JavaDataReader, JavaDataWriter


@dataclass(frozen=True, slots=True)
class IndexDefinition:
    """An index; `columns` are (name, type code, serial position). It names its table by name, as HerdDB does."""

    tablespace: str
    name: str
    uuid: str
    table: str
    type: str
    columns: tuple[tuple[str, int, int], ...]
    unique: bool = False


def decode_index(data: bytes) -> IndexDefinition:
    """Decode the value of a log entry. Raises MalformedDataError for another version, or truncated bytes."""
    reader = JavaDataReader(data)
    require_version(reader, "index")
    tablespace, name, uuid, table = reader.utf(), reader.utf(), reader.utf(), reader.utf()
    unique = bool(reader.v_int() & 1)
    kind = reader.utf()
    columns = tuple(_decode_column(reader) for _ in range(reader.v_int()))
    return IndexDefinition(tablespace, name, uuid, table, kind, columns, unique)


def _decode_column(reader: JavaDataReader) -> tuple[str, int, int]:
    reader.v_long()
    reader.v_long()
    column = reader.utf(), reader.v_int(), reader.v_int()
    reader.v_int()
    return column


def encode_index(index: IndexDefinition) -> bytes:
    writer = JavaDataWriter().v_long(1).v_long(0).utf(index.tablespace).utf(index.name).utf(index.uuid).utf(index.table)
    writer.v_int(int(index.unique)).utf(index.type).v_int(len(index.columns))
    for name, code, serial_position in index.columns:
        writer.v_long(1).v_long(0).utf(name).v_int(code).v_int(serial_position).v_int(0)
    return writer.to_bytes()
