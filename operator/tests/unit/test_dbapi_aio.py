"""PEP 249 for asyncio against played SQL nodes: what runs beside what, and what a cancelled await leaves."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable
from typing import Any

import pytest
from test_dbapi import Node, Script, leads, played, told
from test_sql_connection import Answer

from herdkeeper.sql import connection as wire
from herdkeeper.sql import dbapi
from herdkeeper.sql.dbapi import aio
from herdkeeper.sql.frames import MessageType


def connect(node: Node, **options: Any) -> Any:
    return aio.connect(node.address, "alice", "wonder", "demo", **{"failover_timeout": 120, "timeout": 120, **options})


class Held:
    """A leader that answers one kind of requests only once it is let go."""

    def __init__(self, kind: str) -> None:
        self.asked, self.let_go = threading.Event(), threading.Event()
        self._kind = kind

    def script(self) -> Script:
        def answer(kind: MessageType, body: bytes) -> Answer | None:
            if told(kind, body) == self._kind:
                self.asked.set()
                assert self.let_go.wait(120)
            return leads(kind, body)

        return answer


def threads() -> list[threading.Thread]:
    """Those of connections."""
    return [thread for thread in threading.enumerate() if thread.name.startswith("herdkeeper-sql")]


def noted_rollbacks(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The threads that will have rolled back."""
    rollback, by = wire.Transaction.rollback, []

    def noted(transaction: wire.Transaction) -> None:
        by.append(threading.get_ident())
        rollback(transaction)

    monkeypatch.setattr(wire.Transaction, "rollback", noted)
    return by


def end_of_threads() -> None:
    """Waits until all connections have closed."""
    for thread in threads():
        thread.join(120)
    assert threads() == []


async def until(happened: Callable[[], bool]) -> None:
    async with asyncio.timeout(120):
        while not happened():
            await asyncio.sleep(0.01)


async def cancelled(call: Any, held: Held) -> None:
    """Cancels a call once its request has arrived."""
    task = asyncio.ensure_future(call)
    await until(held.asked.is_set)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


def test_statements_are_awaited_and_rows_iterated() -> None:
    async def program(node: Node) -> None:
        async with await connect(node) as connection, connection.cursor() as cursor:
            assert (await cursor.execute("UPDATE t SET v=?", [1])).rowcount == 1
            assert connection.in_transaction
            assert [row async for row in await cursor.execute("SELECT k, v FROM t")] == [("a", 1), ("b", None)]
            assert [column[0] for column in cursor.description] == ["k", "v"]
            await cursor.executemany("INSERT INTO t VALUES(?,?)", [[1, 2], [3, 4]])
        assert connection.closed

    with played(leads) as node:
        asyncio.run(program(node))
        assert node.kinds() == ["BEGIN", "EXECUTE_STATEMENT", "OPEN_SCANNER", "EXECUTE_STATEMENTS", "COMMIT"]


def test_a_block_that_raises_rolls_back_and_ends_its_thread() -> None:
    async def divided(connection: aio.Connection) -> None:
        async with connection:
            await connection.cursor().execute("UPDATE t SET v=1")
            raise ZeroDivisionError

    async def program(node: Node) -> None:
        connection = await connect(node)
        with pytest.raises(ZeroDivisionError):
            await divided(connection)
        with pytest.raises(dbapi.InterfaceError, match="the connection is closed"):
            connection.cursor()
        await connection.close()

    with played(leads) as node:
        asyncio.run(program(node))
        assert node.kinds() == ["BEGIN", "EXECUTE_STATEMENT", "ROLLBACK"]
        end_of_threads()


def test_rows_at_hand_need_no_thread() -> None:
    async def program(node: Node) -> list[Any]:
        async with await connect(node) as connection:
            cursor = await connection.cursor().execute("SELECT k, v FROM t")
            connection._thread.submit(held.wait, 120)  # what needs the thread from here on waits
            rows = await asyncio.wait_for(cursor.fetchmany(1), 60)
            held.set()
            return [*rows, *await cursor.fetchall(), *await cursor.fetchall()]

    held = threading.Event()
    with played(leads) as node:
        assert asyncio.run(program(node)) == [("a", 1), ("b", None)]


def test_connections_wait_beside_one_another_and_beside_the_loop() -> None:
    async def program(slow: Node, quick: Node) -> None:
        async with await connect(slow, autocommit=True) as first, await connect(quick, autocommit=True) as second:
            waiting = asyncio.ensure_future(first.cursor().execute("UPDATE t SET v=1"))
            await until(held.asked.is_set)
            await second.cursor().execute("UPDATE t SET v=2")
            with pytest.raises(dbapi.InterfaceError, match="another task is using this connection"):
                await first.ping()
            assert not waiting.done()
            held.let_go.set()
            await waiting

    held = Held("EXECUTE_STATEMENT")
    with played(held.script()) as slow, played(leads) as quick:
        asyncio.run(program(slow, quick))


def test_a_cancelled_statement_is_rolled_back_with_its_transaction_once_it_is_answered() -> None:
    async def program(node: Node) -> None:
        async with await connect(node) as connection:
            cursor = connection.cursor()
            await cancelled(cursor.execute("UPDATE t SET v=1"), held)
            assert connection.closed
            with pytest.raises(dbapi.OutcomeUnknown, match="an await was cancelled"):
                await cursor.fetchone()
            await asyncio.wait_for(connection.close(), 10)
            held.let_go.set()
            await until(lambda: node.kinds()[-1] == "ROLLBACK")
            with pytest.raises(dbapi.OutcomeUnknown):
                await connection.commit()
            raise TimeoutError

    held = Held("EXECUTE_STATEMENT")
    with played(held.script()) as node:
        with pytest.raises(TimeoutError):
            asyncio.run(program(node))
        assert node.kinds() == ["BEGIN", "EXECUTE_STATEMENT", "ROLLBACK"]


