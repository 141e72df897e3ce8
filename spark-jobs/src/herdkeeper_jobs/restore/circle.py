"""Tables whose foreign keys form a circle: which row refers to which, read from the checkpoint's files, and the order that follows.

Of the rows their keys alone are in memory, all at once: some 8 bytes a row and foreign key, and while they are read the values of the
columns that keys are made of.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from herdkeeper.formats.herddb_table import ForeignKey, TableDefinition
from herdkeeper_jobs.checkpoint.arrow_table import ARROW_TYPES
from herdkeeper_jobs.encryption.parquet_folder import ParquetFolder
from herdkeeper_jobs.restore.chunks import RowGroup
from herdkeeper_jobs.restore.errors import RestoreRefused
from herdkeeper_jobs.restore.row_order import NONE, Links, Numbers, RowLinks, RowOrder, RowsWithoutOrderError, row_order
from herdkeeper_jobs.restore.source import SourceTable


@dataclass(frozen=True, slots=True)
class CircleKey:
    """A foreign key between two tables of the circle: their places in it."""

    child: int
    parent: int
    key: ForeignKey


@dataclass(frozen=True, slots=True)
class Circle:
    """Tables that can only be filled together. Rows are numbered: all of the first table, in the order of its files, then the next one's.

    `groups`: their row groups, in the order of the numbers; `order` names keys by their place in `keys`.
    """

    tables: tuple[SourceTable, ...]
    groups: tuple[RowGroup, ...]
    keys: tuple[CircleKey, ...]
    order: RowOrder

    @property
    def name(self) -> str:
        """For a step of the bookkeeping, and for people."""
        return ", ".join(table.name for table in self.tables)

    @property
    def chunk_rows(self) -> int:
        """How many rows a transaction has: as many as the table with the largest rows allows."""
        return min((group.chunk_rows for group in self.groups), default=1)

    @property
    def outer_keys(self) -> tuple[tuple[SourceTable, ForeignKey], ...]:
        """The foreign keys that refer to tables outside of the circle."""
        own = {table.definition.uuid for table in self.tables}
        return tuple((table, key) for table in self.tables for key in table.definition.foreign_keys if key.parent_uuid not in own)

    def keys_of(self, numbers: Sequence[int]) -> tuple[tuple[SourceTable, ForeignKey], ...]:
        """Keys by their place in `keys`, with their tables."""
        return tuple((self.tables[self.keys[number].child], self.keys[number].key) for number in numbers)


def read_circle(tables: tuple[SourceTable, ...], groups: Sequence[RowGroup], folder: ParquetFolder) -> Circle:
    """A circle with the order of its rows. `groups` are all row groups of the tables, each with its table's place among them.

    Raises:
        RestoreRefused: a row refers to one that is not there, or no order of statements makes the rows; names them.
    """
    keys = tuple(_keys(tables))
    contents = [_read(table, _key_columns(tables, table), folder) for table in tables]
    links = _links(tables, keys, contents)
    try:
        order = row_order(links)
    except RowsWithoutOrderError as error:
        raise RestoreRefused(_no_order(tables, contents, error.rows)) from error
    return Circle(tables, tuple(sorted(groups, key=lambda group: group.table)), keys, order)


def _keys(tables: Sequence[SourceTable]) -> Iterator[CircleKey]:
    places = {table.definition.uuid: place for place, table in enumerate(tables)}
    for child, table in enumerate(tables):
        for key in table.definition.foreign_keys:
            if key.parent_uuid in places:
                yield CircleKey(child, places[key.parent_uuid], key)


def _key_columns(tables: Sequence[SourceTable], table: SourceTable) -> list[str]:
    """Those of its own foreign keys, and those that others' may compare them with."""
    compared = {name for other in tables for key in other.definition.foreign_keys for name in key.parent_columns}
    own = compared & {column.name for column in table.definition.columns}
    return sorted(own.union(*(key.columns for key in table.definition.foreign_keys), table.definition.primary_key))


