"""Orders the rows of tables that refer to each other in a circle, and the foreign keys added in between. Pure.

The rules of HerdDB 0.29.0 (herddb.core.TableManager):
- A row comes in after its parent's row, or with nulls in all columns of the key.
- An added key must find a parent for each existing row; a null has none.
- A changed row must not be referred to. HerdDB asks its table's children for the row's values by each of their keys, also by keys of other
  parents. So a row that only looks like a child counts, too.

The order is found backwards: remove whatever may have come last, until nothing is left. A row may have come last if no other refers to it.
A key may have, if no remaining row has a null in it. So may a row that refers to itself, came in with a null and was changed. But no other
row may refer to it or seem to. Each removal only allows more removals. So any sequence of removals reaches the end if an order exists. This
presumes that values identify a row: if several rows have them, each child is tied to the first.

A key that takes no nulls needs no changed rows: no row has a null in it, so it can be removed first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[np.int64]
NONE = -1
"""Stands for a row number: it refers to no row."""


@dataclass(frozen=True, slots=True, eq=False)
class Links:
    """The row that each row of a table refers to. `first`: the number of the table's first row. `to`: a row number per row, or NONE."""

    first: int
    to: Numbers

    def of(self, rows: Numbers) -> tuple[Numbers, Numbers]:
        """Returns those of the rows that belong to this table, and what they refer to."""
        here = rows[(rows >= self.first) & (rows < self.first + len(self.to))]
        return here, self.to[here - self.first]


@dataclass(frozen=True, slots=True, eq=False)
class Lookalikes:
    """Rows that look like children by a key to another table: by one of `keys`, or by a key to a table outside (None)."""

    links: Links
    key: int | None


@dataclass(frozen=True, slots=True, eq=False)
class RowLinks:
    """The references between all rows, numbered from 0. `keys`: the foreign keys between the tables."""

    rows: int
    keys: Sequence[Links]
    lookalikes: Sequence[Lookalikes] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """Rows that come in one after the other.

    `turns`: 0 for a row that comes in unchanged. The others refer to themselves. Those of a turn come in with nulls, and are updated before
    the next turn.
    """

    numbers: Numbers
    turns: Numbers


@dataclass(frozen=True, slots=True)
class AddKey:
    """Adds a foreign key, given by its index."""

    key: int


@dataclass(frozen=True, slots=True)
class RowOrder:
    """`before`: keys that exist before any row. `steps`: what follows."""

    before: tuple[int, ...]
    steps: tuple[Rows | AddKey, ...]


class RowsWithoutOrderError(ValueError):
    """`rows` rows fit into no order. `example` is the number of one of them, preferably one that refers to itself."""

    def __init__(self, rows: int, example: int) -> None:
        super().__init__(f"{rows} rows have no order, {example} is one of them")
        self.rows = rows
        self.example = example


def row_order(links: RowLinks) -> RowOrder:
    """Finds an order. Raises RowsWithoutOrderError."""
    remaining = _Remaining(links)
    backwards: list[Rows | AddKey] = []
    turn = 0
    free = remaining.free()
    while remaining.count:
        if len(free):
            backwards.append(_rows(free, 0))
            free = remaining.take_rows(free)
        elif (key := remaining.key_without_nulls()) is not None:
            backwards.append(AddKey(key))
            remaining.take_key(key)
            free = remaining.free()
        elif len(changed := remaining.changed_to_themselves()):
            turn += 1
            backwards.append(_rows(changed, turn))
            free = remaining.take_rows(changed)
        else:
            raise RowsWithoutOrderError(remaining.count, remaining.example())
    return RowOrder(remaining.keys(), tuple(_joined(backwards[::-1])))


def _rows(numbers: Numbers, turn: int) -> Rows:
    return Rows(np.sort(numbers), np.full(len(numbers), turn, np.int64))


def _joined(steps: Sequence[Rows | AddKey]) -> list[Rows | AddKey]:
    """Joins all rows between two keys into one step."""
    found: list[Rows | AddKey] = []
    together: list[Rows] = []
    for step in [*steps, None]:
        if isinstance(step, Rows):
            together.append(step)
            continue
        if together:
            found.append(Rows(np.concatenate([one.numbers for one in together]), np.concatenate([one.turns for one in together])))
            together = []
        if step is not None:
            found.append(step)
    return found


