# ruff: noqa: N802 - the names are PEP 249's
"""PEP 249's type objects and constructors, and the Python values that HerdDB accepts.

HerdDB has texts, integers of 32 and 64 bits, doubles, booleans, bytes, arrays of floats, and timestamps in milliseconds. It has no
decimals, dates or times of a day: a date is stored as its midnight in UTC.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any

from herdkeeper.sql.frames import Value


@dataclass(frozen=True, eq=False)
class TypeObject:
    """Equals the types of values in such a column."""

    name: str
    types: tuple[type, ...]

    def __eq__(self, other: object) -> bool:
        return other is self or other in self.types

    def __hash__(self) -> int:
        return hash(self.name)


STRING = TypeObject("STRING", (str,))
BINARY = TypeObject("BINARY", (bytes,))
NUMBER = TypeObject("NUMBER", (int, float, bool))
DATETIME = TypeObject("DATETIME", (datetime,))
ROWID = TypeObject("ROWID", ())
"""HerdDB has no such column."""

Date = date
Time = time
"""Part of PEP 249; HerdDB can't store it."""
Binary = memoryview
"""It refuses what is no bytes; `bytes(5)` would be five zeros."""


def Timestamp(year: int, month: int, day: int, *time_of_day: int) -> datetime:
    """A moment in UTC: hour, minute and second follow the day."""
    return datetime(year, month, day, *time_of_day, tzinfo=UTC)  # type: ignore[misc, arg-type]


def DateFromTicks(ticks: float) -> date:
    """The day in UTC of a number of seconds since 1970."""
    return TimestampFromTicks(ticks).date()


def TimeFromTicks(ticks: float) -> time:
    """The time of the day in UTC."""
    return TimestampFromTicks(ticks).time()


def TimestampFromTicks(ticks: float) -> datetime:
    """The moment."""
    return datetime.fromtimestamp(ticks, UTC)


def adapted(parameters: Sequence[Any], expected: int) -> list[Value]:
    """Returns the parameters of one execution for the wire.

    Raises:
        TypeError: not a sequence, a wrong number (HerdDB ignores surplus ones), or a type that HerdDB lacks; the message says what to pass
            instead.
        ValueError: a time without a zone, or a value out of range.
    """
    if isinstance(parameters, (str, bytes)) or not isinstance(parameters, Sequence):
        raise TypeError(f"parameters of type {type(parameters).__name__}: pass a list or a tuple, in the order of the statement's `?`")
    if len(parameters) != expected:
        raise TypeError(f"{len(parameters)} parameters for a statement with {expected} `?`: pass one for each")
    return [_adapted(value) for value in parameters]


def _adapted(value: Any) -> Value:
    match value:
        case Decimal():
            raise TypeError(f"the decimal {value}: HerdDB has no decimals; pass float(…), or str(…) for a text column")
        case datetime():
            return value
        case date():
            return datetime(value.year, value.month, value.day, tzinfo=UTC)
        case time():
            raise TypeError(f"the time {value}: HerdDB has no times of a day; pass a datetime, or text")
        case bytearray() | memoryview():
            return bytes(value)
        case _:
            return value  # type: ignore[no-any-return]  # what it is not is refused where it is encoded


Column = tuple[str, Any, None, None, None, None, None]
"""Name and type of a result column, and PEP 249's five further items, which HerdDB does not report."""


def description(columns: Sequence[str], rows: Iterable[Sequence[Value]]) -> list[Column]:
    """PEP 249's description. The server sends no types: a column's is that of its first value, or None."""
    found: dict[int, type] = {}
    for row in rows:
        for index, value in enumerate(row):
            if value is not None:
                found.setdefault(index, type(value))
        if len(found) == len(columns):
            break
    # HerdDB returns names in lower case, but upper case for a query without a table
    return [(name.lower(), found.get(index), None, None, None, None, None) for index, name in enumerate(columns)]
