"""The SQL that creates a checkpoint's tables, in HerdDB's dialect (herddb.sql.JSQLParserPlanner of HerdDB 0.29.0). Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from herdkeeper.codecs.herddb.table import Column, ColumnType, ForeignKey, TableDefinition, is_queryable
from herdkeeper.sql.frames import Value
from herdkeeper_jobs.checkpoint.expressible import LITERAL_TEXT, default_literal
from herdkeeper_jobs.manifests.manifest import ManifestIndex

SQL_TYPES = {
    ColumnType.STRING: "string",
    ColumnType.LONG: "long",
    ColumnType.INTEGER: "int",
    ColumnType.BYTES: "blob",
    ColumnType.TIMESTAMP: "timestamp",
    ColumnType.DOUBLE: "double",
    ColumnType.BOOLEAN: "boolean",
    ColumnType.FLOAT_ARRAY: "floata",
}
_PLAIN_TEXT = re.compile(rb"([^'\\]|''|\\[^'])*")
"""A text in which no backslash stands before a quote, the closing one included, unless it is the second one of a pair."""
_ON_DELETE = {0: "", 1: " ON DELETE CASCADE", 2: " ON DELETE SET NULL"}
_FILLERS: dict[ColumnType, Value] = {
    ColumnType.STRING: "",
    ColumnType.LONG: 0,
    ColumnType.INTEGER: 0,
    ColumnType.BYTES: b"",
    ColumnType.TIMESTAMP: 0,
    ColumnType.DOUBLE: 0.0,
    ColumnType.BOOLEAN: False,
    ColumnType.FLOAT_ARRAY: [],
}


def create_table(table: TableDefinition) -> str:
    """CREATE TABLE IF NOT EXISTS with types, NOT NULL, defaults, primary key and auto-increment; without indexes and foreign keys.

    A table without a declared primary key has HerdDB's `_pk`. It is created like any other column: HerdDB sees no difference. Defaults of
    `defaults_apart` are left out.
    """
    columns = ", ".join(
        _column(replace(column, default=None) if _needs_own_statement(column) else column, table) for column in table.columns
    )
    return f"CREATE TABLE IF NOT EXISTS {quoted(table.name)} ({columns}, PRIMARY KEY ({_names(table.primary_key)}))"


def defaults_apart(table: TableDefinition) -> list[str]:
    """ALTER TABLE of each column whose default is a text with a backslash before a quote, such as the closing one. In one statement with
    another text, HerdDB's parser may read on to that one's quote."""
    return [f"ALTER TABLE {quoted(table.name)} MODIFY {_column(column, table)}" for column in table.columns if _needs_own_statement(column)]


def create_index(index: ManifestIndex) -> str:
    """CREATE INDEX. A unique one always has the type brin."""
    kind = "UNIQUE" if index.unique else index.type.upper()
    return f"CREATE {kind} INDEX {quoted(index.name)} ON {quoted(index.table)} ({_names(index.columns)})"


def add_foreign_key(table: str, key: ForeignKey, parent: str) -> str:
    """ALTER TABLE ADD CONSTRAINT. It has no action on update: HerdDB refuses all but the default."""
    return (
        f"ALTER TABLE {quoted(table)} ADD CONSTRAINT {quoted(key.name)} FOREIGN KEY ({_names(key.columns)}) "
        f"REFERENCES {quoted(parent)} ({_names(key.parent_columns)}){_ON_DELETE[key.on_delete]}"
    )


def insert(table: TableDefinition) -> str:
    """INSERT of one row with a parameter per column, so that no default replaces a null. It names no column if an INSERT refuses one
    of the names."""
    names = tuple(column.name for column in table.columns)
    named = f" ({_names(names)})" if all(map(is_queryable, names)) else ""
    return f"INSERT INTO {quoted(table.name)}{named} VALUES ({', '.join('?' * len(names))})"  # noqa: S608 - back-ticks


def delete_by_key(table: TableDefinition) -> str:
    """DELETE of the row with a key of one column."""
    return f"DELETE FROM {quoted(table.name)} WHERE {quoted(table.primary_key[0])} = ?"  # noqa: S608 - as above


def update_by_key(table: TableDefinition, columns: Sequence[str]) -> str:
    """UPDATE of some columns of a row, with parameters for these columns, then for the key."""
    sets = ", ".join(f"{quoted(name)} = ?" for name in columns)
    return f"UPDATE {quoted(table.name)} SET {sets} WHERE {' AND '.join(f'{quoted(name)} = ?' for name in table.primary_key)}"  # noqa: S608


def filler_row(table: TableDefinition, key: int) -> list[Value]:
    """A row with this auto-increment key, and values where NOT NULL requires them. Inserting and deleting it only advances the next key."""
    row = (key if column.name in table.primary_key else None if column.nullable else _FILLERS[column.type] for column in table.columns)
    return list(row)


def quoted(name: str) -> str:
    """Quotes a name with back-ticks, since it may be a keyword. Raises ValueError for a name with a back-tick: the grammar can't escape
    one."""
    if "`" in name:
        raise ValueError(f"the name {name!r} has a back-tick")
    return f"`{name}`"


def _needs_own_statement(column: Column) -> bool:
    text = column.default if column.type is ColumnType.STRING else None
    return text is not None and LITERAL_TEXT.fullmatch(text) is not None and _PLAIN_TEXT.fullmatch(text) is None


def _column(column: Column, table: TableDefinition) -> str:
    default = default_literal(column)
    parts = (
        f"{quoted(column.name)} {SQL_TYPES[column.type]}",
        "" if column.nullable else "NOT NULL",
        "" if default is None else f"DEFAULT {default}",
        # HerdDB takes it for the whole key, and refuses it for a second column.
        "AUTO_INCREMENT" if table.auto_increment and column.name == table.primary_key[0] else "",
    )
    return " ".join(part for part in parts if part)


def _names(names: tuple[str, ...]) -> str:
    return ", ".join(map(quoted, names))