class _Remaining:
    """What is not removed yet, with counts of the remaining references."""

    def __init__(self, links: RowLinks) -> None:
        self.count = links.rows
        self._left = np.ones(links.rows, np.bool_)
        self._keys = dict(enumerate(links.keys))
        self._lookalikes = list(links.lookalikes)
        self._nulls = [int((key.to == NONE).sum()) for key in links.keys]
        self._set = [len(key.to) - nulls for key, nulls in zip(links.keys, self._nulls, strict=True)]
        self._referred = np.zeros(links.rows, np.int64)  # by how many others
        self._itself = np.zeros(links.rows, np.int64)  # by how many keys it refers to itself
        self._resembled = np.zeros(links.rows, np.int64)  # by how many rows that look like its children
        for key in self._keys.values():
            self._count(key, self._rows(), 1)
        for look in self._lookalikes:
            np.add.at(self._resembled, look.links.to[look.links.to != NONE], 1)
        self._touched: list[Numbers] = [self._rows()]
        """Rows with changed counts: they may refer to themselves, and be held by no other row any more."""

    def keys(self) -> tuple[int, ...]:
        return tuple(self._keys)

    def example(self) -> int:
        rows = self._rows()
        return int(rows[np.argmax(self._itself[rows] > 0)])

    def free(self) -> Numbers:
        """Rows that may have come last."""
        return self._free_of(self._rows())

    def changed_to_themselves(self) -> Numbers:
        """Rows that refer to themselves, and may have been changed last."""
        rows: Numbers = np.unique(np.concatenate([np.zeros(0, np.int64), *self._touched]))
        self._touched = []
        held = self._referred[rows] + self._resembled[rows]
        candidates: Numbers = rows[self._left[rows] & (self._itself[rows] > 0) & (held == 0)]
        return candidates

    def key_without_nulls(self) -> int | None:
        """A key that may have been added last."""
        return next((key for key in self._keys if self._set[key] and not self._nulls[key]), None)

    def take_rows(self, rows: Numbers) -> Numbers:
        """Removes rows; returns those that may have come right before them."""
        self._left[rows] = False
        self.count -= len(rows)
        parents = [rows[:0]]
        for number, key in self._keys.items():
            own, to = self._count(key, rows, -1)
            parents.append(to[(to != NONE) & (to != own)])
            nulls = int((to == NONE).sum())
            self._nulls[number] -= nulls
            self._set[number] -= len(to) - nulls
        resembled = [self._resembles_no_more(look, rows) for look in self._lookalikes]
        found = np.unique(np.concatenate(parents))
        self._touched += [touched for one in (found, *resembled) if len(touched := one[self._itself[one] > 0])]
        return self._free_of(found)

    def take_key(self, key: int) -> None:
        """Removes a key, and the references and resemblances by it."""
        rows = self._rows()
        self._count(self._keys.pop(key), rows, -1)
        for look in self._lookalikes:
            if look.key == key:
                self._resembles_no_more(look, rows)
        self._lookalikes = [look for look in self._lookalikes if look.key != key]
        self._touched = [rows]

    def _rows(self) -> Numbers:
        return np.flatnonzero(self._left)

    def _free_of(self, rows: Numbers) -> Numbers:
        candidates: Numbers = rows[self._left[rows] & (self._referred[rows] == 0) & (self._itself[rows] == 0)]
        return candidates

    def _count(self, key: Links, rows: Numbers, by: int) -> tuple[Numbers, Numbers]:
        """Adds `by` to the counts of the rows' references by a key; returns the child's rows among them, and their references."""
        own, to = key.of(rows)
        np.add.at(self._referred, to[(to != NONE) & (to != own)], by)
        self._itself[own[to == own]] += by
        return own, to

    def _resembles_no_more(self, look: Lookalikes, rows: Numbers) -> Numbers:
        every = look.links.of(rows)[1]
        to: Numbers = every[every != NONE]
        np.subtract.at(self._resembled, to, 1)
        return to
