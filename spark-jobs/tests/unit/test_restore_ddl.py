"""The SQL that recreates a checkpoint's tables. HerdDB 0.29.0 accepted each of these statements, and its tables were the same."""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import replace

import pytest

from herdkeeper.codecs.herddb.table import Column, ColumnType, ForeignKey, TableDefinition
from herdkeeper_jobs.checkpoint.expressible import default_literal
from herdkeeper_jobs.manifests.manifest import ManifestIndex
from herdkeeper_jobs.restore.ddl import add_foreign_key, create_index, create_table, defaults_apart, filler_row, insert


def column(kind: ColumnType, default: bytes | None = None, *, nullable: bool = True) -> Column:
    return Column("c", kind, 0, nullable, default)


@pytest.mark.parametrize(
    ("kind", "default", "literal"),
    [
        (ColumnType.STRING, "it''s é".encode(), "'it''s é'"),
        (ColumnType.STRING, b"", "''"),
        (ColumnType.STRING, b"it\\'s", r"'it\'s'"),
        (ColumnType.STRING, b"\\\\\\'\\n", r"'\\\'\n'"),
        (ColumnType.STRING, b"\\', k long) --", r"'\', k long) --'"),
        (ColumnType.INTEGER, struct.pack(">i", -7), "-7"),
        (ColumnType.LONG, struct.pack(">q", 1 << 40), str(1 << 40)),
        (ColumnType.DOUBLE, struct.pack(">d", -1.5e10), "-15000000000.0"),
        (ColumnType.DOUBLE, struct.pack(">d", 1e-5), "1.0E-5"),
        (ColumnType.DOUBLE, struct.pack(">d", 1.25e300), "1.25E300"),
        (ColumnType.DOUBLE, struct.pack(">d", float("inf")), "1.0E999"),
        (ColumnType.DOUBLE, struct.pack(">d", float("-inf")), "-1.0E999"),
        (ColumnType.DOUBLE, struct.pack(">d", float("nan")), "NaN"),
        (ColumnType.BOOLEAN, b"\1", "'true'"),
        (ColumnType.BOOLEAN, b"\0", "'false'"),
        (ColumnType.TIMESTAMP, b"CURRENT_TIMESTAMP", "CURRENT_TIMESTAMP"),
        (ColumnType.LONG, None, None),
    ],
)
def test_a_default_is_written_as_herddb_reads_it(kind: ColumnType, default: bytes | None, literal: str | None) -> None:
    assert default_literal(column(kind, default)) == literal


@pytest.mark.parametrize("default", [b"x', k long) --", b"'", b"it'''s", b"\\\\', k long) --", b"\\d\\'", b"''\\'", b"\n\\'"])
def test_a_text_that_would_end_its_own_quotes_is_no_default(default: bytes) -> None:
    with pytest.raises(ValueError, match="'c' of type STRING has the default"):
        default_literal(column(ColumnType.STRING, default))


@pytest.mark.parametrize("write", [create_table, insert])
def test_a_name_with_a_back_tick_is_refused_by_every_statement(write: Callable[[TableDefinition], str]) -> None:
    with pytest.raises(ValueError, match="DROP TABLE `u' has a back-tick"):
        write(TableDefinition("demo", "t` (id int); DROP TABLE `u", "uuid", (Column("id", ColumnType.INTEGER, 0),), ("id",)))


@pytest.mark.parametrize(("kind", "default"), [(ColumnType.BYTES, b"\1"), (ColumnType.TIMESTAMP, struct.pack(">q", 5))])
def test_a_default_that_sql_can_not_express_is_named(kind: ColumnType, default: bytes) -> None:
    with pytest.raises(ValueError, match=f"'c' of type {kind.name} has the default"):
        default_literal(column(kind, default))


def test_a_table_is_made_with_types_not_null_defaults_key_order_and_auto_increment() -> None:
    composite = TableDefinition(
        "demo",
        "year",
        "u",
        (
            Column("a", ColumnType.STRING, 0),
            Column("b", ColumnType.INTEGER, 4, nullable=False),
            Column("n", ColumnType.LONG, 5, nullable=False, default=struct.pack(">q", 3)),
            Column("f", ColumnType.FLOAT_ARRAY, 6),
        ),
        ("b", "a"),
    )
    assert create_table(composite) == (
        "CREATE TABLE IF NOT EXISTS `year` (`a` string, `b` int NOT NULL, `n` long NOT NULL DEFAULT 3, `f` floata, PRIMARY KEY (`b`, `a`))"
    )
    hidden = TableDefinition("demo", "t", "u", (Column("v", ColumnType.BYTES, 0), Column("_pk", ColumnType.LONG, 1)), ("_pk",), True)
    assert create_table(hidden) == "CREATE TABLE IF NOT EXISTS `t` (`v` blob, `_pk` long AUTO_INCREMENT, PRIMARY KEY (`_pk`))"
    assert insert(hidden) == "INSERT INTO `t` (`v`, `_pk`) VALUES (?, ?)"


