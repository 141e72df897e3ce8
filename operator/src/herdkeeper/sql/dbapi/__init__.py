"""PEP 249, the Python Database API 2.0, for HerdDB: the module for applications. docs/connect.md shows how.

`connect` finds the tablespace's leader and follows it. Threads may share the module, but not a connection (`threadsafety`). Parameters are
written as `?` (`paramstyle`) and never become part of the statement's text.
"""

from __future__ import annotations

from herdkeeper.sql.dbapi.connection import Connection, Isolation, connect
from herdkeeper.sql.dbapi.cursor import Cursor
from herdkeeper.sql.dbapi.errors import (
    DatabaseError,
    DataError,
    Error,
    IntegrityError,
    InterfaceError,
    InternalError,
    NotSupportedError,
    OperationalError,
    OutcomeUnknown,
    ProgrammingError,
    Warning,
)
from herdkeeper.sql.dbapi.types import (
    BINARY,
    DATETIME,
    NUMBER,
    ROWID,
    STRING,
    Binary,
    Date,
    DateFromTicks,
    Time,
    TimeFromTicks,
    Timestamp,
    TimestampFromTicks,
)

apilevel = "2.0"
threadsafety = 1
paramstyle = "qmark"

__all__ = [
    "BINARY",
    "DATETIME",
    "NUMBER",
    "ROWID",
    "STRING",
    "Binary",
    "Connection",
    "Cursor",
    "DataError",
    "DatabaseError",
    "Date",
    "DateFromTicks",
    "Error",
    "IntegrityError",
    "InterfaceError",
    "InternalError",
    "Isolation",
    "NotSupportedError",
    "OperationalError",
    "OutcomeUnknown",
    "ProgrammingError",
    "Time",
    "TimeFromTicks",
    "Timestamp",
    "TimestampFromTicks",
    "Warning",
    "apilevel",
    "connect",
    "paramstyle",
    "threadsafety",
]
