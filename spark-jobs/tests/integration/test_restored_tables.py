"""Tables of every type, default, key, index and reference of HerdDB, restored into an empty tablespace: SQL shows no difference, even after
kills at any point."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from mortal_restore import (
    Written,
    require_each_row_once_though_killed_at_each_commit,
    require_each_row_once_though_killed_at_each_request,
)
from pyspark.sql import SparkSession
from real_database import Database
from restored_twin import Twins, checkpoint_of, content, require_same, restore

from herdkeeper.protocol.job_summary import JobOutcome
from herdkeeper.protocol.restore_bookkeeping import RESTORE_TABLE
from herdkeeper.sql.connection import Connection, Transaction
from herdkeeper.sql.errors import OutcomeUnknown, ServerError, TransactionEnded
from herdkeeper.sql.frames import Value
from herdkeeper_jobs.checkpoint.removal import remove_checkpoint
from herdkeeper_jobs.errors import InvariantViolated
from herdkeeper_jobs.manifests.manifest import read_manifest
from herdkeeper_jobs.restore import bookkeeping

_MOMENT = datetime(2024, 2, 29, 23, 59, 59, 999000, UTC)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_WORDS = ("string", "long", "int", "blob", "timestamp", "double", "boolean", "floata")
_TYPE_NAMES = {
    *("string", "long", "integer", "bytearray", "timestamp", "double", "boolean"),
    *("string not null", "long not null", "integer not null", "bytearray not null", "timestamp not null", "double not null"),
    "boolean not null",
    "floatarray",
    "type?18",  # HerdDB's name of a float array that is not null
}
_ROWS: tuple[tuple[Value, ...], ...] = (
    ("", 0, 0, b"", _EPOCH, 0.0, False, []),
    ("it's \U0001d11e \0 漢", 2**63 - 1, 2**31 - 1, bytes(range(256)), _MOMENT, float("inf"), True, [1.5, -0.0, float("-inf")]),
    ("x" * 300, -(2**63), -(2**31), b"\xff\xfe", _EPOCH - timedelta(milliseconds=2), -0.0, True, [0.25] * 130),
    ("%_\\", -1, -1, b"\0", datetime(9999, 12, 31, tzinfo=UTC), float("nan"), False, [float("nan")]),
    ("é ß", 128, 128, b"a", datetime(1, 1, 1, tzinfo=UTC), 5e-324, True, [3.0]),
)
"""Values of each type, in the order of _WORDS."""
_LONG = "n" * 129
"""A name that DDL accepts, and an INSERT refuses."""
_TABLES = (
    f"CREATE TABLE every_type (k int, {', '.join(f'{word}_n {word}, {word}_v {word} NOT NULL' for word in _WORDS)}, PRIMARY KEY (k))",
    "CREATE TABLE defaults (k int, s string DEFAULT 'it''s é', e string DEFAULT '', l long DEFAULT -9223372036854775808, "
    "i int NOT NULL DEFAULT 2147483647, d double DEFAULT 1.0E300, f double NOT NULL DEFAULT -1.5, o boolean DEFAULT 'false', "
    "t timestamp DEFAULT CURRENT_TIMESTAMP, PRIMARY KEY (k))",
    "CREATE TABLE no_numbers (k int PRIMARY KEY, p double DEFAULT 1E400, m double DEFAULT -1.5E400, n double DEFAULT NaN)",
    "CREATE TABLE by_string (k string NOT NULL PRIMARY KEY, v int)",
    "CREATE TABLE by_bytes (k blob PRIMARY KEY, v int)",
    "CREATE TABLE by_time (k timestamp PRIMARY KEY, v int)",
    "CREATE TABLE by_three (a string, v int, b long NOT NULL, c int, PRIMARY KEY (c, a, b))",
    "CREATE TABLE hidden (v string)",
    "CREATE TABLE `order` (id int AUTO_INCREMENT, v string, PRIMARY KEY (id))",
    "CREATE TABLE parent (id long AUTO_INCREMENT, name string NOT NULL, place int, PRIMARY KEY (id))",
    "CREATE UNIQUE INDEX by_name_and_place ON parent (name, place)",
    "CREATE TABLE kept (id int PRIMARY KEY, p long, CONSTRAINT kept_p FOREIGN KEY (p) REFERENCES parent (id))",
    "CREATE TABLE going (id int PRIMARY KEY, p long, CONSTRAINT going_p FOREIGN KEY (p) REFERENCES parent (id) ON DELETE CASCADE)",
    "CREATE TABLE left_alone (id int PRIMARY KEY, p long, CONSTRAINT left_p FOREIGN KEY (p) REFERENCES parent (id) ON DELETE SET NULL)",
    "CREATE HASH INDEX by_v ON by_three (v)",
    "CREATE BRIN INDEX by_b_and_v ON by_three (b, v)",
    "CREATE INDEX by_p ON going (p)",
    "CREATE TABLE before_it (k int PRIMARY KEY, gone int, titled string, wide long DEFAULT 5)",
    "CREATE TABLE without_rows (k long PRIMARY KEY, v string NOT NULL)",
    "CREATE TABLE two_keys (shop string, n int AUTO_INCREMENT, PRIMARY KEY (n, shop))",
    f"CREATE TABLE long_column (k int PRIMARY KEY, {_LONG} string)",
    "CREATE TABLE paths (k int PRIMARY KEY, first string NOT NULL DEFAULT 'c:\\')",
    "ALTER TABLE paths ADD COLUMN second string DEFAULT ', third string'",
    "ALTER TABLE paths ADD COLUMN escaped string DEFAULT 'it\\'s'",
    "CREATE INDEX by_first ON paths (first)",
)
_CHANGES = (
    "INSERT INTO defaults (k) VALUES (1)",
    "INSERT INTO defaults (k, s, e, l, d, o, t) VALUES (2, NULL, NULL, NULL, NULL, NULL, NULL)",
    *(f"INSERT INTO hidden (v) VALUES ('row {number}')" for number in range(4)),
    *(f"INSERT INTO `order` (v) VALUES ('row {number}')" for number in range(8)),
    "DELETE FROM `order` WHERE id > 6",
    *(f"INSERT INTO parent (name, place) VALUES ('name {number // 2}', {number})" for number in range(7)),
    "INSERT INTO parent (id, name, place) VALUES (1000, 'far', 0)",
    "DELETE FROM parent WHERE id = 1000",
    *(f"INSERT INTO {table} (id, p) VALUES (1, {p}), (2, {p}), (3, NULL)" for table, p in (("kept", 1), ("going", 2), ("left_alone", 3))),
    "INSERT INTO before_it (k, gone, titled) VALUES (1, 1, 'before'), (2, 2, NULL)",
    "ALTER TABLE before_it DROP COLUMN gone",
    "ALTER TABLE before_it CHANGE titled named string",
    "ALTER TABLE before_it CHANGE k key_now int",
    "ALTER TABLE before_it MODIFY wide long DEFAULT 7",
    "ALTER TABLE before_it ADD COLUMN later double DEFAULT 0.5",
    "INSERT INTO before_it (key_now) VALUES (3)",
    "EXECUTE RENAMETABLE 'written','before_it','after_it'",
    "INSERT INTO two_keys (shop, n) VALUES ('a', 1), ('b', 1)",
    "INSERT INTO long_column VALUES (1, 'named')",
    "INSERT INTO paths (k) VALUES (1)",
)


@pytest.fixture(scope="module")
def written(spark: SparkSession, database: Database, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Written]:
    with database.tablespace("written") as name, database.connect(name) as connection:
        for statement in _TABLES:
            connection.execute(statement)
        _fill(connection)
        for statement in _CHANGES:
            connection.execute(statement)
        manifest = checkpoint_of(spark, database, name, tmp_path_factory.mktemp("checkpoints"))
        yield Written(connection, manifest, content(connection))


def _fill(connection: Connection) -> None:
    names = [f"{word}_{form}" for word in _WORDS for form in "nv"]
    with connection.transaction() as transaction:
        rows: list[list[Value]] = [[number, *(value for one in row for value in (one, one))] for number, row in enumerate(_ROWS)]
        nulls: list[Value] = [len(rows), *(value for one in _ROWS[0] for value in (None, one))]
        sql = f"INSERT INTO every_type (k, {', '.join(names)}) VALUES ({', '.join('?' * (len(names) + 1))})"
        transaction.execute_batch(sql, [*rows, nulls])
        keys: dict[str, list[Value]] = {
            "by_string": [text for text, *_ in _ROWS],
            "by_bytes": [b"\0", b"a", b"a\0", b"\xff\xfe", bytes(range(256))],
            "by_time": [_EPOCH, _MOMENT, _MOMENT + timedelta(days=9000)],  # in a key, HerdDB takes times before 1970 for null
        }
        for table, found in keys.items():
            transaction.execute_batch(f"INSERT INTO {table} (k, v) VALUES (?, ?)", [[key, number] for number, key in enumerate(found)])
        three: list[list[Value]] = [[text, number % 2, big, small] for number, (text, big, small, *_) in enumerate(_ROWS)]
        transaction.execute_batch("INSERT INTO by_three (a, v, b, c) VALUES (?, ?, ?, ?)", three)


def test_restored_tables_of_every_kind_equal_their_originals_and_go_on_alike(
    spark: SparkSession, database: Database, written: Written
) -> None:
    types = {str(row["type_name"]) for row in written.connection.query("SELECT * FROM syscolumns WHERE table_name = 'every_type'")}
    assert types == _TYPE_NAMES, "every type that HerdDB has, with and without nulls"
    with database.tablespace("again") as name, database.connect(name) as connection:
        summary = restore(spark, database, written.manifest, name)
        assert (summary.outcome, summary.rows_loaded) == (JobOutcome.SUCCEEDED, summary.rows)
        require_same(content(connection), written.content)
        twins = Twins(written.connection, connection)
        _require_same_answers(twins)
        require_same(content(twins.restored, since_then=True), content(twins.original, since_then=True))


def test_a_checkpoint_of_restored_tables_has_the_digests_of_the_one_that_they_were_made_from(
    spark: SparkSession, database: Database, written: Written, tmp_path: Path
) -> None:
    """Digests of stored rows, which SQL can't show: equal unless the original has rows from before an ALTER."""
    with database.tablespace("digested") as name:
        restore(spark, database, written.manifest, name)
        found, expected = (_digests(manifest) for manifest in (checkpoint_of(spark, database, name, tmp_path), written.manifest))
    assert {table for table in found | expected if found.get(table) != expected.get(table)} == {"after_it"}
    assert found["after_it"][0] == expected["after_it"][0]


