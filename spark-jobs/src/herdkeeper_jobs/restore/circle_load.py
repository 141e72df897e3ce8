"""Loads a circle of tables through one connection, in the order of its rows (`row_order`), with the keys between them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np
import pyarrow as pa

from herdkeeper.codecs.herddb.table import ForeignKey, TableDefinition
from herdkeeper_jobs.checkpoint.arrow_table import rows_of
from herdkeeper_jobs.encryption.parquet_folder import ParquetFolder
from herdkeeper_jobs.restore.chunks import Chunk
from herdkeeper_jobs.restore.circle import WHOLE_CHUNK, Circle, may_be_null
from herdkeeper_jobs.restore.ddl import insert, update_by_key
from herdkeeper_jobs.restore.foreign_keys import add_foreign_keys
from herdkeeper_jobs.restore.load import Batch, ChunkLoader
from herdkeeper_jobs.restore.row_order import AddKey, Numbers, Rows
from herdkeeper_jobs.restore.session import Session
from herdkeeper_jobs.restore.source import Source

_CHUNKS_READ, _BYTES_READ = 128, 128 << 20
"""Chunks whose rows are in memory at a time, and their bytes. Their rows may be anywhere in the files; each file is read once for all of
them."""

Row = Sequence[Any]


@dataclass(frozen=True, slots=True, eq=False)
class _Piece:
    """A chunk and its rows, with their bytes. `there`: indexes of the circle's keys that exist by then."""

    chunk: Chunk
    rows: Rows
    size: int
    there: frozenset[int]


def load_circle(session: Session, source: Source, circle: Circle, done: Mapping[str, int]) -> int:
    """Adds the foreign keys and loads all rows that are not `done`; returns how many this call loaded.

    Raises RestoreRetryable, InvariantViolated, SqlError.
    """
    add_foreign_keys(session.connection(), source, circle.outer_keys + circle.keys_of(circle.order.before))
    loader = ChunkLoader(session)
    there = frozenset(circle.order.before)
    loaded = first = 0
    for step in circle.order.steps:
        match step:
            case AddKey(key):
                add_foreign_keys(session.connection(), source, circle.keys_of((key,)))
                there |= {key}
            case Rows():
                for together in _read_together(_pieces(circle, step, first, done, there)):
                    loaded += _load_pieces(loader, circle, together, source.folder)
                first += len(step.numbers)
    return loaded


def _pieces(circle: Circle, rows: Rows, first: int, done: Mapping[str, int], there: frozenset[int]) -> Iterator[_Piece]:
    """Yields the chunks of a step that are not `done`. `first`: number of the circle's rows before it.

    Row sizes decide how many rows a chunk has. One that is done has as many as its mark says: an earlier image made others.
    """
    chunks = (np.cumsum(circle.shares()[rows.numbers]) - 1) // WHOLE_CHUNK
    ends = np.flatnonzero(np.diff(chunks, append=-1)) + 1
    begin = 0
    while begin < len(rows.numbers):
        step = f"{circle.name}, in order+{first + begin}"
        if step in done:
            begin += done[step]
            continue
        end = int(ends[np.searchsorted(ends, begin, side="right")])
        part = Rows(rows.numbers[begin:end], rows.turns[begin:end])
        yield _Piece(Chunk(step, end - begin), part, int(circle.sizes[part.numbers].sum()), there)
        begin = end


def _read_together(pieces: Iterable[_Piece]) -> Iterator[list[_Piece]]:
    """Yields the chunks whose rows are read at once, in order."""
    held: list[_Piece] = []
    size = 0
    for piece in pieces:
        if held and (len(held) == _CHUNKS_READ or size + piece.size > _BYTES_READ):
            yield held
            held, size = [], 0
        held.append(piece)
        size += piece.size
    if held:
        yield held


def _load_pieces(loader: ChunkLoader, circle: Circle, pieces: Sequence[_Piece], folder: ParquetFolder) -> int:
    wanted = np.unique(np.concatenate([piece.rows.numbers for piece in pieces]))
    contents = _read(circle, wanted, folder)
    return sum(loader.load(piece.chunk, list(_batches(circle, piece, contents))) for piece in pieces)


@dataclass(frozen=True, slots=True, eq=False)
class _Content:
    """Rows of a table, and their numbers in ascending order."""

    numbers: Numbers
    rows: pa.Table

    def rows_of(self, numbers: Sequence[int]) -> list[tuple[Any, ...]]:
        """Returns some of them, in this order."""
        return rows_of(self.rows.take(np.searchsorted(self.numbers, numbers)))


def _read(circle: Circle, wanted: Numbers, folder: ParquetFolder) -> dict[int, _Content]:
    """Reads rows, by table index. `wanted` must ascend."""
    found: dict[int, list[_Content]] = {}
    first = 0
    for group in circle.groups:
        numbers = wanted[slice(*np.searchsorted(wanted, (first, first + group.rows)))]
        if len(numbers):
            with folder.parquet_file(group.path) as file:
                found.setdefault(group.table, []).append(_Content(numbers, file.read_row_group(group.number).take(numbers - first)))
        first += group.rows
    return {
        table: _Content(np.concatenate([part.numbers for part in parts]), pa.concat_tables([part.rows for part in parts]))
        for table, parts in found.items()
    }


def _batches(circle: Circle, piece: _Piece, contents: Mapping[int, _Content]) -> Iterator[Batch]:
    """Yields the statements that load the rows, in order. Rows of a turn refer to themselves: they come in with nulls, and are updated
    then."""
    numbers, turns = piece.rows.numbers.tolist(), piece.rows.turns.tolist()
    tables = circle.tables_of(piece.rows.numbers).tolist()
    for (place, turn), together in groupby(zip(tables, turns, numbers, strict=True), key=lambda one: one[:2]):
        table = circle.tables[place].definition
        rows = contents[place].rows_of([number for *_, number in together])
        if not turn:
            yield Batch(insert(table), rows)
            continue
        late = {one.key.name for number, one in enumerate(circle.keys) if one.child == place and number not in piece.there}
        keys = [key for key in table.foreign_keys if key.name not in late]
        nulls = [_nulls(table, keys, row) for row in rows]
        columns = sorted(frozenset[str]().union(*nulls))
        yield Batch(insert(table), [_without(table, null, row) for null, row in zip(nulls, rows, strict=True)])
        yield Batch(update_by_key(table, columns), [_values(table, (*columns, *table.primary_key), row) for row in rows])


def _nulls(table: TableDefinition, keys: Sequence[ForeignKey], row: Row) -> frozenset[str]:
    """Returns the columns in which a row must come in with a null: it refers to itself, or seems to, by an existing key. Adds columns that
    share a key with these. HerdDB looks for no parent if all of a key is null, and refuses a key that is null in part."""
    own = {column.name for column in table.columns}
    nulls: frozenset[str] = frozenset()
    for key in keys:
        if set(key.parent_columns) <= own and _values(table, key.columns, row) == _values(table, key.parent_columns, row):
            nulls |= {name for name in key.columns if may_be_null(table, name)}
    while more := {name for key in keys if nulls & set(key.columns) for name in key.columns if may_be_null(table, name)} - nulls:
        nulls |= more
    return nulls


def _without(table: TableDefinition, nulls: frozenset[str], row: Row) -> list[Any]:
    return [None if column.name in nulls else value for column, value in zip(table.columns, row, strict=True)]


def _values(table: TableDefinition, names: Sequence[str], row: Row) -> list[Any]:
    by_name = {column.name: value for column, value in zip(table.columns, row, strict=True)}
    return [by_name[name] for name in names]
