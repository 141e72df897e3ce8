r"""Loads CSV from standard input into a table that is there, in a pod as load-csv.yaml makes it:

python3 load_csv.py cities < cities.csv

The first line names the columns. `\N` is NULL, and times without a zone are UTC. A row whose key is there replaces that row, so a load that
broke off may be repeated from its beginning.
"""

import csv
import io
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from itertools import islice
from typing import Any, TextIO

from connect_dbapi import connect

from herdkeeper.sql import dbapi

NULL = r"\N"
ROWS = 1000
"""Of a transaction."""
ATTEMPTS = 5
"""For each transaction. The connection itself finds the next leader."""
LONGEST_FIELD = 2 << 20
"""HerdDB takes no larger row."""


def moment(text: str) -> datetime:
    """Of ISO 8601, and as PostgreSQL writes it."""
    at = datetime.fromisoformat(text)
    return at if at.tzinfo else at.replace(tzinfo=UTC)


def boolean(text: str) -> bool:
    """Raises KeyError for anything else."""
    return {"t": True, "true": True, "1": True, "f": False, "false": False, "0": False}[text.lower()]


READERS: dict[str, Callable[[str], Any]] = {
    "string": str,
    "integer": int,
    "long": int,
    "double": float,
    "boolean": boolean,
    "timestamp": moment,
    "bytearray": lambda text: bytes.fromhex(text.removeprefix(r"\x")),
}
"""By HerdDB's name of a type."""


def readers(connection: dbapi.Connection, table: str, columns: Sequence[str]) -> list[Callable[[str], Any]]:
    """How the fields of each column are read."""
    found = connection.cursor().execute("SELECT column_name, type_name FROM syscolumns WHERE table_name = ?", [table])
    types = {name: kind.removesuffix(" not null") for name, kind in found}
    if not columns or not set(columns) <= set(types):
        raise SystemExit(f"the first line has the columns {columns}, and the table {table} has {sorted(types)}")
    return [READERS[types[column]] for column in columns]


def records(text: TextIO) -> Iterator[list[str]]:
    """The fields of each line. Refuses quotes as some programs write them, and a file that breaks off in a text: they would join rows."""
    read = csv.reader(text, strict=True)
    try:
        yield from read
    except csv.Error as error:
        raise SystemExit(f"line {read.line_num} is not CSV: {error}") from error


def rows(lines: Iterable[list[str]], how: Sequence[Callable[[str], Any]]) -> Iterator[list[Any]]:
    """The values of each line."""
    for number, line in enumerate(lines, 2):
        try:
            yield [None if text == NULL else read(text) for text, read in zip(line, how, strict=True)]
        except (ValueError, KeyError) as error:
            raise SystemExit(f"row {number}, {line}: {error!r}") from error


def load(connection: dbapi.Connection, statement: str, chunk: list[list[Any]]) -> None:
    """One transaction, repeated as a whole."""
    for attempt in range(ATTEMPTS):
        try:
            connection.cursor().executemany(statement, chunk)
            connection.commit()
            return
        except dbapi.OperationalError:
            connection.rollback()
            if attempt + 1 == ATTEMPTS:
                raise


def main(table: str) -> None:
    """Prints how many rows were read, and how many the table has."""
    csv.field_size_limit(LONGEST_FIELD)
    lines = records(io.TextIOWrapper(sys.stdin.buffer, "utf-8", newline=""))
    columns = [name.lower() for name in next(lines, [])]
    with connect() as connection:
        values = rows(lines, readers(connection, table, columns))
        named = ", ".join(f"`{name}`" for name in columns)
        statement = f"UPSERT INTO `{table}`({named}) VALUES({', '.join('?' * len(columns))})"
        read = 0
        while chunk := list(islice(values, ROWS)):
            load(connection, statement, chunk)
            read += len(chunk)
        ((count,),) = connection.cursor().execute(f"SELECT COUNT(*) AS n FROM `{table}`")  # noqa: S608 - it has the columns
        print(f"{read} rows were read; {table} has {count}")


if __name__ == "__main__":
    main(sys.argv[1].lower())
