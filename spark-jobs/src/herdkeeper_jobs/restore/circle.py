"""Tables whose foreign keys form a circle: reads from the checkpoint's files which row refers to which, and derives their order.

Only the rows' keys are in memory, all at once: some 170 bytes a row during the search for an order, 24 afterwards (measurements.md,
"Restore").
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from herdkeeper.codecs.herddb.table import Column, ForeignKey, TableDefinition, beginning, is_queryable
from herdkeeper_jobs.checkpoint.arrow_table import ARROW_TYPES, rows_of
from herdkeeper_jobs.encryption.parquet_folder import ParquetFolder, batches_in
from herdkeeper_jobs.errors import RestoreRefused
from herdkeeper_jobs.restore.chunks import RowGroup
from herdkeeper_jobs.restore.ddl import quoted
from herdkeeper_jobs.restore.row_order import NONE, Links, Lookalikes, Numbers, RowLinks, RowOrder, Rows, RowsWithoutOrderError, row_order
from herdkeeper_jobs.restore.source import SourceTable

WHOLE_CHUNK = 1 << 20
_CHUNK_BYTES = 2 << 20
"""Bytes of a chunk's rows in memory: in a file, rows that repeat one another take next to nothing."""
_ROWS_AT_ONCE = 1_000


@dataclass(frozen=True, slots=True)
class CircleKey:
    """A foreign key between two tables of the circle, given by index."""

    child: int
    parent: int
    key: ForeignKey


