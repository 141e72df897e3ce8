"""What transactions have defined and not committed, and by that, which TRUNCATE HerdDB refuses. Pure.

A leader of an earlier image logs a TRUNCATE before it checks it, so a log may hold refused ones. What is refused, and what holds it up:

- The table itself is not committed yet, or an index on it: the transaction that has made it is open, or has left the index at its ROLLBACK.
- An open transaction is on the name of the table: it has changed rows under that name, makes or drops a table of that name, or makes an
  index of that name (HerdDB doesn't tell an index from a table there). A lock that a read holds counts for HerdDB, too, but is in no log.

A table is known by a text that identifies it: whoever reads a log from its beginning knows its uuid, whoever begins in the middle its name
only.

Source: TableManager.applyTruncate, Transaction.isOnTable and AbstractIndexManager.isAvailable of HerdDB 0.29.0.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from herdkeeper_jobs.wal.lsn import Lsn


@dataclass(slots=True)
class PendingDefinitions:
    """The names of what an open transaction makes and drops. A name is in one of the two of a kind only."""

    id: int
    begin: Lsn
    new_tables: set[str] = field(default_factory=set)
    dropped_tables: set[str] = field(default_factory=set)
    new_indexes: list[str] = field(default_factory=list)
    dropped_indexes: list[str] = field(default_factory=list)

    def defines(self, name: str) -> bool:
        """Whether it makes or drops a table of that name, or makes an index of it."""
        return name in self.new_tables or name in self.dropped_tables or name in self.new_indexes


@dataclass(frozen=True, slots=True)
class Ended:
    """What goes with the end of a transaction: tables and indexes that are dropped, and tables that are committed now."""

    committed_tables: tuple[str, ...]
    dropped_tables: tuple[str, ...]
    dropped_indexes: tuple[str, ...]


class Uncommitted:
    """Takes definitions and the bounds of transactions in log order. `named` gives the table that a name means now, None for none."""

    def __init__(self, named: Callable[[str], str | None]) -> None:
        self.open: dict[int, PendingDefinitions] = {}
        self.tables: dict[str, int] = {}
        """Per table, the id of the transaction that has made it."""
        self.indexes: dict[str, tuple[str, int]] = {}
        """Per name of an index, its table and the id of the transaction that has made it, whatever became of that one."""
        self._named = named

    def refuses_truncate(self, table: str, name: str, has_changed: Callable[[PendingDefinitions], bool]) -> bool:
        """Whether a TRUNCATE of the table that has this name now is refused; `has_changed`: a transaction, rows under that name."""
        if table in self.tables or any(on == table for on, _ in self.indexes.values()):
            return True
        return any(transaction.defines(name) or has_changed(transaction) for transaction in self.open.values())

    def begin(self, transaction_id: int, lsn: Lsn) -> None:
        """One that was open under that id is gone; what it had made belongs to the id, and so to its next life."""
        self.open[transaction_id] = PendingDefinitions(transaction_id, lsn)

    def end(self, transaction_id: int, *, committed: bool) -> Ended:
        """Its COMMIT or ROLLBACK. The caller drops what goes (`drop_table`, `drop_index`). KeyError for one that is not open."""
        transaction = self.open.pop(transaction_id)
        if not committed:
            made = (self._named(name) for name in transaction.new_tables)
            gone = (table for table in made if table is not None and self.tables.get(table, transaction_id) == transaction_id)
            return Ended((), tuple(gone), ())
        made_tables = tuple(table for table, maker in self.tables.items() if maker == transaction_id)
        for table in made_tables:
            del self.tables[table]
        if self.indexes:
            # By maker, not by name: what has the name now may be another transaction's.
            self.indexes = {name: (on, maker) for name, (on, maker) in self.indexes.items() if maker != transaction_id}
        dropped = (self._named(name) for name in transaction.dropped_tables)
        return Ended(made_tables, tuple(table for table in dropped if table is not None), tuple(transaction.dropped_indexes))

    def make_table(self, table: str, name: str, transaction_id: int) -> None:
        """Inside of an open transaction."""
        transaction = self.open[transaction_id]
        transaction.new_tables.add(name)
        transaction.dropped_tables.discard(name)
        self.tables[table] = transaction_id

    def will_drop_table(self, name: str, transaction_id: int) -> None:
        """A DROP inside of an open transaction: whatever has the name at its COMMIT goes then."""
        transaction = self.open[transaction_id]
        transaction.new_tables.discard(name)
        transaction.dropped_tables.add(name)

    def make_index(self, name: str, table: str, transaction_id: int) -> None:
        """Outside of transactions (id 0 or below), or inside of an open one."""
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
        """One that is gone is nobody's uncommitted one any more, whoever made it: its name may come again."""
        self.indexes.pop(name, None)

    def drop_table(self, table: str) -> None:
        """One that is gone takes its indexes along."""
        self.tables.pop(table, None)
        self.indexes = {name: (on, maker) for name, (on, maker) in self.indexes.items() if on != table}

    def rename_table(self, before: str, after: str) -> None:
        """Where a table is known by its name. Another one of the new name is gone."""
        if before == after:
            return
        self.drop_table(after)
        if (maker := self.tables.pop(before, None)) is not None:
            self.tables[after] = maker
        self.indexes = {name: (after if on == before else on, maker) for name, (on, maker) in self.indexes.items()}
