"""The same connections, cursors and errors for asyncio: each connection has a thread of its own, in which its requests wait.

`await` the methods that may ask the server, and iterate by `async for`. If an `await` is cancelled, its request goes on in the thread, and
may be committed. Then the thread rolls back an open transaction, and closes the connection. Only `wait_closed`, and the end of the program,
wait for that. From the cancellation on, each other call of the connection raises OutcomeUnknown.
"""

from __future__ import annotations

import asyncio
import threading
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType
from typing import Any, Generic, Self, TypeVar, Unpack

from herdkeeper.sql.dbapi import connection as blocking
from herdkeeper.sql.dbapi import errors
from herdkeeper.sql.dbapi.connection import Isolation
from herdkeeper.sql.dbapi.cursor import Cursor as BlockingCursor
from herdkeeper.sql.dbapi.cursor import Row
from herdkeeper.sql.dbapi.settings import Options
from herdkeeper.sql.dbapi.types import Column
from herdkeeper.sql.frames import Value

T = TypeVar("T")
_of_thread = threading.local()
"""Keeps, per thread, what closes the connection of that thread at the thread's end."""


class _Blocking(Generic[T]):
    """An attribute of the blocking connection or cursor, which asks no server."""

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, of: Any, owner: type) -> T:
        found: T = getattr(of.blocking, self._name)
        return found

    def __set__(self, of: Any, value: T) -> None:
        setattr(of.blocking, self._name, value)


class _UntilItsThreadEnds:
    """Closes a connection at the end of its thread, if nobody has closed it: the event loop must not wait for the rollback.

    It does not wait for the last reference to the connection to go, which the loop may still have, such as the last call's answer.
    """

    def __init__(self, connection: blocking.Connection) -> None:
        self._connection = connection

    def __del__(self) -> None:
        if not self._connection.closed:  # as in a child process
            self._connection.close_soon()


async def connect(host: str, user: str, password: str, database: str | None = None, **options: Unpack[Options]) -> Connection:
    """Connect to the leader of a tablespace. Arguments and errors are those of `herdkeeper.sql.dbapi.connect`."""
    thread = ThreadPoolExecutor(1, "herdkeeper-sql")
    connecting = thread.submit(_connect, host, user, password, database, **options)
    try:
        return Connection(await asyncio.wrap_future(connecting), thread)
    except BaseException:
        connecting.add_done_callback(_close)
        thread.shutdown(wait=False)
        raise


class Connection:
    """Made by `connect`. Used by one task at a time: a second one gets an InterfaceError.

    As a context manager it commits, or rolls back if the block raises, and closes.
    """

    autocommit = _Blocking[bool]()
    isolation = _Blocking[Isolation]()

    def __init__(self, connection: blocking.Connection, thread: ThreadPoolExecutor) -> None:
        self.blocking = connection
        self._thread = thread
        self._used = False
        self._closing: Future[None] | None = None
        self._cancelled = False

    def __del__(self) -> None:
        """Only warns: the end of its thread rolls back, and closes."""
        if not self.closed:
            warnings.warn(f"{self!r} was not closed: use `async with`, or await close()", ResourceWarning, source=self, stacklevel=1)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        try:
            if kind is None:
                await self.commit()
        finally:
            await self.close()

    @property
    def in_transaction(self) -> bool:
        """Whether there is something to commit or roll back."""
        return self.blocking.in_transaction

    @property
    def closed(self) -> bool:
        """Whether `close` was called, or an `await` of it was cancelled; also in a child process of the one that made it."""
        return self._closing is not None or self.blocking.closed

    def cursor(self) -> Cursor:
        """Returns a new cursor. All share the connection's transaction."""
        self._require_open()
        return Cursor(self)

    async def ping(self) -> None:
        """Check that the server still leads, and otherwise connect to the leader."""
        await self.in_thread(self.blocking.ping)

    async def commit(self) -> None:
        """Make the transaction durable."""
        await self.in_thread(self.blocking.commit)

    async def rollback(self) -> None:
        """End the transaction without effect. Without one, do nothing."""
        await self.in_thread(self.blocking.rollback)

    async def close(self) -> None:
        """Roll back an open transaction, and close. Idempotent; it does not wait for what a cancelled call had sent."""
        if not self.closed:
            self._end()
            await self.wait_closed()

    async def wait_closed(self) -> None:
        """Wait until a connection that closes is closed: then what a cancelled call had sent has ended. Who looks for its rows before may
        not find those that come.

        Raises:
            InterfaceError: it is open.
        """
        if not self.closed:
            raise errors.InterfaceError("the connection is open: await close()")
        if self._closing is not None and not self.blocking.closed:  # as in a child process, which does not have the thread
            await asyncio.shield(asyncio.wrap_future(self._closing))

    async def in_thread(self, act: Callable[[], T]) -> T:
        """Act in the connection's thread, which does one thing at a time."""
        self.require_idle()
        self._used = True
        try:
            return await asyncio.wrap_future(self._thread.submit(act))
        except asyncio.CancelledError:
            self._cancelled = True
            if self._closing is None:  # another task may have closed it meanwhile
                self._end()
            raise
        finally:
            self._used = False

    def require_idle(self) -> None:
        """Check that it is open, and that no task uses it."""
        self._require_open()
        if self._used:
            raise errors.InterfaceError("another task is using this connection: use one connection per task")

    def _end(self) -> None:
        """Has the thread close the connection after what it does now, and end."""
        self._closing = self._thread.submit(self.blocking.close)
        self._thread.shutdown(wait=False)

    def _require_open(self) -> None:
        if self._cancelled:
            raise errors.OutcomeUnknown(
                "an await was cancelled, so the connection is closed: what it had sent goes on. A COMMIT, or a change with autocommit, may "
                "be committed; any other change is rolled back. Await wait_closed(), and check with another connection whether the rows "
                "exist"
            )
        if self._closing is not None:
            raise errors.InterfaceError("the connection is closed")
        self.blocking.require_open()  # a forked child process does not have the thread


