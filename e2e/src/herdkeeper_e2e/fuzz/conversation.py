"""One client's statements to the leader of a tablespace, and the answers.

It has one connection at a time, with up to two open transactions next to autocommitted statements.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field, replace
from typing import assert_never

from herdkeeper.sql.connection import Connection, Transaction
from herdkeeper.sql.errors import ConnectionLost, NotLeader, OutcomeUnknown, ServerError, SqlError
from herdkeeper_e2e.fuzz.judgement import Contents, Kind, Promises, Violation, differences
from herdkeeper_e2e.fuzz.story import OUTSIDE, Begin, End, Sql

Note = Callable[[str], None]
"""Takes a line about what happened."""


class _RolledBack(Exception):  # noqa: N818 - a way out of a transaction's block
    """Makes a transaction's block end with ROLLBACK."""


@dataclass
class _Open:
    block: AbstractContextManager[Transaction]
    transaction: Transaction


@dataclass
class Conversation(ABC):
    """Of a tablespace, by one thread at a time."""

    name: str
    note: Note
    promises: Promises = field(default_factory=Promises)
    violations: list[Violation] = field(default_factory=list)
    told: Counter[str] = field(default_factory=Counter)
    """How many statements were accepted, refused, answered otherwise, or not answered."""
    _connection: Connection | None = None
    _open: dict[int, _Open] = field(default_factory=dict)

    def connection(self) -> Connection:
        """Returns a connection to the leader. Open transactions were lost with an earlier leader."""
        if self._connection is None or self._connection.closed:
            self.forget("its leader was gone before a COMMIT was sent")
            before = self._connection
            self._connection = self._connect()
            if before is not None and before.address != self._connection.address:
                self.promises.moved()
        return self._connection

    @abstractmethod
    def _connect(self) -> Connection:
        """To the present leader."""

    def _tables(self, connection: Connection) -> Iterable[str]:
        """Returns the tables that a refused statement must not change."""
        return [str(row["table_name"]) for row in connection.query("SELECT * FROM systables WHERE systemtable = 'false'")]

    def say(self, what: Sql | Begin | End) -> None:
        """Send one statement, or begin or end a transaction. Raises the errors of connecting."""
        match what:
            case Sql():
                self._statement(what)
            case Begin(slot):
                self._begin(slot)
            case End(slot, commit):
                self._end(slot, commit)
            case _:
                assert_never(what)

    def forget(self, why: str) -> None:
        """Record that the open transactions will not be committed."""
        for slot in tuple(self._open):
            del self._open[slot]
            self.promises.undone(slot, why)

    def hang_up(self) -> None:
        """Make the next statement look the leader up again."""
        if self._connection is not None:
            self._connection.close()

    def _statement(self, statement: Sql) -> None:
        if statement.slot != OUTSIDE and statement.slot not in self._open:
            statement = replace(statement, slot=OUTSIDE)
        if statement.slot == OUTSIDE:
            self._outside(statement)
            return
        self.connection()
        if statement.slot in self._open:
            self._execute(statement, self._open[statement.slot].transaction)

    def _outside(self, statement: Sql) -> None:
        connection = self.connection()
        before = self.contents(connection)
        refused = self._execute(statement, connection)
        if not refused or before is None or connection.closed or statement.in_parts or self.promises.doubtful:
            if statement.table == "a" and statement.adds and not refused:
                self._note_key(statement.tags[0])
            return
        after = self.contents(connection)
        if after is not None and (words := differences(before.tables, after.tables)):
            self.found(Kind.CHANGED_BY_REFUSAL, f"{statement.sql} {statement.parameters}: {words}")

    def _execute(self, statement: Sql, where: Connection | Transaction) -> bool:
        """Returns whether it was certainly refused."""
        self.promises.sent(statement)
        refused, told = False, "lost"
        try:
            if statement.sql.startswith("SELECT"):
                answer = f"{len(where.query(statement.sql, statement.parameters))} rows"
            else:
                answer = str(where.execute(statement.sql, statement.parameters))
            self.promises.accepted(statement)
            told = "accepted"
        except NotLeader as error:
            answer = self._away(statement, error)
        except ServerError as error:
            answer, refused, told = f"refused: {str(error)[:150]}", True, "refused"
            self.promises.refused(statement, str(error))
        except SqlError as error:
            answer = self._away(statement, error)
        self.told[told] += 1
        self.note(f"{self.name} {statement.slot or ''}: {statement.sql} {list(statement.parameters)} -> {answer}")
        return refused

    def _away(self, statement: Sql, error: SqlError) -> str:
        if isinstance(error, OutcomeUnknown):
            self.promises.unanswered(statement)
        else:
            self.promises.refused(statement, str(error))
        self.hang_up()
        return f"{type(error).__name__}: {str(error)[:150]}"

    def _note_key(self, tag: int) -> None:
        if self._connection is not None and not self._connection.closed:
            with suppress(SqlError):
                self.promises.keys |= {int(str(row["k"])) for row in self._connection.query("SELECT k FROM a WHERE v = ?", (tag,))}

    def _begin(self, slot: int) -> None:
        connection = self.connection()
        if slot in self._open:
            return
        block = connection.transaction()
        try:
            self._open[slot] = _Open(block, block.__enter__())
        except (NotLeader, ConnectionLost):
            self.hang_up()
            return
        except SqlError as error:
            self.note(f"{self.name} {slot}: BEGIN -> {error}")
            return
        self.promises.begin(slot)
        self.note(f"{self.name} {slot}: BEGIN -> {self._open[slot].transaction.id}")

    def _end(self, slot: int, commit: bool) -> None:
        self.connection()
        if slot not in self._open:
            return
        one = self._open.pop(slot)
        answer = "done"
        try:
            if commit:
                one.block.__exit__(None, None, None)
                self.promises.committed(slot)
            else:
                with suppress(_RolledBack):
                    one.block.__exit__(_RolledBack, _RolledBack(), None)
                self.promises.undone(slot, "its transaction was rolled back")
        except OutcomeUnknown as error:
            answer = str(error)
            self.promises.unknown(slot)
            self.hang_up()
        except SqlError as error:
            answer = f"refused: {error}"
            self.promises.undone(slot, f"its COMMIT was refused: {error}")
        self.note(f"{self.name} {slot}: {'COMMIT' if commit else 'ROLLBACK'} -> {answer}")

    def contents(self, connection: Connection) -> Contents | None:
        """Returns None if they can't be read now."""
        try:
            return Contents.of({table: connection.query(f"SELECT * FROM {table}") for table in self._tables(connection)})
        except SqlError as error:
            self.note(f"{self.name}: the rows can't be read: {error}")
            return None

    def found(self, kind: Kind, explanation: str) -> None:
        self.note(f"{self.name}: VIOLATION {kind.value}: {explanation}")
        self.violations.append(Violation(kind, self.name, explanation))
