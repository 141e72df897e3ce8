"""Loads a circle of tables by one connection, in the order of its rows (`row_order`), with the keys between them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, islice
from typing import Any

from herdkeeper.formats.herddb_table import ForeignKey, TableDefinition
from herdkeeper_jobs.checkpoint.arrow_table import rows_of
from herdkeeper_jobs.encryption.parquet_folder import ParquetFolder
from herdkeeper_jobs.restore.chunks import Chunk
from herdkeeper_jobs.restore.circle import Circle
from herdkeeper_jobs.restore.ddl import insert, update_by_key
from herdkeeper_jobs.restore.foreign_keys import add_foreign_keys
from herdkeeper_jobs.restore.load import Batch, ChunkLoader
from herdkeeper_jobs.restore.row_order import AddKey, Numbers, Rows
from herdkeeper_jobs.restore.session import Session
from herdkeeper_jobs.restore.source import Source

_CHUNKS_READ = 32
"""Chunks whose rows are in memory at a time: their rows lie anywhere in the files, of which each is read once for all of them."""

Row = Sequence[Any]


@dataclass(frozen=True, slots=True, eq=False)
class _Piece:
    """A chunk, and which rows it has."""

    chunk: Chunk
    rows: Rows


def load_circle(session: Session, source: Source, circle: Circle, done: Mapping[str, int]) -> int:
    """Makes the foreign keys and loads the rows that are not `done`; returns how many rows this call loaded.

    Raises RestoreRetryable, InvariantViolated, SqlError.
    """
    add_foreign_keys(session.connection(), source, circle.outer_keys + circle.keys_of(circle.order.before))
    loader = ChunkLoader(session)
    loaded = first = 0
    for step in circle.order.steps:
        match step:
            case AddKey(key):
                add_foreign_keys(session.connection(), source, circle.keys_of((key,)))
            case Rows():
                pieces = (piece for piece in _pieces(circle, step, first) if piece.chunk.step not in done)
                while together := list(islice(pieces, _CHUNKS_READ)):
                    loaded += _load_pieces(loader, circle, together, source.folder)
                first += len(step.numbers)
    return loaded


def _pieces(circle: Circle, rows: Rows, first: int) -> Iterator[_Piece]:
    """`first` is how many rows of the circle come before."""
    size = circle.chunk_rows
    for begin in range(0, len(rows.numbers), size):
        part = Rows(rows.numbers[begin : begin + size], rows.turns[begin : begin + size])
        yield _Piece(Chunk(f"{circle.name}, in order+{first + begin}", first + begin, len(part.numbers)), part)


def _load_pieces(loader: ChunkLoader, circle: Circle, pieces: Sequence[_Piece], folder: ParquetFolder) -> int:
    found = _rows_by_number(circle, pieces, folder)
    return sum(loader.load(piece.chunk, list(_batches(circle, piece.rows, found))) for piece in pieces)


def _rows_by_number(circle: Circle, pieces: Sequence[_Piece], folder: ParquetFolder) -> dict[int, tuple[int, Row]]:
    """The table's place in the circle, and the row."""
    found: dict[int, tuple[int, Row]] = {}
    first = 0
    for group in circle.groups:
        wanted = [number for piece in pieces for number in _between(piece.rows.numbers, first, first + group.rows)]
        if wanted:
            with folder.parquet_file(group.path) as file:
                content = file.read_row_group(group.number).take([number - first for number in wanted])
            found |= {number: (group.table, row) for number, row in zip(wanted, rows_of(content), strict=True)}
        first += group.rows
    return found


def _between(numbers: Numbers, first: int, end: int) -> list[int]:
    return [int(number) for number in numbers[(numbers >= first) & (numbers < end)]]


def _batches(circle: Circle, rows: Rows, found: Mapping[int, tuple[int, Row]]) -> Iterator[Batch]:
    """What brings the rows in, in their order. Those of a turn refer to themselves: they come in with nulls, and are changed then."""
    in_order = ((*found[int(number)], int(turn)) for number, turn in zip(rows.numbers, rows.turns, strict=True))
    for (place, turn), together in groupby(in_order, key=lambda one: (one[0], one[2])):
        table = circle.tables[place].definition
        these = [row for _, row, _ in together]
        if not turn:
            yield Batch(insert(table), these)
            continue
        keys = [one.key for one in circle.keys if one.child == one.parent == place]
        columns = sorted({name for key in keys for name in key.columns} - set(table.primary_key))
        yield Batch(insert(table), [_with_nulls(table, keys, row) for row in these])
        yield Batch(update_by_key(table, columns), [_values(table, (*columns, *table.primary_key), row) for row in these])


def _with_nulls(table: TableDefinition, keys: Sequence[ForeignKey], row: Row) -> list[Any]:
    """The row without what refers to itself."""
    nulls = {name for key in keys if _values(table, key.columns, row) == _values(table, key.parent_columns, row) for name in key.columns}
    return [
        None if column.name in nulls and column.nullable and column.name not in table.primary_key else value
        for column, value in zip(table.columns, row, strict=True)
    ]


def _values(table: TableDefinition, names: Sequence[str], row: Row) -> list[Any]:
    by_name = {column.name: value for column, value in zip(table.columns, row, strict=True)}
    return [by_name[name] for name in names]
