"""Many byte strings in one buffer with their places, for vectorized parsing, field by field."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

_V_INT_BYTES = 5
_MAX_LENGTH = 2**31
_PIECE_BYTES = 256 * 1024
Integers = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class PackedBytes:
    """The values of an Arrow array; value i is between `starts[i]` and `ends[i]`."""

    data: npt.NDArray[np.uint8]
    starts: Integers
    ends: Integers

    @staticmethod
    def of(values: pa.Array) -> PackedBytes:
        """From an array of binary values without nulls; shares its memory."""
        offsets, data = values.buffers()[1:]
        bounds = np.frombuffer(offsets, np.int32)[values.offset : values.offset + len(values) + 1].astype(np.int64)
        # at least one byte, so that indexing works
        held = np.frombuffer(data, np.uint8) if data is not None and data.size else np.zeros(1, np.uint8)
        return PackedBytes(held, bounds[:-1], bounds[1:])

    def at(self, positions: Integers) -> Integers:
        """The byte at each position; arbitrary beyond the end, so callers compare with `ends`."""
        return self.data[np.minimum(positions, len(self.data) - 1)].astype(np.int64)

    def v_ints(self, at: Integers, wanted: Flags) -> tuple[Integers, Integers, Flags]:
        """Reads the wanted VInts; returns values, the positions after them, and which of them end within five bytes."""
        number = np.zeros(len(at), np.int64)
        going_on = wanted.copy()
        for group in range(_V_INT_BYTES):
            byte = self.at(at)
            number |= np.where(going_on, (byte & 0x7F) << (7 * group), 0)
            at = at + going_on
            going_on &= byte >= 0x80
            if not going_on.any():
                break
        return number, at, wanted & ~going_on

    def arrays(self, at: Integers, ends: Integers, wanted: Flags) -> tuple[Integers, Integers, Flags]:
        """Locates byte arrays (VInt length, bytes); returns starts, lengths, and which of the wanted ones end before `ends`."""
        length, at, whole = self.v_ints(at, wanted)
        fits = whole & (length < _MAX_LENGTH) & (at + length <= ends)
        return at, np.where(fits, length, 0), fits

    def numbers(self, starts: Integers, form: str) -> npt.NDArray[Any]:
        """The number at each position, of a NumPy type like `>i8`; arbitrary if too few bytes follow."""
        width = np.dtype(form).itemsize
        if len(self.data) < width:
            return np.zeros(len(starts), form)
        from_each = np.ndarray(len(self.data) - width + 1, np.dtype(form), self.data, strides=(1,))
        return from_each[np.minimum(starts, len(from_each) - 1)]

    def slices(self, starts: Integers, lengths: Integers) -> Any:
        """Copies the bytes from each start on into an Arrow array."""
        in_order = self._every_second(starts, lengths)
        if in_order is not None:
            return in_order
        offsets = np.zeros(len(lengths) + 1, np.int64)
        np.cumsum(lengths, out=offsets[1:])
        taken = np.empty(offsets[-1], np.uint8)
        first = 0
        while first < len(lengths):
            # piece by piece, since the index of a byte takes eight
            last = max(first + 1, int(np.searchsorted(offsets, offsets[first] + _PIECE_BYTES, "right")) - 1)
            begin, end = offsets[first], offsets[last]
            shifts = np.repeat(starts[first:last] - offsets[first:last], lengths[first:last])
            taken[begin:end] = self.data[np.arange(begin, end) + shifts]
            first = last
        return pa.Array.from_buffers(pa.binary(), len(lengths), [None, pa.py_buffer(offsets.astype(np.int32)), pa.py_buffer(taken)])

    def _every_second(self, starts: Integers, lengths: Integers) -> pa.Array | None:
        """As `slices`, for values in the data's order: with the gaps between them they form an array, and Arrow takes every second value.
        None for overlapping or descending values; empty ones may be anywhere."""
        bounds = np.empty(2 * len(starts), np.int64)
        bounds[::2], bounds[1::2] = np.where(lengths > 0, starts, 0), np.where(lengths > 0, starts + lengths, 0)
        ascending = np.maximum.accumulate(bounds)
        if not len(bounds) or (ascending[1::2] - ascending[::2] != lengths).any() or ascending[-1] > min(len(self.data), _MAX_LENGTH - 1):
            return None
        values = [None, pa.py_buffer(ascending.astype(np.int32)), pa.py_buffer(self.data)]
        return pa.Array.from_buffers(pa.binary(), len(bounds) - 1, values).take(pa.array(np.arange(0, len(bounds), 2)))
