"""Of the changes of each key the last one, in tasks: Arrow to Arrow, in bounded memory. Pure but for files of its own on local disk.

Changes come as `batch_place.PLACED_SCHEMA`. The order of application is (applied, own LSN), and no two changes of a key are alike in it, so
changes may be folded in any parts and in any order: each task folds what it reads, as far as that leaves less to send on, then each
partition folds what all of them sent. Between the two, changes travel as blocks (`blocks`).
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from herdkeeper_jobs.wal.batch_place import PLACED_SCHEMA
from herdkeeper_jobs.wal.blocks import Batches, Blocks

SENT_SCHEMA = pa.schema([("bucket", pa.int32()), ("block", pa.binary())])
SENT_COLUMNS = "bucket int, block binary"
"""SENT_SCHEMA as Spark's DDL text."""
LAST_SCHEMA = pa.schema([("table_index", pa.int32()), ("row_key", pa.binary()), ("row_value", pa.binary())])
LAST_COLUMNS = "table_index int, row_key binary, row_value binary"
"""LAST_SCHEMA as Spark's DDL text."""

HELD_BYTES = 64 * 1024 * 1024
"""Of changes that a task holds before it folds them; while it does it has about three times as much."""
_BUCKETED_ROWS = 65_536
_WORTH_FOLDING, _ONE_KEY_OF = 0.8, 16
_FILES, _FILE_BITS, _MOST_DEPTH = 16, 4, 12
_ROWS_AT_ONCE = 50_000
_WORD_BYTES, _NUMBER_BITS = 8, 64
_ORDER = ("applied_ledger", "applied_entry", "ledger_id", "entry_id")
Hashes = npt.NDArray[np.uint64]


def to_blocks(placed: Batches, buckets: int, blocks: Blocks, held_bytes: int = HELD_BYTES) -> Iterator[pa.RecordBatch]:
    """The changes of a task, as SENT_SCHEMA. All changes of a key go to the same bucket, whichever task has them.

    They are folded first, unless the keys that a task holds at a time hardly ever repeat: then folding would be for nothing.
    """
    worth = True
    for rows in _gathered(placed, held_bytes):
        worth = worth and _repeats(rows)
        yield from _blocks(fold(rows) if worth else rows, buckets, blocks)


def from_blocks(sent: Batches, blocks: Blocks, held_bytes: int = HELD_BYTES) -> Iterator[pa.RecordBatch]:
    """The rows that are left of the changes of whole buckets, as LAST_SCHEMA: the last change of each key that is no DELETE."""
    changes = LastChanges(held_bytes)
    for rows in blocks.rows(sent):
        changes.add(rows)
    for last in changes.take():
        left = last.filter(pc.invert(last.column("deleted"))).select(LAST_SCHEMA.names)
        yield from left.to_batches(_ROWS_AT_ONCE)


class LastChanges:
    """The last change of each key among those that were added. What does not fit into memory goes to files, by the hash of its key."""

    def __init__(self, held_bytes: int = HELD_BYTES, depth: int = 0) -> None:
        self._held_bytes = held_bytes
        self._depth = depth
        self._held: list[pa.RecordBatch] = []
        self._size = 0
        self._files: _Files | None = None

    def add(self, rows: pa.RecordBatch) -> None:
        """Adds changes (PLACED_SCHEMA), in any order."""
        self._held.append(rows)
        self._size += rows.nbytes
        if self._size > self._held_bytes:
            self._make_room()

    def take(self) -> Iterator[pa.Table]:
        """All last changes, each once. Nothing can be added afterwards."""
        if self._files is None:
            if self._held:
                yield fold(self._release())
            return
        self._spill(self._files)
        yield from self._files.read_back(self._held_bytes)

    def _make_room(self) -> None:
        folded = fold(self._release())
        # What a fold leaves is half of the bound at most, else the next one would come too soon.
        if folded.nbytes <= self._held_bytes // 2 or self._depth == _MOST_DEPTH:
            self._held, self._size = folded.combine_chunks().to_batches(), folded.nbytes
            self._held_bytes = max(self._held_bytes, 2 * self._size)
            return
        if self._files is None:
            self._files = _Files(self._depth)
        self._files.write(folded)

    def _spill(self, files: _Files) -> None:
        if self._held:
            files.write(fold(self._release()))

    def _release(self) -> pa.Table:
        rows = pa.Table.from_batches(self._held, schema=PLACED_SCHEMA)
        self._held, self._size = [], 0
        return rows


