"""A connection that follows the leader, and its transactions.

A transaction begins implicitly with the first changing statement; before that, reads see committed data. A statement outside a transaction
is repeated on the next leader if it certainly was not applied. A transaction never is: after the loss of its leader, each statement fails
until `rollback`, so that no half of it can be committed.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from enum import Enum
from types import TracebackType
from typing import Self, TypeVar, Unpack

from herdkeeper.sql import connection as wire
from herdkeeper.sql import errors as sql
from herdkeeper.sql.connection import Credentials, Transaction
from herdkeeper.sql.dbapi import errors
from herdkeeper.sql.dbapi.cursor import Cursor
from herdkeeper.sql.dbapi.settings import Options, Settings, settings
from herdkeeper.sql.leader import Candidates, Patience, leader_connection

T = TypeVar("T")
_UNIQUE_IDS_FROM = 1 << 32
"""HerdDB counts transactions from 1 in each leader, so after a leader change an id means another one. The SQL nodes of herdkeeper use
unique ids, from here on."""
_LAST_PATIENCE = Patience(deadline_seconds=5.0, call_seconds=5.0)
"""For `close` while it ends a lost transaction, and for any connection that the garbage collector ends."""
_ENDS_NOW = "is being ended by another statement"
"""In the answer of a SQL node of herdkeeper about a transaction whose COMMIT or ROLLBACK it executes."""


class Isolation(Enum):
    """Isolation of a transaction. In both levels, rows that it has changed are locked until its end."""

    READ_COMMITTED = "READ COMMITTED"
    REPEATABLE_READ = "REPEATABLE READ"
    """Rows that it has read are locked, too: others wait, or time out, to change them."""


@dataclass(frozen=True)
class LostTransaction:
    """A transaction that ended without an acknowledged COMMIT. Nothing of it was committed, unless it `may_be_durable`."""

    id: int
    reason: str
    may_be_durable: bool

    def error(self) -> errors.OperationalError:
        """Returns what each use of it raises."""
        if self.may_be_durable:
            return errors.OutcomeUnknown(
                f"the transaction was lost ({self.reason}) and may be durable: call rollback(), and check whether its rows exist"
            )
        return errors.OperationalError(
            f"the transaction was lost ({self.reason}) and nothing of it was committed: call rollback(), and repeat the whole transaction"
        )


def connect(host: str, user: str, password: str, database: str | None = None, **options: Unpack[Options]) -> Connection:
    """Connect to the leader of a tablespace.

    Args:
        host: the leader's Service, or the SQL nodes, `NAME:PORT,NAME:PORT`: the leader among them is found, and followed.
        user: of the database.
        password: the user's.
        database: the tablespace; by default `herd`.
        options: see `Options`.

    Raises:
        OperationalError: no leader in `failover_timeout`, or the login is refused.
        InterfaceError: an invalid argument.
    """
    try:
        chosen = settings(host, Credentials(user, password), database, options)
    except ValueError as error:
        raise errors.InterfaceError(str(error)) from error
    connection = Connection(chosen, autocommit=options.get("autocommit", False))
    connection.ping()
    return connection


class Connection:
    """Made by `connect`. Used by one thread at a time: a second one gets an InterfaceError.

    As a context manager it commits, or rolls back if the block raises, and closes.
    """

    Warning = errors.Warning
    Error = errors.Error
    InterfaceError = errors.InterfaceError
    DatabaseError = errors.DatabaseError
    DataError = errors.DataError
    OperationalError = errors.OperationalError
    OutcomeUnknown = errors.OutcomeUnknown
    IntegrityError = errors.IntegrityError
    InternalError = errors.InternalError
    ProgrammingError = errors.ProgrammingError
    NotSupportedError = errors.NotSupportedError

    def __init__(self, chosen: Settings, *, autocommit: bool) -> None:
        self._settings = chosen
        self._autocommit = autocommit
        self._isolation = Isolation.READ_COMMITTED
        self._addresses = chosen.addresses
        self._current: wire.Connection | None = None
        self._transaction: Transaction | LostTransaction | None = None
        self._lost_at_commit: LostTransaction | None = None
        """The last transaction, if its COMMIT failed."""
        self._lost: list[LostTransaction] = []
        """Those whose locks the server may still hold. The next connection ends them."""
        self._process = os.getpid()
        self._closed = False
        self._used = threading.Lock()

    def __del__(self) -> None:
        """Closes it, as a program that ends by an exception rarely does: the server would keep the transaction. Python's garbage collector
        comes here from any thread, also in the middle of another connection's request. So a silent server must not hold it up.
        """
        self.close_soon()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        try:
            if kind is None:
                self.commit()
        finally:
            self.close()

    @property
    def autocommit(self) -> bool:
        """Whether each statement commits by itself. Can't be changed while a transaction is open (ProgrammingError)."""
        return self._autocommit

    @autocommit.setter
    def autocommit(self, value: bool) -> None:
        with self._between_transactions("autocommit"):
            self._autocommit = value

    @property
    def isolation(self) -> Isolation:
        """Isolation of future transactions, also set by its name. Can't be changed while one is open (ProgrammingError)."""
        return self._isolation

    @isolation.setter
    def isolation(self, value: Isolation | str) -> None:
        with self._between_transactions("isolation"):
            self._isolation = Isolation(value)

    @property
    def in_transaction(self) -> bool:
        """Whether there is something to commit or roll back."""
        return self._transaction is not None

    @property
    def closed(self) -> bool:
        """Whether `close` was called. True in a forked child process, too. A connection that the server closed is replaced instead."""
        return self._closed or self._process != os.getpid()

    def cursor(self) -> Cursor:
        """Returns a new cursor. All share the connection's transaction."""
        self.require_open()
        return Cursor(self)

    def ping(self) -> None:
        """Check that the server still leads, and otherwise connect to the leader.

        Raises:
            OperationalError: there is no leader, or a transaction was open.
        """
        with self.alone():
            if isinstance(self._transaction, Transaction):
                self.in_open_transaction(self._transaction, lambda open_: open_.require_leader())
            else:
                self.repeated(lambda leader: leader.require_leader())

    def commit(self) -> None:
        """Make the transaction durable. Without one, do nothing; but fail again after a failure, until `rollback` or the next transaction.

        Raises:
            OutcomeUnknown: it is not known whether it is durable.
            OperationalError: it was lost before, or the server refused it: call `rollback`, and repeat the whole transaction.
        """
        with self.alone():
            transaction = self._transaction
            lost = transaction if isinstance(transaction, LostTransaction) else self._lost_at_commit
            if isinstance(transaction, Transaction):
                self._commit(transaction)
            elif lost is not None:
                raise lost.error()

    def rollback(self) -> None:
        """End the transaction without effect. Without one, do nothing."""
        with self.alone():
            transaction, self._transaction, self._lost_at_commit = self._transaction, None, None
            if isinstance(transaction, Transaction):
                self._end(transaction)

    def close(self) -> None:
        """Roll back an open transaction, and close. Idempotent. In a child process it leaves the transaction to the parent."""
        if self._closed:
            return
        if self._process == os.getpid():
            with suppress(errors.DatabaseError):
                self.rollback()
                if self._lost:
                    self._settings = replace(self._settings, patience=_LAST_PATIENCE)
                    self.ping()  # which ends them
        self._closed = True
        if self._current is not None:
            self._current.close()

    def close_soon(self) -> None:
        """Close, and wait for a silent server some seconds only."""
        if self._current is not None:
            self._current.timeout_seconds = min(self._current.timeout_seconds, _LAST_PATIENCE.call_seconds)
        self.close()

    @contextmanager
    def alone(self) -> Iterator[None]:
        """One thread uses the connection, and gets PEP 249's errors."""
        self.require_open()
        if not self._used.acquire(blocking=False):
            raise errors.InterfaceError("another thread is using this connection: use one connection per thread")
        try:
            with errors.as_pep_249():
                yield
        finally:
            self._used.release()

    def require_open(self) -> None:
        """Check that it is open, and that this process made it."""
        if self._closed:
            raise errors.InterfaceError("the connection is closed")
        if self._process != os.getpid():
            raise errors.MadeElsewhere("another process made this connection: connect anew after a fork")

    def transaction(self) -> Transaction | None:
        """Returns the transaction for a change, begun if necessary; None with autocommit. Within `alone`.

        Raises:
            OperationalError: the last one was lost, and is not rolled back yet.
        """
        if isinstance(self._transaction, LostTransaction):
            raise self._transaction.error()
        if self._transaction is None and not self._autocommit:
            self._transaction, self._lost_at_commit = self.repeated(lambda leader: leader.begin()), None
            self._transaction.keeps_read_locks = self._isolation is Isolation.REPEATABLE_READ
        return self._transaction

    def transaction_of_reads(self) -> Transaction | None:
        """The same for a read: without REPEATABLE READ, it needs no transaction of its own. Within `alone`."""
        if self._transaction is None and self._isolation is Isolation.READ_COMMITTED:
            return None
        return self.transaction()

    def repeated(self, act: Callable[[wire.Connection], T]) -> T:
        """Act outside a transaction on the leader, until it is done or refused. Within `alone`.

        It is repeated only if it certainly was not applied, and not after a silent server: it would be slow again.
        """
        patience = self._settings.patience
        deadline = time.monotonic() + patience.deadline_seconds
        for pause in patience.pauses():
            try:
                return act(self._leader(deadline - time.monotonic()))
            except (sql.NotLeader, sql.ConnectionLost) as error:
                self._drop()
                if isinstance(error, sql.NoAnswer) or time.monotonic() + pause >= deadline:
                    raise
            except sql.OutcomeUnknown:
                self._drop()
                raise
            time.sleep(pause)
        raise AssertionError("pauses have no end")

    def in_open_transaction(self, transaction: Transaction, act: Callable[[Transaction], T], *, may_commit: bool = False) -> T:
        """Act in a transaction, once. Within `alone`. `may_commit`: whether the statement may commit it, as ALTER TABLE does."""
        try:
            return act(transaction)
        except BaseException as error:
            unknown = isinstance(error, sql.OutcomeUnknown) or (may_commit and not isinstance(error, sql.SqlError))  # an interrupt
            if unknown or isinstance(error, (sql.NotLeader, sql.ConnectionLost)):
                self._transaction = self._lose(transaction, error, may_be_durable=unknown)
            raise

    def record_open(self, transaction_id: int) -> None:
        """Record which transaction the server reports as open after a statement: an ALTER TABLE commits its own."""
        if isinstance(self._transaction, Transaction) and transaction_id != self._transaction.id:
            self._transaction = None

    def _leader(self, seconds: float) -> wire.Connection:
        if self._current is None or self._current.closed:
            chosen = self._settings
            patience = replace(chosen.patience, deadline_seconds=seconds)
            self._current = leader_connection(Candidates(self._addresses), chosen.tablespace, chosen.credentials, patience)
            self._ask_first(self._current.address)
            self._end_lost(self._current)
        return self._current

    def _ask_first(self, leader: wire.Address) -> None:
        self._addresses = (leader, *(each for each in self._addresses if each != leader))

    def _drop(self) -> None:
        if self._current is not None:
            self._current.close()

    def _commit(self, transaction: Transaction) -> None:
        interrupted = LostTransaction(transaction.id, "its COMMIT was interrupted", may_be_durable=True)
        self._transaction, self._lost_at_commit = None, interrupted
        try:
            transaction.commit()
        except BaseException as error:
            if isinstance(error, sql.SqlError) and not isinstance(error, sql.OutcomeUnknown):
                self._lost_at_commit = LostTransaction(transaction.id, str(error), may_be_durable=False)
                self._end(transaction)
                raise self._lost_at_commit.error() from error
            self._lost_at_commit = self._lose(transaction, error, may_be_durable=True)
            raise
        self._lost_at_commit = None

    def _end(self, transaction: Transaction) -> None:
        """Roll back. Without a COMMIT nothing of it becomes visible, whatever the answer is, but its locks may stay."""
        try:
            transaction.rollback()
        except BaseException as error:
            if isinstance(error, sql.NotLeader) or not isinstance(error, sql.ServerError):  # an interrupt, too
                self._lose(transaction, error, may_be_durable=False)
            if not isinstance(error, sql.SqlError):
                raise

    def _lose(self, transaction: Transaction, error: BaseException, *, may_be_durable: bool) -> LostTransaction:
        lost = LostTransaction(transaction.id, str(error) or type(error).__name__, may_be_durable)
        if lost.id >= _UNIQUE_IDS_FROM:
            self._lost.append(lost)
        self._drop()
        return lost

    def _end_lost(self, leader: wire.Connection) -> None:
        """End the lost transactions: their locks would stay for a quarter of an hour. Most have ended with their leader.

        After this nothing of them is committed any more, so rows of a COMMIT without an answer exist by now, or never. An earlier ROLLBACK
        is not waited for: it may take as long as the lock for which a statement of the transaction waits.
        """
        while self._lost:
            try:
                leader.rollback(self._lost[-1].id)
            except sql.ServerError as error:
                if self._lost[-1].may_be_durable and _ENDS_NOW in error.text:
                    raise sql.ConnectionLost(f"a COMMIT without an answer is still under way: {error}") from error
            self._lost.pop()

    @contextmanager
    def _between_transactions(self, setting: str) -> Iterator[None]:
        with self.alone():
            if self._transaction is not None:
                raise errors.ProgrammingError(f"{setting} can't be changed while a transaction is open: commit or roll back first")
            yield
