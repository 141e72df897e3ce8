"""A random story of a tablespace: statements in interleaved transactions, changes of tables, ledger ends, a leader's death.

The seed draws each step from the current state in SQL, so most statements are accepted; refused ones belong to the story. One thread runs
it: statements that would wait for another transaction's lock are mostly left out.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field
from enum import Enum
from random import Random

import random_definitions as definitions
from random_definitions import TABLE_NAMES, TYPES, SeenColumn, SeenTable
from real_database import Database

from herdkeeper.codecs.herddb.table import ColumnType
from herdkeeper.sql.connection import Connection, Transaction
from herdkeeper.sql.errors import OutcomeUnknown, ServerError
from herdkeeper.sql.frames import Value

STORIES = 8
"""The default number of stories: enough for each kind of statement to be accepted in one of them."""
_MOST_OPEN = 3
_RARELY = 0.03
_TYPE_NAMES = {"integer": ColumnType.INTEGER, "bytearray": ColumnType.BYTES, "floatarray": ColumnType.FLOAT_ARRAY}
_LITERAL = re.compile(r"[ -\[\]-~\xa1-\xff]*")
_SHOWN = 60
"""Characters of a value in a story's output."""
_SPANNING = "spanning"
"""A table that only ever gets new keys, so that nothing hinders the statements that a story relies on."""


class Kind(Enum):
    """Kinds of statements in a story."""

    INSERT = "INSERT"
    UPSERT = "UPSERT"
    UPDATE = "UPDATE"
    DELETE = "DELETE"
    SELECT = "SELECT"
    TRUNCATE = "TRUNCATE TABLE"
    COMMIT = "COMMIT"
    ROLLBACK = "ROLLBACK"
    CREATE_TABLE = "CREATE TABLE"
    DROP_TABLE = "DROP TABLE"
    RENAME_TABLE = "EXECUTE RENAMETABLE"
    ADD_COLUMN = "ADD COLUMN"
    DROP_COLUMN = "DROP COLUMN"
    RENAME_COLUMN = "CHANGE"
    CHANGE_NULLABLE = "MODIFY NOT NULL"
    CHANGE_DEFAULT = "MODIFY DEFAULT"
    ADD_FOREIGN_KEY = "ADD FOREIGN KEY"
    CREATE_INDEX = "CREATE INDEX"
    CREATE_UNIQUE_INDEX = "CREATE UNIQUE INDEX"
    DROP_INDEX = "DROP INDEX"


class _RolledBack(Exception):  # noqa: N818 - a way out of a transaction's block
    """Makes a transaction's block end with ROLLBACK."""


@dataclass
class _Open:
    """A transaction of the story. `block` ends it."""

    block: AbstractContextManager[Transaction]
    transaction: Transaction
    changed: set[str] = field(default_factory=set)
    looked: set[str] = field(default_factory=set)
    """Tables named in its statements that changed nothing."""
    keys: set[tuple[str, tuple[Value, ...]]] = field(default_factory=set)
    """Rows that it has certainly locked."""
    whole: set[str] = field(default_factory=set)
    """Tables of which it may have locked any row."""
    drops: bool = False
    """Whether it drops a table."""
    drops_index: bool = False
    """Whether it drops an index."""
    renamed: set[str] = field(default_factory=set)
    """Former names of tables in which it may have locked something."""

    def has(self, table: str) -> bool:
        """Whether it may have locked something in a table."""
        return table in self.changed or table in self.looked


@dataclass(frozen=True)
class _Statement:
    """One statement on one table; `key` is the row that it names, None for any number of rows. `waits_for_itself`: it may, outside of a
    transaction."""

    kind: Kind
    table: str
    sql: str
    parameters: tuple[Value, ...] = ()
    key: tuple[Value, ...] | None = None
    waits_for_itself: bool = False