def test_auto_increment_of_a_key_of_two_columns_is_declared_once() -> None:
    columns = Column("shop", ColumnType.STRING, 0), Column("n", ColumnType.INTEGER, 1)
    assert create_table(TableDefinition("demo", "t", "u", columns, ("n", "shop"), True)) == (
        "CREATE TABLE IF NOT EXISTS `t` (`shop` string, `n` int AUTO_INCREMENT, PRIMARY KEY (`n`, `shop`))"
    )


def test_the_row_that_moves_a_key_on_has_a_value_where_null_is_not_allowed() -> None:
    kinds = [(kind, nullable) for kind in ColumnType if kind is not ColumnType.NULL for nullable in (True, False)]
    columns = tuple(Column(f"{kind.name}{nullable}", kind, position, nullable) for position, (kind, nullable) in enumerate(kinds))
    table = TableDefinition("demo", "t", "u", (Column("k", ColumnType.LONG, 99), *columns), ("k",), True)
    row = filler_row(table, 41)
    assert row[0] == 41
    assert [value is None for value in row[1:]] == [column.nullable for column in columns]


def test_indexes_and_foreign_keys_are_made_by_name() -> None:
    plain = ManifestIndex(name="i", table="t", type="hash", unique=False, columns=("a", "b"))
    assert create_index(plain) == "CREATE HASH INDEX `i` ON `t` (`a`, `b`)"
    assert create_index(plain.model_copy(update={"unique": True, "type": "brin"})) == "CREATE UNIQUE INDEX `i` ON `t` (`a`, `b`)"
    key = ForeignKey("fk", "parent-uuid", ("x", "y"), ("b", "a"), on_delete=2)
    assert add_foreign_key("t", key, "parent") == (
        "ALTER TABLE `t` ADD CONSTRAINT `fk` FOREIGN KEY (`x`, `y`) REFERENCES `parent` (`b`, `a`) ON DELETE SET NULL"
    )


def test_a_default_with_a_backslash_before_a_quote_is_set_by_a_statement_of_its_own() -> None:
    """HerdDB's parser may take a quote behind a backslash for a part of the text, and then what follows for SQL."""
    key, path = Column("k", ColumnType.INTEGER, 0), Column("path", ColumnType.STRING, 1, nullable=False, default=b"c:\\")
    pair, plain = Column("pair", ColumnType.STRING, 2, default=b"\\\\"), Column("plain", ColumnType.STRING, 3, default=b", x int, y string")
    table = TableDefinition("demo", "t", "u", (key, path, pair, plain), ("k",))
    assert create_table(table) == (
        "CREATE TABLE IF NOT EXISTS `t` (`k` int, `path` string NOT NULL, `pair` string DEFAULT '\\\\', "
        "`plain` string DEFAULT ', x int, y string', PRIMARY KEY (`k`))"
    )
    assert defaults_apart(table) == ["ALTER TABLE `t` MODIFY `path` string NOT NULL DEFAULT 'c:\\'"]
    assert default_literal(path) == "'c:\\'"
    doubled = replace(table, columns=(key, replace(path, default=b"it\\''s")))
    for text in (b"it\\'s", b"\\', k long) --"):
        escaped = replace(table, columns=(key, replace(path, default=text)))
        assert create_table(escaped) == "CREATE TABLE IF NOT EXISTS `t` (`k` int, `path` string NOT NULL, PRIMARY KEY (`k`))"
        assert defaults_apart(escaped) == [f"ALTER TABLE `t` MODIFY `path` string NOT NULL DEFAULT '{text.decode()}'"]
    assert defaults_apart(doubled) == ["ALTER TABLE `t` MODIFY `path` string NOT NULL DEFAULT 'it\\''s'"]


def test_rows_are_inserted_without_the_names_of_columns_that_an_insert_does_not_accept() -> None:
    for length, named in ((128, True), (129, False)):
        columns = Column("k", ColumnType.INTEGER, 0), Column("n" * length, ColumnType.STRING, 1)
        assert ("(`k`" in insert(TableDefinition("demo", "t", "u", columns, ("k",)))) is named
