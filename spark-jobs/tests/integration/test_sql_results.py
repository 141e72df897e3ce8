"""What SQL returns, beside what SQLite does; what HerdDB would do wrongly, and is refused."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import Any

import pytest
from random_queries import RandomSql, Statement
from real_database import Database

from herdkeeper.sql import dbapi
from herdkeeper.sql.statements import all_statements
from herdkeeper_e2e.server_processes import CREDENTIALS

_QUERIES = 40
_CHANGES = 8
_FEWEST_ANSWERED = 0.8
"""HerdDB refuses some outer joins, and parameters at some places."""


@pytest.fixture(scope="module")
def connection(database: Database) -> Iterator[dbapi.Connection]:
    with (
        database.tablespace("results") as name,
        dbapi.connect(str(database.address), CREDENTIALS.username, CREDENTIALS.password, name) as connected,
    ):
        yield connected


def make_tables(sql: RandomSql, cursor: dbapi.Cursor, reference: sqlite3.Connection, seed: int) -> None:
    """With indexes in half of the seeds; in half of them the second half of the rows is not committed."""
    reference.execute("PRAGMA case_sensitive_like=ON")
    for table in ("t", "u"):
        kinds = [f"{name} {kind}" for name, kind in sql.columns.items()]
        cursor.execute(f"CREATE TABLE {table} ({kinds[0]} PRIMARY KEY, {', '.join(kinds[1:])})")
        types = ("{} TEXT" if kind == "string" else "{} REAL" if kind == "double" else "{} INTEGER" for kind in sql.columns.values())
        reference.execute(f"CREATE TABLE {table} ({', '.join(kind.format(name) for kind, name in zip(types, sql.columns, strict=True))})")
        if seed % 2:
            cursor.execute(f"CREATE INDEX {table}_a ON {table}(a)")
            cursor.execute(f"CREATE HASH INDEX {table}_s ON {table}(s)")
        rows = sql.rows()
        for number, row in enumerate(rows):
            if number == len(rows) // 2 and seed % 4 < 2:
                cursor.connection.commit()
            cursor.execute(f"INSERT INTO {table} VALUES(?,?,?,?,?,?)", row)
            reference.execute(f"INSERT INTO {table} VALUES(?,?,?,?,?,?)", row)


def require_alike(statement: Statement, found: Sequence[Sequence[Any]], wanted: Sequence[Sequence[Any]]) -> None:
    said = f"{statement.text}\nwith {statement.parameters}"
    assert Counter(map(tuple, found)) == Counter(map(tuple, wanted)), said
    if statement.is_total:
        assert [*map(tuple, found)] == [*map(tuple, wanted)], said
    assert [[row[key] for key in statement.keys] for row in found] == [[row[key] for key in statement.keys] for row in wanted], said


def answer(cursor: dbapi.Cursor, statement: Statement) -> list[Any] | int | None:
    """The rows of a query, or the number of changed ones. None is for a refusal: nothing is changed then."""
    try:
        cursor.execute(statement.text, statement.parameters)
        return cursor.rowcount if cursor.description is None else cursor.fetchall()
    except dbapi.OperationalError:
        raise
    except dbapi.DatabaseError:
        return None


def answered_alike(sql: RandomSql, cursor: dbapi.Cursor, reference: sqlite3.Connection) -> int:
    """How many queries and changes were answered, each as by the reference."""
    answered = 0
    for number in range(_QUERIES + _CHANGES):
        statement = sql.query()
        if number >= _QUERIES:
            change, statement = sql.change(), Statement("SELECT * FROM t", "SELECT * FROM t", [])
            changed = answer(cursor, change)
            if changed is None:
                continue
            assert changed == reference.execute(change.reference, change.parameters).rowcount, f"{change.text} {change.parameters}"
        found = answer(cursor, statement)
        if not isinstance(found, list):
            continue
        require_alike(statement, found, reference.execute(statement.reference, statement.parameters).fetchall())
        answered += 1
    return answered


def test_random_queries_and_changes_have_the_results_that_sqlite_has(connection: dbapi.Connection, seed: int) -> None:
    print(f"to ask the same again: --seed {seed}")
    sql, cursor = RandomSql(seed), connection.cursor()
    with closing(sqlite3.connect(":memory:")) as reference:
        try:
            make_tables(sql, cursor, reference, seed)
            answered = answered_alike(sql, cursor, reference)
        finally:  # the next seed makes tables of these names
            connection.commit()
            for table in ("t", "u"):
                cursor.execute(f"DROP TABLE {table}")
            connection.commit()
    assert answered >= _FEWEST_ANSWERED * (_QUERIES + _CHANGES)


@pytest.fixture(scope="module")
def tables(connection: dbapi.Connection) -> dbapi.Cursor:
    """A parent with three rows."""
    cursor = connection.cursor()
    cursor.execute("CREATE TABLE parent (k int PRIMARY KEY, n int, s string)")
    cursor.executemany("INSERT INTO parent VALUES(?,?,?)", [(1, 10, "a"), (2, None, "b"), (3, 30, None)])
    connection.commit()
    return cursor


@pytest.mark.parametrize(
    ("statement", "parameters", "words"),
    [
        ("UPDATE parent SET s = (SELECT MAX(s) FROM parent) WHERE k = 1", [], r"UPDATE … SET column = \(SELECT …\) is not supported"),
        (
            "/* a comment */ update parent set n = 1 + (select max(n) from parent)",
            [],
            r"UPDATE … SET column = \(SELECT …\) is not supported",
        ),
        ("CREATE TABLE child (k int PRIMARY KEY, p int REFERENCES parent(k))", [], "CONSTRAINT name FOREIGN KEY"),
        ("CREATE TABLE child (k int PRIMARY KEY, p int CHECK (p > 0))", [], "would forget it"),
        ("INSERT INTO parent VALUES(4, ?, '')", [2**31], "too large for an int"),
        ("SELECT * FROM parent WHERE n = ?", [2**32 + 10], "too large for an int"),
        ("INSERT INTO parent VALUES(4, ?, '')", [1.5], "is not a whole number"),
        ("INSERT INTO parent VALUES(4, ?, '')", [float("nan")], "NaN is not a whole number"),
        ("INSERT INTO parent VALUES(4, ?, '')", [2.0**31], "too large for an int"),
        ("SELECT * FROM parent WHERE n < ?", [10.5], "is not a whole number"),
        ("DELETE FROM parent WHERE k = ?", [1.7], "is not a whole number"),
        ("INSERT INTO parent VALUES(4, 2147483648, '')", [], "can't plan"),
        ("SELECT k * 9223372036854775807 FROM parent", [], "overflow"),
        ("UPDATE parent SET n = n / 0", [], r"column n \(integer\):Infinity is too large for an int"),
        ("INSERT INTO parent VALUES(4, 2147483647 + 1, '')", [], r"column n \(integer\):2147483648 is too large for an int"),
        ("SELECT CAST(n * 1e300 AS int) FROM parent", [], "too large for an int"),
        ("SELECT k FROM parent WHERE n = (SELECT k FROM parent)", [], "returns 3 rows"),
    ],
)
def test_what_herddb_would_do_wrongly_is_refused_and_the_transaction_can_be_committed(
    tables: dbapi.Cursor, statement: str, parameters: list[Any], words: str
) -> None:
    tables.execute("UPDATE parent SET s = s")
    with pytest.raises(dbapi.DatabaseError, match=words):
        tables.execute(statement, parameters).fetchall()
    tables.connection.commit()
    assert tables.execute("SELECT k, n, s FROM parent ORDER BY k").fetchall() == [(1, 10, "a"), (2, None, "b"), (3, 30, None)]


def test_a_foreign_key_without_a_name_gets_one(tables: dbapi.Cursor) -> None:
    tables.execute("CREATE TABLE named (k int PRIMARY KEY, p int, FOREIGN KEY (p) REFERENCES parent(k))")
    tables.execute("INSERT INTO named VALUES(1, 1)")
    with pytest.raises(dbapi.IntegrityError, match="named_fk_p"):
        tables.execute("INSERT INTO named VALUES(2, 77)")


def test_a_query_in_where_may_choose_the_rows_of_an_update(tables: dbapi.Cursor) -> None:
    tables.execute("CREATE TABLE chosen (k int PRIMARY KEY, n int)")
    tables.executemany("INSERT INTO chosen VALUES(?,?)", [(number, 0) for number in range(4)])
    assert tables.execute("UPDATE chosen SET n = k + 1 WHERE k IN (SELECT k FROM parent WHERE n IS NOT NULL)").rowcount == 2
    assert tables.execute("SELECT n FROM chosen ORDER BY k").fetchall() == [(0,), (2,), (0,), (4,)]


@pytest.mark.parametrize(
    "text",
    [
        "UPDATE noted SET n = 0 -- not all\r WHERE k = 'a'",
        "UPDATE noted SET n = 0 // not all\n WHERE k = 'a'",
        "UPDATE noted SET n = 0 /* WHERE k = 'b' */ WHERE k = 'a'",
        "UPDATE noted SET n = 0 WHERE k = 'a--''b'",
        "UPDATE noted SET n = 0 WHERE k = 'c\n-- d'",
        "UPDATE noted SET n = 0 WHERE k = 'a' -- to the end",
        "/* before */ UPDATE noted SET n = 4 / /* five */ 2 WHERE k = 'a'",
    ],
)
def test_a_comment_and_a_string_end_where_the_server_ends_them(connection: dbapi.Connection, noted: dbapi.Cursor, text: str) -> None:
    def rows_after(statement: str) -> list[tuple[Any, ...]]:
        noted.execute(statement)
        changed = noted.execute("SELECT k, n FROM noted ORDER BY k").fetchall()
        connection.rollback()
        return changed

    (statement,) = all_statements(text)
    assert rows_after(statement) == rows_after(text)


@pytest.fixture(scope="module")
def noted(connection: dbapi.Connection) -> dbapi.Cursor:
    cursor = connection.cursor()
    cursor.execute("CREATE TABLE noted (k string primary key, n int)")
    cursor.executemany("INSERT INTO noted VALUES(?, 1)", [["a"], ["b"], ["a--'b"], ["c\n-- d"]])
    connection.commit()
    return cursor
