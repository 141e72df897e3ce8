"""Decodes the common entries of a batch all at once: row changes, transaction boundaries and NOOPs, which are nearly all of a log.

Each step works on one field of all entries: their headers, then the lengths, whose place depends on the field before, then the bytes. An
entry that is not exactly what is expected (definitions, damage, an older header) is left to `formats.herddb_log_entry`, which decodes it or
says what is wrong with it. The format is described there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from herdkeeper.formats.herddb_log_entry import LogEntryType
from herdkeeper.formats.java_data import MalformedDataError, decode_modified_utf8

_HEADER_BYTES = 20
_V_INT_BYTES = 5
_MAX_LENGTH = 2**31
_PIECE_BYTES = 256 * 1024
_WITH_VALUE = (LogEntryType.INSERT, LogEntryType.UPDATE)
_WITH_KEY = (*_WITH_VALUE, LogEntryType.DELETE)
_BARE = (LogEntryType.BEGIN, LogEntryType.COMMIT, LogEntryType.ROLLBACK, LogEntryType.NOOP)
Integers = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class CommonEntries:
    """The entries of a batch that were decoded: `rows` says which, the columns have one value for each of these, in order."""

    rows: Flags
    timestamp: pa.Array
    type: pa.Array
    transaction_id: pa.Array
    table_name: pa.Array
    row_key: pa.Array
    row_value: pa.Array


@dataclass(frozen=True, slots=True)
class _Bytes:
    """The payloads of a batch in one piece; entry i lies between `starts[i]` and `ends[i]`."""

    data: npt.NDArray[np.uint8]
    starts: Integers
    ends: Integers

    def at(self, positions: Integers) -> Integers:
        """The byte at each position; any byte for a position behind the end, where callers compare with `ends`."""
        return self.data[np.minimum(positions, len(self.data) - 1)].astype(np.int64)


def decode_common_entries(payloads: pa.Array) -> CommonEntries:
    """Decodes what is common in an array of binary payloads without nulls."""
    source = _bytes_of(payloads)
    header = source.data[np.minimum(source.starts[:, None] + np.arange(_HEADER_BYTES), len(source.data) - 1)]
    kind = _number(header, 8, ">i2")
    good = (source.ends - source.starts >= _HEADER_BYTES) & (_number(header, 18, ">u2") == 0)
    bare = good & np.isin(kind, _BARE) & (source.ends - source.starts == _HEADER_BYTES)
    keyed = good & np.isin(kind, _WITH_KEY)
    table_at, table_bytes = source.starts + _HEADER_BYTES + 2, _short(source, source.starts + _HEADER_BYTES)
    key_at, key_bytes, keyed = _array(source, table_at + table_bytes, keyed)
    value_at, value_bytes, whole = _array(source, key_at + key_bytes, keyed & np.isin(kind, _WITH_VALUE))
    whole |= keyed & (kind == LogEntryType.DELETE)
    end = np.where(kind == LogEntryType.DELETE, key_at + key_bytes, value_at + value_bytes)
    whole &= end == source.ends
    names, named = _names(source, np.where(whole, table_at, 0), np.where(whole, table_bytes, 0))
    rows = (bare | whole) & named
    return CommonEntries(
        rows,
        pa.array(_number(header, 0, ">i8")[rows], pa.int64()),
        pa.array(kind[rows].astype(np.int32), pa.int32()),
        pa.array(_number(header, 10, ">i8")[rows], pa.int64()),
        names.filter(pa.array(rows)),
        _slices(source, key_at[rows], np.where(whole, key_bytes, 0)[rows]),
        _slices(source, value_at[rows], np.where(whole & np.isin(kind, _WITH_VALUE), value_bytes, 0)[rows]),
    )


def _bytes_of(payloads: pa.Array) -> _Bytes:
    offsets, data = payloads.buffers()[1:]
    bounds = np.frombuffer(offsets, np.int32)[payloads.offset : payloads.offset + len(payloads) + 1].astype(np.int64)
    # one byte at least, so that there is something to look at
    held = np.frombuffer(data, np.uint8) if data is not None and data.size else np.zeros(1, np.uint8)
    return _Bytes(held, bounds[:-1], bounds[1:])


def _number(header: npt.NDArray[np.uint8], at: int, form: str) -> Integers:
    width = np.dtype(form).itemsize
    return np.ascontiguousarray(header[:, at : at + width]).view(form)[:, 0].astype(np.int64)


def _short(source: _Bytes, at: Integers) -> Integers:
    return source.at(at) << 8 | source.at(at + 1)


def _array(source: _Bytes, at: Integers, wanted: Flags) -> tuple[Integers, Integers, Flags]:
    """Where the bytes of an array begin, how many they are, and for which of the wanted entries it lies within the entry."""
    length = np.zeros(len(at), np.int64)
    going_on = wanted.copy()
    for group in range(_V_INT_BYTES):
        byte = source.at(at)
        length |= np.where(going_on, (byte & 0x7F) << (7 * group), 0)
        at = at + going_on
        going_on &= byte >= 0x80
    fits = wanted & ~going_on & (length < _MAX_LENGTH) & (at + length <= source.ends)
    return at, np.where(fits, length, 0), fits


def _names(source: _Bytes, starts: Integers, lengths: Integers) -> tuple[pa.Array, Flags]:
    """Names of tables, few of which differ, and which entries have one that can be decoded."""
    encoded = _slices(source, starts, lengths).dictionary_encode()
    texts: list[str | None] = []
    for name in encoded.dictionary.to_pylist():
        try:
            texts.append(decode_modified_utf8(name))
        except MalformedDataError:
            texts.append(None)
    decodable = np.array([text is not None for text in texts], np.bool_)
    indices = encoded.indices.to_numpy(zero_copy_only=False)
    return pa.array(texts, pa.string()).take(encoded.indices), decodable[indices]


def _slices(source: _Bytes, starts: Integers, lengths: Integers) -> Any:
    """The bytes from each start on, as an Arrow array that has its own copy of them."""
    offsets = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    taken = np.empty(offsets[-1], np.uint8)
    first = 0
    while first < len(lengths):
        # piece by piece, since the index of a byte takes eight
        last = max(first + 1, int(np.searchsorted(offsets, offsets[first] + _PIECE_BYTES, "right")) - 1)
        begin, end = offsets[first], offsets[last]
        shifts = np.repeat(starts[first:last] - offsets[first:last], lengths[first:last])
        taken[begin:end] = source.data[np.arange(begin, end) + shifts]
        first = last
    return pa.Array.from_buffers(pa.binary(), len(lengths), [None, pa.py_buffer(offsets.astype(np.int32)), pa.py_buffer(taken)])
