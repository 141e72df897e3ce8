"""The state that a log's control entries leave at an LSN: all that a later walk needs to continue from there. Pure.

A checkpoint stores it, so that the next one can start from the checkpoint's rows and the log behind them. What has ended is in the rows, or
in nothing. An open transaction is not: the state keeps the tables and indexes that it made, and those that it will drop at its COMMIT. It
also keeps its BEGIN, since its row changes are read again from there.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from herdkeeper.codecs.herddb.index import IndexDefinition
from herdkeeper.codecs.herddb.table import TableDefinition
from herdkeeper_jobs.wal.lsn import Lsn


@dataclass(frozen=True, slots=True)
class StateTable:
    """A table. `maker`: the transaction that made it without a COMMIT yet; None if it is committed."""

    definition: TableDefinition
    maker: int | None = None
    altered: bool = False
    """Whether its columns, or its auto-increment, ever changed: older rows may be stored in another form than its definition gives."""


NOBODY = 0
"""The `maker` of an index that a ROLLBACK left, if the transaction's id is unknown. No transaction has this id, so no COMMIT makes the
index usable."""


@dataclass(frozen=True, slots=True)
class StateIndex:
    """An index, and its table's uuid. `maker`: the transaction that made it without a COMMIT yet; None if it is committed."""

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
    """All that exists or is open; tables and indexes by name, transactions by their BEGIN."""

    tables: tuple[StateTable, ...] = ()
    indexes: tuple[StateIndex, ...] = ()
    transactions: tuple[StateTransaction, ...] = ()

    @property
    def transaction_ids(self) -> set[int]:
        """Open transactions, and those whose next COMMIT makes something usable."""
        makers = (*(table.maker for table in self.tables), *(index.maker for index in self.indexes))
        return {maker for maker in makers if maker is not None} | {one.transaction_id for one in self.transactions}


@dataclass(frozen=True)
class StartingPoint:
    """Where a walk continues: the state at an LSN whose rows are known. Picklable, since tasks need it."""

    at: Lsn
    state: LogState = field(default_factory=LogState)

    @property
    def restart(self) -> Lsn:
        """The first entry to read again: the oldest open BEGIN. Without one, the entry at `at`, which has no effect."""
        return min((transaction.begin for transaction in self.state.transactions), default=self.at)
