"""Slices of packed byte strings, taken at once, against Python's own slices."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from herdkeeper_jobs.packed_bytes import PackedBytes

_DATA = bytes(range(200))


@given(st.lists(st.tuples(st.integers(0, len(_DATA)), st.integers(0, 9)), max_size=30), st.booleans())
def test_slices_are_what_lies_there_whether_they_go_on_overlap_or_go_back(wanted: list[tuple[int, int]], in_order: bool) -> None:
    wanted = sorted(wanted) if in_order else wanted
    source = PackedBytes.of(pa.array([b"", _DATA[:50], _DATA[50:]], pa.binary()).slice(1))
    starts = np.array([start for start, _ in wanted], np.int64)
    lengths = np.array([min(length, len(_DATA) - start) for start, length in wanted], np.int64)
    found = source.slices(starts, lengths)
    found.validate(full=True)
    assert found.to_pylist() == [_DATA[start : start + length] for start, length in wanted]


def test_slices_one_behind_the_other_leave_out_what_is_between_them() -> None:
    source = PackedBytes.of(pa.array([b"ab--cd-", b"", b"ef"], pa.binary()))
    starts, lengths = np.array([0, 150, 4, 7, 9]), np.array([2, 0, 2, 2, 0])
    assert source.slices(starts, lengths).to_pylist() == [b"ab", b"", b"cd", b"ef", b""]
