"""PEP 249 against SQL nodes that are played by threads: who is asked, what is repeated, and what of a transaction that was lost."""

from __future__ import annotations

import os
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from typing import Any

import pytest
from test_sql_connection import Answer, chunk, error_answer, receive

from herdkeeper.codecs.java_data import JavaDataWriter
from herdkeeper.sql import connection as wire
from herdkeeper.sql import dbapi, frames
from herdkeeper.sql.frames import MessageType, TransactionCommand

HANG_UP = None
NOT_LEADER = error_answer(1, "herddb.model.NotLeaderException: not leader for tablespace")
UNIQUE_ID = 7 << 32
ALTER = "ALTER TABLE t ADD COLUMN v int"
COMMITS = pytest.mark.parametrize("commits", [ALTER, "execute /* HerdDB's */ renametable 'demo','t','u'"])
"""HerdDB plans both as the same statement, and commits the open transaction before it."""
Script = Callable[[MessageType, bytes], Answer | None]


def done(changed: int = 1, transaction: int = 0) -> Answer:
    return MessageType.EXECUTE_STATEMENT_RESULT, struct.pack(">qq", changed, transaction) + b"\x00"


def leads(kind: MessageType, body: bytes) -> Answer | None:
    """A leader that does what it is told."""
    match kind:
        case MessageType.PREPARE_STATEMENT:
            return MessageType.PREPARE_STATEMENT_RESULT, struct.pack(">q", 1)
        case MessageType.TRANSACTION_COMMAND:
            return MessageType.TRANSACTION_COMMAND_RESULT, struct.pack(">q", UNIQUE_ID)
        case MessageType.OPEN_SCANNER:
            return chunk([["a", 1], ["b", None]], last=True)
        case MessageType.EXECUTE_STATEMENTS:
            return MessageType.EXECUTE_STATEMENTS_RESULT, struct.pack(">qiqq", 0, 2, 1, 1)
        case _:
            return done(transaction=struct.unpack_from(">bq", body)[1])


def follows(kind: MessageType, body: bytes) -> Answer | None:
    """A node that does not lead."""
    return NOT_LEADER


@dataclass
class Node:
    """A played node: `script` may be exchanged while it serves."""

    address: str
    script: Script
    requests: list[tuple[MessageType, bytes]] = field(default_factory=list)

    def kinds(self) -> list[str]:
        """What it was asked, without the logins and the questions who leads."""
        quiet = (MessageType.SASL_REQUEST, MessageType.PREPARE_STATEMENT)
        return [told(kind, body) for kind, body in self.requests if kind not in quiet]


def told(kind: MessageType, body: bytes) -> str:
    return TransactionCommand(body[0]).name if kind is MessageType.TRANSACTION_COMMAND else kind.name


def once(answer: Answer | None, kind: MessageType, then: Script = leads) -> Script:
    """Answers the first request of a kind so, and all others as `then`."""
    left = [answer]

    def script(asked: MessageType, body: bytes) -> Answer | None:
        return left.pop() if left and asked is kind else then(asked, body)

    return script


def serve(stream: socket.socket, node: Node) -> None:
    with stream:
        while (request := receive(stream)) is not None:
            kind, message_id, body = MessageType(request[0]), request[1], request[2]
            node.requests.append((kind, body))
            if kind is MessageType.CLOSE_SCANNER:
                continue
            answer = (MessageType.SASL_RESPONSE, b"") if kind is MessageType.SASL_REQUEST else node.script(kind, body)
            if answer is None:
                return
            payload = struct.pack(">bbbq", 3, 2, answer[0], message_id) + answer[1]
            stream.sendall(struct.pack(">I", len(payload)) + payload)


def accept(listener: socket.socket, node: Node) -> None:
    while True:
        try:
            stream, _ = listener.accept()
        except OSError:
            return
        threading.Thread(target=serve, args=(stream, node), daemon=True).start()


@contextmanager
def played(script: Script) -> Iterator[Node]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        node = Node(f"127.0.0.1:{listener.getsockname()[1]}", script)
        threading.Thread(target=accept, args=(listener, node), daemon=True).start()
        yield node
        listener.shutdown(socket.SHUT_RDWR)


@pytest.fixture
def node() -> Iterator[Node]:
    with played(leads) as leader:
        yield leader


def connect(*nodes: Node, **options: Any) -> dbapi.Connection:
    hosts = ",".join(node.address for node in nodes)
    return dbapi.connect(hosts, "alice", "wonder", "demo", **{"failover_timeout": 120, "timeout": 120, **options})


def interrupted_in(monkeypatch: pytest.MonkeyPatch, act: Callable[[], object]) -> None:
    """Ctrl-C behind the first answer of the act."""
    receive = wire.Connection._receive

    def interrupted(*arguments: Any) -> None:
        receive(*arguments)
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(wire.Connection, "_receive", interrupted)
        act()


def test_of_several_nodes_the_one_that_leads_is_found() -> None:
    with played(follows) as follower, played(leads) as leader, connect(follower, leader) as connection:
        connection.cursor().execute("INSERT INTO t(k) VALUES(?)", [1])
    assert leader.kinds() == ["BEGIN", "EXECUTE_STATEMENT", "COMMIT"]
    assert follower.kinds() == []


def test_a_transaction_begins_with_the_first_change_and_ends_with_commit(node: Node) -> None:
    with connect(node) as connection:
        cursor = connection.cursor()
        assert cursor.execute("SELECT k, v FROM t").fetchall() == [("a", 1), ("b", None)]
        assert not connection.in_transaction
        assert cursor.execute("UPDATE t SET v=1").rowcount == 1
        assert connection.in_transaction
        connection.commit()
        assert not connection.in_transaction
    assert node.kinds() == ["OPEN_SCANNER", "BEGIN", "EXECUTE_STATEMENT", "COMMIT"]


@pytest.mark.parametrize("statement", ["SELECT k FROM t FOR UPDATE", "select k from t for update"])
def test_a_read_that_locks_is_part_of_a_transaction(node: Node, statement: str) -> None:
    with connect(node) as connection:
        connection.cursor().execute(statement)
    assert node.kinds() == ["BEGIN", "OPEN_SCANNER", "COMMIT"]


