"""In which order rows of tables that refer to each other in a circle come in, and when the foreign keys are added between them. Pure.

What HerdDB 0.29.0 asks (herddb.core.TableManager):
- a row that comes in has its parent's row before it, or nulls in all columns of the key;
- a key that is added finds a parent for each row that is there: a null has none;
- a row that is changed is referred to by nobody. Its table's children are asked with the row's values by each of their keys, those that
  belong to other parents included, so a row may also be held by one that only looks like its child.

The order is found from the end: take away what may have come last, until nothing is left. A row may have come last if no other refers to
it; a key, if no row that is left has a null in it; a row that refers to itself, with a null that was changed then, if no other refers to
it or looks so. To take one thing away only lets more be taken away, so whichever is taken first, the end is reached if any order has one.
That holds where a row is found by what it is referred to by: of several rows that are alike there, each child is tied to the first.
A key that takes no nulls needs no such change: no row has one, so the key can be taken away first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[np.int64]
NONE = -1
"""Instead of a row's number: it refers to none."""


@dataclass(frozen=True, slots=True, eq=False)
class Links:
    """Which row each row of a table refers to. `first`: the number of the table's first row. `to`: per row a row's number, or NONE."""

    first: int
    to: Numbers

    def of(self, rows: Numbers) -> tuple[Numbers, Numbers]:
        """Those of the rows that are of this table, and what these refer to."""
        here = rows[(rows >= self.first) & (rows < self.first + len(self.to))]
        return here, self.to[here - self.first]


@dataclass(frozen=True, slots=True, eq=False)
class Lookalikes:
    """Rows that look like children of others, by a key that refers to another table: one of `keys`, or one to a table outside (None)."""

    links: Links
    key: int | None


@dataclass(frozen=True, slots=True, eq=False)
class RowLinks:
    """All rows of the tables are numbered from 0. `keys`: the foreign keys between them."""

    rows: int
    keys: Sequence[Links]
    lookalikes: Sequence[Lookalikes] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """Rows that come in one after the other.

    `turns`: 0 for one that comes in as it is. The others refer to themselves: those of a turn come in with nulls, and are changed, before
    the next.
    """

    numbers: Numbers
    turns: Numbers


@dataclass(frozen=True, slots=True)
class AddKey:
    """A foreign key is added: its place among the keys."""

    key: int


@dataclass(frozen=True, slots=True)
class RowOrder:
    """`before`: the keys that are there before any row. `steps`: what comes then."""

    before: tuple[int, ...]
    steps: tuple[Rows | AddKey, ...]


class RowsWithoutOrderError(ValueError):
    """No order brings so many rows in. `example`: the number of one of them, of those that refer to themselves if there are such."""

    def __init__(self, rows: int, example: int) -> None:
        super().__init__(f"{rows} rows have no order, {example} is one of them")
        self.rows = rows
        self.example = example


def row_order(links: RowLinks) -> RowOrder:
    """Raises RowsWithoutOrderError."""
    left = _Left(links)
    last_first: list[Rows | AddKey] = []
    turn = 0
    free = left.free()
    while left.count:
        if len(free):
            last_first.append(_rows(free, 0))
            free = left.take_rows(free)
        elif (key := left.key_without_nulls()) is not None:
            last_first.append(AddKey(key))
            left.take_key(key)
            free = left.free()
        elif len(changed := left.changed_to_themselves()):
            turn += 1
            last_first.append(_rows(changed, turn))
            free = left.take_rows(changed)
        else:
            raise RowsWithoutOrderError(left.count, left.example())
    return RowOrder(left.keys(), tuple(_joined(last_first[::-1])))


def _rows(numbers: Numbers, turn: int) -> Rows:
    return Rows(np.sort(numbers), np.full(len(numbers), turn, np.int64))


def _joined(steps: Sequence[Rows | AddKey]) -> list[Rows | AddKey]:
    """With all rows between two keys in one step."""
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


class _Left:
    """What has not been taken away. Counts are kept up to date for the rows that are left, by the keys that are left."""

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
        """Rows that may refer to themselves and be held no more: those of which a count has changed."""

    def keys(self) -> tuple[int, ...]:
        """The keys that are left."""
        return tuple(self._keys)

    def example(self) -> int:
        """A row that is left."""
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
        may: Numbers = rows[self._left[rows] & (self._itself[rows] > 0) & (held == 0)]
        return may

    def key_without_nulls(self) -> int | None:
        """A key that may have been added last."""
        return next((key for key in self._keys if self._set[key] and not self._nulls[key]), None)

    def take_rows(self, rows: Numbers) -> Numbers:
        """Returns the rows that may have come right before them."""
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
        """Rows refer to nothing by it any more, nor look so."""
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
        may: Numbers = rows[self._left[rows] & (self._referred[rows] == 0) & (self._itself[rows] == 0)]
        return may

    def _count(self, key: Links, rows: Numbers, by: int) -> tuple[Numbers, Numbers]:
        """Counts what rows refer to by a key; returns those that are its child's, and what they refer to."""
        own, to = key.of(rows)
        np.add.at(self._referred, to[(to != NONE) & (to != own)], by)
        self._itself[own[to == own]] += by
        return own, to

    def _resembles_no_more(self, look: Lookalikes, rows: Numbers) -> Numbers:
        every = look.links.of(rows)[1]
        to: Numbers = every[every != NONE]
        np.subtract.at(self._resembled, to, 1)
        return to