class _Bytes(str):
    """A text that is sent as bytes that are not UTF-8, as by a client in another language."""

    __slots__ = ()

    def encode(self, encoding: str = "utf-8", errors: str = "strict") -> bytes:
        return b"a\xff\xfeb"


def test_text_that_is_not_utf_8_is_restored_with_replacements_in_keys_and_values(
    spark: SparkSession, database: Database, tmp_path: Path
) -> None:
    replaced = "a\ufffd\ufffdb"
    with database.tablespace("bytes") as name, database.connect(name) as connection:
        connection.execute("CREATE TABLE t (k string PRIMARY KEY, v string)")
        for row in ((_Bytes("x"), "its key"), ("its value", _Bytes("x")), ("neither", replaced)):
            connection.execute("INSERT INTO t (k, v) VALUES (?, ?)", row)
        manifest = checkpoint_of(spark, database, name, tmp_path)
    with database.tablespace("loaded") as name, database.connect(name) as connection:
        summary = restore(spark, database, manifest, name)
        assert (summary.outcome, summary.rows_loaded) == (JobOutcome.SUCCEEDED, 3)
        rows = {str(row["k"]): row["v"] for row in connection.query("SELECT * FROM t")}
    assert rows == {replaced: "its key", "its value": replaced, "neither": replaced}


