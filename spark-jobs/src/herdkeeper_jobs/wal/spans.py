"""The begins and ends of a log's transactions, in columns. There may be millions, and only the ends of most matter.

An LSN is a pair of columns, since ledger ids and entry ids need 63 bits each.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from herdkeeper.codecs.herddb.log_entry import LogEntryType
from herdkeeper_jobs.packed_bytes import Flags, Integers
from herdkeeper_jobs.wal.log_state import StartingPoint
from herdkeeper_jobs.wal.lsn import Lsn

NOWHERE = Lsn(-1, -1)
BOUNDARY_NAMES = ("ledger_id", "entry_id", "type", "transaction_id")
BOUNDARY_SCHEMA = pa.schema(zip(BOUNDARY_NAMES, (pa.int64(), pa.int64(), pa.int32(), pa.int64()), strict=True))
"""BEGINs, COMMITs and ROLLBACKs."""
_BEGIN, _COMMIT = int(LogEntryType.BEGIN), int(LogEntryType.COMMIT)


class LogInconsistentError(RuntimeError):
    """The log can't be replayed from its beginning: an entry refers to something that no earlier entry made."""


class ControlEntry(NamedTuple):
    """A log entry that changes no row."""

    lsn: Lsn
    type: LogEntryType
    transaction_id: int
    table: str = ""
    value: bytes = b""

    @property
    def of_no_open_transaction(self) -> LogInconsistentError:
        """The error if its transaction is not open."""
        return LogInconsistentError(
            f"entry {self.lsn} ({self.type.name}) belongs to transaction {self.transaction_id}, which is not open there"
        )


@dataclass(frozen=True, slots=True)
class Lsns:
    """A column of LSNs."""

    ledgers: Integers
    entries: Integers

    @staticmethod
    def of(lsns: Sequence[Lsn]) -> Lsns:
        return Lsns(np.array([lsn.ledger_id for lsn in lsns], np.int64), np.array([lsn.entry_id for lsn in lsns], np.int64))

    def __len__(self) -> int:
        return len(self.ledgers)

    def __getitem__(self, position: int) -> Lsn:
        return Lsn(int(self.ledgers[position]), int(self.entries[position]))

    def and_nowhere(self) -> Lsns:
        """Appends NOWHERE, so that index -1 means no position, and the column is never empty."""
        return Lsns(np.append(self.ledgers, NOWHERE.ledger_id), np.append(self.entries, NOWHERE.entry_id))

    def take(self, positions: Any) -> Lsns:
        return Lsns(self.ledgers[positions], self.entries[positions])

    def is_before(self, other: Lsns) -> Flags:
        before: Flags = (self.ledgers < other.ledgers) | ((self.ledgers == other.ledgers) & (self.entries < other.entries))
        return before

    def is_at(self, other: Lsns) -> Flags:
        same: Flags = (self.ledgers == other.ledgers) & (self.entries == other.entries)
        return same

    def or_else(self, mine: Flags, other: Lsns) -> Lsns:
        return Lsns(np.where(mine, self.ledgers, other.ledgers), np.where(mine, self.entries, other.entries))


