"""Keeps the last change of each key, in tasks: Arrow to Arrow, in bounded memory. Pure, apart from its own files on local disk.

Changes come as `batch_place.PLACED_SCHEMA`. The order of application is (applied, own LSN), which differs among a key's changes. So changes
may be folded in any parts and any order. Each task first folds what it reads, if that leaves clearly less to send. Then each partition
folds what all tasks sent. Changes travel as blocks (`blocks`).
"""

from __future__ import annotations

import secrets
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from herdkeeper_jobs.packed_bytes import Integers
from herdkeeper_jobs.spark_tasks import Batches
from herdkeeper_jobs.wal.batch_place import PLACED_SCHEMA
from herdkeeper_jobs.wal.blocks import Blocks

SENT_SCHEMA = pa.schema([("bucket", pa.int32()), ("block", pa.binary())])
LAST_SCHEMA = pa.schema([("table_index", pa.int32()), ("row_key", pa.binary()), ("row_value", pa.binary())])

HELD_BYTES = 64 * 1024 * 1024
"""Changes that a task holds before it folds them. The fold needs about three times as much."""
_BUCKETED_ROWS = 65_536
_WORTH_FOLDING, _ONE_KEY_OF = 0.8, 16
_FILES, _FILE_BITS, _MOST_DEPTH = 16, 4, 12
_ROWS_AT_ONCE = 50_000
_WORD_BYTES, _NUMBER_BITS = 8, 64
_ORDER = ("applied_ledger", "applied_entry", "ledger_id", "entry_id")
_UNSORTED_ATTEMPTS = 6
Hashes = npt.NDArray[np.uint64]


def to_blocks(placed: Batches, buckets: int, blocks: Blocks, held_bytes: int = HELD_BYTES) -> Iterator[pa.RecordBatch]:
    """Packs a task's changes as SENT_SCHEMA. All changes of a key go to the same bucket, from every task.

    They are folded first, unless the held keys hardly ever repeat.
    """
    worth = True
    for rows in map(pa.Table.from_batches, _gathered(placed, held_bytes, lambda batch: batch.nbytes)):
        worth = worth and _repeats(rows)
        yield from _blocks(fold(rows) if worth else rows, buckets, blocks)


def from_blocks(sent: Batches, blocks: Blocks, held_bytes: int = HELD_BYTES) -> Iterator[pa.RecordBatch]:
    """Returns the remaining rows of whole buckets as LAST_SCHEMA: each key's last change, unless it is a DELETE."""
    changes = LastChanges(held_bytes)
    for rows in blocks.rows(sent):
        changes.add(rows)
    for left in changes.take():
        yield from left.to_batches(_ROWS_AT_ONCE)


class LastChanges:
    """The last change of each key among those added. What exceeds memory goes to files, by the hash of its key."""

    def __init__(self, held_bytes: int = HELD_BYTES, depth: int = 0) -> None:
        self._held_bytes = held_bytes
        self._depth = depth
        self._held: list[pa.RecordBatch] = []
        self._size = 0
        self._files: _Files | None = None

    def add(self, rows: pa.RecordBatch) -> None:
        """Adds changes (PLACED_SCHEMA), in any order."""
        self._held.append(rows)
        self._size += rows.get_total_buffer_size()
        if self._size > self._held_bytes:
            self._make_room()

    def take(self) -> Iterator[pa.Table]:
        """Yields the remaining rows (LAST_SCHEMA): each key's last change, unless it is a DELETE. Call it once, and add nothing
        afterwards."""
        if self._files is None:
            if self._held:
                yield _left(self._release())
            return
        self._spill(self._files)
        yield from self._files.read_back(self._held_bytes)

    def _make_room(self) -> None:
        folded = fold(self._release())
        # A fold may leave at most half of the bound, or the next fold would come too soon.
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
    """Changes on local disk; all changes of a key are in one file."""

    def __init__(self, depth: int) -> None:
        self._depth = depth
        self._folder = tempfile.TemporaryDirectory(prefix="herdkeeper-fold-")
        self._writers = [pa.ipc.new_file(str(path), PLACED_SCHEMA) for path in self._paths()]

    def write(self, rows: pa.Table) -> None:
        # the highest bits of the hash: buckets use the lowest
        for batch in rows.to_batches():
            hashes = _hashes_of(batch.column("row_key"))
            number = (hashes >> np.uint64(_NUMBER_BITS - _FILE_BITS * (self._depth + 1))) & np.uint64(_FILES - 1)
            for position, part in _parted(batch, number.astype(np.uint16), _FILES):
                self._writers[position].write_batch(part)

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
    """Returns the last change of each key of each table (PLACED_SCHEMA), in the order of application."""
    rows = rows.combine_chunks()
    order = _order(rows)
    last = _last(rows, order)
    return rows.take(pa.array(last[np.argsort(order[last])]))


def _left(rows: pa.Table) -> pa.Table:
    """As `fold`, in any order and without deleted rows (LAST_SCHEMA)."""
    last = _last(rows, _order(rows))
    is_left = np.zeros(rows.num_rows, np.bool_)
    is_left[last] = True
    is_left &= ~rows.column("deleted").to_numpy()
    # The values of dropped rows are never read.
    return rows.select(LAST_SCHEMA.names).filter(pa.array(is_left)).combine_chunks()