def test_all_rows_of_a_read_that_locks_are_locked_when_execute_returns(node: Node) -> None:
    """HerdDB locks each as it sends it. Who only wants the locks fetches none, and changes what others change meanwhile."""
    last = once(chunk([["b", 2]], last=True), MessageType.FETCH_SCANNER_DATA)
    node.script = once(chunk([["a", 1]], last=False), MessageType.OPEN_SCANNER, last)
    with connect(node) as connection:
        cursor = connection.cursor().execute("SELECT k, v FROM t FOR UPDATE")
        assert node.kinds() == ["BEGIN", "OPEN_SCANNER", "FETCH_SCANNER_DATA"]
        assert cursor.fetchall() == [("a", 1), ("b", 2)]


@pytest.mark.parametrize(
    ("isolation", "trailer"),
    [(dbapi.Isolation.READ_COMMITTED, b"\x04"), (dbapi.Isolation.REPEATABLE_READ, b"\x00"), ("REPEATABLE READ", b"\x00")],
)
def test_a_read_of_a_transaction_keeps_locks_where_it_must_be_repeatable(
    node: Node, isolation: dbapi.Isolation | str, trailer: bytes
) -> None:
    with connect(node) as connection:
        connection.isolation = isolation
        connection.cursor().execute("UPDATE t SET v=1")
        connection.cursor().execute("SELECT k FROM t")
    assert next(body for kind, body in node.requests if kind is MessageType.OPEN_SCANNER)[-1:] == trailer


def test_with_autocommit_nothing_begins(node: Node) -> None:
    with connect(node, autocommit=True) as connection:
        connection.cursor().execute("UPDATE t SET v=1")
    assert node.kinds() == ["EXECUTE_STATEMENT"]


def test_what_is_not_committed_is_rolled_back_on_close(node: Node) -> None:
    connection = connect(node)
    connection.cursor().execute("UPDATE t SET v=1")
    connection.close()
    connection.close()
    assert node.kinds()[-1] == "ROLLBACK"


def test_a_block_that_raises_is_rolled_back(node: Node) -> None:
    def changes_and_raises() -> None:
        with connect(node) as connection:
            connection.cursor().execute("UPDATE t SET v=1")
            raise KeyError

    with pytest.raises(KeyError):
        changes_and_raises()
    assert node.kinds()[-1] == "ROLLBACK"


@pytest.mark.parametrize("fails", [NOT_LEADER, HANG_UP], ids=["does not lead any more", "hangs up"])
def test_a_read_is_repeated_on_the_next_leader(fails: Answer | None) -> None:
    with played(leads) as old, played(leads) as new, connect(old, new) as connection:
        old.script = lambda kind, body: fails if kind is MessageType.OPEN_SCANNER else NOT_LEADER
        assert len(connection.cursor().execute("SELECT k, v FROM t").fetchall()) == 2
    assert (old.kinds(), new.kinds()) == (["OPEN_SCANNER"], ["OPEN_SCANNER"])


def test_a_change_in_autocommit_that_the_node_refuses_since_it_does_not_lead_is_repeated() -> None:
    with played(leads) as old, played(leads) as new, connect(old, new, autocommit=True) as connection:
        old.script = follows
        connection.cursor().execute("UPDATE t SET v=1")
    assert (old.kinds(), new.kinds()) == (["EXECUTE_STATEMENT"], ["EXECUTE_STATEMENT"])


def test_a_change_in_autocommit_whose_answer_is_lost_is_never_repeated(node: Node) -> None:
    with connect(node, autocommit=True) as connection:
        node.script = once(HANG_UP, MessageType.EXECUTE_STATEMENT)
        with pytest.raises(dbapi.OutcomeUnknown):
            connection.cursor().execute("UPDATE t SET v=1")
        connection.cursor().execute("UPDATE t SET v=2")
    assert node.kinds() == ["EXECUTE_STATEMENT"] * 2


def test_a_batch_in_autocommit_whose_answer_is_lost_is_never_repeated(node: Node) -> None:
    with connect(node, autocommit=True) as connection:
        node.script = once(HANG_UP, MessageType.EXECUTE_STATEMENTS)
        with pytest.raises(dbapi.OutcomeUnknown):
            connection.cursor().executemany("INSERT INTO t(k) VALUES(?)", [[number] for number in range(200)])
    assert node.kinds() == ["EXECUTE_STATEMENTS"]


def test_a_commit_whose_answer_is_lost_is_told_and_not_repeated(node: Node) -> None:
    node.script = lambda kind, body: HANG_UP if told(kind, body) == "COMMIT" else leads(kind, body)
    connection = connect(node)
    connection.cursor().execute("UPDATE t SET v=1")
    with pytest.raises(dbapi.OutcomeUnknown, match="may be durable"):
        connection.commit()
    assert not connection.in_transaction
    connection.cursor().execute("SELECT k FROM t")
    assert node.kinds() == ["BEGIN", "EXECUTE_STATEMENT", "COMMIT", "ROLLBACK", "OPEN_SCANNER"]


def test_who_looks_for_the_rows_of_a_commit_without_an_answer_does_not_look_before_it_has_ended(node: Node) -> None:
    """They would come afterwards, and those of who repeated it meanwhile, too."""
    under_way = [error_answer(0, "transaction 7 is being ended by another statement: that one gets the result")] * 2
    ended = error_answer(0, "herddb.model.StatementExecutionException: no such transaction 7 in tablespace demo")

    def script(kind: MessageType, body: bytes) -> Answer | None:
        match told(kind, body):
            case "COMMIT":
                return HANG_UP
            case "ROLLBACK":
                return under_way.pop() if under_way else ended
            case _:
                return leads(kind, body)

    node.script = script
    with connect(node) as connection:
        connection.cursor().execute("INSERT INTO t(v) VALUES(1)")
        with pytest.raises(dbapi.OutcomeUnknown):
            connection.commit()
        connection.rollback()
        connection.cursor().execute("SELECT k FROM t")
    assert node.kinds()[3:] == ["ROLLBACK", "ROLLBACK", "ROLLBACK", "OPEN_SCANNER"]


def test_a_rollback_that_waits_for_a_statement_without_an_answer_does_not_hold_up_the_connection(node: Node) -> None:
    """The statement may wait for a row's lock for half an hour, and nothing of its transaction can become durable."""
    ends_now = error_answer(0, "transaction 7 is being ended by another statement: that one gets the result")
    answers = [ends_now, HANG_UP]

    def script(kind: MessageType, body: bytes) -> Answer | None:
        match told(kind, body):
            case "EXECUTE_STATEMENT":
                return HANG_UP
            case "ROLLBACK":
                return answers.pop() if answers else ends_now
            case _:
                return leads(kind, body)

    node.script = script
    with connect(node) as connection:
        with pytest.raises(dbapi.OperationalError):
            connection.cursor().execute("UPDATE t SET v=1")
        connection.rollback()
        assert connection.cursor().execute("SELECT k, v FROM t").fetchall()
    assert node.kinds() == ["BEGIN", "EXECUTE_STATEMENT", "ROLLBACK", "ROLLBACK", "OPEN_SCANNER"]


