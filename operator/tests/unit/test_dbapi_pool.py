"""SQLAlchemy's pool without an engine, over the driver alone, as docs/connect.md shows it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy.exc import TimeoutError as NoneFree
from sqlalchemy.pool import QueuePool
from test_dbapi import HANG_UP, Node, connect, follows, leads, once, played

from herdkeeper.sql import dbapi
from herdkeeper.sql.frames import MessageType

PAGE = Path(__file__).resolve().parents[3] / "docs/connect.md"


@contextmanager
def pool_of(*nodes: Node) -> Iterator[QueuePool]:
    pool = QueuePool(lambda: connect(*nodes), pool_size=2, max_overflow=0, timeout=0.2)
    yield pool
    pool.dispose()


def change(pool: QueuePool, after: Callable[[Any], None] = lambda connection: connection.commit()) -> None:
    with closing(pool.connect()) as connection:
        connection.cursor().execute("UPDATE t SET v=1")
        after(connection)


def test_a_connection_that_comes_back_is_rolled_back_and_serves_the_next() -> None:
    with played(leads) as node, pool_of(node) as pool:
        change(pool, after=lambda _: None)
        change(pool)
        assert node.kinds() == ["BEGIN", "EXECUTE_STATEMENT", "ROLLBACK", "BEGIN", "EXECUTE_STATEMENT", "COMMIT"]
        assert [kind for kind, _ in node.requests].count(MessageType.SASL_REQUEST) == 1


def test_who_finds_none_free_is_told_after_a_while() -> None:
    with played(leads) as node, pool_of(node) as pool:
        with closing(pool.connect()), closing(pool.connect()), pytest.raises(NoneFree, match="size 2 overflow 0 reached"):
            pool.connect()
        change(pool)


def test_a_pooled_connection_whose_server_is_gone_finds_the_next_leader_in_its_next_transaction() -> None:
    with played(leads) as old, played(follows) as new, pool_of(old, new) as pool:
        change(pool)
        old.script, new.script = follows, leads
        change(pool)
        old.script, new.script = once(HANG_UP, MessageType.TRANSACTION_COMMAND, follows), leads
        change(pool)
        assert new.kinds() == ["BEGIN", "EXECUTE_STATEMENT", "COMMIT"] * 2


def test_a_commit_without_an_answer_frees_its_locks_by_the_next_use_of_the_same_connection() -> None:
    def commit_unanswered(connection: Any) -> None:
        node.script = once(HANG_UP, MessageType.TRANSACTION_COMMAND)
        with pytest.raises(dbapi.OutcomeUnknown):
            connection.commit()

    with played(leads) as node, pool_of(node) as pool:
        change(pool, after=commit_unanswered)
        change(pool)
        assert node.kinds() == ["BEGIN", "EXECUTE_STATEMENT", "COMMIT", "ROLLBACK", "BEGIN", "EXECUTE_STATEMENT", "COMMIT"]


def test_a_connection_that_was_closed_in_the_pools_back_is_replaced() -> None:
    with played(leads) as node, pool_of(node) as pool:
        change(pool, after=lambda connection: connection.dbapi_connection.close())
        change(pool)
        assert [kind for kind, _ in node.requests].count(MessageType.SASL_REQUEST) == 2


def test_the_pages_pool_is_this_one() -> None:
    (shown,) = re.findall(r"```python\n(from functools.*?)```", PAGE.read_text(), re.DOTALL)
    with played(leads) as node:
        login: dict[str, Any] = {"user": "alice", "password": "wonder", "authorities": None}
        exec(shown.replace("flights-leader.demo.svc", node.address), login)
        login["pool"].dispose()
    assert node.kinds() == ["BEGIN", "EXECUTE_STATEMENT", "COMMIT"]