def _digests(manifest: Path) -> dict[str, tuple[int, str]]:
    """Rows and their order-free digest, by table."""
    return {table.name: (table.rows, table.digest) for table in read_manifest(manifest).tables}


def _require_same_answers(twins: Twins) -> None:
    """The behaviour of defaults, NOT NULL, auto-increment keys, unique indexes and foreign keys."""
    refused, duplicate = "ServerError", "DuplicateKey"
    answers: tuple[tuple[str, int | str], ...] = (
        ("INSERT INTO defaults (k) VALUES (3)", 1),
        ("INSERT INTO after_it (key_now) VALUES (4)", 1),
        ("INSERT INTO defaults (k, i) VALUES (4, NULL)", refused),
        ("INSERT INTO without_rows (k) VALUES (1)", refused),
        ("INSERT INTO every_type (k) VALUES (100)", refused),
        ("INSERT INTO every_type (k) VALUES (1)", refused),
        ("INSERT INTO hidden (v) VALUES ('next')", 1),
        ("INSERT INTO `order` (v) VALUES ('next')", 1),
        ("INSERT INTO parent (name, place) VALUES ('next', 1)", 1),
        ("INSERT INTO parent (name, place) VALUES ('name 0', 1)", duplicate),
        ("UPDATE parent SET place = 5 WHERE id = 5", duplicate),
        ("INSERT INTO kept (id, p) VALUES (9, 99)", refused),
        ("UPDATE going SET p = 99", refused),
        ("DELETE FROM parent WHERE id = 1", refused),
        ("DELETE FROM parent WHERE id = 2", 1),
        ("DELETE FROM parent WHERE id = 3", 1),
        ("DELETE FROM by_three WHERE v = 1", 2),
    )
    for statement, expected in answers:
        answer = twins.both(statement)
        assert (answer if isinstance(answer, int) else answer.partition(":")[0]) == expected, f"{statement}: {answer}"
    for table, column, key in (("hidden", "_pk", 5), ("`order`", "id", 9), ("parent", "id", 1001)):
        (row,) = twins.both_return(f"SELECT MAX(`{column}`) AS highest FROM {table}")
        assert row["highest"] == key, f"{table}: the key after the highest one that was ever given"
    (row,) = twins.both_return("SELECT s, e, l, i, d, f, o FROM defaults WHERE k = 3")
    assert str(row["s"]).startswith("it'")
    assert {name: row[name] for name in "lidfo"} == {"l": -(2**63), "i": 2**31 - 1, "d": 1.0e300, "f": -1.5, "o": False}
    assert twins.both_return("SELECT id FROM going") == [{"id": 3}]
    assert [row["p"] for row in twins.both_return("SELECT p FROM left_alone")] == [None, None, None]


