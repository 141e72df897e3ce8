"""From log entries, in order, to the changes that were committed, in the order of their commits. Pure.

A change outside of a transaction is committed by its own entry, one inside by its transaction's COMMIT; what is rolled back, or still open,
is no change. A log is read from an LSN on, but a transaction that commits after it may have begun before: so reading begins at the
oldest BEGIN that was open there (the restart LSN), and what was committed up to the LSN is left out.

Names of tables are those of the entries. A TRUNCATE that HerdDB refused, since an open transaction had touched the table or an index on it
is not committed, is left out as it is in a checkpoint's fold (wal/timeline.py, whose rule this is; here a table is its name, since a stream
may begin in the middle of a log). An index that a ROLLBACK left before the first entry that is read is not known.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import assert_never

from herdkeeper.formats.herddb_index import decode_index
from herdkeeper.formats.herddb_log_entry import LogEntry, LogEntryType
from herdkeeper.formats.herddb_table import decode_table
from herdkeeper_jobs.wal.lsn import Lsn


class TransactionBeganEarlierError(RuntimeError):
    """A transaction ends in the part that was read, but began before it: some of its changes are unknown."""


@dataclass(frozen=True, slots=True)
class Change:
    """One committed change: an entry, and the LSN that committed it."""

    committed: Lsn
    lsn: Lsn
    entry: LogEntry


@dataclass(slots=True)
class _Open:
    begin: Lsn
    changes: list[tuple[Lsn, LogEntry]] = field(default_factory=list)

    def touches(self, table: str) -> bool:
        """Not by an index on it: one that somebody has dropped meanwhile holds up nothing. By one of its name: HerdDB doesn't tell an
        index from a table there."""
        return any(
            decode_index(entry.value).name == table
            if entry.type is LogEntryType.CREATE_INDEX
            else entry.table == table and entry.type is not LogEntryType.DROP_INDEX
            for _, entry in self.changes
        )


_OF_INDEXES = (LogEntryType.CREATE_INDEX, LogEntryType.DROP_INDEX)


class _UncommittedIndexes:
    """Those that a transaction has made and not committed: it is open, or its ROLLBACK has left them.

    HerdDB makes an index at its entry, also inside of a transaction, and drops it there at the COMMIT.
    """

    def __init__(self) -> None:
        self._on: dict[str, tuple[str, int]] = {}  # name -> its table's name, and the transaction that made it

    def hold_up(self, table: str) -> bool:
        return any(on == table for on, _ in self._on.values())

    def logged(self, entry: LogEntry) -> None:
        """Takes a change at its own entry."""
        if entry.type is LogEntryType.CREATE_INDEX and entry.transaction_id > 0:
            index = decode_index(entry.value)
            self._on[index.name] = index.table, entry.transaction_id
        elif entry.type in _OF_INDEXES and entry.transaction_id <= 0:
            name = entry.value.decode() if entry.type is LogEntryType.DROP_INDEX else decode_index(entry.value).name
            self._on.pop(name, None)
        elif entry.type is LogEntryType.ALTER_TABLE:
            self._rename(entry.table, decode_table(entry.value).name)
        elif entry.type is LogEntryType.DROP_TABLE and entry.transaction_id <= 0:
            self._drop_table(entry.table)

    def ended(self, transaction_id: int, changes: list[tuple[Lsn, LogEntry]], *, committed: bool) -> None:
        """Takes the end of a transaction, with what it had changed."""
        if committed:
            self._on = {name: (on, maker) for name, (on, maker) in self._on.items() if maker != transaction_id}
        # the tables that go with its end take their indexes along
        gone = LogEntryType.DROP_TABLE if committed else LogEntryType.CREATE_TABLE
        for _, change in changes:
            if change.type is gone:
                self._drop_table(change.table)
            elif change.type is LogEntryType.DROP_INDEX and committed:
                self._on.pop(change.value.decode(), None)

    def _rename(self, before: str, after: str) -> None:
        if before != after:
            self._drop_table(after)
            self._on = {name: (after if on == before else on, maker) for name, (on, maker) in self._on.items()}

    def _drop_table(self, table: str) -> None:
        self._on = {name: (on, maker) for name, (on, maker) in self._on.items() if on != table}


class CommittedChanges:
    """Takes entries in log order, gives committed changes. Not for several threads.

    `after`: what was committed up to there is left out; None leaves out nothing. It holds the changes of open transactions in memory.
    """

    def __init__(self, after: Lsn | None) -> None:
        self._after = after
        self._open: dict[int, _Open] = {}
        self._indexes = _UncommittedIndexes()

    @property
    def restart(self) -> Lsn | None:
        """Where reading must begin again to know the transactions that are open now; None when none is."""
        return min((transaction.begin for transaction in self._open.values()), default=None)

    def add(self, lsn: Lsn, entry: LogEntry) -> Iterator[Change]:
        """Takes the next entry; yields what it commits.

        Raises:
            TransactionBeganEarlierError: it belongs to a transaction that began before the first entry.
        """
        match entry.type:
            case LogEntryType.NOOP | LogEntryType.CONSISTENCY_CHECK:
                return
            case LogEntryType.BEGIN:
                self._open[entry.transaction_id] = _Open(lsn)
            case LogEntryType.COMMIT:
                yield from self._commit(lsn, entry)
            case LogEntryType.ROLLBACK:
                # of a transaction that began earlier nothing was given, and nothing has to be taken back
                ended = self._open.pop(entry.transaction_id, None)
                if ended is not None:
                    self._indexes.ended(entry.transaction_id, ended.changes, committed=False)
            case LogEntryType.TRUNCATE:
                if self._is_new(lsn) and not self._is_refused(entry.table):
                    yield Change(lsn, lsn, entry)
            case (
                LogEntryType.INSERT
                | LogEntryType.UPDATE
                | LogEntryType.DELETE
                | LogEntryType.CREATE_TABLE
                | LogEntryType.ALTER_TABLE
                | LogEntryType.DROP_TABLE
                | LogEntryType.CREATE_INDEX
                | LogEntryType.DROP_INDEX
            ):
                yield from self._change(lsn, entry)
            case _:
                assert_never(entry.type)

    def _is_refused(self, table: str) -> bool:
        return self._indexes.hold_up(table) or any(transaction.touches(table) for transaction in self._open.values())

    def _change(self, lsn: Lsn, entry: LogEntry) -> Iterator[Change]:
        if entry.transaction_id <= 0 or entry.transaction_id in self._open:
            self._indexes.logged(entry)
        if entry.transaction_id <= 0:
            if self._is_new(lsn):
                yield Change(lsn, lsn, entry)
            return
        transaction = self._open.get(entry.transaction_id)
        if transaction is not None:
            transaction.changes.append((lsn, entry))
        # else it began before the first entry: whether that matters is known when it ends

    def _commit(self, lsn: Lsn, entry: LogEntry) -> Iterator[Change]:
        transaction = self._open.pop(entry.transaction_id, None)
        if transaction is not None:
            self._indexes.ended(entry.transaction_id, transaction.changes, committed=True)
        if not self._is_new(lsn):
            return
        if transaction is None:
            raise TransactionBeganEarlierError(
                f"transaction {entry.transaction_id} commits at {lsn}, but began before the part of the log that was read: "
                "give restartLsn, the begin of the oldest transaction that was open at afterLsn (restart_lsn in a checkpoint's manifest)"
            )
        for changed, change in transaction.changes:
            yield Change(lsn, changed, change)

    def _is_new(self, lsn: Lsn) -> bool:
        return self._after is None or lsn > self._after
