"""Tracks uncommitted definitions, and thereby which TRUNCATEs HerdDB refuses. Pure.

A leader of an earlier image logs a TRUNCATE before it checks it, so a log may hold refused ones. HerdDB refuses a TRUNCATE in two cases:
- The table or an index on it is not committed yet: its transaction is open, or left the index at its ROLLBACK.
- An open transaction uses the table's name: it changed rows under that name, makes or drops such a table, or makes such an index. HerdDB
  doesn't distinguish an index from a table there. Locks of reads count for HerdDB, too, but are in no log.

Tables are identified by a text: by uuid if a log is read from its beginning, by name if it is read from the middle.

Source: TableManager.applyTruncate, Transaction.isOnTable and AbstractIndexManager.isAvailable of HerdDB 0.29.0.
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

    def defines(self, name: str) -> bool:
        """Whether it makes or drops a table of that name, or makes such an index."""
        return name in self.new_tables or name in self.dropped_tables or name in self.new_indexes


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
        self.indexes: dict[str, tuple[str, int]] = {}
        """By index name, its table and the id of the transaction that made it, even after that one's end."""
        self._named = named

    def refuses_truncate(self, table: str, name: str, has_changed: Callable[[PendingDefinitions], bool]) -> bool:
        """Whether HerdDB refuses a TRUNCATE of the table with this name. `has_changed`: whether a transaction changed rows under that
        name."""
        if table in self.tables or any(on == table for on, _ in self.indexes.values()):
            return True
        return any(transaction.defines(name) or has_changed(transaction) for transaction in self.open.values())

    def begin(self, transaction_id: int, lsn: Lsn) -> None:
        """Begins a transaction. It replaces an open one with that id and inherits what that one made."""
        self.open[transaction_id] = PendingDefinitions(transaction_id, lsn)

    def end(self, transaction_id: int, *, committed: bool) -> Ended:
        """Ends a transaction by COMMIT or ROLLBACK. The caller drops what goes (`drop_table`, `drop_index`). Raises KeyError if it is not
        open."""
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
            self.indexes = {name: (on, maker) for name, (on, maker) in self.indexes.items() if maker != transaction_id}
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

    def make_index(self, name: str, table: str, transaction_id: int) -> None:
        """Creates an index outside of transactions (id 0 or below), or inside of an open one."""
        if transaction_id <= 0:
            self.indexes.pop(name, None)
            return
        transaction = self.open[transaction_id]
        transaction.new_indexes.append(name)
        transaction.dropped_indexes = [other for other in transaction.dropped_indexes if other != name]
        self.indexes[name] = table, transaction_id

    def will_drop_index(self, name: str, transaction_id: int) -> None:
        """A DROP inside of an open transaction."""
        transaction = self.open[transaction_id]
        transaction.new_indexes = [other for other in transaction.new_indexes if other != name]
        transaction.dropped_indexes.append(name)

    def drop_index(self, name: str) -> None:
        """Forgets an index, whoever made it: its name may be reused."""
        self.indexes.pop(name, None)

    def drop_table(self, table: str) -> None:
        """Forgets a table and its indexes."""
        self.tables.pop(table, None)
        self.indexes = {name: (on, maker) for name, (on, maker) in self.indexes.items() if on != table}

    def rename_table(self, before: str, after: str) -> None:
        """Renames a table that is identified by name; it replaces another one of the new name."""
        if before == after:
            return
        self.drop_table(after)
        if (maker := self.tables.pop(before, None)) is not None:
            self.tables[after] = maker
        self.indexes = {name: (after if on == before else on, maker) for name, (on, maker) in self.indexes.items()}