def test_a_load_that_is_killed_before_and_after_each_commit_goes_on_and_has_each_row_once(
    spark: SparkSession, database: Database, written: Written
) -> None:
    loaded = require_each_row_once_though_killed_at_each_commit(spark, database, written, "killed")
    assert len(loaded) > 10, "there were few chunks: it tells little"


def test_a_restore_that_is_killed_at_its_first_request_then_at_its_second_and_so_on_ends_with_each_row_once(
    spark: SparkSession, database: Database, written: Written
) -> None:
    killed = require_each_row_once_though_killed_at_each_request(spark, database, written, "mortal")
    assert killed > 20, "there were few requests: it tells little"


def test_a_driver_that_stood_still_while_another_one_restored_the_tablespace_deletes_no_row_of_it(
    spark: SparkSession, database: Database, written: Written
) -> None:
    with database.tablespace("late") as name, database.connect(name) as connection:
        restore(spark, database, written.manifest, name)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(bookkeeping, "user_tables", lambda _: set())  # as it was when it looked
            with pytest.raises(InvariantViolated, match="another client wrote them"):
                restore(spark, database, written.manifest, name)
        connection.execute(f"DROP TABLE {RESTORE_TABLE}")
        require_same(content(connection), written.content)


_GONE = {"CREATE TABLE": "DROP TABLE hidden", "CREATE BRIN INDEX": "DROP INDEX by_b_and_v", "ALTER TABLE": "DROP TABLE kept"}
"""By definition, what a user removes once the tablespace is his, and what would be made again."""


