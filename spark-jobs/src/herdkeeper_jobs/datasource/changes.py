"""From log entries, in order, to the changes that were committed, in the order of their commits. Pure.

A change outside of a transaction is committed by its own entry, one inside by its transaction's COMMIT; what is rolled back, or still open,
is no change. A log is read from an LSN on, but a transaction that commits after it may have begun before: so reading begins at the
oldest BEGIN that was open there (the restart LSN), and what was committed up to the LSN is left out.

Names of tables are those of the entries. A TRUNCATE that HerdDB refused, since an open transaction had touched the table, is left out as it
is in a checkpoint's fold (wal/timeline.py).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import assert_never

from herdkeeper.formats.herddb_log_entry import LogEntry, LogEntryType
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
        return any(entry.table == table for _, entry in self.changes)


class CommittedChanges:
    """Takes entries in log order, gives committed changes. Not for several threads.

    `after`: what was committed up to there is left out; None leaves out nothing. It holds the changes of open transactions in memory.
    """

    def __init__(self, after: Lsn | None) -> None:
        self._after = after
        self._open: dict[int, _Open] = {}

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
                self._open.pop(entry.transaction_id, None)
            case LogEntryType.TRUNCATE:
                if self._is_new(lsn) and not any(transaction.touches(entry.table) for transaction in self._open.values()):
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

    def _change(self, lsn: Lsn, entry: LogEntry) -> Iterator[Change]:
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