@dataclass(frozen=True, slots=True, eq=False)
class Spans:
    """Lifetimes of transactions, sorted by id and begin. An id may have many."""

    ids: Integers
    begins: Lsns
    ends: Lsns
    """NOWHERE while a transaction is open."""
    committed: Flags
    """Whether it ended by COMMIT."""

    @staticmethod
    def of(boundaries: pa.RecordBatch, start: StartingPoint | None = None) -> Spans:
        """From all boundaries (BOUNDARY_SCHEMA) after the start, in any order. Raises LogInconsistentError for an end without a BEGIN."""
        opened = () if start is None else start.state.transactions
        begun = Lsns.of([one.begin for one in opened])
        columns = [column.to_numpy() for column in boundaries.columns]
        before = [begun.ledgers, begun.entries, np.full(len(opened), _BEGIN), np.array([one.transaction_id for one in opened], np.int64)]
        ledgers, entries, kinds, ids = (np.concatenate(pair) for pair in zip(before, columns, strict=True))
        order = np.lexsort((entries, ledgers, ids))
        lsns, kinds, ids = Lsns(ledgers[order], entries[order]), kinds[order], ids[order]
        is_begin, goes_on = kinds == _BEGIN, ids[1:] == ids[:-1]
        lost = np.flatnonzero(~is_begin & ~np.append(False, goes_on & is_begin[:-1])[: len(ids)])
        if len(lost):
            lsn, position = min((lsns[position], position) for position in lost.tolist())
            raise ControlEntry(lsn, LogEntryType(int(kinds[position])), int(ids[position])).of_no_open_transaction
        at = np.flatnonzero(is_begin)
        after = np.minimum(at + 1, max(0, len(ids) - 1))
        ended = np.append(goes_on, False)[at]
        ends = lsns.take(after).or_else(ended, Lsns.of([NOWHERE]))
        return Spans(ids[at], lsns.take(at), ends, ended & (kinds[after] == _COMMIT))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Spans) and all(map(np.array_equal, self._columns, other._columns))

    __hash__ = None  # type: ignore[assignment]

    @property
    def ended(self) -> Flags:
        """Flags those that have ended."""
        ended: Flags = self.ends.ledgers != NOWHERE.ledger_id
        return ended

    @property
    def open(self) -> list[tuple[Lsn, int]]:
        """BEGINs and ids of transactions that are open at the end, oldest first."""
        return sorted((self.begins[position], int(self.ids[position])) for position in np.flatnonzero(~self.ended).tolist())

    @property
    def _columns(self) -> tuple[npt.NDArray[Any], ...]:
        return self.ids, self.begins.ledgers, self.begins.entries, self.ends.ledgers, self.ends.entries, self.committed


@dataclass(frozen=True, slots=True)
class Control:
    """The entries of a log that change no row: `boundaries` (BOUNDARY_SCHEMA) in any order, `definitions` in log order."""

    boundaries: pa.RecordBatch
    definitions: tuple[ControlEntry, ...]

    @staticmethod
    def of(entries: Iterable[ControlEntry]) -> Control:
        """From entries in log order."""
        boundaries, definitions = [], []
        for entry in entries:
            if entry.type in (LogEntryType.BEGIN, LogEntryType.COMMIT, LogEntryType.ROLLBACK):
                boundaries.append((*entry.lsn, int(entry.type), entry.transaction_id))
            else:
                definitions.append(entry)
        columns = zip(*boundaries, strict=True) if boundaries else [()] * len(BOUNDARY_NAMES)
        arrays = [pa.array(column, field.type) for column, field in zip(columns, BOUNDARY_SCHEMA, strict=True)]
        return Control(pa.RecordBatch.from_arrays(arrays, schema=BOUNDARY_SCHEMA), tuple(definitions))

    def behind(self, start: StartingPoint) -> Control:
        """The entries after the start."""
        ledgers, entries = (self.boundaries.column(name).to_numpy() for name in BOUNDARY_NAMES[:2])
        later = Lsns.of([start.at]).is_before(Lsns(ledgers, entries))
        return Control(self.boundaries.filter(pa.array(later)), tuple(entry for entry in self.definitions if entry.lsn > start.at))

    def of_transactions(self, ids: set[int]) -> list[ControlEntry]:
        """The definitions, and the boundaries of some transactions, in log order."""
        mine = np.isin(self.boundaries.column("transaction_id").to_numpy(), list(ids))
        ledgers, entries, kinds, transactions = (column.to_pylist() for column in self.boundaries.filter(pa.array(mine)).columns)
        found = map(ControlEntry, map(Lsn, ledgers, entries), map(LogEntryType, kinds), transactions)
        return sorted([*found, *self.definitions])
