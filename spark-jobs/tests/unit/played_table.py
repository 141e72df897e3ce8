"""A table's history in three parts. The second part's leader has a clock five seconds slow; a transaction spans two parts."""

from __future__ import annotations

from herdkeeper.codecs.herddb.log_entry import LogEntry, LogEntryType
from herdkeeper.codecs.herddb.record import encode_row
from herdkeeper.codecs.herddb.table import Column, ColumnType, TableDefinition, encode_table

TABLE = TableDefinition("demo", "t", "u1", (Column("k", ColumnType.LONG, 0, nullable=False), Column("v", ColumnType.STRING, 1)), ("k",))
CREATE = LogEntry(1_000, LogEntryType.CREATE_TABLE, 0, "t", b"", encode_table(TABLE))


def stored(key: int, value: str) -> tuple[bytes, bytes]:
    """A row as HerdDB stores it."""
    return encode_row(TABLE, {"k": key, "v": value})


def put(millis: int, key: int, value: str, transaction: int = 0) -> LogEntry:
    return LogEntry(millis, LogEntryType.INSERT, transaction, "t", *stored(key, value))


def mark(millis: int, kind: LogEntryType, transaction: int = -1) -> LogEntry:
    return LogEntry(millis, kind, transaction, "t" if kind is LogEntryType.TRUNCATE else "")


FIRST = [CREATE, put(2_000, 1, "a"), mark(2_100, LogEntryType.BEGIN, 7), put(2_200, 2, "late", 7), put(9_000, 3, "c")]
SECOND = [mark(4_000, LogEntryType.NOOP), mark(4_100, LogEntryType.COMMIT, 7), put(8_500, 1, "b")]
THIRD = [mark(8_600, LogEntryType.TRUNCATE, 0), put(9_500, 9, "after the mistake"), mark(9_900, LogEntryType.NOOP)]
