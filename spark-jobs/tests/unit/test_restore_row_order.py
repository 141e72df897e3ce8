"""Rows of tables in a circle get an order that HerdDB accepts, if one exists."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from herdkeeper_jobs.restore.row_order import NONE, AddKey, Links, Lookalikes, RowLinks, RowOrder, Rows, RowsWithoutOrderError, row_order


@dataclass
class PlayedTables:
    """Tables with HerdDB's refusals. A row is its number; `refers` maps a key's index to the row it refers to."""

    sizes: tuple[int, ...]
    keys: tuple[tuple[int, int], ...]
    """The indexes of child and parent, per key."""
    nullable: tuple[bool, ...]
    there: set[int] = field(default_factory=set)
    rows: dict[int, dict[int, int]] = field(default_factory=dict)
    lookalikes: dict[int, tuple[int, int | None]] = field(default_factory=dict)
    """For rows that look like another row's child: that row, and the key; None for a key to a table outside."""

    @property
    def firsts(self) -> list[int]:
        return [sum(self.sizes[:place]) for place in range(len(self.sizes))]

    def table_of(self, row: int) -> int:
        return max(place for place, first in enumerate(self.firsts) if first <= row and self.sizes[place])

    def keys_of(self, row: int) -> list[int]:
        return [number for number, (child, _) in enumerate(self.keys) if child == self.table_of(row)]

    def insert(self, row: int, refers: dict[int, int]) -> bool:
        """`refers` may use keys that don't exist yet: their columns do."""
        if row in self.rows or not self._takes(row, refers):
            return False
        self.rows[row] = refers
        return True

    def change(self, row: int, refers: dict[int, int]) -> bool:
        held = any(row in (other[key] for key in self.there & other.keys()) for other in self.rows.values())
        if held or self._resembled(row) or not self._takes(row, refers):
            return False
        self.rows[row] = refers
        return True

    def _takes(self, row: int, refers: dict[int, int]) -> bool:
        nulls_fit = all(key in refers or self.nullable[key] for key in self.keys_of(row))
        return nulls_fit and all(refers[key] in self.rows for key in self.there & refers.keys())

    def _resembled(self, row: int) -> bool:
        found = (self.lookalikes.get(other, (None, None)) for other in self.rows)
        return any(parent == row and (key is None or key in self.there) for parent, key in found)

    def add_key(self, key: int) -> bool:
        if any(self.rows[row].get(key) not in self.rows for row in self.rows if key in self.keys_of(row)):
            return False
        self.there.add(key)
        return True

    def links(self) -> RowLinks:
        firsts = self.firsts
        rows = range(sum(self.sizes))
        return RowLinks(
            len(rows),
            [Links(firsts[child], self._to(child, number)) for number, (child, _) in enumerate(self.keys)],
            [
                Lookalikes(Links(0, np.array([parent if by == key else NONE for parent, by in map(self._resembles, rows)], np.int64)), key)
                for key in (None, *range(len(self.keys)))
            ],
        )

    def _resembles(self, row: int) -> tuple[int, int | None]:
        return self.lookalikes.get(row, (NONE, None))

    def _to(self, child: int, key: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        first = self.firsts[child]
        return np.array([self.rows[row].get(key, NONE) for row in range(first, first + self.sizes[child])], np.int64)

    def made_again(self, order: RowOrder) -> PlayedTables:
        """Replays an order; fails where HerdDB would refuse."""
        again = PlayedTables(self.sizes, self.keys, self.nullable, lookalikes=self.lookalikes)
        for key in order.before:
            assert again.add_key(key)
        for step in order.steps:
            match step:
                case AddKey(key):
                    assert again.add_key(key), f"key {key} finds a null, or no parent"
                case Rows(numbers, turns):
                    again._bring_in(self, numbers.tolist(), turns.tolist())
        return again

    def _bring_in(self, source: PlayedTables, numbers: list[int], turns: list[int]) -> None:
        waiting: list[int] = []
        for place, (row, turn) in enumerate(zip(numbers, turns, strict=True)):
            refers = source.rows[row]
            itself = {key for key, parent in refers.items() if turn and parent == row and key in self.there}
            assert self.insert(row, {key: parent for key, parent in refers.items() if key not in itself}), f"row {row} comes too early"
            waiting += [row] if turn else []
            if waiting and (place + 1 == len(numbers) or turns[place + 1] != turn):
                assert all(self.change(one, source.rows[one]) for one in waiting), f"one of {waiting} is held"
                waiting = []


def _tables(sizes: tuple[int, ...], keys: tuple[tuple[int, int], ...], rows: dict[int, dict[int, int]]) -> PlayedTables:
    return PlayedTables(sizes, keys, (True,) * len(keys), set(range(len(keys))), rows)


def _order(tables: PlayedTables) -> RowOrder:
    order = row_order(tables.links())
    again = tables.made_again(order)
    assert (again.rows, again.there) == (tables.rows, set(range(len(tables.keys))))
    return order


def _numbers(order: RowOrder) -> list[list[int] | str]:
    return [f"key {step.key}" if isinstance(step, AddKey) else step.numbers.tolist() for step in order.steps]


EMPLOYEES = (0, 0)
"""The key of a table that refers to itself."""


def test_rows_come_after_those_that_they_refer_to() -> None:
    tables = _tables((5,), (EMPLOYEES,), {0: {0: 3}, 1: {}, 2: {0: 0}, 3: {0: 1}, 4: {}})
    order = _order(tables)
    assert order.before == (0,)
    (numbers,) = _numbers(order)
    assert [row for row in numbers if row != 4] == [1, 3, 0, 2]


def test_a_circle_of_rows_comes_in_without_its_key_and_what_has_nulls_comes_behind_it() -> None:
    tables = _tables((4,), (EMPLOYEES,), {0: {0: 1}, 1: {0: 0}, 2: {}, 3: {0: 0}})
    order = _order(tables)
    assert (order.before, _numbers(order)) == ((), [[0, 1], "key 0", [2, 3]])


def test_a_circle_over_two_tables_adds_no_more_keys_later_than_it_must() -> None:
    tables = _tables((2, 2), ((0, 1), (1, 0)), {0: {0: 2}, 1: {}, 2: {1: 0}, 3: {1: 1}})
    order = _order(tables)
    assert (order.before, _numbers(order)) == ((1,), [[0, 2], "key 0", [1, 3]])


def test_a_row_that_refers_to_itself_and_to_one_with_a_null_there_waits_with_a_null() -> None:
    order = _order(_tables((2,), (EMPLOYEES, EMPLOYEES), {0: {0: 0, 1: 1}, 1: {}}))
    (rows,) = order.steps
    assert isinstance(rows, Rows)
    assert (rows.numbers.tolist(), rows.turns.tolist()) == ([1, 0], [0, 1])


def test_rows_that_refer_to_themselves_where_no_row_has_a_null_come_in_before_the_key() -> None:
    tables = _tables((3,), (EMPLOYEES,), {0: {0: 0}, 1: {0: 0}, 2: {0: 2}})
    assert _numbers(_order(tables))[-2:] == ["key 0", [1]]


def test_a_row_that_waits_with_a_null_is_not_changed_while_another_looks_like_its_child() -> None:
    tables = _tables((2,), (EMPLOYEES, EMPLOYEES), {0: {0: 0, 1: 1}, 1: {}})
    tables.lookalikes = {1: (0, None)}
    with pytest.raises(RowsWithoutOrderError):
        row_order(tables.links())
    tables.lookalikes = {1: (0, 1)}
    with pytest.raises(RowsWithoutOrderError):
        row_order(tables.links())


def test_rows_without_an_order_are_reported() -> None:
    """Two of three rows refer to each other by a key in which the third has a null, and to the third by another key."""
    tables = _tables((3,), (EMPLOYEES, EMPLOYEES), {0: {0: 1, 1: 2}, 1: {0: 0}, 2: {}})
    with pytest.raises(RowsWithoutOrderError) as told:
        row_order(tables.links())
    assert (told.value.rows, told.value.example) == (3, 0)


def test_a_chain_of_rows_that_each_refer_to_themselves_too_takes_no_time_for_each_pair_of_them() -> None:
    itself = np.arange(20_000, dtype=np.int64)
    nobody = np.append(itself, NONE)  # the last row has nulls, and all depend on it
    before = np.append(itself - 1, NONE)
    before[0] = len(itself)
    (rows,) = row_order(RowLinks(len(nobody), [Links(0, nobody), Links(0, before)])).steps
    assert isinstance(rows, Rows)
    assert rows.numbers.tolist() == [len(itself), *itself.tolist()]
    assert len(set(rows.turns.tolist())) == len(nobody)


def test_a_chain_of_a_hundred_thousand_rows_has_an_order() -> None:
    to = np.arange(100_000, dtype=np.int64) - 1  # row 0 refers to nothing
    (rows,) = row_order(RowLinks(len(to), [Links(0, to)])).steps
    assert isinstance(rows, Rows)
    assert np.array_equal(rows.numbers, np.arange(100_000))


@st.composite
def lived(draw: st.DrawFn) -> PlayedTables:
    """Tables after random statements that HerdDB accepted, to which all foreign keys were added at some time."""
    sizes = tuple(draw(st.lists(st.integers(1, 4), min_size=1, max_size=3)))
    place = st.integers(0, len(sizes) - 1)
    keys = tuple(draw(st.lists(st.tuples(place, place), min_size=1, max_size=4)))
    tables = PlayedTables(sizes, keys, tuple(draw(st.lists(st.booleans(), min_size=len(keys), max_size=len(keys)))))
    row = st.integers(0, sum(sizes) - 1)
    tables.lookalikes = draw(st.dictionaries(row, st.tuples(row, st.none() | st.integers(0, len(keys) - 1)), max_size=3))
    firsts = tables.firsts
    for _ in range(draw(st.integers(0, 40))):
        what = draw(st.sampled_from(("insert", "change", "key")))
        if what == "key":
            tables.add_key(draw(st.integers(0, len(keys) - 1)))
            continue
        one = draw(row)
        refers = {}
        for key in tables.keys_of(one):
            parent = keys[key][1]
            found = draw(st.none() | st.integers(firsts[parent], firsts[parent] + sizes[parent] - 1))
            if found is not None:
                refers[key] = found
        if what == "insert":
            tables.insert(one, refers)
        elif one in tables.rows:
            tables.change(one, refers)
    return _only_those_there(tables)


def _only_those_there(tables: PlayedTables) -> PlayedTables:
    """Without rows and keys that were never added."""
    new = {row: number for number, row in enumerate(sorted(tables.rows))}
    kept = {key: number for number, key in enumerate(sorted(tables.there))}
    sizes = [0] * len(tables.sizes)
    for row in new:
        sizes[tables.table_of(row)] += 1
    found = PlayedTables(
        tuple(sizes),
        tuple(tables.keys[key] for key in kept),
        tuple(tables.nullable[key] for key in kept),
        set(kept.values()),
        lookalikes={
            new[one]: (new[other], None if key is None else kept[key])
            for one, (other, key) in tables.lookalikes.items()
            if one in new and other in new and (key is None or key in kept)
        },
    )
    for row, refers in tables.rows.items():
        found.rows[new[row]] = {kept[key]: new[parent] for key, parent in refers.items() if key in kept}
    return found


@given(lived())
@settings(max_examples=1000)
def test_any_state_that_statements_made_has_an_order_that_recreates_it(tables: PlayedTables) -> None:
    _order(tables)
