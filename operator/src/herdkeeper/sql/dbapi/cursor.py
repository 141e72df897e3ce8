"""A cursor: one statement after the other, and the rows of the last one."""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from herdkeeper.sql import connection as wire
from herdkeeper.sql import errors as sql
from herdkeeper.sql.connection import BATCH_LISTS, FETCH_ROWS, Transaction
from herdkeeper.sql.dbapi import errors
from herdkeeper.sql.dbapi.types import Column, adapted, description
from herdkeeper.sql.frames import Chunk, Executed, Value
from herdkeeper.sql.statements import alters, changes_row_by_row, changes_rows, has_rows, is_about_a_transaction, locks_rows, placeholders

if TYPE_CHECKING:
    from herdkeeper.sql.dbapi.connection import Connection

Row = tuple[Value, ...]


class Cursor:
    """Made by `Connection.cursor`. Rows are fetched in pieces, so that a large result is never completely in memory.

    `rowcount` is the number of changed rows. It is -1 for DDL and for a query, whose rows are not counted in advance. `lastrowid` is the
    primary key of the row that `execute` inserted, if `returns_key` was set before: the generated key of an `auto_increment` column.
    """

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.arraysize = 1
        self.rowcount = -1
        self.description: list[Column] | None = None
        self.lastrowid: Value = None
        self.returns_key = False
        self.fetch_rows = FETCH_ROWS
        """The most rows per piece; pieces of wide rows have fewer."""
        self._rows: deque[Row] = deque()
        self._pieces: Generator[Chunk, None, None] | None = None
        self._closed = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def __iter__(self) -> Iterator[Row]:
        return self

    def __next__(self) -> Row:
        row = self.fetchone()
        if row is None:
            raise StopIteration
        return row

    @property
    def rows_at_hand(self) -> int:
        """How many rows can be fetched without a request."""
        return len(self._rows)

    def execute(self, operation: str, parameters: Sequence[Any] = ()) -> Self:
        """Run one statement, with a value for each `?`. Returns the cursor, for direct iteration.

        Raises:
            OutcomeUnknown: with autocommit, a change whose answer was lost.
            OperationalError: nothing was applied; an open transaction is lost.
            DatabaseError: the server's refusal, as one of its subclasses.
        """
        with self._new_statement():
            _refuse_transaction(operation)
            values = adapted(parameters, placeholders(operation))
            if has_rows(operation):
                self._open(operation, values)
            else:
                with self._partly_durable(operation, earlier=False):
                    done = self._change(operation, values)
                self.rowcount, self.lastrowid = done.changed if changes_rows(operation) else -1, done.key
                self.connection.record_open(done.transaction_id)
        return self

    def executemany(self, operation: str, seq_of_parameters: Iterable[Sequence[Any]]) -> Self:
        """Run one change with many lists of values, in few messages. What the lists before a refused one have changed stays: it is
        committed with autocommit, otherwise `rollback` undoes it. Raises what `execute` raises, and NotSupportedError for a query or an
        ALTER.
        """
        with self._new_statement():
            _refuse_transaction(operation)
            if has_rows(operation) or alters(operation):
                raise errors.NotSupportedError("executemany with a query, or an ALTER: call execute for each list of parameters")
            lists, expected = iter(seq_of_parameters), placeholders(operation)
            self.rowcount = 0

            def following() -> list[list[Value]]:
                with self._partly_durable(operation, earlier=self.rowcount > 0):
                    return [adapted(parameters, expected) for parameters in islice(lists, BATCH_LISTS)]

            while part := following():
                # One message at a time: after a lost one, later lists must not pass for its rest.
                with self._partly_durable(operation, earlier=self.rowcount > 0, lists=len(part)):
                    self.rowcount += sum(self._change_many(operation, part))
        return self

    def fetchone(self) -> Row | None:
        """Returns the next row; None after the last one."""
        return next(iter(self.fetchmany(1)), None)

    def fetchmany(self, size: int | None = None) -> list[Row]:
        """Returns the next rows, at most `size`, by default `arraysize`."""
        wanted = self.arraysize if size is None else size
        with self.connection.alone():
            self._require_rows()
            found: list[Row] = []
            while len(found) < wanted and (self._rows or self._next_piece()):
                found += [self._rows.popleft() for _ in range(min(wanted - len(found), len(self._rows)))]
            return found

    def fetchall(self) -> list[Row]:
        """Returns all remaining rows."""
        with self.connection.alone():
            self._require_rows()
            found = list(self._rows)
            self._rows.clear()
            while self._next_piece():
                found += self._rows
                self._rows.clear()
            return found

    def close(self) -> None:
        """Discard the remaining rows. Idempotent."""
        self._closed = True
        if self.connection.closed:
            self._drop_rows()
        else:
            with self.connection.alone():
                self._drop_rows()

    def setinputsizes(self, sizes: Sequence[Any]) -> None:
        """Part of PEP 249; does nothing, since values have types."""

    def setoutputsize(self, size: int, column: int | None = None) -> None:
        """Part of PEP 249; does nothing, since values are never truncated."""

    @contextmanager
    def _new_statement(self) -> Iterator[None]:
        with self.connection.alone():
            self._require_open()
            self._forget()
            yield

    @contextmanager
    def _partly_durable(self, operation: str, *, earlier: bool, lists: int = 1) -> Iterator[None]:
        """With autocommit, a change that may be durable in part raises OutcomeUnknown: callers repeat after any other OperationalError. It
        may also come from a cursor whose rows are the lists of parameters.

        Args:
            operation: the change.
            earlier: whether rows were changed before the request.
            lists: how many lists of parameters the request has.
        """
        try:
            yield
        except (sql.SqlError, errors.OperationalError) as error:
            told = errors.of(error) if isinstance(error, sql.SqlError) else error
            if self.connection.autocommit and isinstance(told, errors.OperationalError):
                refused = isinstance(error, sql.ServerError) and not isinstance(error, sql.NotLeader)
                if earlier or (refused and (lists > 1 or changes_row_by_row(operation))):
                    raise sql.OutcomeUnknown(f"{error}; what was changed before may be durable") from error
            raise

    def _require_open(self) -> None:
        if self._closed:
            raise errors.InterfaceError("the cursor is closed")

    def _forget(self) -> None:
        self._drop_rows()
        self.description, self.rowcount, self.lastrowid = None, -1, None

    def _drop_rows(self) -> None:
        if self._pieces is not None:
            self._pieces.close()
        self._pieces = None
        self._rows.clear()

    def _open(self, operation: str, values: Sequence[Value]) -> None:
        locks = locks_rows(operation)

        def begin(on: wire.Connection | Transaction) -> tuple[Generator[Chunk, None, None], list[Chunk]]:
            pieces = on.pieces(operation, values, fetch_rows=self.fetch_rows)
            # HerdDB locks a row as it sends it: those of later pieces would not be locked before somebody fetches them.
            return pieces, [next(pieces), *(pieces if locks else ())]

        transaction = self.connection.transaction() if locks else self.connection.transaction_of_reads()
        found = self.connection.repeated(begin) if transaction is None else self.connection.in_open_transaction(transaction, begin)
        self._pieces, at_hand = found
        for piece in at_hand:
            self._rows.extend(piece.rows)
        self.description = description(at_hand[0].columns, at_hand[0].rows)

    def _change(self, operation: str, values: Sequence[Value]) -> Executed:
        returns_key = self.returns_key
        # An ALTER begins none: it would only commit it, and a refusal would raise OutcomeUnknown.
        begins = self.connection.in_transaction or not alters(operation)
        transaction = self.connection.transaction() if begins else None
        if transaction is None:
            return self.connection.repeated(lambda leader: leader.run(operation, values, returns_key=returns_key))
        return self.connection.in_open_transaction(
            transaction, lambda open_: open_.run(operation, values, returns_key=returns_key), may_commit=alters(operation)
        )

    def _change_many(self, operation: str, part: Sequence[Sequence[Value]]) -> list[int]:
        transaction = self.connection.transaction()
        if transaction is None:
            return self.connection.repeated(lambda leader: leader.execute_batch(operation, part))
        return self.connection.in_open_transaction(transaction, lambda open_: open_.execute_batch(operation, part))

    def _next_piece(self) -> bool:
        """Fetch the next piece. Returns whether there is one. A lost piece is not fetched again: another leader does not know the query.
        Later rows are not returned either, since they would pass for the rest.
        """
        try:
            piece = None if self._pieces is None else next(self._pieces, None)
        except BaseException:
            self._forget()
            raise
        if piece is None:
            return False
        self._rows.extend(piece.rows)
        return True

    def _require_rows(self) -> None:
        self._require_open()
        if self.description is None:
            raise errors.ProgrammingError("there are no rows: execute a query first")


def _refuse_transaction(operation: str) -> None:
    if is_about_a_transaction(operation):
        raise errors.NotSupportedError("a transaction by SQL: turn autocommit off, and call commit() or rollback() of the connection")
