"""SQL rows as text: a table for people, CSV or JSON for programs. Pure."""

from __future__ import annotations

import csv
import io
import itertools
import math
import re
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import assert_never

from herdkeeper.sql.frames import Value, timestamp_from_millis

Rows = Sequence[dict[str, Value]]
_CLASSES = re.compile(r"^(?:(?:[a-z]\w*\.)+[A-Z]\w*: )+")


def shown(value: Value) -> str:
    match value:
        case None:
            return "NULL"
        case datetime():
            return value.isoformat(timespec="milliseconds" if value.microsecond else "seconds")
        case bytes():
            return value.hex()
        case bool() | int() | float() | str() | list():
            return str(value)
        case _:
            assert_never(value)


def moment(millis: int) -> Value:
    """A timestamp in UTC; its milliseconds since 1970 as text outside the years 1 to 9999 of Python's datetime."""
    try:
        return timestamp_from_millis(millis)
    except OverflowError:
        return f"{millis} ms"


def text_table(rows: Rows) -> str:
    """Returns rows as aligned columns with headings; a sentence if there are none."""
    if not rows:
        return "(no rows)"
    cells = [list(rows[0]), *(line for row in rows for line in _lines([shown(value) for value in row.values()]))]
    widths = [max(len(line[index]) for line in cells) for index in range(len(cells[0]))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in cells]
    return "\n".join([lines[0], "  ".join("-" * width for width in widths), *lines[1:]])


def _lines(cells: Sequence[str]) -> Iterator[list[str]]:
    """A row as lines of a table: more than one where a cell has several."""
    yield from (list(line) for line in itertools.zip_longest(*(cell.splitlines() or [""] for cell in cells), fillvalue=""))


def csv_table(rows: Rows) -> str:
    """Returns rows as CSV (RFC 4180) with headings; nothing if there are none. NULL is an empty cell, like an empty text."""
    output = io.StringIO()
    minimal, quoting = (csv.writer(output, lineterminator="\n", quoting=how) for how in (csv.QUOTE_MINIMAL, csv.QUOTE_ALL))
    if rows:
        minimal.writerow(rows[0])
    for row in rows:
        cells = ["" if value is None else shown(value) for value in row.values()]
        # before 3.13 Python leaves a carriage return as it is, and readers take it for the end of the row
        (quoting if any("\r" in cell for cell in cells) else minimal).writerow(cells)
    return output.getvalue().rstrip("\n")


def error_text(error: BaseException) -> str:
    """An error for people: the names of Java's classes that stand in front of what the server says are left out."""
    return _CLASSES.sub("", str(error))


def as_json(value: Value) -> int | float | str | None:
    """Returns a value for JSON; times, bytes, lists, and numbers that JSON does not have, as text."""
    no_json = isinstance(value, float) and not math.isfinite(value)
    return value if value is None or (isinstance(value, (int, float, str)) and not no_json) else shown(value)