class _Files:
    """Changes on local disk, those of a key in one file."""

    def __init__(self, depth: int) -> None:
        self._depth = depth
        self._folder = tempfile.TemporaryDirectory(prefix="herdkeeper-fold-")
        self._writers = [pa.ipc.new_file(str(path), PLACED_SCHEMA) for path in self._paths()]

    def write(self, rows: pa.Table) -> None:
        # the highest bits of the hash: buckets are made of the lowest
        number = (_hashes(rows) >> np.uint64(64 - _FILE_BITS * (self._depth + 1))) & np.uint64(_FILES - 1)
        for position, part in _parted(rows, number.astype(np.uint16), _FILES):
            self._writers[position].write_table(part.combine_chunks())

    def read_back(self, held_bytes: int) -> Iterator[pa.Table]:
        for writer in self._writers:
            writer.close()
        with self._folder:
            for path in self._paths():
                yield from _folded_file(path, held_bytes, self._depth + 1)

    def _paths(self) -> list[Path]:
        return [Path(self._folder.name) / f"{number}.arrow" for number in range(_FILES)]


def _folded_file(path: Path, held_bytes: int, depth: int) -> Iterator[pa.Table]:
    changes = LastChanges(held_bytes, depth)
    with pa.OSFile(str(path)) as source, pa.ipc.open_file(source) as stream:
        for number in range(stream.num_record_batches):
            changes.add(stream.get_batch(number))
    yield from changes.take()


def fold(rows: pa.Table) -> pa.Table:
    """The last change of each key of each table (PLACED_SCHEMA), in the order of application."""
    rows = rows.combine_chunks()
    order = _order(rows)
    keys = _keys(rows) if order is None else _keys(rows).take(pa.array(order))
    places = keys.append_column("place", pa.array(np.arange(rows.num_rows)))
    last = np.sort(places.group_by(keys.column_names, use_threads=False).aggregate([("place", "max")]).column("place_max").to_numpy())
    return rows.take(pa.array(last if order is None else order[last]))


def _repeats(rows: pa.Table) -> bool:
    """Whether folding would leave clearly less: asked of the keys with certain hashes only, of each with all of its changes."""
    hashes = _hashes(rows)
    asked = hashes[hashes % np.uint64(_ONE_KEY_OF) == 0]
    return len(np.unique(asked)) <= _WORTH_FOLDING * len(asked)


def _keys(rows: pa.Table) -> pa.Table:
    """What tells the keys of all tables apart. Numbers are grouped in a third of the time of bytes."""
    tables = rows.column("table_index").to_numpy()
    if len(tables) and (tables != tables[0]).any():
        return rows.select(["table_index", "row_key"])
    lengths = pc.unique(pc.binary_length(rows.column("row_key"))).to_pylist()
    if len(lengths) == 1 and lengths[0] <= _WORD_BYTES:
        # One-to-one for these. Not the key's own number: Arrow takes hundreds of times as long for numbers whose lowest bits are alike.
        return pa.table({"row_key": pa.array(_hashes(rows))})
    return rows.select(["row_key"])


def _order(rows: pa.Table) -> npt.NDArray[np.int64] | None:
    """Positions in the order of application; None when they are in it already."""
    columns = [rows.column(name).to_numpy() for name in _ORDER]
    telling = [column for column in columns if len(column) and (column != column[0]).any()]
    if _ascends(telling):
        return None
    lows = [int(column.min()) for column in telling]
    bits = [(int(column.max()) - low).bit_length() for column, low in zip(telling, lows, strict=True)]
    if sum(bits) >= _NUMBER_BITS:
        return np.lexsort(telling[::-1])
    # one number for each row is sorted in a fifth of the time
    number = np.zeros(rows.num_rows, np.int64)
    for column, low, width in zip(telling, lows, bits, strict=True):
        number = (number << width) | (column - low)
    return np.argsort(number)


def _ascends(columns: Sequence[npt.NDArray[np.int64]]) -> bool:
    """Whether lines of these columns ascend, compared from the first column on."""
    same = np.True_
    for column in columns:
        if (same & (column[1:] < column[:-1])).any():
            return False
        same = same & (column[1:] == column[:-1])
    return True


def _gathered(batches: Batches, held_bytes: int) -> Iterator[pa.Table]:
    held: list[pa.RecordBatch] = []
    size = 0
    for batch in batches:
        held.append(batch)
        size += batch.nbytes
        if size >= held_bytes:
            yield pa.Table.from_batches(held)
            held, size = [], 0
    if held:
        yield pa.Table.from_batches(held)


