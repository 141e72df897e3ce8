"""A client's repeated operations: add rows, write its register, read all registers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from herdkeeper.sql.connection import Connection, Transaction
from herdkeeper.sql.errors import OutcomeUnknown
from herdkeeper.sql.frames import Value
from herdkeeper_e2e.checker import tables
from herdkeeper_e2e.checker.operation import Add, Content, Operation, Read, Write

SIZES = (1, 3, 1, 5)
"""Numbers of rows, in turn. One row is a statement, several are a transaction."""
ROLLED_BACK_EVERY = 16
IN_TRANSACTION_EVERY = 4
"""Of the writes to a register."""
MOST_ROWS = 10
MOST_OPERATIONS = 1_000_000_000


class RolledBackError(Exception):
    """The client itself rolled back."""


class Work(Protocol):
    """One kind of operation."""

    def content(self, number: int, /) -> Content:
        """Returns what operation `number` tries."""

    def carry_out(self, connection: Connection, operation: Operation, /) -> Operation:
        """Execute it; returns the operation with its result. Raises SqlError or RolledBackError."""


@dataclass(frozen=True)
class Adding:
    """Adds rows with unique ids; `client` is unique among all adding clients."""

    client: int

    def content(self, number: int, /) -> Content:
        """1, 3, 1 or 5 rows."""
        first = (self.client * MOST_OPERATIONS + number) * MOST_ROWS
        return Add(tuple(range(first, first + SIZES[number % len(SIZES)])))

    def carry_out(self, connection: Connection, operation: Operation, /) -> Operation:
        """One INSERT, or several in a transaction that ends with an UPDATE of the last row."""
        assert isinstance(operation.content, Add)
        rows = operation.content.rows
        if len(rows) == 1:
            connection.execute(tables.INSERT_ROW, (rows[0], operation.name))
            return operation
        with connection.transaction() as transaction:
            for row in rows[:-1]:
                transaction.execute(tables.INSERT_ROW, (row, operation.name))
            transaction.execute(tables.INSERT_ROW, (rows[-1], ""))
            transaction.execute(tables.NAME_ROW, (operation.name, rows[-1]))
            if operation.number % ROLLED_BACK_EVERY == ROLLED_BACK_EVERY - 1:
                raise RolledBackError("rolled back by the client")
        return operation


@dataclass(frozen=True)
class Writing:
    """Writes growing values into its own register."""

    register: int

    def content(self, number: int, /) -> Content:
        """The next value."""
        return Write(self.register, number + 1)

    def carry_out(self, connection: Connection, operation: Operation, /) -> Operation:
        """One UPDATE, sometimes in a transaction. One that changes nothing proves too little: the register may have vanished."""
        assert isinstance(operation.content, Write)
        value, number = operation.content.value, operation.number
        known = replace(operation, ledger=_ledger(connection.query(tables.SELECT_POSITION)))
        if number % IN_TRANSACTION_EVERY != IN_TRANSACTION_EVERY - 1:
            self._update(connection, value)
            return known
        with connection.transaction() as transaction:
            self._update(transaction, value)
            if number % ROLLED_BACK_EVERY == ROLLED_BACK_EVERY - 1:
                raise RolledBackError("rolled back by the client")
        return known

    def _update(self, where: Connection | Transaction, value: int) -> None:
        if where.execute(tables.WRITE_REGISTER, (value, self.register, value)) != 1:
            raise OutcomeUnknown(f"the UPDATE to {value} changed no row")


@dataclass(frozen=True)
class Reading:
    """Reads all registers."""

    def content(self, _number: int, /) -> Content:
        """Nothing is known yet."""
        return Read({})

    def carry_out(self, connection: Connection, operation: Operation, /) -> Operation:
        """One SELECT."""
        rows = connection.query(tables.SELECT_REGISTERS)
        found = {int(str(row["register"])): int(str(row["value"])) for row in rows}
        return replace(operation, content=Read(found), ledger=_ledger(rows))


def _ledger(rows: Sequence[Mapping[str, Value]]) -> int | None:
    """Returns the ledger in which the leader has an entry. None if it has just opened one: another node may lead unnoticed."""
    return int(str(rows[0]["ledger"])) if rows and int(str(rows[0]["offset"])) >= 0 else None