def _last(rows: pa.Table, order: Integers) -> Integers:
    """Returns positions of the last change of each key of each table, in any order."""
    numbers = _numbers(rows)
    if numbers is not None:
        return _last_of_each(numbers, order)
    positions = np.argsort(order)
    tables = rows.column("table_index").to_numpy()
    names = ["row_key"] if _are_alike(tables) else ["table_index", "row_key"]
    places = rows.select(names).take(pa.array(positions)).append_column("place", pa.array(np.arange(rows.num_rows)))
    last: Integers = positions[places.group_by(names, use_threads=False).aggregate([("place", "max")]).column("place_max").to_numpy()]
    return last


def _last_of_each(numbers: Hashes, order: Integers) -> Integers:
    """Returns, for each number, its position that is last in `order`; `order` differs among a number's positions. The result has any order.

    All positions write themselves into a table, at a slot of their number. A position that then finds itself there has won. One that lost
    to another number, or to an earlier position of its own, tries again elsewhere.
    """
    shift = np.uint64(_NUMBER_BITS - max(4, (2 * len(numbers)).bit_length()))
    slots = np.zeros(1 << (_NUMBER_BITS - int(shift)), np.int32)
    positions = np.arange(len(numbers), dtype=np.int32)
    won: list[npt.NDArray[np.int32]] = [positions[:0]]
    attempt = 0
    while len(positions):
        if attempt == _UNSORTED_ATTEMPTS:
            # From now on no position loses to an earlier one, so each attempt gives each slot a winner.
            sorted_ = np.argsort(order)
            positions, numbers, order = positions[sorted_], numbers[sorted_], order[sorted_]
        slot = ((numbers * np.uint64(pow(int(_MULTIPLIER), attempt + 1, 1 << _NUMBER_BITS))) >> shift).view(np.int64)
        tried = np.arange(len(numbers), dtype=np.int32)
        slots[slot] = tried
        winner = slots[slot]
        is_alike = numbers[winner] == numbers
        is_later = is_alike & (order > order[winner])
        has_won = winner == tried
        has_won[winner[is_later]] = False
        won.append(positions[has_won])
        rest = np.flatnonzero(is_later | ~is_alike)
        positions, numbers, order = positions[rest], numbers[rest], order[rest]
        attempt += 1
    return np.concatenate(won).astype(np.int64)


def _repeats(rows: pa.Table) -> bool:
    """Whether folding would leave clearly less. Samples keys by hash, each with all of its changes."""
    hashes = _hashes(rows)
    asked = hashes[hashes % np.uint64(_ONE_KEY_OF) == 0]
    return len(np.unique(asked)) <= _WORTH_FOLDING * len(asked)


def _numbers(rows: pa.Table) -> Hashes | None:
    """A number for each key, if keys are so short that hashes identify them; else None."""
    lengths = pc.min_max(pc.binary_length(rows.column("row_key")))
    shortest, longest = lengths["min"].as_py(), lengths["max"].as_py()
    if shortest is None or shortest < longest or longest > _WORD_BYTES or not _are_alike(rows.column("table_index").to_numpy()):
        return None
    return _hashes(rows.select(["row_key"]).combine_chunks())


def _are_alike(column: Integers) -> bool:
    return len(column) == 0 or bool((column == column[0]).all())


def _order(rows: pa.Table) -> Integers:
    """A number per row that ascends in the order of application; it differs among a key's rows."""
    columns = [rows.column(name).to_numpy() for name in _ORDER]
    telling = [column for column in columns if not _are_alike(column)]
    if _ascends(telling):
        return np.arange(rows.num_rows)
    lows = [int(column.min()) for column in telling]
    bits = [(int(column.max()) - low).bit_length() for column, low in zip(telling, lows, strict=True)]
    number = np.zeros(rows.num_rows, np.int64)
    if sum(bits) >= _NUMBER_BITS:
        number[np.lexsort(telling[::-1])] = np.arange(rows.num_rows)
        return number
    for column, low, width in zip(telling, lows, bits, strict=True):
        number = (number << width) | (column - low)
    return number


def _ascends(columns: Sequence[Integers]) -> bool:
    """Whether rows of these columns ascend, compared from the first column on."""
    same = np.True_
    for column in columns:
        if (same & (column[1:] < column[:-1])).any():
            return False
        same = same & (column[1:] == column[:-1])
    return True


def _gathered(batches: Batches, enough: int, size_of: Callable[[pa.RecordBatch], int]) -> Iterator[list[pa.RecordBatch]]:
    """Yields batches together, each time that their sizes add up to `enough`, and the rest."""
    held: list[pa.RecordBatch] = []
    size = 0
    for batch in batches:
        held.append(batch)
        size += size_of(batch)
        if size >= enough:
            yield held
            held, size = [], 0
    if held:
        yield held


