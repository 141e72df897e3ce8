"""One entry of HerdDB's write-ahead log: the payload of one BookKeeper entry.

i64 time (milliseconds, the leader's clock before the append), i16 type, i64 transaction id (0 = none, applied at once; -1 for NOOP),
UTF "" (of an older version), then by type: INSERT, UPDATE: UTF table, array key, array value (the whole new value); DELETE: UTF table,
array key; CREATE_TABLE, ALTER_TABLE, CREATE_INDEX, CONSISTENCY_CHECK: UTF table, array value; DROP_TABLE, TRUNCATE: UTF table;
DROP_INDEX: array index name; others nothing. Source: herddb.log.LogEntry of HerdDB 0.29.0.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from herdkeeper.codecs.java_data import JavaDataReader, JavaDataWriter, MalformedDataError


class LogEntryType(IntEnum):
    """`herddb.log.LogEntryType`."""

    CREATE_TABLE = 1
    INSERT = 2
    UPDATE = 3
    DELETE = 4
    BEGIN = 5
    COMMIT = 6
    ROLLBACK = 7
    ALTER_TABLE = 8
    DROP_TABLE = 9
    CREATE_INDEX = 10
    DROP_INDEX = 11
    TRUNCATE = 12
    NOOP = 13
    CONSISTENCY_CHECK = 14


ROW_CHANGES = frozenset({LogEntryType.INSERT, LogEntryType.UPDATE, LogEntryType.DELETE})
_DEFINITIONS = {LogEntryType.CREATE_TABLE, LogEntryType.ALTER_TABLE, LogEntryType.CREATE_INDEX, LogEntryType.CONSISTENCY_CHECK}
_WITH_TABLE = {*ROW_CHANGES, *_DEFINITIONS, LogEntryType.DROP_TABLE, LogEntryType.TRUNCATE}
_WITH_VALUE = {LogEntryType.INSERT, LogEntryType.UPDATE, *_DEFINITIONS, LogEntryType.DROP_INDEX}
"""What an entry has beside the key of a changed row."""


@dataclass(frozen=True, slots=True)
class LogEntry:
    """One decoded entry. `table`, `key` and `value` are empty if the type has none; `value` of DROP_INDEX is the index name in UTF-8."""

    timestamp_millis: int
    type: LogEntryType
    transaction_id: int
    table: str = ""
    key: bytes = b""
    value: bytes = b""


def decode_log_entry(data: bytes) -> LogEntry:
    """Decode a payload. Raises MalformedDataError for an unknown type, a null in place of bytes, or truncated or surplus bytes."""
    reader = JavaDataReader(data)
    timestamp_millis, code, transaction_id = reader.i64(), reader.i16(), reader.i64()
    reader.utf()
    try:
        kind = LogEntryType(code)
    except ValueError as error:
        raise MalformedDataError(f"log entry type {code}: expected 1 to 14") from error
    table = reader.utf() if kind in _WITH_TABLE else ""
    key = _bytes(reader) if kind in ROW_CHANGES else b""
    value = _bytes(reader) if kind in _WITH_VALUE else b""
    if not reader.at_end():
        raise MalformedDataError(f"log entry {kind.name}: {reader.remaining} bytes after its end")
    return LogEntry(timestamp_millis, kind, transaction_id, table, key, value)


def _bytes(reader: JavaDataReader) -> bytes:
    data = reader.array()
    if data is None:
        raise MalformedDataError(f"null at byte {reader.position}: expected a key or a value")
    return data


def encode_log_entry(entry: LogEntry) -> bytes:
    writer = JavaDataWriter().i64(entry.timestamp_millis).i16(entry.type).i64(entry.transaction_id).utf("")
    if entry.type in _WITH_TABLE:
        writer.utf(entry.table)
    if entry.type in ROW_CHANGES:
        writer.array(entry.key)
    if entry.type in _WITH_VALUE:
        writer.array(entry.value)
    return writer.to_bytes()
