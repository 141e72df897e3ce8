"""What the control entries of a log leave behind at an LSN: all that a later walk needs to go on from there. Pure.

A checkpoint keeps it, so that the next one can be made from the checkpoint's rows and the log behind them. What has ended by then needs no
memory: it is in the rows, or in nothing. What has not ended does: the tables and indexes that an open transaction has made, those that it
drops at its COMMIT, and where it began, since its row changes are read again from there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from herdkeeper.codecs.herddb.index import IndexDefinition
from herdkeeper.codecs.herddb.table import TableDefinition
from herdkeeper_jobs.wal.lsn import Lsn


@dataclass(frozen=True, slots=True)
class StateTable:
    """A table. `maker` is the id of the transaction that made it and has not committed it, None when it is committed."""

    definition: TableDefinition
    maker: int | None = None
    altered: bool = False
    """Whether its columns were ever changed: rows from before may be stored in another form than its definition gives."""


NOBODY = 0
"""The `maker` of an index that a ROLLBACK has left, where its transaction's id is not known: none has this one, so no COMMIT makes the
index usable."""


@dataclass(frozen=True, slots=True)
class StateIndex:
    """An index, and the uuid of its table. `maker` is the id of the transaction that made it and has not committed it, None when it is
    committed."""

    definition: IndexDefinition
    table_uuid: str
    maker: int | None = None


@dataclass(frozen=True, slots=True)
class StateTransaction:
    """An open transaction, and the names of what it makes and drops."""

    transaction_id: int
    begin: Lsn
    new_tables: tuple[str, ...] = ()
    dropped_tables: tuple[str, ...] = ()
    new_indexes: tuple[str, ...] = ()
    dropped_indexes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class LogState:
    """Everything that exists or is open; tables and indexes by name, transactions by their BEGIN."""

    tables: tuple[StateTable, ...] = ()
    indexes: tuple[StateIndex, ...] = ()
    transactions: tuple[StateTransaction, ...] = ()

    @property
    def transaction_ids(self) -> set[int]:
        """Those that are open, and those whose next COMMIT makes something usable."""
        makers = (*(table.maker for table in self.tables), *(index.maker for index in self.indexes))
        return {maker for maker in makers if maker is not None} | {one.transaction_id for one in self.transactions}


@dataclass(frozen=True)
class StartingPoint:
    """Where a walk goes on: the state at an LSN, of which the rows are known. Picklable; it travels to the tasks."""

    at: Lsn
    state: LogState = field(default_factory=LogState)

    @property
    def restart(self) -> Lsn:
        """The first entry to read again: the oldest BEGIN that was open. Without one the entry at `at` itself, of which nothing is used."""
        return min((transaction.begin for transaction in self.state.transactions), default=self.at)

    def needs(self, lsn: Lsn, transaction_id: int) -> bool:
        """Whether an entry can change what comes after: it lies behind, or belongs to a transaction that was open here."""
        if lsn > self.at:
            return True
        begin = self._begins.get(transaction_id) if transaction_id > 0 else None
        return begin is not None and lsn > begin

    @cached_property
    def _begins(self) -> Mapping[int, Lsn]:
        return {transaction.transaction_id: transaction.begin for transaction in self.state.transactions}