def test_a_batch_in_autocommit_at_which_the_leader_changes_is_never_repeated() -> None:
    """The lists before the refused one are committed."""
    with played(leads) as old, played(leads) as new, connect(old, new, autocommit=True) as connection:
        old.script = follows
        with pytest.raises(dbapi.OutcomeUnknown):
            connection.cursor().executemany("UPDATE t SET v=v+? WHERE k=1", [[1], [1]])
        assert connection.cursor().executemany("UPDATE t SET v=v+? WHERE k=1", [[1], [1]]).rowcount == 2
    assert (old.kinds(), new.kinds()) == (["EXECUTE_STATEMENTS"], ["EXECUTE_STATEMENTS"])


def test_a_batch_in_autocommit_that_finds_no_leader_for_its_rest_is_not_told_to_have_had_no_effect(node: Node) -> None:
    """Who repeats it, as after any other OperationalError, would have the first lists twice."""
    connection = connect(node, autocommit=True)
    hasty = replace(connection._settings.patience, deadline_seconds=2.0)  # longer than the first batch takes
    connection._settings = replace(connection._settings, patience=hasty)
    node.script = once(leads(MessageType.EXECUTE_STATEMENTS, b""), MessageType.EXECUTE_STATEMENTS, follows)
    with pytest.raises(dbapi.OutcomeUnknown, match="what was changed before may be durable"):
        connection.cursor().executemany("INSERT INTO t(v) VALUES(?)", [["x"]] * (wire.BATCH_LISTS + 1))


@pytest.mark.parametrize(
    ("statement", "lists", "error"),
    [
        ("UPDATE t SET v=v+1", None, dbapi.OperationalError),
        ("UPDATE t SET v=v+1 WHERE k IN (SELECT k FROM u)", None, dbapi.OutcomeUnknown),
        ("INSERT INTO t VALUES(1, 2),\n(3, 4)", None, dbapi.OutcomeUnknown),
        ("INSERT INTO t VALUES(1, 2), /* and */ (3, 4)", None, dbapi.OutcomeUnknown),
        ("INSERT INTO t VALUES(1, 2) -- and\n, (3, 4)", None, dbapi.OutcomeUnknown),
        ("INSERT INTO t VALUES(?, 2), (3, 4)", [[1]], dbapi.OutcomeUnknown),
        ("UPDATE t SET v=v+1 WHERE k=?", [[1]], dbapi.OperationalError),
        ("UPDATE t SET v=v+1 WHERE k=?", [[1], [2]], dbapi.OutcomeUnknown),
    ],
)
def test_a_change_in_autocommit_whose_first_rows_may_count_is_not_told_to_have_had_no_effect(
    node: Node, statement: str, lists: Any, error: type[Exception]
) -> None:
    """It waits in vain for the lock of a row behind them."""
    refusal = error_answer(0, "herddb.utils.LockAcquireTimeoutException: timed out acquiring lock for write")
    with connect(node, autocommit=True) as connection:
        cursor = connection.cursor()
        node.script = lambda kind, body: refusal
        with pytest.raises(dbapi.OperationalError) as told:
            cursor.execute(statement) if lists is None else cursor.executemany(statement, lists)
        node.script = leads
    assert type(told.value) is error


@pytest.mark.parametrize(
    ("statement", "error"),
    [
        ("INSERT INTO t VALUES ROW(1, 2), ROW(3, 4)", dbapi.OutcomeUnknown),
        ("INSERT INTO t(v) VALUES 'a', 'b'", dbapi.OutcomeUnknown),
        ("INSERT INTO t TABLE u", dbapi.OutcomeUnknown),
        ("DELETE FROM t WHERE k IN (TABLE u)", dbapi.OutcomeUnknown),
        ("DELETE FROM t WHERE k IN (VALUES 1, 2)", dbapi.OutcomeUnknown),
        ("INSERT INTO t(k, v) VALUES(upper('a'), 'b), (SELECT')", dbapi.OperationalError),
        ("UPDATE t SET v=1, w=2 WHERE k IN (1, 2)", dbapi.OperationalError),
    ],
)
def test_several_rows_of_a_change_in_autocommit_are_seen_however_they_are_written(
    node: Node, statement: str, error: type[Exception]
) -> None:
    """Calcite, HerdDB's parser, needs no parentheses around the rows, and knows `ROW` and `TABLE`."""
    with connect(node, autocommit=True) as connection:
        node.script = lambda kind, body: error_answer(0, "herddb.utils.LockAcquireTimeoutException: timed out acquiring lock for write")
        with pytest.raises(dbapi.OperationalError) as told:
            connection.cursor().execute(statement)
        node.script = leads
    assert type(told.value) is error


@pytest.mark.parametrize(("autocommit", "error"), [(True, dbapi.OutcomeUnknown), (False, dbapi.OperationalError)])
def test_lists_whose_own_query_fails_behind_the_first_message_are_not_told_to_have_had_no_effect(
    node: Node, autocommit: bool, error: type[Exception]
) -> None:
    """Who copies rows by `executemany(statement, cursor)`, and repeats it after an OperationalError, would have the first ones twice."""
    pieces = iter([chunk([["a", 1]] * wire.BATCH_LISTS, last=False)])
    with (
        played(lambda kind, body: leads(kind, body) if kind is MessageType.PREPARE_STATEMENT else next(pieces, HANG_UP)) as source,
        connect(source) as reader,
        connect(node, autocommit=autocommit) as writer,
    ):
        rows = reader.cursor().execute("SELECT k, v FROM t")
        with pytest.raises(dbapi.OperationalError) as told:
            writer.cursor().executemany("INSERT INTO t VALUES(?, ?)", rows)
        assert type(told.value) is error
        writer.rollback()