class Cursor:
    """Made by `Connection.cursor`. Its attributes, and errors, are those of `herdkeeper.sql.dbapi.Cursor`."""

    description = _Blocking[list[Column] | None]()
    rowcount = _Blocking[int]()
    lastrowid = _Blocking[Value]()
    arraysize = _Blocking[int]()
    returns_key = _Blocking[bool]()
    fetch_rows = _Blocking[int]()

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.blocking: BlockingCursor = connection.blocking.cursor()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await self.close()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Row:
        row = await self.fetchone()
        if row is None:
            raise StopAsyncIteration
        return row

    async def execute(self, operation: str, parameters: Sequence[Any] = ()) -> Self:
        """Run one statement, with a value for each `?`. Returns the cursor."""
        await self.connection.in_thread(lambda: self.blocking.execute(operation, parameters))
        return self

    async def executemany(self, operation: str, seq_of_parameters: Sequence[Sequence[Any]]) -> Self:
        """Run one change with many lists of values, in few messages."""
        await self.connection.in_thread(lambda: self.blocking.executemany(operation, seq_of_parameters))
        return self

    async def fetchone(self) -> Row | None:
        """Returns the next row; None after the last one."""
        return next(iter(await self.fetchmany(1)), None)

    async def fetchmany(self, size: int | None = None) -> list[Row]:
        """Returns the next rows, at most `size`, by default `arraysize`. Rows of the piece at hand need no thread."""
        self.connection.require_idle()
        wanted = self.arraysize if size is None else size
        if self.blocking.rows_at_hand >= wanted:
            return self.blocking.fetchmany(wanted)
        return await self.connection.in_thread(lambda: self.blocking.fetchmany(wanted))

    async def fetchall(self) -> list[Row]:
        """Returns all remaining rows."""
        return await self.connection.in_thread(self.blocking.fetchall)

    async def close(self) -> None:
        """Discard the remaining rows. Idempotent."""
        if not self.connection.closed:
            await self.connection.in_thread(self.blocking.close)


def _connect(host: str, user: str, password: str, database: str | None, **options: Unpack[Options]) -> blocking.Connection:
    connection = blocking.connect(host, user, password, database, **options)
    _of_thread.end = _UntilItsThreadEnds(connection)
    return connection


def _close(connecting: Future[blocking.Connection]) -> None:
    """Closes a connection whose `connect` was cancelled, once it is made."""
    if not connecting.cancelled() and connecting.exception() is None:
        connecting.result().close()
