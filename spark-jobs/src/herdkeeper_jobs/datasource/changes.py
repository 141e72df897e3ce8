"""Converts log entries, in order, to committed changes in the order of their commits. Pure.

A change outside of a transaction is committed by its own entry, one inside by the COMMIT; rolled-back and open ones are no changes. A
transaction that commits after the starting LSN may have begun before. So reading begins at the oldest BEGIN that was open there (the
restart LSN), and earlier commits are left out.

Entries and changes are Arrow columns. Only types and transactions are read here. Table names are those of the entries.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from herdkeeper.codecs.herddb.log_entry import LogEntryType
from herdkeeper_jobs.datasource.schema import CHANGES_ARROW
from herdkeeper_jobs.wal.lsn import Lsn

_NOTHING = frozenset((int(LogEntryType.NOOP), int(LogEntryType.CONSISTENCY_CHECK)))
_BEGIN, _COMMIT, _ROLLBACK = (int(kind) for kind in (LogEntryType.BEGIN, LogEntryType.COMMIT, LogEntryType.ROLLBACK))
_NAMES = pa.array([next((kind.name for kind in LogEntryType if kind == code), "") for code in range(max(LogEntryType) + 1)])
"""Names of operations, by code."""


class TransactionBeganEarlierError(RuntimeError):
    """A transaction ends in the part that was read, but began before it: some of its changes are unknown."""


@dataclass(slots=True)
class _Changes:
    """Changes of an open transaction: row numbers in the current batch, and the rows of earlier batches."""

    begin: Lsn
    here: list[int] = field(default_factory=list)
    before: list[pa.RecordBatch] = field(default_factory=list)

    def keep(self, entries: pa.RecordBatch) -> None:
        if self.here:
            self.before.append(entries.take(pa.array(self.here)))
            self.here = []


class CommittedChanges:
    """Takes entries in log order, returns committed changes. Not thread-safe.

    `after`: earlier commits are left out; None leaves out nothing. The changes of open transactions are in memory.
    """

    def __init__(self, after: Lsn | None) -> None:
        self._after = after
        self._taken: Lsn | None = None
        self._open: dict[int, _Changes] = {}

    @property
    def restart(self) -> Lsn | None:
        """Where reading must restart to know the currently open transactions; None without any."""
        return min((changes.begin for changes in self._open.values()), default=None)

    def take(self, entries: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Takes the next entries (`wal.decode.LOG_SCHEMA`); yields what they commit (`CHANGES_ARROW`). Ignores those that it took before.

        Raises:
            TransactionBeganEarlierError: a COMMIT of a transaction that began before the first entry.
        """
        if self._taken is not None:
            entries = entries.slice(_up_to(self._taken, entries))
        if not entries.num_rows:
            return
        batch = _Batch(entries, self._after)
        self._taken = batch.lsn(entries.num_rows - 1)
        for row, (kind, transaction_id) in enumerate(zip(batch.kinds, batch.transactions, strict=True)):
            if kind == _BEGIN:
                self._open[transaction_id] = _Changes(batch.lsn(row))
            elif kind in (_COMMIT, _ROLLBACK):
                self._end(batch, row, committed=kind == _COMMIT)
            elif kind not in _NOTHING:
                self._change(batch, row)
        for changes in self._open.values():
            changes.keep(entries)
        yield from batch.committed()

    def _change(self, batch: _Batch, row: int) -> None:
        transaction_id = batch.transactions[row]
        if transaction_id <= 0:
            batch.commit_alone(row)
        elif (changes := self._open.get(transaction_id)) is not None:
            changes.here.append(row)
        # else it began before the first entry: its end decides whether that matters

    def _end(self, batch: _Batch, row: int, *, committed: bool) -> None:
        transaction_id = batch.transactions[row]
        changes = self._open.pop(transaction_id, None)
        if changes is None:
            # of an earlier transaction nothing was returned, so there is nothing to undo
            if committed and batch.is_new(row):
                raise TransactionBeganEarlierError(
                    f"transaction {transaction_id} commits at {batch.lsn(row)}, but began before the part of the log that was read: "
                    "give restartLsn, the begin of the oldest transaction that was open at afterLsn (restart_lsn in a checkpoint's "
                    "manifest)"
                )
            return
        if committed:
            batch.commit(changes, row)


class _Batch:
    """Entries of a log, and the changes committed among them."""

    def __init__(self, entries: pa.RecordBatch, after: Lsn | None) -> None:
        self.entries = entries
        self.kinds: list[int] = entries.column("type").to_pylist()
        self.transactions: list[int] = entries.column("transaction_id").to_pylist()
        self._first_new = 0 if after is None else _up_to(after, entries)
        self._rows: list[int] = []
        self._commits: list[int] = []
        self._given: list[pa.RecordBatch] = []

    def lsn(self, row: int) -> Lsn:
        return Lsn(*(self.entries.column(name)[row].as_py() for name in ("ledger_id", "entry_id")))

    def is_new(self, row: int) -> bool:
        return row >= self._first_new

    def commit_alone(self, row: int) -> None:
        """Commits a change by its own entry."""
        if self.is_new(row):
            self._rows.append(row)
            self._commits.append(row)

    def commit(self, changes: _Changes, by: int) -> None:
        if not self.is_new(by):
            return
        if changes.before:
            self._give()
            self._given += [_committed(rows, self._lsns([by] * rows.num_rows)) for rows in changes.before]
        self._rows += changes.here
        self._commits += [by] * len(changes.here)

    def committed(self) -> list[pa.RecordBatch]:
        self._give()
        return self._given

    def _give(self) -> None:
        if self._rows:
            self._given.append(_committed(self.entries.take(pa.array(self._rows)), self._lsns(self._commits)))
            self._rows, self._commits = [], []

    def _lsns(self, rows: Sequence[int]) -> pa.RecordBatch:
        return self.entries.select(["ledger_id", "entry_id"]).take(pa.array(rows))


def _up_to(after: Lsn, entries: pa.RecordBatch) -> int:
    """The number of entries up to an LSN."""
    ledgers, numbers = (entries.column(name).to_numpy() for name in ("ledger_id", "entry_id"))
    return int(np.count_nonzero((ledgers < after.ledger_id) | ((ledgers == after.ledger_id) & (numbers <= after.entry_id))))


def _committed(changes: pa.RecordBatch, commits: pa.RecordBatch) -> pa.RecordBatch:
    columns = [
        commits.column("ledger_id"),
        commits.column("entry_id"),
        changes.column("ledger_id"),
        changes.column("entry_id"),
        changes.column("timestamp").cast(pa.timestamp("ms", "UTC")).cast(CHANGES_ARROW.field("timestamp").type),
        _NAMES.take(changes.column("type")),
        changes.column("transaction_id"),
        *(changes.column(name) for name in ("table_name", "row_key", "row_value")),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=CHANGES_ARROW)