def _blocks(rows: pa.Table, buckets: int, blocks: Blocks) -> Iterator[pa.RecordBatch]:
    parts: list[list[pa.RecordBatch]] = [[] for _ in range(buckets)]
    for piece in _pieces(rows):
        hashes = _hashes_of(piece.column("row_key"), blocks.seed)
        for bucket, part in _parted(piece, (hashes % np.uint64(buckets)).astype(np.uint16), buckets):
            parts[bucket].append(part)
    with blocks.write() as writer:
        for bucket, batches in enumerate(parts):
            for block in writer.blocks(pa.Table.from_batches(batches)) if batches else ():
                yield pa.RecordBatch.from_arrays([pa.array([bucket], pa.int32()), block], schema=SENT_SCHEMA)


def _pieces(rows: pa.Table) -> Iterator[pa.RecordBatch]:
    """Yields pieces that fit into a processor's cache: the batches as they came, small ones joined."""
    for held in _gathered(rows.to_batches(_BUCKETED_ROWS), _BUCKETED_ROWS // 2, lambda batch: batch.num_rows):
        yield held[0] if len(held) == 1 else pa.concat_batches(held)


def _parted(rows: pa.RecordBatch, parts: npt.NDArray[np.uint16], count: int) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Yields the rows of each part that has any."""
    sorted_ = rows.take(pa.array(np.argsort(parts, kind="stable")))
    ends = np.cumsum(np.bincount(parts, minlength=count)).tolist()
    for part, (begin, end) in enumerate(zip([0, *ends[:-1]], ends, strict=True)):
        if end > begin:
            yield part, sorted_.slice(begin, end - begin)


# by number of bytes, a mask of the bytes of a word that count
_LOWEST = np.array([(1 << 8 * count) - 1 for count in range(_WORD_BYTES + 1)], np.uint64)
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
# of splitmix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014), with its shifts
_LAST_STEPS = ((np.uint64(30), np.uint64(0xBF58476D1CE4E5B9)), (np.uint64(27), np.uint64(0x94D049BB133111EB)))
_OWN_SEED = secrets.randbits(64)


def _hashes(rows: pa.Table) -> Hashes:
    """A hash of each key. Equal hashes prove nothing, except for keys of one length up to eight bytes: each step is invertible, so their
    hashes are distinct."""
    return np.concatenate([_hashes_of(keys) for keys in rows.column("row_key").chunks] or [np.zeros(0, np.uint64)])


def _hashes_of(keys: pa.Array, seed: int = _OWN_SEED) -> Hashes:
    """As `_hashes`. Without the seed nobody can choose keys whose hashes are equal, which would all be in one task's memory."""
    offsets, data = keys.buffers()[1:]
    bounds = np.frombuffer(offsets, np.int32)[keys.offset : keys.offset + len(keys) + 1].astype(np.int64)
    held = np.zeros(0, np.uint8) if data is None else np.frombuffer(data, np.uint8)[bounds[0] : bounds[-1]]
    padded = np.concatenate([held, np.zeros(_WORD_BYTES, np.uint8)])
    at, left = bounds[:-1] - bounds[0], np.diff(bounds)
    odd = np.uint64(seed | 1)
    found = left.astype(np.uint64) * odd
    if len(left) and left[0] and (left == left[0]).all():
        _mix_alike(found, padded, int(left[0]), odd)
    else:
        _mix(found, padded, at, left, odd)
    # whatever the seed is, the lowest bits of the result depend on all bits of the key
    for shift, multiplier in _LAST_STEPS:
        found = (found ^ (found >> shift)) * multiplier
    result: Hashes = found ^ (found >> np.uint64(31))
    return result


def _mix_alike(found: Hashes, padded: npt.NDArray[np.uint8], size: int, odd: np.uint64) -> None:
    """As `_mix`, for contiguous keys of one length: their words need no lookup."""
    for begin in range(0, size, _WORD_BYTES):
        word = np.ndarray(len(found), np.dtype("<u8"), padded, begin, (size,))
        _mix_word(found, slice(None), word & _LOWEST[min(size - begin, _WORD_BYTES)], odd)


def _mix(found: Hashes, padded: npt.NDArray[np.uint8], at: Integers, left: Integers, odd: np.uint64) -> None:
    """Mixes the words of each key into its hash; a key has `left` bytes from `at` on."""
    # a word starting at each position
    words = np.ndarray(len(padded) - _WORD_BYTES + 1, np.dtype("<u8"), padded, strides=(1,))
    rows = np.flatnonzero(left > 0)
    while len(rows):
        _mix_word(found, rows, words[at[rows]] & _LOWEST[np.minimum(left[rows], _WORD_BYTES)], odd)
        at, left = at + _WORD_BYTES, left - _WORD_BYTES
        rows = rows[left[rows] > 0]


def _mix_word(found: Hashes, rows: Any, word: Hashes, odd: np.uint64) -> None:
    mixed = (found[rows] ^ word) * odd
    # a product keeps a difference of the highest bit, whatever is odd: so the other one comes behind the shift
    found[rows] = (mixed ^ (mixed >> np.uint64(32))) * odd
