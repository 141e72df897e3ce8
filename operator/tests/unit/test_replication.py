"""Who holds which entry, against a brute force that walks through the write sets."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from herdkeeper.codecs.bookkeeper.metadata import LedgerMetadata, LedgerState, Segment
from herdkeeper.codecs.bookkeeper.striping import EntryRange, Striping, merge_into_ranges, segment_ranges, striping

STRIPINGS = st.integers(1, 7).flatmap(lambda size: st.builds(Striping, st.just(size), st.integers(1, size)))
RANGES = st.tuples(st.integers(0, 200), st.integers(0, 60)).map(lambda pair: EntryRange(pair[0], pair[0] + pair[1]))


def ledger(state: LedgerState, firsts: tuple[int, ...] = (0,), quorums: tuple[int, int, int] = (3, 3, 2)) -> LedgerMetadata:
    size, write_quorum, ack_quorum = quorums
    return LedgerMetadata(
        ledger_id=1,
        ensemble_size=size,
        write_quorum=write_quorum,
        ack_quorum=ack_quorum,
        state=state,
        length=None,
        last_entry_id=None,
        segments=tuple(Segment(first, tuple(f"b{index}-{position}" for position in range(size))) for index, first in enumerate(firsts)),
    )


@given(STRIPINGS, st.integers(0, 10_000))
def test_a_position_holds_exactly_the_entries_whose_write_set_names_it(spread: Striping, entry_id: int) -> None:
    written = {(entry_id + copy) % spread.ensemble_size for copy in range(spread.write_quorum)}
    assert set(spread.write_set(entry_id)) == written
    assert {position for position in range(spread.ensemble_size) if spread.holds(position, entry_id)} == written


@given(STRIPINGS, RANGES, st.data())
def test_counting_gives_what_walking_gives(spread: Striping, entries: EntryRange, data: st.DataObject) -> None:
    position = data.draw(st.integers(0, spread.ensemble_size - 1))
    walked = [entry_id for entry_id in range(entries.first, entries.last + 1) if position in spread.write_set(entry_id)]
    assert list(spread.entries_at(position, entries)) == walked
    assert spread.count_at(position, entries) == len(walked)
    assert [spread.nth_at(position, entries, index) for index in range(len(walked))] == walked


@given(STRIPINGS, RANGES)
def test_all_positions_together_hold_each_entry_write_quorum_times(spread: Striping, entries: EntryRange) -> None:
    total = sum(spread.count_at(position, entries) for position in range(spread.ensemble_size))
    assert total == len(entries) * spread.write_quorum


@given(st.sets(st.integers(1, 100), max_size=5), st.integers(-1, 130))
def test_segments_cover_each_confirmed_entry_once(later_firsts: set[int], last: int) -> None:
    metadata = ledger(LedgerState.OPEN, (0, *sorted(later_firsts)))
    ranges = segment_ranges(metadata, last)
    assert [entry_id for part in ranges for entry_id in part.entries] == list(range(last + 1))
    for part in ranges:
        assert part.bookies == metadata.segments[part.segment].bookies
        assert part.entries.first == metadata.segments[part.segment].first_entry_id


def test_a_ledger_without_entries_has_no_ranges() -> None:
    assert segment_ranges(ledger(LedgerState.OPEN), -1) == ()


@given(st.sets(st.integers(0, 60)))
def test_merging_keeps_exactly_the_entries_and_leaves_gaps_between_ranges(entry_ids: set[int]) -> None:
    merged = merge_into_ranges(entry_ids)
    assert {entry_id for part in merged for entry_id in part} == entry_ids
    assert all(left.last + 1 < right.first for left, right in itertools.pairwise(merged))


def test_a_range_that_runs_backwards_is_refused() -> None:
    with pytest.raises(ValueError, match=r"entry range 5\.\.4"):
        EntryRange(5, 4)


def test_a_ledger_with_as_many_copies_as_bookies_is_contiguous() -> None:
    assert striping(ledger(LedgerState.OPEN)).contiguous
    assert not striping(ledger(LedgerState.OPEN, quorums=(3, 2, 2))).contiguous