def test_a_cancelled_commit_goes_on_and_leaving_the_block_tells_that_its_outcome_is_unknown() -> None:
    async def program(node: Node) -> None:
        async with await connect(node) as connection:
            await connection.cursor().execute("UPDATE t SET v=1")
            await cancelled(connection.commit(), held)

    held = Held("COMMIT")
    with played(held.script()) as node:
        with pytest.raises(dbapi.OutcomeUnknown):
            asyncio.run(program(node))
        held.let_go.set()
        end_of_threads()
        assert node.kinds() == ["BEGIN", "EXECUTE_STATEMENT", "COMMIT"]


def test_who_looks_for_the_rows_of_a_cancelled_commit_can_wait_until_it_has_ended() -> None:
    """They would come afterwards, and those of who repeated it meanwhile, too."""

    async def program(node: Node) -> None:
        connection = await connect(node)
        with pytest.raises(dbapi.InterfaceError, match="the connection is open"):
            await connection.wait_closed()
        await connection.cursor().execute("UPDATE t SET v=1")
        await cancelled(connection.commit(), held)
        with pytest.raises(dbapi.OutcomeUnknown, match=r"Await wait_closed\(\), and check with another connection"):
            await connection.ping()
        ended = asyncio.ensure_future(connection.wait_closed())
        await connection.close()
        assert not ended.done()
        held.let_go.set()
        await ended
        assert connection.blocking.closed
        await connection.wait_closed()

    held = Held("COMMIT")
    with played(held.script()) as node:
        asyncio.run(program(node))


def test_a_call_that_is_cancelled_while_another_task_closes_the_connection_ends_as_cancelled() -> None:
    async def program(node: Node) -> None:
        connection = await connect(node)
        await connection.cursor().execute("UPDATE t SET v=1")
        commit = asyncio.ensure_future(connection.commit())
        await until(held.asked.is_set)
        closing = asyncio.ensure_future(connection.close())
        await until(lambda: connection.closed)
        commit.cancel()
        with pytest.raises(asyncio.CancelledError):
            await commit
        held.let_go.set()
        await closing

    held = Held("COMMIT")
    with played(held.script()) as node:
        asyncio.run(program(node))
        end_of_threads()


def test_a_connection_that_nobody_closes_is_rolled_back_by_its_thread_and_warns(monkeypatch: pytest.MonkeyPatch) -> None:
    """The event loop must not wait for the server meanwhile."""

    async def program(node: Node) -> threading.Thread:
        connection = await connect(node)
        await connection.cursor().execute("UPDATE t SET v=1")
        return await asyncio.wrap_future(connection._thread.submit(threading.current_thread))

    by = noted_rollbacks(monkeypatch)
    with played(leads) as node:
        with pytest.warns(ResourceWarning, match="was not closed"):
            thread = asyncio.run(program(node))
        thread.join(120)
        assert by == [thread.ident]
        assert node.kinds() == ["BEGIN", "EXECUTE_STATEMENT", "ROLLBACK"]


@pytest.mark.filterwarnings("ignore:.*was not closed:ResourceWarning")
def test_what_its_last_call_left_does_not_keep_the_rollback_from_its_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """The event loop still has the call's answer."""

    async def program(node: Node) -> threading.Thread:
        connection = await connect(node)
        cursor = connection.cursor()
        await cursor.execute("UPDATE t SET v=1")
        (thread,) = threads()
        del connection, cursor
        thread.join(60)
        return thread

    by = noted_rollbacks(monkeypatch)
    with played(leads) as node:
        thread = asyncio.run(program(node))
        assert by == [thread.ident]


def test_a_child_process_does_not_wait_for_the_thread_of_its_parent() -> None:
    async def refused(connection: aio.Connection, cursor: aio.Cursor) -> int:
        found = 0
        try:
            await asyncio.wait_for(connection.ping(), 20)
        except dbapi.InterfaceError as error:
            found += "connect anew after a fork" in str(error)
        for closed in (cursor, connection):
            await asyncio.wait_for(closed.close(), 20)
            found += 1
        return found

    async def connected(node: Node) -> tuple[aio.Connection, aio.Cursor]:
        connection: aio.Connection = await connect(node)
        return connection, await connection.cursor().execute("SELECT k, v FROM t")

    with played(leads) as node:
        connection, cursor = asyncio.run(connected(node))
        child = os.fork()
        if not child:
            found = 0
            try:
                found = asyncio.run(refused(connection, cursor))
            finally:
                os._exit(found)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 3
        asyncio.run(connection.close())


def test_a_cancelled_connect_leaves_no_connection() -> None:
    async def program(node: Node) -> None:
        await cancelled(connect(node), held)

    held = Held("PREPARE_STATEMENT")
    with played(held.script()) as node:
        asyncio.run(program(node))
        held.let_go.set()
        end_of_threads()


def test_what_connect_refuses_it_refuses_here_too() -> None:
    with pytest.raises(dbapi.InterfaceError, match="connect has no option 'colour'"):
        asyncio.run(aio.connect("nobody", "alice", "wonder", colour="red"))  # type: ignore[call-arg]
