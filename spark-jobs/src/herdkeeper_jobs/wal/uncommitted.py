"""Tracks uncommitted definitions. Pure.

Tables are identified by uuid. Source: TableSpaceManager.apply and Transaction of HerdDB 0.29.0.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from herdkeeper_jobs.wal.lsn import Lsn


@dataclass(slots=True)
class PendingDefinitions:
    """The names that an open transaction makes and drops. Per kind, a name is in only one of the two."""

    id: int
    begin: Lsn
    new_tables: set[str] = field(default_factory=set)
    dropped_tables: set[str] = field(default_factory=set)
    new_indexes: list[str] = field(default_factory=list)
    dropped_indexes: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Ended:
    """The effects of a transaction's end: dropped tables and indexes, and newly committed tables."""

    committed_tables: tuple[str, ...]
    dropped_tables: tuple[str, ...]
    dropped_indexes: tuple[str, ...]


class Uncommitted:
    """Takes definitions and transaction boundaries in log order. `named` returns the table that a name means now, None for none."""

    def __init__(self, named: Callable[[str], str | None]) -> None:
        self.open: dict[int, PendingDefinitions] = {}
        self.tables: dict[str, int] = {}
        """By table, the id of the transaction that made it."""
        self.indexes: dict[str, int] = {}
        """By index name, the id of the transaction that made it, even after that one's end."""
        self._named = named

    def begin(self, transaction_id: int, lsn: Lsn) -> None:
        """Begins a transaction. It replaces an open one with that id and inherits what that one made."""
        self.open[transaction_id] = PendingDefinitions(transaction_id, lsn)

    def end(self, transaction_id: int, *, committed: bool) -> Ended:
        """Ends a transaction by COMMIT or ROLLBACK. The caller drops what goes. Raises KeyError if it is not open."""
        transaction = self.open.pop(transaction_id)
        if not committed:
            made = (self._named(name) for name in transaction.new_tables)
            gone = (table for table in made if table is not None and self.tables.get(table, transaction_id) == transaction_id)
            return Ended((), tuple(gone), ())
        made_tables = tuple(table for table, maker in self.tables.items() if maker == transaction_id)
        for table in made_tables:
            del self.tables[table]
        if self.indexes:
            # By maker, not by name: the name may belong to another transaction now.
            self.indexes = {name: maker for name, maker in self.indexes.items() if maker != transaction_id}
        dropped = (self._named(name) for name in transaction.dropped_tables)
        return Ended(made_tables, tuple(table for table in dropped if table is not None), tuple(transaction.dropped_indexes))

    def make_table(self, table: str, name: str, transaction_id: int) -> None:
        """Creates a table inside of an open transaction."""
        transaction = self.open[transaction_id]
        transaction.new_tables.add(name)
        transaction.dropped_tables.discard(name)
        self.tables[table] = transaction_id

    def will_drop_table(self, name: str, transaction_id: int) -> None:
        """A DROP inside of an open transaction: its COMMIT drops whatever has the name then."""
        transaction = self.open[transaction_id]
        transaction.new_tables.discard(name)
        transaction.dropped_tables.add(name)

    def make_index(self, name: str, transaction_id: int) -> None:
        """Creates an index outside of transactions (id 0 or below), or inside of an open one."""
        if transaction_id <= 0:
            self.indexes.pop(name, None)
            return
        transaction = self.open[transaction_id]
        transaction.new_indexes.append(name)
        transaction.dropped_indexes = [other for other in transaction.dropped_indexes if other != name]
        self.indexes[name] = transaction_id

    def will_drop_index(self, name: str, transaction_id: int) -> None:
        """A DROP inside of an open transaction."""
        transaction = self.open[transaction_id]
        transaction.new_indexes = [other for other in transaction.new_indexes if other != name]
        transaction.dropped_indexes.append(name)