@pytest.mark.parametrize(("fails", "error"), [(HANG_UP, dbapi.OutcomeUnknown), (NOT_LEADER, dbapi.OperationalError)])
def test_a_commit_that_failed_does_not_succeed_when_it_is_called_again(node: Node, fails: Answer | None, error: type[Exception]) -> None:
    connection = connect(node)
    connection.cursor().execute("UPDATE t SET v=1")
    node.script = once(fails, MessageType.TRANSACTION_COMMAND)
    for _ in range(3):
        with pytest.raises(dbapi.OperationalError) as told_again:
            connection.commit()
        assert type(told_again.value) is error
    connection.cursor().execute("UPDATE t SET v=2")
    connection.commit()
    connection.commit()
    assert node.kinds().count("COMMIT") == 2, "that of the next transaction counts for itself"


def test_a_commit_that_was_interrupted_does_not_succeed_when_it_is_called_again(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    connection = connect(node)
    connection.cursor().execute("UPDATE t SET v=1")
    with pytest.raises(KeyboardInterrupt):
        interrupted_in(monkeypatch, connection.commit)
    with pytest.raises(dbapi.OutcomeUnknown):
        connection.commit()
    connection.rollback()
    connection.commit()
    connection.cursor().execute("SELECT k FROM t")
    assert node.kinds()[2:] == ["COMMIT", "ROLLBACK", "OPEN_SCANNER"], "it has ended before its rows are looked for"


class TimeLimited:
    """A stream whose program has a time limit, which comes when a request was just sent, as `signal.alarm` raises it in the main thread."""

    def __init__(self, stream: socket.socket) -> None:
        self.stream = stream
        self.settimeout, self.close, self.recv, self.fileno = stream.settimeout, stream.close, stream.recv, stream.fileno

    def sendall(self, data: bytes) -> None:
        self.stream.sendall(data)
        raise TimeoutError("the program's own")


@pytest.mark.parametrize("autocommit", [True, False])
def test_what_was_sent_when_a_time_limit_of_the_program_came_may_be_durable_and_is_not_sent_again(node: Node, autocommit: bool) -> None:
    connection = connect(node, autocommit=autocommit)
    cursor = connection.cursor()
    if not autocommit:
        cursor.execute("INSERT INTO t(v) VALUES(1)")
    node.script = once(HANG_UP, MessageType.EXECUTE_STATEMENT if autocommit else MessageType.TRANSACTION_COMMAND)
    assert connection._current is not None
    connection._current._stream = TimeLimited(connection._current._stream)  # type: ignore[assignment]
    with pytest.raises(dbapi.OutcomeUnknown):
        cursor.execute("INSERT INTO t(v) VALUES(1)") if autocommit else connection.commit()


@COMMITS
def test_a_transaction_that_a_statement_may_have_committed_is_not_told_to_be_lost_as_a_whole(node: Node, commits: str) -> None:
    connection = connect(node)
    cursor = connection.cursor()
    cursor.execute("INSERT INTO t(k) VALUES('a')")
    node.script = once(HANG_UP, MessageType.EXECUTE_STATEMENT)
    for next_step in (
        lambda: cursor.execute(commits),
        lambda: cursor.execute("SELECT k FROM t"),
        connection.commit,
    ):
        with pytest.raises(dbapi.OutcomeUnknown):
            next_step()
    connection.rollback()
    assert cursor.execute("SELECT k, v FROM t").fetchall()


def test_a_transaction_that_an_interrupted_statement_may_have_committed_is_not_told_to_be_lost_as_a_whole(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    connection = connect(node)
    connection.cursor().execute("INSERT INTO t(k) VALUES('a')")
    with pytest.raises(KeyboardInterrupt):
        interrupted_in(monkeypatch, lambda: connection.cursor().execute(ALTER))
    for next_step in (lambda: connection.cursor().execute("SELECT k FROM t"), connection.commit):
        with pytest.raises(dbapi.OutcomeUnknown):
            next_step()


@COMMITS
def test_a_batch_commits_no_transaction_behind_its_back(node: Node, commits: str) -> None:
    """Its answers don't tell which transaction is open after it: a rollback would seem to undo what is durable."""
    connection = connect(node)
    connection.cursor().execute("INSERT INTO t(k) VALUES('a')")
    with pytest.raises(dbapi.NotSupportedError):
        connection.cursor().executemany(commits, [[]])
    connection.rollback()
    assert node.kinds() == ["BEGIN", "EXECUTE_STATEMENT", "ROLLBACK"]


def test_a_commit_that_the_node_refuses_since_it_does_not_lead_is_a_plain_failure(node: Node) -> None:
    connection = connect(node)
    connection.cursor().execute("UPDATE t SET v=1")
    node.script = once(NOT_LEADER, MessageType.TRANSACTION_COMMAND)
    with pytest.raises(dbapi.OperationalError) as refused:
        connection.commit()
    assert not isinstance(refused.value, dbapi.OutcomeUnknown)


def test_a_commit_that_a_leader_refuses_while_it_stops_is_told_as_one_to_repeat(node: Node) -> None:
    refusal = "herddb.model.StatementExecutionException: tablespace closed during commit of transaction 7 in tablespace demo"
    with connect(node) as connection:
        connection.cursor().execute("UPDATE t SET v=1")
        node.script = once(error_answer(0, refusal), MessageType.TRANSACTION_COMMAND)
        for _ in range(2):
            with pytest.raises(dbapi.DatabaseError, match="nothing of it was committed") as told_once:
                connection.commit()
            assert type(told_once.value) is dbapi.OperationalError
        connection.rollback()


def test_a_transaction_begins_on_the_next_leader_where_the_log_of_the_one_before_takes_nothing_any_more() -> None:
    closed = "java.util.concurrent.CompletionException: herddb.log.LogNotAvailableException: this node no longer writes tablespace demo"
    with played(leads) as old, played(leads) as new, connect(old, new) as connection:
        old.script = once(error_answer(0, closed), MessageType.TRANSACTION_COMMAND, follows)
        connection.cursor().execute("UPDATE t SET v=1")
    assert (old.kinds(), new.kinds()) == (["BEGIN"], ["BEGIN", "EXECUTE_STATEMENT", "COMMIT"])


@pytest.mark.parametrize("fails", [NOT_LEADER, HANG_UP], ids=["does not lead any more", "hangs up"])
def test_no_half_of_a_transaction_is_committed_after_its_leader_was_lost(node: Node, fails: Answer | None) -> None:
    connection = connect(node)
    cursor = connection.cursor()
    cursor.execute("UPDATE t SET v=1")
    node.script = once(fails, MessageType.EXECUTE_STATEMENT)
    with pytest.raises(dbapi.OperationalError):
        cursor.execute("UPDATE t SET v=2")
    for next_step in (lambda: cursor.execute("UPDATE t SET v=3"), lambda: cursor.execute("SELECT k FROM t"), connection.commit):
        with pytest.raises(dbapi.OperationalError, match=r"nothing of it was committed: call rollback\(\)"):
            next_step()
    connection.rollback()
    cursor.execute("UPDATE t SET v=4")
    connection.commit()
    assert node.kinds() == ["BEGIN", "EXECUTE_STATEMENT", "EXECUTE_STATEMENT", "ROLLBACK", "BEGIN", "EXECUTE_STATEMENT", "COMMIT"], (
        "the locks of the lost one are freed before the next begins"
    )


def test_where_ids_are_used_again_after_a_change_of_leader_no_lost_transaction_is_rolled_back(node: Node) -> None:
    def counts_from_1(kind: MessageType, body: bytes) -> Answer | None:
        return (
            (MessageType.TRANSACTION_COMMAND_RESULT, struct.pack(">q", 1)) if kind is MessageType.TRANSACTION_COMMAND else leads(kind, body)
        )

    node.script = counts_from_1
    connection = connect(node)
    connection.cursor().execute("UPDATE t SET v=1")
    node.script = once(HANG_UP, MessageType.EXECUTE_STATEMENT, counts_from_1)
    with pytest.raises(dbapi.OperationalError):
        connection.cursor().execute("UPDATE t SET v=2")
    connection.rollback()
    connection.cursor().execute("UPDATE t SET v=3")
    assert "ROLLBACK" not in node.kinds()


def test_a_ping_in_a_transaction_whose_connection_is_gone_loses_it(node: Node) -> None:
    connection = connect(node)
    connection.cursor().execute("UPDATE t SET v=1")
    node.script = once(HANG_UP, MessageType.PREPARE_STATEMENT)
    with pytest.raises(dbapi.OperationalError):
        connection.ping()
    with pytest.raises(dbapi.OperationalError):
        connection.commit()


def test_a_statement_that_commits_its_transaction_ends_it(node: Node) -> None:
    with connect(node) as connection:
        connection.cursor().execute("INSERT INTO t(k) VALUES('a')")
        node.script = once(done(1, 0), MessageType.EXECUTE_STATEMENT)
        connection.cursor().execute("ALTER TABLE t ADD COLUMN v int")
        assert not connection.in_transaction
    assert node.kinds() == ["BEGIN", "EXECUTE_STATEMENT", "EXECUTE_STATEMENT"]


@COMMITS
def test_a_transaction_that_a_refused_alter_table_may_have_committed_is_not_told_to_be_rolled_back(node: Node, commits: str) -> None:
    refusal = error_answer(0, "herddb.model.StatementExecutionException: java.lang.IllegalArgumentException: column v already exists")
    with connect(node) as connection:
        cursor = connection.cursor()
        cursor.execute("INSERT INTO t(k) VALUES('a')")
        node.script = once(refusal, MessageType.EXECUTE_STATEMENT)
        with pytest.raises(dbapi.OutcomeUnknown, match="column v already exists; what the transaction did before"):
            cursor.execute(commits)
        with pytest.raises(dbapi.OutcomeUnknown):
            connection.commit()
        connection.rollback()


@pytest.mark.parametrize("autocommit", [True, False])
@pytest.mark.parametrize(
    "statement",
    [
        "BEGIN TRANSACTION 'demo'",
        "/* now */ commit transaction 'demo', 7",
        "ROLLBACK TRANSACTION 'demo', 7",
        "EXECUTE COMMITTRANSACTION 'demo', 7",
        "exec begintransaction 'demo'",
        "CALL ROLLBACKTRANSACTION 'demo', 7",
    ],
)
def test_a_transaction_by_sql_is_refused_since_the_connection_would_not_know_of_it(node: Node, statement: str, autocommit: bool) -> None:
    with connect(node, autocommit=autocommit) as connection:
        for execute in (connection.cursor().execute, lambda text: connection.cursor().executemany(text, [[]])):
            with pytest.raises(dbapi.NotSupportedError, match=r"call commit\(\) or rollback\(\) of the connection"):
                execute(statement)
    assert node.kinds() == []


@pytest.mark.parametrize(
    "statement",
    [
        "/* a report */ UPDATE t SET /* when */ commit_date=1",
        "/* a note */ INSERT INTO t VALUES('*/ rollback')",
        "/* c */ " * 40 + "DELETE FROM t",
    ],
)
def test_a_statement_that_only_mentions_a_transaction_is_executed(node: Node, statement: str) -> None:
    with connect(node, autocommit=True) as connection:
        connection.cursor().execute(statement)
    assert node.kinds() == ["EXECUTE_STATEMENT"]


def test_an_alter_table_without_a_transaction_is_refused_as_itself(node: Node) -> None:
    node.script = once(error_answer(0, "herddb.model.TableDoesNotExistException: no table t"), MessageType.EXECUTE_STATEMENT)
    with connect(node) as connection:
        with pytest.raises(dbapi.ProgrammingError):
            connection.cursor().execute("ALTER TABLE t ADD COLUMN v int")
        assert not connection.in_transaction
    assert node.kinds() == ["EXECUTE_STATEMENT"]


def test_without_a_leader_it_fails_at_its_deadline() -> None:
    with played(follows) as follower, pytest.raises(dbapi.OperationalError, match=r"no leader of the tablespace 'demo' within 0\.\d+ s"):
        connect(follower, failover_timeout=0.3)


def test_a_silent_server_is_not_asked_the_same_again(node: Node) -> None:
    asked, released = threading.Event(), threading.Event()

    def silent(kind: MessageType, body: bytes) -> Answer | None:
        if kind is MessageType.OPEN_SCANNER:
            asked.set()
            released.wait(120)
        return leads(kind, body)

    connection = connect(node)
    assert connection._current is not None
    connection._current.timeout_seconds = 0.2  # of the question alone: the login may take as long as the machine lets it
    node.script = silent
    with pytest.raises(dbapi.OperationalError, match="no answer in time"):
        connection.cursor().execute("SELECT k FROM t")
    assert asked.wait(120), "the client may give up before the server's thread has read"
    released.set()
    assert node.kinds() == ["OPEN_SCANNER"]


def test_a_second_thread_on_one_connection_is_refused(node: Node) -> None:
    asked, released = threading.Event(), threading.Event()

    def slow(kind: MessageType, body: bytes) -> Answer | None:
        if kind is MessageType.OPEN_SCANNER:
            asked.set()
            released.wait(120)
        return leads(kind, body)

    with connect(node) as connection:
        node.script = slow
        rows: list[Any] = []
        first = threading.Thread(target=lambda: rows.extend(connection.cursor().execute("SELECT k, v FROM t").fetchall()))
        first.start()
        assert asked.wait(120)
        with pytest.raises(dbapi.InterfaceError, match="one connection per thread"):
            connection.cursor().execute("SELECT k FROM t")
        with pytest.raises(dbapi.InterfaceError, match="one connection per thread"):
            connection.autocommit = True
        released.set()
        first.join(120)
        assert len(rows) == 2


def test_a_child_process_uses_no_connection_of_its_parent(node: Node) -> None:
    """Both would read from one socket, each with the same numbers of requests: answers would go to the wrong one."""
    node.script = once(chunk([["a", 1]], last=False), MessageType.OPEN_SCANNER)
    with connect(node) as connection:
        cursor = connection.cursor()
        cursor.execute("UPDATE t SET v=1")
        rows = connection.cursor().execute("SELECT k, v FROM t")
        child = os.fork()
        if not child:
            refused = 0
            try:
                for act in (lambda: cursor.execute("UPDATE t SET v=2"), connection.commit, connection.rollback):
                    try:
                        act()
                    except dbapi.InterfaceError as error:
                        refused += "connect anew after a fork" in str(error)
                rows.close()
                connection.close()
                refused += 1  # neither was
            finally:
                os._exit(refused)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 4
    assert node.kinds() == ["BEGIN", "EXECUTE_STATEMENT", "OPEN_SCANNER", "CLOSE_SCANNER", "COMMIT"]


def test_a_program_that_ends_by_an_exception_leaves_no_transaction_with_its_locks(node: Node) -> None:
    program = (
        "import sys\n"
        "from herdkeeper.sql import dbapi\n"
        "connection = dbapi.connect(sys.argv[1], 'alice', 'wonder', 'demo')\n"
        "connection.cursor().execute('UPDATE t SET v=1')\n"
        "raise KeyError('of the program')\n"
    )
    ended = subprocess.run([sys.executable, "-c", program, node.address], capture_output=True, text=True, check=False)
    assert ended.stderr.endswith("KeyError: 'of the program'\n")
    assert node.kinds() == ["BEGIN", "EXECUTE_STATEMENT", "ROLLBACK"]


def test_an_interrupted_rollback_is_done_again_by_another_connection(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    with connect(node) as connection:
        connection.cursor().execute("UPDATE t SET v=1")
        with pytest.raises(KeyboardInterrupt):
            interrupted_in(monkeypatch, connection.rollback)
    assert node.kinds() == ["BEGIN", "EXECUTE_STATEMENT", "ROLLBACK", "ROLLBACK"]


def test_a_connection_that_nobody_has_any_more_does_not_wait_for_long(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    """The thread that it stops is any, and has deadlines of its own."""
    rollback, waits = wire.Transaction.rollback, []

    def told(transaction: wire.Transaction) -> None:
        waits.append(transaction._connection.timeout_seconds)
        rollback(transaction)

    connection = connect(node, timeout=60)
    connection.cursor().execute("UPDATE t SET v=1")
    monkeypatch.setattr(wire.Transaction, "rollback", told)
    del connection
    assert waits == [5]
    assert node.kinds() == ["BEGIN", "EXECUTE_STATEMENT", "ROLLBACK"]


def test_a_transaction_whose_statement_is_interrupted_ends_with_its_block(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    """The answer is lost with its connection; another one ends the transaction."""
    connection = connect(node)
    connection.cursor().execute("UPDATE t SET v=1")
    with pytest.raises(KeyboardInterrupt), connection:
        interrupted_in(monkeypatch, lambda: connection.cursor().execute("UPDATE t SET v=2"))
    assert node.kinds()[-1] == "ROLLBACK"


def test_a_request_that_is_too_large_for_a_frame_is_refused_and_nothing_of_it_sent(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frames, "MAX_FRAME_BYTES", 1000)
    node.script = once(chunk([["a", 1]], last=False), MessageType.OPEN_SCANNER)
    with connect(node) as connection:
        connection.cursor().execute("UPDATE t SET v=1")
        unread = connection.cursor().execute("SELECT k, v FROM t")
        with pytest.raises(dbapi.DataError, match="at most 1000"):
            unread.execute("UPDATE t SET v=?", ["x" * 1000])
    assert node.kinds() == ["BEGIN", "EXECUTE_STATEMENT", "OPEN_SCANNER", "CLOSE_SCANNER", "COMMIT"]


def test_rows_are_fetched_one_by_one_in_parts_and_all(node: Node) -> None:
    pieces = iter([chunk([["a", 1], ["b", 2]], last=False), chunk([["c", 3]], last=False), chunk([["d", 4], ["e", 5]], last=True)])
    node.script = lambda kind, body: (
        next(pieces) if kind in (MessageType.OPEN_SCANNER, MessageType.FETCH_SCANNER_DATA) else leads(kind, body)
    )
    with connect(node) as connection:
        cursor = connection.cursor().execute("SELECT k, v FROM t")
        assert (cursor.fetchone(), cursor.fetchmany(2)) == (("a", 1), [("b", 2), ("c", 3)])
        assert cursor.fetchmany() == [("d", 4)]
        assert (cursor.fetchall(), cursor.fetchall(), cursor.fetchone(), list(cursor)) == ([("e", 5)], [], None, [])


def test_rows_that_are_lost_with_the_connection_are_not_taken_for_the_end(node: Node) -> None:
    node.script = once(chunk([["a", 1]], last=False), MessageType.OPEN_SCANNER, once(HANG_UP, MessageType.FETCH_SCANNER_DATA))
    with connect(node) as connection:
        cursor = connection.cursor().execute("SELECT k, v FROM t")
        with pytest.raises(dbapi.OperationalError):
            cursor.fetchall()
        with pytest.raises(dbapi.ProgrammingError, match="execute a query first"):
            cursor.fetchall()


def test_rows_that_nobody_wants_are_dropped_on_the_server(node: Node) -> None:
    node.script = once(chunk([["a", 1]], last=False), MessageType.OPEN_SCANNER)
    with connect(node) as connection:
        connection.cursor().execute("SELECT k, v FROM t").close()
        connection.ping()
    assert node.kinds() == ["OPEN_SCANNER", "CLOSE_SCANNER"]


def test_a_column_is_described_by_its_first_value(node: Node) -> None:
    node.script = once(chunk([[None, None], ["b", None]], last=True), MessageType.OPEN_SCANNER)
    with connect(node) as connection:
        described = connection.cursor().execute("SELECT k, v FROM t").description
    assert described is not None
    assert described[0][0] == "k"
    assert described[0][1] == dbapi.STRING
    assert described[1][1] is None


def test_the_key_of_an_inserted_row_is_told_on_demand(node: Node) -> None:
    record = JavaDataWriter().i64(1).i64(UNIQUE_ID).v_int(2).u8(0).array(b"_key").u8(1).i64(42).to_bytes()
    node.script = once((MessageType.EXECUTE_STATEMENT_RESULT, record), MessageType.EXECUTE_STATEMENT)
    with connect(node) as connection:
        cursor = connection.cursor()
        cursor.returns_key = True
        assert cursor.execute("INSERT INTO t(v) VALUES(?)", ["x"]).lastrowid == 42
    assert next(body for kind, body in node.requests if kind is MessageType.EXECUTE_STATEMENT)[0] == 1


@pytest.mark.parametrize(
    ("value", "error", "words"),
    [
        (Decimal("1.5"), dbapi.ProgrammingError, "no decimals"),
        (time(12), dbapi.ProgrammingError, "no times of a day"),
        (object(), dbapi.ProgrammingError, "a parameter of type object"),
        (["text"], dbapi.ProgrammingError, "floats"),
        (datetime(2026, 1, 1), dbapi.DataError, "no time zone"),  # noqa: DTZ001 - that is what is refused
        (1 << 63, dbapi.DataError, "64 bits"),
        ("\ud800", dbapi.DataError, "surrogates"),
    ],
)
def test_a_value_that_herddb_does_not_have_is_refused_before_it_is_sent(node: Node, value: Any, error: type[Exception], words: str) -> None:
    with connect(node) as connection, pytest.raises(error, match=words):
        connection.cursor().execute("INSERT INTO t(k) VALUES(?)", [value])
    assert "EXECUTE_STATEMENT" not in node.kinds()


@pytest.mark.parametrize(
    "moment",
    [datetime.min.replace(tzinfo=timezone(timedelta(hours=1))), datetime.max.replace(tzinfo=timezone(timedelta(hours=-5)))],
    ids=["the first one in Berlin", "the last one in New York"],
)
def test_a_moment_that_python_could_not_read_back_is_not_stored(node: Node, moment: datetime) -> None:
    """As marks of an open beginning or end: no query of such a row could be fetched here."""
    with connect(node) as connection, pytest.raises(dbapi.DataError, match="outside of the years 1 to 9999 in UTC"):
        connection.cursor().execute("INSERT INTO t(k) VALUES(?)", [moment])
    assert "EXECUTE_STATEMENT" not in node.kinds()


def test_a_row_is_not_told_to_be_refused_where_python_has_no_value_for_one_of_its_columns(node: Node) -> None:
    """HerdDB answers with the key, and with all columns of the row."""
    record = JavaDataWriter().i64(1).i64(0).v_int(4).u8(0).array(b"_key").u8(1).i64(42).u8(0).array(b"t").u8(4).i64(10**15).to_bytes()
    node.script = once((MessageType.EXECUTE_STATEMENT_RESULT, record), MessageType.EXECUTE_STATEMENT)
    with connect(node, autocommit=True) as connection:
        cursor = connection.cursor()
        cursor.returns_key = True
        assert cursor.execute("INSERT INTO t(t) VALUES(?)", [10**15]).lastrowid == 42


@pytest.mark.parametrize(
    ("statement", "parameters"),
    [("INSERT INTO t(k) VALUES(?)", []), ("INSERT INTO t(k) VALUES(?)", [1, 2]), ("INSERT INTO t VALUES('?', `?`) -- ?", [1])],
)
def test_each_placeholder_has_its_parameter(node: Node, statement: str, parameters: list[Any]) -> None:
    with connect(node) as connection:
        for execute in (
            lambda: connection.cursor().execute(statement, parameters),
            lambda: connection.cursor().executemany(statement, [parameters]),
        ):
            with pytest.raises(dbapi.ProgrammingError, match="pass one for each"):
                execute()
    assert node.kinds() == []


@pytest.mark.parametrize("parameters", ["text", {"k": 1}, 7])
def test_parameters_are_a_sequence(node: Node, parameters: Any) -> None:
    with connect(node) as connection, pytest.raises(dbapi.ProgrammingError, match="pass a list or a tuple"):
        connection.cursor().execute("INSERT INTO t(k) VALUES(?)", parameters)


@pytest.mark.parametrize(
    ("value", "sent"),
    [
        (date(2026, 1, 2), b"\x04" + struct.pack(">q", 1767312000000)),
        (datetime(2026, 1, 2, 1, tzinfo=timezone(timedelta(hours=1))), b"\x04" + struct.pack(">q", 1767312000000)),
        (bytearray(b"ab"), b"\x03\x02ab"),
        (memoryview(b"ab"), b"\x03\x02ab"),
        ("'); DROP TABLE t; --", b"\x00\x14'); DROP TABLE t; --"),
    ],
)
def test_a_value_is_sent_beside_the_statement(node: Node, value: Any, sent: bytes) -> None:
    with connect(node) as connection:
        connection.cursor().execute("INSERT INTO t(k) VALUES(?)", [value])
    body = next(body for kind, body in node.requests if kind is MessageType.EXECUTE_STATEMENT)
    assert body.endswith(b"INSERT INTO t(k) VALUES(?)" + b"\x01" + sent)


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("herddb.model.DuplicatePrimaryKeyException: key", dbapi.IntegrityError),
        ("herddb.model.TableDoesNotExistException: no such table", dbapi.ProgrammingError),
        ("herddb.model.RecordTooBigException", dbapi.DataError),
        ('x.Y: JDBC parameter 1 has a bad type: For input string: "of a foreign key"', dbapi.ProgrammingError),
        ('x.Y: java.lang.NumberFormatException: For input string: "foreign key"', dbapi.DataError),
        ("x.Y: java.lang.IllegalArgumentException: Value foreign key cannot be converted to a Boolean", dbapi.DataError),
        ("x.Y: uncomparable objects class [B ('[B@3f') vs class herddb.utils.RawString ('foreign key')", dbapi.DataError),
        ("java.lang.IllegalStateException: whatever", dbapi.DatabaseError),
    ],
)
def test_an_error_of_the_server_is_the_exception_that_pep_249_has_for_it(node: Node, text: str, error: type[Exception]) -> None:
    node.script = once(error_answer(0, text), MessageType.EXECUTE_STATEMENT)
    with connect(node) as connection:
        with pytest.raises(dbapi.DatabaseError) as refused:
            connection.cursor().execute("INSERT INTO t(k) VALUES(?)", [1])
        assert type(refused.value) is error
        assert connection.in_transaction, "a refused statement does not end the transaction"


def test_a_transaction_that_the_server_ended_is_told_as_one_to_repeat(node: Node) -> None:
    def ended(kind: MessageType, body: bytes) -> Answer | None:
        if kind is MessageType.PREPARE_STATEMENT:
            return leads(kind, body)
        return error_answer(0, "herddb.model.StatementExecutionException: transaction 7 not found on tablespace demo")

    with connect(node) as connection:
        cursor = connection.cursor()
        cursor.execute("UPDATE t SET v=1")
        node.script = ended
        for statement in ("UPDATE t SET v=2", "ALTER TABLE t ADD COLUMN w int", None, None):
            with pytest.raises(dbapi.DatabaseError) as told_once:
                connection.commit() if statement is None else cursor.execute(statement)
            assert type(told_once.value) is dbapi.OperationalError
        node.script = leads
        connection.rollback()
        cursor.execute("UPDATE t SET v=1")
    assert node.kinds()[-3:] == ["BEGIN", "EXECUTE_STATEMENT", "COMMIT"]


@pytest.mark.parametrize(
    ("words", "error"),
    [
        ("not found on tablespace demo", dbapi.OperationalError),
        ("does not exist on tablespace demo", dbapi.OperationalError),
        ("not found on tablespace demo-0", dbapi.DatabaseError),
    ],
)
def test_a_transaction_has_ended_only_if_that_is_said_of_its_own_tablespace(node: Node, words: str, error: type[Exception]) -> None:
    """HerdDB asks the node's tablespace, which has the node's name, where a query reads no table. To repeat that would never help."""
    with connect(node) as connection:
        cursor = connection.cursor()
        cursor.execute("UPDATE t SET v=1")
        node.script = lambda kind, body: error_answer(0, f"herddb.model.StatementExecutionException: transaction 7 {words}")
        with pytest.raises(dbapi.DatabaseError) as refused:
            cursor.execute("SELECT v FROM t LIMIT 0")
        assert type(refused.value) is error
        node.script = leads


def test_what_is_closed_is_refused(node: Node) -> None:
    connection = connect(node)
    cursor = connection.cursor()
    cursor.close()
    with pytest.raises(dbapi.InterfaceError, match="the cursor is closed"):
        cursor.execute("SELECT k FROM t")
    connection.close()
    for act in (connection.cursor, connection.commit, connection.rollback, connection.ping):
        with pytest.raises(dbapi.InterfaceError, match="the connection is closed"):
            act()


def test_fetching_before_a_query_is_refused(node: Node) -> None:
    with connect(node) as connection, pytest.raises(dbapi.ProgrammingError, match="execute a query first"):
        connection.cursor().execute("UPDATE t SET v=1").fetchone()


def test_isolation_that_does_not_exist_is_refused(node: Node) -> None:
    with connect(node) as connection, pytest.raises(dbapi.DataError, match="SERIALIZABLE"):
        connection.isolation = "SERIALIZABLE"


def test_autocommit_is_not_changed_in_the_middle_of_a_transaction(node: Node) -> None:
    with connect(node) as connection:
        connection.cursor().execute("UPDATE t SET v=1")
        with pytest.raises(dbapi.ProgrammingError, match="commit or roll back first"):
            connection.autocommit = True


@pytest.mark.parametrize(
    ("host", "options", "words"),
    [
        ("", {}, "no address"),
        ("a:b", {}, "no address"),
        ("user@a", {}, "has an @"),
        ("a,,b", {}, "no address"),
        ("a", {"timeout": 0}, "timeout is 0"),
        ("a", {"pool": 1}, "no option 'pool'"),
        ("a", {"tls": False, "authorities": "pem"}, "remove one"),
        ("a", {"server_name": "db"}, "without TLS: pass authorities, or tls=True"),
    ],
)
def test_an_argument_that_can_not_be_is_refused_with_its_name(host: str, options: dict[str, Any], words: str) -> None:
    with pytest.raises(dbapi.InterfaceError, match=words):
        dbapi.connect(host, "alice", "wonder", **options)


@pytest.mark.parametrize("host", ["herddb://alice:secret@db:7000/demo", "alice:secret@db:7000", "alice:secret,very@db"])
def test_no_error_has_the_password_of_a_url_that_is_taken_for_a_host(host: str) -> None:
    with pytest.raises(dbapi.InterfaceError, match="user and password by themselves") as refused:
        dbapi.connect(host, "alice", "secret", "demo")
    assert "secret" not in str(refused.value)


def test_a_refused_login_is_told_at_once(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("test_dbapi.serve", lambda stream, node: refuse(stream))
    with pytest.raises(dbapi.OperationalError, match="refused the user 'alice'"):
        connect(node)


def refuse(stream: socket.socket) -> None:
    with stream:
        request = receive(stream)
        assert request is not None
        kind, body = error_answer(0, "authentication failed")
        payload = struct.pack(">bbbq", 3, 2, kind, request[1]) + body
        stream.sendall(struct.pack(">I", len(payload)) + payload)


def test_constructors_and_type_objects_are_those_of_pep_249() -> None:
    assert dbapi.Timestamp(2026, 1, 2, 3, 4, 5) == datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    assert dbapi.DateFromTicks(0) == dbapi.Date(1970, 1, 1)
    assert dbapi.TimeFromTicks(3600) == dbapi.Time(1, 0, 0)
    assert dbapi.TimestampFromTicks(0) == dbapi.Timestamp(1970, 1, 1)
    assert dbapi.Binary(b"a") == b"a"
    with pytest.raises(TypeError):
        dbapi.Binary(5)
    assert [kind for kind in (str, bytes, int, float, bool, datetime) if kind == dbapi.NUMBER] == [int, float, bool]
    assert dbapi.NUMBER != dbapi.STRING
    assert issubclass(dbapi.OutcomeUnknown, dbapi.OperationalError)