@dataclass(frozen=True, slots=True)
class Circle:
    """Tables that can only be filled together. Rows are numbered through all tables, in the order of their files.

    `groups`: their row groups, in the order of row numbers. `order` gives keys by index in `keys`. `sizes`: bytes of each row in memory.
    """

    tables: tuple[SourceTable, ...]
    groups: tuple[RowGroup, ...]
    keys: tuple[CircleKey, ...]
    order: RowOrder
    sizes: Numbers

    @property
    def name(self) -> str:
        """Part of a bookkeeping step. No name has a back-tick."""
        return ", ".join(quoted(table.name) for table in self.tables)

    def shares(self) -> Numbers:
        """Each row's share of a chunk, in units of 1 / WHOLE_CHUNK: large rows have a larger share."""
        counts = [group.rows for group in self.groups]
        by_number = np.repeat(np.array([WHOLE_CHUNK // group.chunk_rows for group in self.groups], np.int64), counts)
        by_size: Numbers = np.minimum(self.sizes, _CHUNK_BYTES) * WHOLE_CHUNK // _CHUNK_BYTES
        shares: Numbers = np.maximum(by_number, by_size)
        return shares

    def tables_of(self, numbers: Numbers) -> Numbers:
        """The table index of each of these rows."""
        ends = np.cumsum([sum(group.rows for group in self.groups if group.table == place) for place in range(len(self.tables))])
        return np.searchsorted(ends, numbers, side="right").astype(np.int64)

    @property
    def outer_keys(self) -> tuple[tuple[SourceTable, ForeignKey], ...]:
        """Foreign keys to tables outside of the circle."""
        own = {table.definition.uuid for table in self.tables}
        return tuple((table, key) for table in self.tables for key in table.definition.foreign_keys if key.parent_uuid not in own)

    def keys_of(self, numbers: Sequence[int]) -> tuple[tuple[SourceTable, ForeignKey], ...]:
        """Keys by index in `keys`, with their tables."""
        return tuple((self.tables[self.keys[number].child], self.keys[number].key) for number in numbers)


def read_circle(tables: tuple[SourceTable, ...], groups: Sequence[RowGroup], folder: ParquetFolder) -> Circle:
    """Returns a circle with the order of its rows. `groups`: all row groups of the tables, with table indexes.

    Raises:
        RestoreRefused: a row refers to a missing row, or a key compares incomparable types. Or no order of statements restores the rows,
            or no UPDATE accepts the name of a primary key. It names them.
    """
    keys = tuple(_keys(tables))
    contents, sizes = zip(*(_read(table, _key_columns(tables, table), folder) for table in tables), strict=True)
    links = _links(tables, keys, contents)
    try:
        order = row_order(links)
    except RowsWithoutOrderError as error:
        raise RestoreRefused(_no_order(tables, contents, error)) from error
    circle = Circle(tables, tuple(sorted(groups, key=lambda group: group.table)), keys, order, np.concatenate(sizes))
    _require_updatable(circle)
    return circle


def _require_updatable(circle: Circle) -> None:
    """Rows of a turn are updated by their primary key."""
    turns = [step.numbers[step.turns > 0] for step in circle.order.steps if isinstance(step, Rows)]
    for place in np.unique(circle.tables_of(np.concatenate([np.zeros(0, np.int64), *turns]))).tolist():
        table = circle.tables[place]
        if (name := next((name for name in table.definition.primary_key if not is_queryable(name)), None)) is not None:
            raise RestoreRefused(
                f"table {table.name!r}: rows that refer to themselves are restored by an UPDATE, and none accepts the name "
                f"{beginning(name)} of the primary key, which is too long: set these references to null, and make another Checkpoint"
            )


def _keys(tables: Sequence[SourceTable]) -> Iterator[CircleKey]:
    places = {table.definition.uuid: place for place, table in enumerate(tables)}
    for child, table in enumerate(tables):
        for key in table.definition.foreign_keys:
            if key.parent_uuid in places:
                yield CircleKey(child, places[key.parent_uuid], key)


def _key_columns(tables: Sequence[SourceTable], table: SourceTable) -> list[str]:
    """The columns of its own foreign keys, and those that other tables' keys refer to."""
    compared = {name for other in tables for key in other.definition.foreign_keys for name in key.parent_columns}
    own = compared & {column.name for column in table.definition.columns}
    return sorted(own.union(*(key.columns for key in table.definition.foreign_keys), table.definition.primary_key))


def _read(table: SourceTable, columns: list[str], folder: ParquetFolder) -> tuple[pa.Table, Numbers]:
    """Returns some columns of a table, and the size of each whole row."""
    types = {column.name: ARROW_TYPES[column.type] for column in table.definition.columns}
    parts = [pa.schema([pa.field(name, types[name]) for name in columns]).empty_table()]
    sizes = [np.zeros(0, np.int64)]
    for file in table.files:
        with folder.parquet_file(file.path) as content:
            for rows in batches_in(content, _ROWS_AT_ONCE):
                parts.append(pa.Table.from_batches([rows.select(columns)]))
                sizes.append(_sizes(rows))
    return pa.concat_tables(parts), np.concatenate(sizes)


def _sizes(rows: pa.RecordBatch) -> Numbers:
    """The bytes of each row in memory, about."""
    found = np.full(rows.num_rows, 8 * rows.num_columns, np.int64)
    for column in rows.columns:
        if pa.types.is_list(column.type):
            found += 4 * pc.fill_null(pc.list_value_length(column), 0).to_numpy().astype(np.int64)
        elif pa.types.is_string(column.type) or pa.types.is_binary(column.type):
            found += pc.fill_null(pc.binary_length(column), 0).to_numpy().astype(np.int64)
    return found


def _links(tables: Sequence[SourceTable], keys: Sequence[CircleKey], contents: Sequence[pa.Table]) -> RowLinks:
    firsts = [0, *np.cumsum([content.num_rows for content in contents]).tolist()]
    found = [Links(firsts[one.child], _parents(tables, contents, one, firsts[one.parent])) for one in keys]
    places = {(one.child, one.key.name): place for place, one in enumerate(keys)}
    lookalikes = [
        Lookalikes(_lookalikes(tables, contents, (child, parent, key), firsts), places.get((child, key.name)))
        for child, parent in sorted({(one.child, one.parent) for one in keys})
        for key in tables[child].definition.foreign_keys
        if key.parent_uuid != tables[parent].definition.uuid
    ]
    return RowLinks(firsts[-1], found, lookalikes)


def _parents(tables: Sequence[SourceTable], contents: Sequence[pa.Table], one: CircleKey, first: int) -> Numbers:
    child, parent, key = contents[one.child], contents[one.parent], one.key
    words = f"table {tables[one.child].name!r}: foreign key {key.name!r}"
    compared = _numbers(child, parent, key, first)
    numbers = np.full(child.num_rows, NONE, np.int64) if compared is None else compared
    without = np.logical_and.reduce([pc.is_null(child[name]).to_numpy() for name in key.columns])
    broken = ((numbers == NONE) & ~without).nonzero()[0]
    if len(broken) and compared is None:
        pairs = [f"{child[name].type} with {parent[other].type}" for name, other in zip(key.columns, key.parent_columns, strict=True)]
        raise RestoreRefused(f"{words} of {len(broken)} rows compares {', '.join(pairs)}: drop it, and make another Checkpoint")
    if len(broken):
        raise RestoreRefused(
            f"{words} of {len(broken)} rows refers to rows that {tables[one.parent].name!r} does not have, the first: "
            f"{_shown(tables[one.child], child, int(broken[0]))}"
        )
    return numbers


def _lookalikes(
    tables: Sequence[SourceTable], contents: Sequence[pa.Table], where: tuple[int, int, ForeignKey], firsts: Sequence[int]
) -> Links:
    """Finds the child's rows that look like children of the parent's rows, by a key to another table.

    A row that looks like its own child may come in with a null if the column takes one, like a reference to itself. If the parent lacks
    columns of these names, HerdDB fails at each change of its rows. Then each row counts as its own child.
    """
    child, parent, key = where
    if not set(key.parent_columns) <= set(contents[parent].column_names):
        return Links(firsts[parent], np.arange(firsts[parent], firsts[parent] + contents[parent].num_rows))
    numbers = _numbers(contents[child], contents[parent], key, firsts[parent])
    if numbers is None:
        return Links(firsts[child], np.full(contents[child].num_rows, NONE, np.int64))
    if child == parent and all(may_be_null(tables[child].definition, name) for name in key.columns):
        numbers[numbers == np.arange(firsts[child], firsts[child] + len(numbers))] = NONE
    return Links(firsts[child], numbers)


def may_be_null(table: TableDefinition, name: str) -> bool:
    """Whether rows may have a null in this column."""
    columns: dict[str, Column] = {column.name: column for column in table.columns}
    return columns[name].nullable and name not in table.primary_key


def _numbers(child: pa.Table, parent: pa.Table, key: ForeignKey, first: int) -> Numbers | None:
    """Returns, per row of the child, the number of the first parent row with its values; NONE without one, or for a null.

    Returns None if the values can't be compared. HerdDB compares numbers of different types as doubles
    (SQLRecordPredicateFunctions.objectEquals of HerdDB 0.29.0).
    """
    names = [f"k{place}" for place in range(len(key.columns))]
    columns = [_as_one_type(child[name], parent[other]) for name, other in zip(key.columns, key.parent_columns, strict=True)]
    if None in columns:
        return None
    pairs = [pair for pair in columns if pair is not None]
    children = pa.table([one for one, _ in pairs], names=names).append_column("child", pa.array(np.arange(child.num_rows)))
    parents = pa.table([other for _, other in pairs], names=names).append_column("parent", pa.array(np.arange(parent.num_rows)))
    found = np.full(child.num_rows, NONE, np.int64)
    matches = children.join(parents.group_by(names).aggregate([("parent", "min")]), names, join_type="inner")
    found[matches["child"].to_numpy()] = matches["parent_min"].to_numpy() + first
    return found


def _as_one_type(one: pa.ChunkedArray, other: pa.ChunkedArray) -> tuple[pa.ChunkedArray, pa.ChunkedArray] | None:
    """Casts both to a common type, None without one: float arrays have none. Adding 0.0 makes -0.0 equal to 0.0."""
    kinds = (one.type, other.type)
    if any(map(pa.types.is_list, kinds)):
        return None
    if all(map(pa.types.is_integer, kinds)):
        return one.cast(pa.int64()), other.cast(pa.int64())
    if all(pa.types.is_integer(kind) or pa.types.is_floating(kind) for kind in kinds):
        return pc.add(one.cast(pa.float64(), safe=False), 0.0), pc.add(other.cast(pa.float64(), safe=False), 0.0)
    return (one, other) if one.type == other.type else None


def _no_order(tables: Sequence[SourceTable], contents: Sequence[pa.Table], error: RowsWithoutOrderError) -> str:
    places = np.cumsum([0, *(content.num_rows for content in contents)])
    place = int(np.searchsorted(places, error.example, side="right")) - 1
    names = ", ".join(repr(table.name) for table in tables)
    example = _shown(tables[place], contents[place], error.example - int(places[place]))
    return (
        f"{error.rows} rows of {names} refer to each other by foreign keys, and no order of statements can restore them; one of them:"
        f" {example}. Set its references to null, or drop a foreign key in the circle, and make another Checkpoint"
    )


def _shown(table: SourceTable, content: pa.Table, row: int) -> str:
    values = dict(zip(content.column_names, rows_of(content.slice(row, 1))[0], strict=True))
    return f"{table.name} " + ", ".join(f"{name} = {values[name]!r}" for name in table.definition.primary_key)
