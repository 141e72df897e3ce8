"""The meaning of a log's control entries: which transactions committed where, and which tables had which name when. Pure.

Control entries are all entries but row changes and NOOPs. One process handles them. Transactions are columns (`spans`); the few definitions
are walked in log order. The result tells of any row change whether it is part of the final state, of which table, and when it applies.
It does so in any order and on any machine.
- Outside a transaction (id 0) a change applies at its own LSN. Inside, it applies at the COMMIT; without one by the end, never.
- A transaction's net effect on a key is its last change of that key. HerdDB applies new rows, then changed, then deleted ones, and keeps a
  key in one of the three only (`herddb.model.Transaction`). So the order of application is (commit LSN, own LSN).
- Transaction ids restart with every leader. A BEGIN on an open id replaces that transaction and discards its changes. No leader writes
  that: a new one first rolls back open transactions. A table that the replaced one made belongs to the id, and so to its next transaction.
- A change names its table by name. HerdDB resolves the name when it applies the change: at the entry outside of a transaction, at the
  COMMIT inside. A name without a table at the COMMIT (renamed or dropped meanwhile) is skipped, there and here. The same holds for a DROP
  TABLE inside a transaction: the COMMIT drops whatever has that name then.
- TRUNCATE takes effect at its own entry: SQL nodes log none that they refuse.
- A rename to the name of another table is accepted, and that table is gone.
- HerdDB's ROLLBACK leaves the indexes that its transaction made on older tables, unusable until they are dropped. SQL nodes make such an
  index outside of transactions.
- A DROP INDEX inside a transaction drops at the COMMIT whatever has that name then.
- An index becomes usable at the COMMIT of the transaction that made it, whatever others did under its name.

A walk begins with nothing, or with a StartingPoint. Then the state replaces earlier control entries. Of earlier row changes only those of
open transactions count.

Source: TableSpaceManager.apply, TableManager.apply and Transaction of HerdDB 0.29.0.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import assert_never

from herdkeeper.codecs.herddb.index import IndexDefinition, decode_index
from herdkeeper.codecs.herddb.log_entry import LogEntryType
from herdkeeper.codecs.herddb.table import TableDefinition, decode_table
from herdkeeper_jobs.wal.log_state import LogState, StartingPoint, StateIndex, StateTable, StateTransaction
from herdkeeper_jobs.wal.lsn import Lsn
from herdkeeper_jobs.wal.spans import Control, ControlEntry, LogInconsistentError, Spans
from herdkeeper_jobs.wal.uncommitted import PendingDefinitions, Uncommitted


def names_no_table(lsn: Lsn, table: str) -> LogInconsistentError:
    """The error of a row change outside of transactions."""
    return LogInconsistentError(f"entry {lsn} changes a row of table {table!r}, which does not exist there")


def is_in_no_transaction(lsn: Lsn, transaction_id: int) -> LogInconsistentError:
    """The error of a row change inside of a transaction."""
    return LogInconsistentError(f"entry {lsn} belongs to transaction {transaction_id}, which is not open there")


@dataclass(frozen=True, slots=True)
class Timeline:
    """The result of a walk. Picklable, since tasks need it."""

    tables: tuple[TableDefinition, ...]
    """The tables at the end, by name, without those that only an open transaction created."""
    indexes: tuple[IndexDefinition, ...]
    spans: Spans
    names: Mapping[str, tuple[tuple[Lsn, ...], tuple[str | None, ...]]]
    """By name, when its meaning changed, and to which table's uuid."""
    truncated: Mapping[str, Lsn]
    """By uuid, the last TRUNCATE."""
    positions: Mapping[str, int]
    """By uuid, the index in `tables`."""
    made: Mapping[str, tuple[int, Lsn]]
    """By uuid of a table that a transaction made, its id and COMMIT. Earlier commits of others skip the table."""
    state: LogState
    """The state at the end, from which a later walk can continue."""
    start: StartingPoint | None = None
    """Where the walk began; None for the log's beginning."""

    @property
    def open_transactions(self) -> tuple[StateTransaction, ...]:
        """The transactions that are open at the end, oldest first."""
        return self.state.transactions

    @property
    def altered(self) -> frozenset[str]:
        """The uuids of the tables that may have rows in an older form, or had auto-increment before."""
        return frozenset(table.definition.uuid for table in self.state.tables if table.altered)

    def place_of_base(self, uuid: str) -> int | None:
        """Index in `tables` of a table whose rows are known at the start; None if it was dropped or truncated since."""
        return None if uuid in self.truncated else self.positions.get(uuid)