@pytest.mark.parametrize("definition", _GONE)
def test_a_driver_that_stood_still_before_a_definition_makes_nothing_once_another_one_has_restored_the_tablespace(
    spark: SparkSession, database: Database, written: Written, definition: str
) -> None:
    table = {"CREATE TABLE": "`hidden`", "CREATE BRIN INDEX": "`by_three`", "ALTER TABLE": "`kept`"}[definition]
    define, mark, stood_still, left = bookkeeping.define, bookkeeping.mark, list[str](), list[object]()
    with database.tablespace("late_definition") as name, database.connect(name) as connection:

        def defined(own: Connection, statement: str) -> None:
            if statement.startswith(definition) and table in statement.partition("(")[0] and not stood_still:
                stood_still.append(statement)
            define(own, statement)

        def marked(where: Connection | Transaction, step: str, loaded: int) -> None:
            mark(where, step, loaded)
            if stood_still and not left:
                left.append(None)
                restore(spark, database, written.manifest, name)
                connection.execute(_GONE[definition])
                left.append(content(connection))

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(bookkeeping, "define", defined)
            patch.setattr(bookkeeping, "mark", marked)
            with pytest.raises((TransactionEnded, OutcomeUnknown)) as refused:
                restore(spark, database, written.manifest, name)
        print(refused.value)
        assert content(connection) == left[1]


def test_a_foreign_key_with_a_long_name_is_left_out_and_named_since_herddb_adds_none_to_a_table(
    spark: SparkSession, database: Database, tmp_path: Path
) -> None:
    with database.tablespace("long_keys") as name, database.connect(name) as connection:
        connection.execute("CREATE TABLE owner (id int PRIMARY KEY)")
        connection.execute("INSERT INTO owner (id) VALUES (1)")
        keys = f"CONSTRAINT by_long FOREIGN KEY ({_LONG}) REFERENCES owner (id), CONSTRAINT by_up FOREIGN KEY (up) REFERENCES owner (id)"
        connection.execute(f"CREATE TABLE owned (k int PRIMARY KEY, {_LONG} int, up int, {keys})")
        connection.execute("INSERT INTO owned VALUES (1, 1, 1)")
        with pytest.raises(ServerError):
            connection.execute(f"ALTER TABLE owned ADD CONSTRAINT again FOREIGN KEY ({_LONG}) REFERENCES owner (id)")
        manifest, rows = checkpoint_of(spark, database, name, tmp_path), content(connection)["rows of owned"]
    with database.tablespace("long_keys_again") as name, database.connect(name) as connection:
        summary = restore(spark, database, manifest, name)
        assert "; without foreign key 'by_long' of table 'owned', whose columns or parent" in summary.message
        assert content(connection)["rows of owned"] == rows
        assert [row["child_table_cons_name"] for row in connection.query("SELECT * FROM sysforeignkeys")] == ["by_up"]


_NAMES = ("../../out", "a/b", "./dot", ".", "..", "/root", "ends/", "#?%41*", "é" * 128, "naïve")


def test_tables_of_any_name_are_written_into_the_folder_of_their_run_and_restored_and_removed(
    spark: SparkSession, database: Database, tmp_path: Path
) -> None:
    with database.tablespace("oddly_named") as name, database.connect(name) as connection:
        for table in _NAMES:
            connection.execute(f"CREATE TABLE `{table}` (k int PRIMARY KEY)")
            connection.execute(f"INSERT INTO `{table}` (k) VALUES (1), (2)")
        manifest = checkpoint_of(spark, database, name, tmp_path)
        original = content(connection)
        run = manifest.parent.parent / "data" / read_manifest(manifest).run_id
        assert {path.resolve() for path in tmp_path.rglob("*.parquet")} == {path.resolve() for path in run.rglob("*.parquet")}
    with database.tablespace("again") as name, database.connect(name) as connection:
        restore(spark, database, manifest, name)
        require_same(content(connection), original)
    removed = remove_checkpoint(tmp_path, run.name, "/".join(manifest.parts[-4:]))
    assert (removed.existed, removed.kept, list(tmp_path.rglob("*.parquet"))) == (True, 0, [])
