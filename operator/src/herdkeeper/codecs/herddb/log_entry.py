"""One entry of HerdDB's write-ahead log: the payload of one BookKeeper entry.

i64 time (milliseconds, the leader's clock before the append), i16 type, i64 transaction id (0 = none, applied at once; -1 for NOOP),
UTF "" (of an older version), then by type: INSERT, UPDATE: UTF table, array key, array value (the whole new value); DELETE: UTF table,
array key; CREATE_TABLE, ALTER_TABLE, CREATE_INDEX, CONSISTENCY_CHECK: UTF table, array value; DROP_TABLE, TRUNCATE: UTF table;
DROP_INDEX: array index name; others nothing. Source: herddb.log.LogEntry of HerdDB 0.29.0.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import assert_never

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

    @property
    def changes_a_row(self) -> bool:
        """Whether it is an INSERT, UPDATE or DELETE."""
        return self in ROW_CHANGES


ROW_CHANGES = frozenset({LogEntryType.INSERT, LogEntryType.UPDATE, LogEntryType.DELETE})


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
    table, key, value = _decode_body(reader, kind)
    if not reader.at_end():
        raise MalformedDataError(f"log entry {kind.name}: {reader.remaining} bytes after its end")
    return LogEntry(timestamp_millis, kind, transaction_id, table, key, value)


def _decode_body(reader: JavaDataReader, kind: LogEntryType) -> tuple[str, bytes, bytes]:
    match kind:
        case LogEntryType.INSERT | LogEntryType.UPDATE:
            return reader.utf(), _bytes(reader), _bytes(reader)
        case LogEntryType.DELETE:
            return reader.utf(), _bytes(reader), b""
        case LogEntryType.CREATE_TABLE | LogEntryType.ALTER_TABLE | LogEntryType.CREATE_INDEX | LogEntryType.CONSISTENCY_CHECK:
            return reader.utf(), b"", _bytes(reader)
        case LogEntryType.DROP_TABLE | LogEntryType.TRUNCATE:
            return reader.utf(), b"", b""
        case LogEntryType.DROP_INDEX:
            return "", b"", _bytes(reader)
        case LogEntryType.BEGIN | LogEntryType.COMMIT | LogEntryType.ROLLBACK | LogEntryType.NOOP:
            return "", b"", b""
        case _:
            assert_never(kind)


def _bytes(reader: JavaDataReader) -> bytes:
    data = reader.array()
    if data is None:
        raise MalformedDataError(f"null at byte {reader.position}: expected a key or a value")
    return data


def encode_log_entry(entry: LogEntry) -> bytes:
    """Returns the payload that HerdDB writes for it."""
    writer = JavaDataWriter().i64(entry.timestamp_millis).i16(entry.type).i64(entry.transaction_id).utf("")
    match entry.type:
        case LogEntryType.INSERT | LogEntryType.UPDATE:
            writer.utf(entry.table).array(entry.key).array(entry.value)
        case LogEntryType.DELETE:
            writer.utf(entry.table).array(entry.key)
        case LogEntryType.CREATE_TABLE | LogEntryType.ALTER_TABLE | LogEntryType.CREATE_INDEX | LogEntryType.CONSISTENCY_CHECK:
            writer.utf(entry.table).array(entry.value)
        case LogEntryType.DROP_TABLE | LogEntryType.TRUNCATE:
            writer.utf(entry.table)
        case LogEntryType.DROP_INDEX:
            writer.array(entry.value)
        case LogEntryType.BEGIN | LogEntryType.COMMIT | LogEntryType.ROLLBACK | LogEntryType.NOOP:
            pass
        case _:
            assert_never(entry.type)
    return writer.to_bytes()