class Story:
    """Runs itself in a tablespace. Of two transactions with changes in two ledgers one is rolled back. `dies`: its leader is killed in the
    middle of transactions, at least one with changes."""

    def __init__(self, database: Database, tablespace: str, seed: int, *, dies: bool = False) -> None:
        self.asked: Counter[Kind] = Counter()
        """Sent statements by kind."""
        self.accepted: Counter[Kind] = Counter()
        """Statements that SQL accepted, by kind."""
        self.left_open: frozenset[int] = frozenset()
        """Ids of the transactions whose leader died; at least one had changes. Empty without a death."""
        self._database = database
        self._tablespace = tablespace
        self._chance = Random(seed)
        self._dies = dies
        self._connection = database.connect(tablespace)
        self._open: dict[int, _Open] = {}
        self._left: list[_Open] = []
        """Locks that ended transactions may have left forever, since their table was renamed."""
        self._seen: dict[int, tuple[SeenTable, ...]] = {}
        self._begun = 0
        self._renamed: set[str] = set()
        """Tables with former names. When dropped, HerdDB goes on listing and maintaining their indexes."""
        self._inserted = 0
        """Rows of the table _SPANNING, and its keys."""

    @property
    def connection(self) -> Connection:
        """The connection to the current leader."""
        return self._connection

    @property
    def tables(self) -> tuple[SeenTable, ...]:
        """The tables that SQL reports outside of transactions."""
        return self._tables(None)

    @property
    def tally(self) -> str:
        """Accepted and sent statements, by kind."""
        return ", ".join(f"{kind.value} {self.accepted[kind]}/{self.asked[kind]}" for kind in Kind if self.asked[kind])

    def tell(self, steps: int) -> None:
        """Runs so many steps. Transactions may be open at the end."""
        death = self._chance.randint(steps // 3, steps - 5) if self._dies else None
        self._connection.execute(f"CREATE TABLE {_SPANNING} (k int primary key)")
        for _ in range(2):
            self._create_table(None)
        across: list[_Open] = []
        for step in range(steps):
            if step == steps // 4:
                across = self._begin_across_ledgers()
            elif step == steps // 3 - 1:  # before any leader dies
                committed, rolled_back = across
                committed.block.__exit__(None, None, None)
                _abandon(rolled_back)
            if death is not None and step >= death and (self._open or step == steps - 1):
                self._die()
                death = None
            else:
                self._step()

    def add_foreign_keys(self) -> None:
        """Tries one for each table, after `end_all`: SQL refuses it beside a transaction that has changed one of both tables."""
        for table in self._tables(None):
            if (sql := self._refer(table, None)) is not None:
                self._define(None, _Statement(Kind.ADD_FOREIGN_KEY, table.name, f"ALTER TABLE `{table.name}` {sql}"))

    def end_all(self, commit: bool | None = None) -> None:
        """Ends all open transactions, each at random unless `commit` is given."""
        for number in sorted(self._open):
            self._end(number, commit)

    def further_changes(self, tables: list[SeenTable], number: int) -> Iterator[tuple[str, tuple[Value, ...]]]:
        """Yields possible further statements on these tables, each of which changes rows by itself without meeting a lock. None lets HerdDB
        choose a key: it skips keys of rows that were never committed, so two tablespaces would differ."""
        makers = (self._insert, self._insert, self._upsert, self._update, self._delete)
        for table in self._chance.choices(tables, k=number if tables else 0):
            statement = self._chance.choice(makers)(table)
            if statement is None or statement.waits_for_itself or self._waits(None, table, statement):
                continue
            if not (table.automatic and statement.key is not None and None in statement.key):
                yield statement.sql, statement.parameters

    def close(self) -> None:
        """Rolls back open transactions and closes the connection."""
        self.end_all(commit=False)
        self._connection.close()

    def _step(self) -> None:
        slot = self._chance.choice([None, *self._open, *self._open])
        steps: list[tuple[int, Callable[[int | None], None]]] = [
            (60, self._change_rows),
            (4, self._create_table),
            (2, self._drop_table),
            (14, self._alter_table),
            (2, self._rename_table),
            (3, self._create_index),
            (1, self._drop_index),
            (4, self._truncate),
        ]
        match self._chance.choices(("begin", "end", "ledger", "look", "statement"), (8, 7, 2, 2, 81))[0]:
            case "begin" if len(self._open) < _MOST_OPEN:
                self._begin()
            case "end" if self._open:
                self._end(self._chance.choice(sorted(self._open)))
            case "ledger":
                print(f"close ledger -> {self._database.close_ledger(self._tablespace)}")
            case "look":
                self._look(slot)
            case _:
                self._chance.choices([step for _, step in steps], [weight for weight, _ in steps])[0](slot)

    def _begin(self) -> None:
        block = self._connection.transaction()
        self._begun += 1
        self._open[self._begun] = _Open(block, block.__enter__())
        print(f"tx {self._begun}: BEGIN -> id {self._open[self._begun].transaction.id}")

    def _end(self, number: int, commit: bool | None = None) -> None:
        commit = self._chance.random() < 0.65 if commit is None else commit
        one = self._open.pop(number)
        self._seen.clear()
        kind = Kind.COMMIT if commit else Kind.ROLLBACK
        words = f"tx {number}: {kind.value}"
        self.asked[kind] += 1
        try:
            if commit:
                one.block.__exit__(None, None, None)
            else:
                _abandon(one)
            self.accepted[kind] += 1
            print(words)
        except ServerError as error:
            print(f"{words} -> refused: {error}")

    def _begin_across_ledgers(self) -> list[_Open]:
        """Begins two transactions with changes in two ledgers. They are not random, and don't end with the others."""
        both = [self._begin_aside() for _ in range(2)]
        for one in both:
            self._insert_spanning(one.transaction)
        print(f"close ledger -> {self._database.close_ledger(self._tablespace)}")
        for one in both:
            self._insert_spanning(one.transaction)
        return both

    def _begin_aside(self) -> _Open:
        block = self._connection.transaction()
        return _Open(block, block.__enter__())

    def _insert_spanning(self, where: Connection | Transaction) -> None:
        self._inserted += 1
        print(f"row {self._inserted} of {_SPANNING}")
        assert where.execute(f"INSERT INTO {_SPANNING} (k) VALUES (?)", (self._inserted,)) == 1

    def _die(self) -> None:
        aside = self._begin_aside()
        self._insert_spanning(aside.transaction)
        # Its acknowledgement proves that all earlier changes of the transactions are in the log.
        self._insert_spanning(self._connection)
        self.left_open = frozenset(one.transaction.id for one in (*self._open.values(), aside))
        print(f"the leader dies; open: {sorted(self._open)}")
        self._connection.close()
        for one in (*self._open.values(), aside):
            _abandon(one)
        self._open, self._left, self._seen = {}, [], {}
        self._database.kill_leader(self._tablespace)
        self._connection = self._database.connect(self._tablespace)

    # rows

    def _change_rows(self, slot: int | None) -> None:
        table = self._table(slot)
        if table is None:
            return
        make = self._chance.choices((self._insert, self._upsert, self._update, self._delete), (45, 15, 25, 15))[0]
        statement = make(table)
        if statement is None or (slot is None and statement.waits_for_itself):
            return
        if not self._waits(slot, table, statement) or self._chance.random() < _RARELY:
            self._execute(slot, statement)

    def _waits(self, slot: int | None, table: SeenTable, statement: _Statement) -> bool:
        """Whether another transaction may have locked what the statement needs."""
        others = [one for number, one in self._open.items() if number != slot] + self._left
        if table.bound:
            return any(one.changed or one.looked for one in others)
        if statement.key is None:
            return any(one.has(table.name) for one in others)
        return any(table.name in one.whole or (table.name, statement.key) in one.keys for one in others)

    def _insert(self, table: SeenTable, kind: Kind = Kind.INSERT) -> _Statement | None:
        given = [
            column
            for column in table.columns
            if self._chance.random() < (0.15 if table.automatic else 0.99 if column.name in table.key else 0.75)
            or (column.name not in table.key and not column.nullable and not column.default and self._chance.random() < 0.95)
        ]
        if not given:
            return None
        values = [self._value(table, column) for column in given]
        by_name = dict(zip((column.name for column in given), values, strict=True))
        key = tuple(by_name.get(name) for name in table.key)
        places, parameters = self._places(values)
        names = ", ".join(f"`{column.name}`" for column in given)
        sql = f"{kind.value} INTO `{table.name}` ({names}) VALUES ({', '.join(places)})"
        return _Statement(kind, table.name, sql, tuple(parameters), key)

    def _upsert(self, table: SeenTable) -> _Statement | None:
        return self._insert(table, Kind.UPSERT)

    def _update(self, table: SeenTable) -> _Statement | None:
        """Outside of a transaction, a row waits for another one of its statement that is given the same value of a unique index. The wait
        ends in vain, and HerdDB keeps the lock of that row: later statements would wait for it, and on a restored copy they would not."""
        if not table.others:
            return None
        changed = self._chance.sample(table.others, self._chance.randint(1, min(3, len(table.others))))
        sets: list[str] = []
        parameters: list[Value] = []
        same: set[str] = set()
        for column in changed:
            if column.type in (ColumnType.INTEGER, ColumnType.LONG) and self._chance.random() < 0.3:
                sets.append(f"`{column.name}` = `{column.name}` + 1")
                continue
            same.add(column.name)
            places, given = self._places([self._value(table, column)])
            sets.append(f"`{column.name}` = {places[0]}")
            parameters += given
        where, more, key = self._where(table)
        waits = key is None and not table.unique.isdisjoint(same)
        return _Statement(Kind.UPDATE, table.name, f"UPDATE `{table.name}` SET {', '.join(sets)}{where}", (*parameters, *more), key, waits)

    def _delete(self, table: SeenTable) -> _Statement | None:
        where, parameters, key = self._where(table)
        return _Statement(Kind.DELETE, table.name, f"DELETE FROM `{table.name}`{where}", parameters, key)

    def _where(self, table: SeenTable) -> tuple[str, tuple[Value, ...], tuple[Value, ...] | None]:
        if self._chance.random() < 0.7:
            key = tuple(self._key(table, table.column(name)) for name in table.key)
            return " WHERE " + " AND ".join(f"`{name}` = ?" for name in table.key), key, key
        compared = [column for column in table.columns if column.type in (ColumnType.INTEGER, ColumnType.LONG, ColumnType.STRING)]
        if not compared or self._chance.random() < 0.15:
            return "", (), None
        column = self._chance.choice(compared)
        if self._chance.random() < 0.3:
            return f" WHERE `{column.name}` IS NULL", (), None
        return f" WHERE `{column.name}` > ?", (definitions.value(self._chance, column.type),), None

    def _value(self, table: SeenTable, column: SeenColumn) -> Value:
        if column.name in table.key:
            return self._key(table, column)
        if self._chance.random() < (0.15 if column.nullable else 0.02):
            return None
        if column.name.startswith("f") or (column.name in table.unique and self._chance.random() < 0.7):
            return definitions.few(self._chance, column.type)
        return definitions.value(self._chance, column.type)

    def _key(self, table: SeenTable, column: SeenColumn) -> Value:
        if table.automatic and self._chance.random() < 0.8:
            return self._chance.randint(1, 12)
        return definitions.key(self._chance, column.type)

    def _places(self, values: Sequence[Value]) -> tuple[list[str], list[Value]]:
        """The SQL for values, mostly parameters, and these parameters."""
        places: list[str] = []
        parameters: list[Value] = []
        for value in values:
            if self._chance.random() < 0.2 and (value is None or (type(value) is int and abs(value) < 2**31)):
                places.append("NULL" if value is None else str(value))
            elif self._chance.random() < 0.2 and isinstance(value, str) and _LITERAL.fullmatch(value):
                doubled = value.replace("'", "''")
                places.append(f"'{doubled}'")
            else:
                places.append("?")
                parameters.append(value)
        return places, parameters

    def _look(self, slot: int | None) -> None:
        """A read, which locks the row until its transaction ends."""
        table = self._table(slot)
        if table is None:
            return
        where, parameters, key = self._where(table)
        statement = _Statement(Kind.SELECT, table.name, f"SELECT * FROM `{table.name}`{where}", parameters, key)
        if slot is None or self._waits(slot, table, statement):
            return
        self.asked[Kind.SELECT] += 1
        try:
            found = f"{len(self._open[slot].transaction.query(statement.sql, statement.parameters))} rows"
            self.accepted[Kind.SELECT] += 1
        except ServerError as error:
            found = f"refused: {error}"
        self._note(slot, statement, 0)
        print(f"{_name(slot)}: {statement.sql} {_shown(parameters)} -> {found}")

    # definitions

    def _create_table(self, slot: int | None) -> None:
        """Avoids former names of tables with locked rows: a transaction would look for its locks in the new table, and fail within a logged
        COMMIT."""
        seen = self._tables(slot)
        free = sorted(set(TABLE_NAMES).difference(*(one.renamed for one in self._open.values())))
        missing = sorted(set(free) - {table.name for table in seen})
        if not free:
            return
        name = self._chance.choice(missing or free)
        self._define(slot, _Statement(Kind.CREATE_TABLE, name, definitions.create_table(self._chance, name, self._parents(seen))))

    def _parents(self, seen: tuple[SeenTable, ...]) -> tuple[SeenTable, ...]:
        """Tables that foreign keys may refer to. HerdDB accepts one that an open transaction drops. After the drop, a statement that looks
        for the parent fails and leaves the tablespace locked forever."""
        return () if any(one.drops for one in self._open.values()) else seen

    def _drop_table(self, slot: int | None) -> None:
        name = self._chance.choice(sorted(set(TABLE_NAMES) - self._renamed))
        if self._define(slot, _Statement(Kind.DROP_TABLE, name, f"DROP TABLE `{name}`")) and slot in self._open:
            self._open[slot].drops = True

    def _alter_table(self, slot: int | None) -> None:
        """An ALTER commits its own transaction."""
        slot = slot if self._chance.random() < 0.3 else None
        table = self._table(slot)
        if table is None:
            return
        alterations: list[tuple[Kind, Callable[[SeenTable, int | None], str | None]]] = [
            (Kind.ADD_COLUMN, self._add_column),
            (Kind.ADD_COLUMN, self._add_column),
            (Kind.DROP_COLUMN, self._drop_column),
            (Kind.RENAME_COLUMN, self._rename_column),
            (Kind.RENAME_COLUMN, self._rename_column),
            (Kind.CHANGE_NULLABLE, self._nullable),
            (Kind.CHANGE_DEFAULT, self._default),
            (Kind.ADD_FOREIGN_KEY, self._refer),
            (Kind.ADD_FOREIGN_KEY, self._refer),
        ]
        kind, alter = self._chance.choice(alterations)
        if (sql := alter(table, slot)) is not None:
            self._define(slot, _Statement(kind, table.name, f"ALTER TABLE `{table.name}` {sql}"))

    def _add_column(self, table: SeenTable, slot: int | None) -> str | None:
        return f"ADD COLUMN {definitions.column(self._chance, self._column_name())}"

    def _drop_column(self, table: SeenTable, slot: int | None) -> str | None:
        """HerdDB drops and renames columns of foreign keys, drops columns with an index, and then fails at whatever uses these."""
        free = [column.name for column in table.columns if column.name in table.key or column.name not in table.indexed]
        return f"DROP COLUMN `{self._chance.choice(free)}`" if free and not table.bound else None

    def _rename_column(self, table: SeenTable, slot: int | None) -> str | None:
        """The old name has no back-ticks: HerdDB 0.29 takes them as part of it, and finds no such column."""
        column = self._chance.choice(table.columns)
        automatic = " AUTO_INCREMENT" if table.automatic and column.name in table.key and self._chance.random() < 0.8 else ""
        form = definitions.words(self._chance, column.type, nullable=column.nullable)
        return None if table.bound else f"CHANGE {column.name} `{self._column_name()}` {form}{automatic}"

    def _nullable(self, table: SeenTable, slot: int | None) -> str | None:
        column = self._chance.choice(table.columns)
        if column.name in table.key and column.type is ColumnType.TIMESTAMP:
            return None  # HerdDB fails at such a key once it is NOT NULL: see random_definitions
        automatic = " AUTO_INCREMENT" if table.automatic and column.name in table.key else ""
        return f"MODIFY `{column.name}` {definitions.words(self._chance, column.type, nullable=not column.nullable)}{automatic}"

    def _default(self, table: SeenTable, slot: int | None) -> str | None:
        column = self._chance.choice(table.columns)
        form = definitions.words(self._chance, column.type, nullable=column.nullable)
        return f"MODIFY `{column.name}` {form}{definitions.default(self._chance, column.type) or ' DEFAULT NULL'}"

    def _refer(self, table: SeenTable, slot: int | None) -> str | None:
        parents = [parent for parent in self._parents(self._tables(slot)) if len(parent.key) == 1]
        if not parents:
            return None
        parent = self._chance.choice(parents)
        fitting = [column.name for column in table.others if column.type is parent.column(parent.key[0]).type]
        column = self._chance.choice([*fitting, *fitting, *fitting, self._column_name()])
        return f"ADD {definitions.foreign_key(self._chance, f'{table.name}_g', column, parent)}"

    def _column_name(self) -> str:
        return f"c{self._chance.randint(0, 9)}"

    def _rename_table(self, slot: int | None) -> None:
        """Also renames to another table's name, which replaces it. HerdDB may leave indexes and foreign keys to the other table or to none,
        so a table with some is skipped. It also keeps an index that a transaction drops, if the table is renamed before COMMIT.

        It avoids the name of a table that a transaction made: HerdDB fails within that logged COMMIT, and its log can't be replayed.
        """
        before, after = self._chance.choice(TABLE_NAMES), self._chance.choice(TABLE_NAMES)
        there = next((table for table in self._tables(None) if table.name == after), None)
        if before == after or any(one.drops_index for one in self._open.values()):
            return
        if there is not None and (self._open or there.bound or there.indexed - set(there.key)):
            return
        if any(one.has(after) for one in self._open.values()):
            return
        self._define(None, _Statement(Kind.RENAME_TABLE, before, f"EXECUTE RENAMETABLE '{self._tablespace}','{before}','{after}'"), after)

    def _create_index(self, slot: int | None) -> None:
        """A unique index over equal rows, or over nulls, is refused. Behind rows of its own transaction it is, too."""
        table = self._table(slot)
        if table is None or not table.others:
            return
        columns = self._chance.sample(table.others, self._chance.randint(1, min(2, len(table.others))))
        form = self._chance.choice(("", "UNIQUE ", "HASH ", "BRIN "))
        if form == "UNIQUE " and not self._is_unique(slot, table, [column.name for column in columns]):
            form = ""
        kind = Kind.CREATE_UNIQUE_INDEX if form == "UNIQUE " else Kind.CREATE_INDEX
        names = ", ".join(f"`{column.name}`" for column in columns)
        index = f"i{self._chance.randint(0, 5)}"
        self._define(slot, _Statement(kind, table.name, f"CREATE {form}INDEX `{index}` ON `{table.name}` ({names})"))

    def _is_unique(self, slot: int | None, table: SeenTable, columns: Sequence[str]) -> bool:
        """Whether the table's committed rows have distinct values without nulls in these columns, and no other transaction changed any."""
        others = [one for number, one in self._open.items() if number != slot]
        if table.name not in {one.name for one in self.tables} or any(one.has(table.name) for one in others):
            return False
        rows = [[row[name] for name in columns] for row in self._connection.query(f"SELECT * FROM `{table.name}`")]
        return all(value is not None for row in rows for value in row) and len({repr(row) for row in rows}) == len(rows)

    def _drop_index(self, slot: int | None) -> None:
        indexes = self._connection.query("SELECT * FROM sysindexcolumns")
        names = sorted({str(row["index_name"]) for row in indexes if row["index_type"] != "pk" and row["table_name"] not in self._renamed})
        if not names:
            return
        if self._define(slot, _Statement(Kind.DROP_INDEX, "", f"DROP INDEX `{self._chance.choice(names)}`")) and slot in self._open:
            self._open[slot].drops_index = True

    def _truncate(self, slot: int | None) -> None:
        table = self._table(None)
        if table is None:
            return
        if slot is not None and self._chance.random() < 0.9:
            slot = None
        self._execute(slot, _Statement(Kind.TRUNCATE, table.name, f"TRUNCATE TABLE `{table.name}`"))

    def _define(self, slot: int | None, statement: _Statement, renamed: str | None = None) -> bool:
        """Executes it; returns whether SQL accepted it."""
        done = self._execute(slot, statement)
        self._seen.clear()
        if done and renamed is not None:
            self._renamed.add(renamed)
            for one in [*self._open.values(), *self._left]:
                if one.has(statement.table):
                    one.renamed.add(statement.table)
                    self._left.append(_Open(one.block, one.transaction, {renamed}, {renamed}, set(), {renamed}))
        there = {row["txid"] for row in self._connection.query("SELECT * FROM systransactions")}
        for number in [number for number, one in self._open.items() if one.transaction.id not in there]:
            _abandon(self._open.pop(number))
        return done

    # what all of them need

    def _execute(self, slot: int | None, statement: _Statement) -> bool:
        """Executes it; returns whether SQL accepted it."""
        where = self._connection if slot is None else self._open[slot].transaction
        print(f"{_name(slot)}: {statement.sql} {_shown(statement.parameters)}", end="")  # printed before, in case there is no answer
        self.asked[statement.kind] += 1
        changed = _outcome(where, statement)
        print(f" -> {changed}")
        if isinstance(changed, str):
            self._note(slot, statement, 0)
            return False
        self.accepted[statement.kind] += 1
        self._note(slot, statement, changed)
        return True

    def _note(self, slot: int | None, statement: _Statement, changed: int) -> None:
        if slot is None or slot not in self._open:
            return
        one = self._open[slot]
        (one.changed if changed else one.looked).add(statement.table)
        if statement.key is None or None in statement.key:
            one.whole.add(statement.table)
        else:
            one.keys.add((statement.table, statement.key))

    def _table(self, slot: int | None) -> SeenTable | None:
        seen = self._tables(slot)
        return self._chance.choice(seen) if seen else None

    def _tables(self, slot: int | None) -> tuple[SeenTable, ...]:
        """The tables that statements there can use, as SQL reports them."""
        number = slot or 0
        if number not in self._seen:
            where = self._connection if slot is None else self._open[slot].transaction
            self._seen[number] = tuple(_tables(where))
        return self._seen[number]


def _abandon(one: _Open) -> None:
    """Rolls it back if it is still open."""
    with suppress(_RolledBack):
        one.block.__exit__(_RolledBack, _RolledBack(), None)


def _outcome(where: Connection | Transaction, statement: _Statement) -> int | str:
    """The number of rows that a statement changed, or why it was refused."""
    try:
        return where.execute(statement.sql, statement.parameters)
    except (ServerError, OutcomeUnknown) as error:  # the latter of an ALTER TABLE in a transaction, which commits it and is refused
        return f"refused: {str(error)[:200]}"


def _tables(where: Connection | Transaction) -> Iterator[SeenTable]:
    columns, indexes, keys = (where.query(f"SELECT * FROM {name}") for name in ("syscolumns", "sysindexcolumns", "sysforeignkeys"))
    names = {str(row["table_name"]) for row in columns}
    related = {str(row[side]) for row in keys for side in ("child_table_name", "parent_table_name")}
    for name in sorted(names & set(TABLE_NAMES)):
        mine = sorted((row for row in columns if row["table_name"] == name), key=lambda row: int(str(row["ordinal_position"])))
        entries = [row for row in indexes if row["table_name"] == name]
        key = sorted((row for row in entries if row["index_type"] == "pk"), key=lambda row: int(str(row["ordinal_position"])))
        unique = frozenset(str(row["column_name"]) for row in entries if row["unique"] and row["index_type"] != "pk")
        yield SeenTable(
            name,
            tuple(_column(str(row["column_name"]), str(row["type_name"]), row["default_value"] not in (None, "NULL")) for row in mine),
            tuple(str(row["column_name"]) for row in key),
            any(row["auto_increment"] for row in mine),
            frozenset(str(row["column_name"]) for row in entries),
            bool(unique) or name in related,
            unique,
        )


def _column(name: str, type_name: str, default: bool) -> SeenColumn:
    kind = type_name.removesuffix(" not null")
    if type_name == "type?18":  # HerdDB's name of a float array that is not null
        return SeenColumn(name, ColumnType.FLOAT_ARRAY, False, default)
    found = _TYPE_NAMES.get(kind) or next(one for one in TYPES if one.name.lower() == kind)
    return SeenColumn(name, found, kind == type_name, default)


def _name(slot: int | None) -> str:
    return "no tx" if slot is None else f"tx {slot}"


def _shown(parameters: Sequence[Value]) -> str:
    shown = ", ".join(text if len(text) < _SHOWN else f"{text[:_SHOWN]}…" for text in map(repr, parameters))
    return f"[{shown}]" if shown else ""