def walk(control: Control, start: StartingPoint | None = None) -> Timeline:
    """Returns the timeline of control entries.

    Only definitions are walked, with the transactions that have any: of all others only the COMMIT's place matters. Without a `start` the
    log begins with nothing. With one, entries up to it are skipped.

    Raises:
        LogInconsistentError: an entry refers to a transaction, a table or an index that no earlier one made.
        MalformedDataError: a definition can't be decoded.
    """
    behind = control if start is None else control.behind(start)
    spans = Spans.of(behind.boundaries, start)
    walker = _Walker(start)
    walked = {entry.transaction_id for entry in behind.definitions} | (set() if start is None else start.state.transaction_ids)
    for entry in behind.of_transactions(walked):
        walker.apply(entry)
    return walker.timeline(spans)


class _Walker:
    def __init__(self, start: StartingPoint | None) -> None:
        self._tables: dict[str, TableDefinition] = {}
        self._made: dict[str, tuple[int, Lsn]] = {}
        self._by_name: dict[str, str] = {}
        self._uncommitted = Uncommitted(self._by_name.get)
        self._names: dict[str, tuple[list[Lsn], list[str | None]]] = {}
        self._truncated: dict[str, Lsn] = {}
        self._indexes: dict[str, tuple[IndexDefinition, str]] = {}
        self._altered: set[str] = set()
        self._start = start
        if start is not None:
            self._begin(start)

    def _begin(self, start: StartingPoint) -> None:
        for table in start.state.tables:
            uuid = table.definition.uuid
            self._tables[uuid] = table.definition
            self._name(table.definition.name, uuid, start.at)
            if table.maker is not None:
                self._uncommitted.tables[uuid] = table.maker
            if table.altered:
                self._altered.add(uuid)
        for index in start.state.indexes:
            self._indexes[index.definition.name] = (index.definition, index.table_uuid)
            if index.maker is not None:
                self._uncommitted.indexes[index.definition.name] = index.maker
        for one in start.state.transactions:
            self._uncommitted.open[one.transaction_id] = PendingDefinitions(
                one.transaction_id,
                one.begin,
                set(one.new_tables),
                set(one.dropped_tables),
                list(one.new_indexes),
                list(one.dropped_indexes),
            )

    def _state(self, spans: Spans) -> LogState:
        tables = [StateTable(table, self._uncommitted.tables.get(uuid), uuid in self._altered) for uuid, table in self._tables.items()]
        makers = self._uncommitted.indexes
        indexes = [StateIndex(index, uuid, makers.get(name)) for name, (index, uuid) in sorted(self._indexes.items())]
        transactions = [
            StateTransaction(
                one.id,
                one.begin,
                tuple(sorted(one.new_tables)),
                tuple(sorted(one.dropped_tables)),
                tuple(one.new_indexes),
                tuple(one.dropped_indexes),
            )
            for one in (self._uncommitted.open.get(identity, PendingDefinitions(identity, begin)) for begin, identity in spans.open)
        ]
        return LogState(tuple(sorted(tables, key=lambda table: table.definition.name)), tuple(indexes), tuple(transactions))

    def apply(self, entry: ControlEntry) -> None:
        match entry.type:
            case LogEntryType.BEGIN:
                self._uncommitted.begin(entry.transaction_id, entry.lsn)
            case LogEntryType.COMMIT | LogEntryType.ROLLBACK:
                self._require_open(entry)
                self._end(entry)
            case LogEntryType.CREATE_TABLE | LogEntryType.ALTER_TABLE | LogEntryType.DROP_TABLE | LogEntryType.TRUNCATE:
                self._change_table(entry)
            case LogEntryType.CREATE_INDEX | LogEntryType.DROP_INDEX:
                self._change_index(entry)
            case LogEntryType.NOOP | LogEntryType.CONSISTENCY_CHECK:
                pass
            case LogEntryType.INSERT | LogEntryType.UPDATE | LogEntryType.DELETE:
                raise ValueError(f"entry {entry.lsn} is a row change, not a control entry")
            case _:
                assert_never(entry.type)

    def timeline(self, spans: Spans) -> Timeline:
        uncommitted = self._uncommitted
        live = sorted((table for uuid, table in self._tables.items() if uuid not in uncommitted.tables), key=lambda table: table.name)
        indexes = [index for name, (index, _) in sorted(self._indexes.items()) if name not in uncommitted.indexes]
        return Timeline(
            tuple(live),
            tuple(indexes),
            spans,
            {name: (tuple(lsns), tuple(uuids)) for name, (lsns, uuids) in self._names.items()},
            dict(self._truncated),
            {table.uuid: position for position, table in enumerate(live)},
            dict(self._made),
            self._state(spans),
            self._start,
        )

    def _require_open(self, entry: ControlEntry) -> None:
        if entry.transaction_id not in self._uncommitted.open:
            raise entry.of_no_open_transaction

    def _end(self, entry: ControlEntry) -> None:
        ended = self._uncommitted.end(entry.transaction_id, committed=entry.type is LogEntryType.COMMIT)
        self._made.update((uuid, (entry.transaction_id, entry.lsn)) for uuid in ended.committed_tables)
        for uuid in ended.dropped_tables:
            self._drop_table(uuid, entry.lsn)
        for name in ended.dropped_indexes:
            self._drop_index(name)

    def _change_table(self, entry: ControlEntry) -> None:
        if entry.type is LogEntryType.CREATE_TABLE:
            table = decode_table(entry.value)
            if entry.transaction_id > 0:
                self._require_open(entry)
                self._uncommitted.make_table(table.uuid, table.name, entry.transaction_id)
            self._tables[table.uuid] = table
            self._name(table.name, table.uuid, entry.lsn)
        elif entry.type is LogEntryType.ALTER_TABLE:
            self._alter(decode_table(entry.value), entry.lsn)
        elif entry.type is LogEntryType.DROP_TABLE:
            uuid = self._uuid_of(entry)
            if entry.transaction_id > 0:
                self._require_open(entry)
                self._uncommitted.will_drop_table(entry.table, entry.transaction_id)
            else:
                self._drop_table(uuid, entry.lsn)
        else:
            self._truncated[self._uuid_of(entry)] = entry.lsn

    def _alter(self, table: TableDefinition, lsn: Lsn) -> None:
        before = self._tables.get(table.uuid)
        if before is None:
            raise LogInconsistentError(f"entry {lsn} alters table {table.name!r} ({table.uuid}), which does not exist there")
        self._tables[table.uuid] = table
        if (before.columns, before.auto_increment) != (table.columns, table.auto_increment):
            self._altered.add(table.uuid)
        if before.name != table.name:
            if (replaced := self._by_name.get(table.name)) is not None:
                self._drop_table(replaced, lsn)
            self._name(before.name, None, lsn)
            self._name(table.name, table.uuid, lsn)
            for name, (index, uuid) in list(self._indexes.items()):
                if uuid == table.uuid:
                    self._indexes[name] = (replace(index, table=table.name), uuid)

    def _drop_table(self, uuid: str, lsn: Lsn) -> None:
        table = self._tables.pop(uuid, None)
        if table is not None and self._by_name.get(table.name) == uuid:
            self._name(table.name, None, lsn)
        self._uncommitted.tables.pop(uuid, None)
        for name in [name for name, (_, owner) in self._indexes.items() if owner == uuid]:
            self._drop_index(name)

    def _drop_index(self, name: str) -> None:
        self._indexes.pop(name, None)
        self._uncommitted.indexes.pop(name, None)

    def _change_index(self, entry: ControlEntry) -> None:
        if entry.type is LogEntryType.DROP_INDEX:
            name = entry.value.decode()
            if entry.transaction_id > 0:
                self._require_open(entry)
                self._uncommitted.will_drop_index(name, entry.transaction_id)
            else:
                self._drop_index(name)
            return
        index = decode_index(entry.value)
        uuid = self._by_name.get(index.table)
        if uuid is None:
            raise LogInconsistentError(
                f"entry {entry.lsn} creates index {index.name!r} on table {index.table!r}, which does not exist there"
            )
        if entry.transaction_id > 0:
            self._require_open(entry)
        self._uncommitted.make_index(index.name, entry.transaction_id)
        self._indexes[index.name] = (index, uuid)

    def _uuid_of(self, entry: ControlEntry) -> str:
        uuid = self._by_name.get(entry.table)
        if uuid is None:
            raise LogInconsistentError(f"entry {entry.lsn} ({entry.type.name}) names table {entry.table!r}, which does not exist there")
        return uuid

    def _name(self, name: str, uuid: str | None, lsn: Lsn) -> None:
        lsns, uuids = self._names.setdefault(name, ([], []))
        lsns.append(lsn)
        uuids.append(uuid)
        if uuid is None:
            self._by_name.pop(name, None)
        else:
            self._by_name[name] = uuid