def _read(table: SourceTable, columns: list[str], folder: ParquetFolder) -> pa.Table:
    types = {column.name: ARROW_TYPES[column.type] for column in table.definition.columns}
    parts = [pa.schema([pa.field(name, types[name]) for name in columns]).empty_table()]
    for file in table.files:
        with folder.parquet_file(file.path) as content:
            parts.append(content.read(columns=columns).select(columns))
    return pa.concat_tables(parts)


def _links(tables: Sequence[SourceTable], keys: Sequence[CircleKey], contents: Sequence[pa.Table]) -> RowLinks:
    firsts = [0, *np.cumsum([content.num_rows for content in contents]).tolist()]
    found = [Links(firsts[one.child], _parents(tables, contents, one, firsts[one.parent])) for one in keys]
    looks = [
        Links(firsts[child], _numbers(contents[child], contents[parent], key, firsts[parent]))
        for child, parent in sorted({(one.child, one.parent) for one in keys})
        for key in tables[child].definition.foreign_keys
        if key.parent_uuid != tables[parent].definition.uuid and set(key.parent_columns) <= set(contents[parent].column_names)
    ]
    return RowLinks(firsts[-1], found, [_may_wait(tables[one.child].definition, one) for one in keys], looks)


def _parents(tables: Sequence[SourceTable], contents: Sequence[pa.Table], one: CircleKey, first: int) -> Numbers:
    child = contents[one.child]
    numbers = _numbers(child, contents[one.parent], one.key, first)
    without = np.logical_and.reduce([pc.is_null(child[name]).to_numpy() for name in one.key.columns])
    broken = ((numbers == NONE) & ~without).nonzero()[0]
    if len(broken):
        raise RestoreRefused(
            f"table {tables[one.child].name!r}: {len(broken)} rows refer by foreign key {one.key.name!r} to rows that "
            f"{tables[one.parent].name!r} does not have, the first: {_shown(tables[one.child], child, int(broken[0]))}"
        )
    return numbers


def _numbers(child: pa.Table, parent: pa.Table, key: ForeignKey, first: int) -> Numbers:
    """For each row of the child the number of the first row of the parent that has its values; NONE where none has, as for a null."""
    names = [f"k{place}" for place in range(len(key.columns))]
    parents = _comparable(parent, key.parent_columns, names).append_column("parent", pa.array(np.arange(parent.num_rows)))
    children = _comparable(child, key.columns, names).append_column("child", pa.array(np.arange(child.num_rows)))
    found = np.full(child.num_rows, NONE, np.int64)
    if [children.schema.field(name).type for name in names] == [parents.schema.field(name).type for name in names]:
        matches = children.join(parents.group_by(names).aggregate([("parent", "min")]), names, join_type="inner")
        found[matches["child"].to_numpy()] = matches["parent_min"].to_numpy() + first
    return found


def _comparable(content: pa.Table, columns: Sequence[str], names: Sequence[str]) -> pa.Table:
    """HerdDB compares whole numbers of both sizes."""
    arrays = [content[name] for name in columns]
    return pa.table([one.cast(pa.int64()) if pa.types.is_integer(one.type) else one for one in arrays], names=names)


def _may_wait(table: TableDefinition, one: CircleKey) -> bool:
    by_name = {column.name: column for column in table.columns}
    return all(by_name[name].nullable and name not in table.primary_key for name in one.key.columns)


def _no_order(tables: Sequence[SourceTable], contents: Sequence[pa.Table], rows: Numbers) -> str:
    first = int(rows[0])
    places = np.cumsum([0, *(content.num_rows for content in contents)])
    place = int(np.searchsorted(places, first, side="right")) - 1
    names = ", ".join(repr(table.name) for table in tables)
    example = _shown(tables[place], contents[place], first - int(places[place]))
    return (
        f"{len(rows)} rows of {names} hold each other by foreign keys in a way that no order of statements makes again, one of them: "
        f"{example}. Set a reference of a circle of rows to null, or drop its foreign key, and make another Checkpoint"
    )


def _shown(table: SourceTable, content: pa.Table, row: int) -> str:
    values = content.slice(row, 1).to_pylist()[0]
    return f"{table.name} " + ", ".join(f"{name} = {values[name]!r}" for name in table.definition.primary_key)
