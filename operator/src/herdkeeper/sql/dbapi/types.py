# ruff: noqa: N802 - the names are PEP 249's
"""PEP 249's type objects and constructors, and what of Python's values HerdDB can take.

HerdDB has texts, integers of 32 and 64 bits, doubles, booleans, bytes, arrays of floats, and moments in milliseconds. It has no decimals,
and neither dates nor times of a day: a date is stored as its midnight in UTC.
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
    """Equals the types of the values that such a column gives."""

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
"""HerdDB has no column of that kind."""

Date = date
Time = time
"""Part of PEP 249; HerdDB can't store it."""
Binary = bytes


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
    """The parameters of one execution as they are sent.

    Raises:
        TypeError: they are no sequence, more or fewer than the statement takes (HerdDB ignores what is too much), or one is of a type that
            HerdDB does not have; the message says what to pass instead.
        ValueError: one has no time zone, or does not fit.
    """
    if isinstance(parameters, (str, bytes)) or not isinstance(parameters, Sequence):
        raise TypeError(f"parameters of type {type(parameters).__name__}: pass a list or a tuple, in the order of the statement's `?`")
    if len(parameters) != expected:
        raise TypeError(f"{len(parameters)} parameters for a statement with {expected} `?`: pass one for each")
    return [_adapted(value) for value in parameters]


def _adapted(value: Any) -> Value:
    match value:
        case Decimal():
            raise TypeError(f"the decimal {value}: HerdDB has no decimals; pass float(…), or str(…) for a column of text")
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
"""Name and type of a column of a result, and the five further items of PEP 249, of which HerdDB tells nothing."""


def description(columns: Sequence[str], rows: Iterable[Sequence[Value]]) -> list[Column]:
    """What PEP 249 calls so. The server sends no types: a column's is that of its first value, and None where there is none."""
    found: dict[int, type] = {}
    for row in rows:
        for index, value in enumerate(row):
            if value is not None:
                found.setdefault(index, type(value))
        if len(found) == len(columns):
            break
    # HerdDB gives names in lower case, but those of a query without a table in capitals
    return [(name.lower(), found.get(index), None, None, None, None, None) for index, name in enumerate(columns)]