def _blocks(rows: pa.Table, buckets: int, blocks: Blocks) -> Iterator[pa.RecordBatch]:
    parts: list[list[pa.Table]] = [[] for _ in range(buckets)]
    for first in range(0, rows.num_rows, _BUCKETED_ROWS):
        # in pieces that fit into a processor's cache
        piece = rows.slice(first, _BUCKETED_ROWS).combine_chunks()
        for bucket, part in _parted(piece, (_hashes(piece) % np.uint64(buckets)).astype(np.uint16), buckets):
            parts[bucket].append(part)
    with blocks.write() as writer:
        for bucket, tables in enumerate(parts):
            for block in writer.blocks(pa.concat_tables(tables)) if tables else ():
                yield pa.RecordBatch.from_arrays([pa.array([bucket], pa.int32()), block], schema=SENT_SCHEMA)


def _parted(rows: pa.Table, parts: npt.NDArray[np.uint16], count: int) -> Iterator[tuple[int, pa.Table]]:
    """The rows of each part that has any."""
    sorted_ = rows.take(pa.array(np.argsort(parts, kind="stable")))
    ends = np.cumsum(np.bincount(parts, minlength=count))
    for part, (begin, end) in enumerate(zip([0, *ends[:-1]], ends, strict=True)):
        if end > begin:
            yield part, sorted_.slice(begin, end - begin)


# by number of bytes, a mask for those of a word that count
_LOWEST = np.array([(1 << 8 * count) - 1 for count in range(_WORD_BYTES + 1)], np.uint64)
_MULTIPLIER, _LENGTH_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xC2B2AE3D27D4EB4F)


def _hashes(rows: pa.Table) -> Hashes:
    """A hash of each key, the same in each task. Equal hashes prove nothing, but for keys of one length of up to eight bytes: of them none
    are alike, since each step can be undone."""
    return np.concatenate([_hashes_of(keys) for keys in rows.column("row_key").chunks] or [np.zeros(0, np.uint64)])


def _hashes_of(keys: pa.Array) -> Hashes:
    offsets, data = keys.buffers()[1:]
    bounds = np.frombuffer(offsets, np.int32)[keys.offset : keys.offset + len(keys) + 1].astype(np.int64)
    held = np.zeros(0, np.uint8) if data is None else np.frombuffer(data, np.uint8)[bounds[0] : bounds[-1]]
    padded = np.concatenate([held, np.zeros(_WORD_BYTES, np.uint8)])
    at, left = bounds[:-1] - bounds[0], np.diff(bounds)
    found = left.astype(np.uint64) * _LENGTH_MULTIPLIER
    if len(left) and left[0] and (left == left[0]).all():
        _mix_alike(found, padded, int(left[0]))
    else:
        _mix(found, padded, at, left)
    mixed = found * _LENGTH_MULTIPLIER
    result: Hashes = mixed ^ (mixed >> np.uint64(29))
    return result


def _mix_alike(found: Hashes, padded: npt.NDArray[np.uint8], size: int) -> None:
    """As `_mix`, of keys of one length that follow each other: their words need not be looked up one by one."""
    for begin in range(0, size, _WORD_BYTES):
        word = np.ndarray(len(found), np.dtype("<u8"), padded, begin, (size,))
        _mix_word(found, slice(None), word & _LOWEST[min(size - begin, _WORD_BYTES)])


def _mix(found: Hashes, padded: npt.NDArray[np.uint8], at: npt.NDArray[np.int64], left: npt.NDArray[np.int64]) -> None:
    """Mixes the words of each key into its hash; `left` bytes from `at` on."""
    # a word from each position on
    words = np.ndarray(len(padded) - _WORD_BYTES + 1, np.dtype("<u8"), padded, strides=(1,))
    rows = np.flatnonzero(left > 0)
    while len(rows):
        _mix_word(found, rows, words[at[rows]] & _LOWEST[np.minimum(left[rows], _WORD_BYTES)])
        at, left = at + _WORD_BYTES, left - _WORD_BYTES
        rows = rows[left[rows] > 0]


def _mix_word(found: Hashes, rows: Any, word: Hashes) -> None:
    mixed = (found[rows] ^ word) * _MULTIPLIER
    found[rows] = mixed ^ (mixed >> np.uint64(32))
