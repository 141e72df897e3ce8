"""The SQL client against a node that is played by a thread: what it sends, and what it makes of answers, silence and hang-ups."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from herdkeeper.codecs.java_data import JavaDataReader, JavaDataWriter, MalformedDataError
from herdkeeper.sql import frames
from herdkeeper.sql.connection import BATCH_LISTS, FETCH_ROWS, Address, Connection, Credentials
from herdkeeper.sql.errors import (
    AuthenticationFailed,
    ConnectionLost,
    DuplicateKey,
    NoAnswer,
    NotLeader,
    OutcomeUnknown,
    ServerError,
    SqlError,
    TransactionEnded,
)
from herdkeeper.sql.frames import MessageType, Value

CREDENTIALS = Credentials("alice", "wonder")
Answer = tuple[MessageType, bytes]
Script = Callable[[int, bytes], Answer | None]
"""From a request's type and body to its answer; None hangs up."""


def error_answer(flags: int, text: str) -> Answer:
    return MessageType.ERROR, JavaDataWriter().u8(flags).array(text.encode()).to_bytes()


def exactly(stream: socket.socket, size: int) -> bytes:
    """Fewer bytes when the other end hangs up. Without MSG_WAITALL, which a socket with TLS does not take."""
    received = b""
    while len(received) < size and (part := stream.recv(size - len(received))):
        received += part
    return received


def receive(stream: socket.socket) -> tuple[int, int, bytes] | None:
    head = exactly(stream, 4)
    if len(head) < 4:
        return None
    payload = exactly(stream, struct.unpack(">I", head)[0])
    version, flags, kind, message_id = struct.unpack_from(">bbbq", payload)
    assert (version, flags) == (3, 1)
    return kind, message_id, payload[11:]


def serve(listener: socket.socket, script: Script, log: list[tuple[int, bytes]]) -> None:
    stream, _ = listener.accept()
    with stream, suppress(ConnectionResetError):  # by a client that closes with an answer unread
        while (request := receive(stream)) is not None:
            kind, message_id, body = request
            log.append((kind, body))
            if kind == MessageType.CLOSE_SCANNER:
                continue
            answer = (MessageType.SASL_RESPONSE, b"") if kind == MessageType.SASL_REQUEST else script(kind, body)
            if answer is None:
                return
            payload = struct.pack(">bbbq", 3, 2, answer[0], message_id) + answer[1]
            # An answer to another request first: the client must look at the id.
            stray = struct.pack(">bbbq", 3, 2, MessageType.ACK, message_id + 1000)
            stream.sendall(struct.pack(">I", len(stray)) + stray + struct.pack(">I", len(payload)) + payload)


@contextmanager
def node(script: Script, log: list[tuple[int, bytes]] | None = None) -> Iterator[Address]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve, args=(listener, script, [] if log is None else log), daemon=True)
        thread.start()
        yield Address("127.0.0.1", listener.getsockname()[1])
        thread.join(60)


def chunk(rows: list[list[Value]], last: bool) -> Answer:
    body = struct.pack(">q?i", 0, last, 2) + b"\x01k\x01v" + struct.pack(">i", len(rows))
    return MessageType.RESULT_SET_CHUNK, body + b"".join(frames.encode_value(value) for row in rows for value in row)


def scripted_transaction(kind: int, body: bytes) -> Answer:
    if kind == MessageType.TRANSACTION_COMMAND:
        return MessageType.TRANSACTION_COMMAND_RESULT, struct.pack(">q", 42)
    return MessageType.EXECUTE_STATEMENT_RESULT, struct.pack(">qq", 1, 42)


def scripted_long_query(kind: int, body: bytes) -> Answer:
    """More rows follow the first one."""
    return chunk([[1, "a"]], last=False) if kind == MessageType.OPEN_SCANNER else scripted_transaction(kind, body)


values = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(1 << 63), (1 << 63) - 1),
    st.floats(allow_nan=False),
    st.text(),
    st.binary(),
    st.datetimes(timezones=st.just(UTC)).map(lambda moment: moment.replace(microsecond=moment.microsecond // 1000 * 1000)),
    st.lists(st.floats(width=32, allow_nan=False)),
)


@given(values)
def test_a_parameter_is_read_back_as_the_same_value_and_type(value: Value) -> None:
    reader = JavaDataReader(frames.encode_value(value))
    decoded = frames.decode_value(reader)
    assert decoded == value
    assert type(decoded) is type(value)
    assert reader.at_end()


def test_a_timestamp_before_1970_keeps_its_milliseconds() -> None:
    moment = datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)
    assert frames.timestamp_millis(moment) == -1


def test_a_timestamp_of_another_time_zone_is_the_same_moment() -> None:
    moment = datetime(2013, 1, 1, 2, 0, tzinfo=timezone(timedelta(hours=2)))
    assert frames.timestamp_millis(moment) == frames.timestamp_millis(datetime(2013, 1, 1, tzinfo=UTC))


@pytest.mark.parametrize(
    ("value", "error", "words"),
    [
        (datetime(2013, 1, 1), ValueError, "time zone"),  # noqa: DTZ001 - that is what is refused
        (1 << 63, ValueError, "64 bits"),
        ({1: 2}, TypeError, "dict"),
    ],
)
def test_a_parameter_that_herddb_has_no_code_for_is_refused_with_its_reason(value: Value, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        frames.encode_value(value)


def test_a_truncated_value_is_malformed() -> None:
    with pytest.raises(MalformedDataError):
        frames.decode_value(JavaDataReader(frames.encode_value("text")[:-1]))


def test_authentication_is_sasl_plain() -> None:
    log: list[tuple[int, bytes]] = []
    with node(scripted_transaction, log) as address, Connection.connect(address, CREDENTIALS, timeout_seconds=60):
        pass
    assert log == [(100, b"\x05PLAIN\x0d\0alice\0wonder")]


def test_a_password_does_not_show_in_a_representation() -> None:
    assert "wonder" not in repr(CREDENTIALS)


def test_a_refused_password_is_an_authentication_error_that_names_the_user() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def refuse() -> None:
            stream, _ = listener.accept()
            with stream:
                request = receive(stream)
                assert request is not None
                answer = struct.pack(">bbbq", 3, 2, MessageType.ERROR, request[1]) + error_answer(0, "no")[1]
                stream.sendall(struct.pack(">I", len(answer)) + answer)

        thread = threading.Thread(target=refuse, daemon=True)
        thread.start()
        with pytest.raises(AuthenticationFailed, match="alice"):
            Connection.connect(Address("127.0.0.1", listener.getsockname()[1]), CREDENTIALS, timeout_seconds=60)
        thread.join(60)


def test_nobody_at_the_address_is_a_lost_connection() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = Address("127.0.0.1", listener.getsockname()[1])
    with pytest.raises(ConnectionLost, match=str(address)):
        Connection.connect(address, CREDENTIALS, timeout_seconds=60)


def test_who_hangs_up_at_once_is_a_lost_connection_also_where_the_system_refuses_its_options_then(monkeypatch: pytest.MonkeyPatch) -> None:
    """As macOS does: it would not be tried again, as by `kubectl herdkeeper sql` while the leader's pod goes."""

    def refused(*options: object) -> None:
        raise OSError(22, "Invalid argument")

    with socket.create_server(("127.0.0.1", 0)) as listener:
        monkeypatch.setattr(socket.socket, "setsockopt", refused)

        def hang_up() -> None:
            listener.accept()[0].close()

        thread = threading.Thread(target=hang_up, daemon=True)
        thread.start()
        with pytest.raises(ConnectionLost):
            Connection.connect(Address("127.0.0.1", listener.getsockname()[1]), CREDENTIALS, timeout_seconds=60)
        thread.join(60)


def test_a_timeout_must_be_positive() -> None:
    with pytest.raises(ValueError, match="timeout_seconds is 0"):
        Connection.connect(Address("127.0.0.1", 1), CREDENTIALS, timeout_seconds=0)


def test_a_result_set_is_fetched_piece_by_piece() -> None:
    pieces = [chunk([[1, "a"], [2, None]], last=False), chunk([[3, "c"]], last=True)]
    log: list[tuple[int, bytes]] = []
    with (
        node(lambda kind, body: pieces.pop(0), log) as address,
        Connection.connect(address, CREDENTIALS, "demo", timeout_seconds=60) as connection,
    ):
        assert connection.query("SELECT k, v FROM t") == [{"k": 1, "v": "a"}, {"k": 2, "v": None}, {"k": 3, "v": "c"}]
    assert [kind for kind, _ in log] == [MessageType.SASL_REQUEST, MessageType.OPEN_SCANNER, MessageType.FETCH_SCANNER_DATA]
    assert log[1][1].endswith(bytes([frames.DONT_KEEP_READ_LOCKS]))


def test_a_reader_that_stops_early_closes_the_scanner() -> None:
    log: list[tuple[int, bytes]] = []
    with (
        node(lambda kind, body: chunk([[1, "a"], [2, "b"]], last=False), log) as address,
        Connection.connect(address, CREDENTIALS, timeout_seconds=60) as connection,
    ):
        rows = connection.stream("SELECT k, v FROM t")
        assert next(rows) == {"k": 1, "v": "a"}
        rows.close()
    assert log[-1][0] == MessageType.CLOSE_SCANNER


@pytest.mark.parametrize(
    ("flags", "text", "error"),
    [
        (1, "not leader for demo", NotLeader),
        (0, "java.util.concurrent.CompletionException: herddb.model.NotLeaderException: x", NotLeader),
        (4, "java.sql.SQLIntegrityConstraintViolationException: key exists", DuplicateKey),
        (0, "java.util.concurrent.CompletionException: herddb.model.DuplicatePrimaryKeyException: key 1", DuplicateKey),
        (0, "herddb.model.TableDoesNotExistException: t\n\tat herddb.Some.where", ServerError),
        (0, 'x.Y: bad type: For input string: "herddb.model.DuplicatePrimaryKeyException: key 1"', ServerError),
        (0, 'x.Y: bad type: For input string: "herddb.model.NotLeaderException: x"', ServerError),
        (0, "java.lang.RuntimeException\n\tat x\nCaused by: herddb.model.NotLeaderException: x", NotLeader),
        (0, "x.Y: bad value: a\nherddb.model.NotLeaderException: x\n\tat x", ServerError),
        (0, "x.Y: bad value: a\n\tat x\nCaused by: herddb.model.DuplicatePrimaryKeyException: key 1", ServerError),
        (0, "x.Y: bad value: a\nx.Y: transaction 7 not found on tablespace herd", ServerError),
        (0, "x.CompletionException: x.Y: transaction 7 not found on tablespace herd\n\tat x", TransactionEnded),
        (0, "x.Y: no table transaction 7 not found on tablespace herd", ServerError),
    ],
)
def test_an_error_answer_has_the_type_that_says_what_to_do(flags: int, text: str, error: type[ServerError]) -> None:
    with (
        node(lambda kind, body: error_answer(flags, text)) as address,
        Connection.connect(address, CREDENTIALS, timeout_seconds=60) as connection,
    ):
        with pytest.raises(ServerError) as caught:
            connection.execute("INSERT INTO t VALUES(1)")
        assert type(caught.value) is error
        assert caught.value.text == text
        assert str(caught.value) == text.splitlines()[0]
        assert not connection.closed


@pytest.mark.parametrize("text", ["Index t_primary already closed", "x\nCaused by: herddb.log.LogNotAvailableException: fenced"])
def test_a_server_that_failed_while_logging_leaves_the_outcome_of_a_write_unknown(text: str) -> None:
    with (
        node(lambda kind, body: error_answer(0, text)) as address,
        Connection.connect(address, CREDENTIALS, timeout_seconds=60) as connection,
        pytest.raises(OutcomeUnknown),
    ):
        connection.execute("INSERT INTO t VALUES(1)")


def test_a_hang_up_leaves_the_outcome_of_a_write_unknown_and_of_a_read_not() -> None:
    with (
        node(lambda kind, body: None) as address,
        Connection.connect(address, CREDENTIALS, timeout_seconds=60) as connection,
        pytest.raises(OutcomeUnknown),
    ):
        connection.execute("INSERT INTO t VALUES(1)")
    with (
        node(lambda kind, body: None) as address,
        Connection.connect(address, CREDENTIALS, timeout_seconds=60) as connection,
    ):
        with pytest.raises(ConnectionLost):
            connection.query("SELECT * FROM t")
        assert connection.closed
        with pytest.raises(ConnectionLost, match="closed"):
            connection.execute("INSERT INTO t VALUES(1)")


def test_what_is_sent_to_a_node_that_hung_up_before_is_certainly_not_applied() -> None:
    """As one that restarts while a connection is idle. The system takes what is sent there."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def answer_the_login() -> None:
            stream, _ = listener.accept()
            with stream:
                request = receive(stream)
                assert request
                stream.sendall(struct.pack(">Ibbbq", 11, 3, 2, MessageType.SASL_RESPONSE, request[1]))

        thread = threading.Thread(target=answer_the_login, daemon=True)
        thread.start()
        connection = Connection.connect(Address("127.0.0.1", listener.getsockname()[1]), CREDENTIALS, timeout_seconds=60)
        thread.join(60)
        with pytest.raises(ConnectionLost, match="has closed the connection"):
            connection.execute("INSERT INTO t VALUES(1)")
        assert connection.closed


def test_a_socket_that_another_thread_has_just_closed_is_a_lost_connection() -> None:
    stream = socket.socket()
    connection = Connection(stream, Address("127.0.0.1", 1), "ts", 60)
    stream.close()
    with pytest.raises(ConnectionLost):
        connection.execute("INSERT INTO t VALUES(1)")


def test_silence_ends_with_the_timeout_and_closes_the_connection() -> None:
    silent = threading.Event()

    def wait(kind: int, body: bytes) -> Answer | None:
        silent.wait(60)
        return None

    with node(wait) as address, Connection.connect(address, CREDENTIALS, timeout_seconds=60) as connection:
        connection.timeout_seconds = 0.1  # of the call alone: the login may take as long as the machine lets it
        with pytest.raises(OutcomeUnknown, match="no answer in time"):
            connection.execute("INSERT INTO t VALUES(1)")
        assert connection.closed
        silent.set()


def test_a_transaction_commits_when_its_block_ends() -> None:
    log: list[tuple[int, bytes]] = []
    with (
        node(scripted_transaction, log) as address,
        Connection.connect(address, CREDENTIALS, "demo", timeout_seconds=60) as connection,
        connection.transaction() as transaction,
    ):
        assert transaction.id == 42
        assert transaction.execute("DELETE FROM t") == 1
    assert log[1:] == [
        (24, struct.pack(">bq", 3, 0) + b"\x04demo"),
        (5, struct.pack(">bqq", 0, 42, 0) + b"\x04demo\x0dDELETE FROM t\x00"),
        (24, struct.pack(">bq", 2, 42) + b"\x04demo"),
    ]


def test_a_transaction_that_a_lost_connection_left_open_is_ended_from_another_one() -> None:
    log: list[tuple[int, bytes]] = []
    with node(scripted_transaction, log) as address, Connection.connect(address, CREDENTIALS, "demo", timeout_seconds=60) as connection:
        connection.rollback(42)
    assert log[1:] == [(24, struct.pack(">bq", 1, 42) + b"\x04demo")]


@pytest.mark.parametrize("error", [KeyError, OutcomeUnknown])
def test_a_transaction_rolls_back_when_its_block_raises(error: type[Exception]) -> None:
    """Also if the block does not know what became of another connection's write."""
    log: list[tuple[int, bytes]] = []
    with (
        node(scripted_transaction, log) as address,
        Connection.connect(address, CREDENTIALS, timeout_seconds=60) as connection,
        pytest.raises(error),
        connection.transaction(),
    ):
        raise error
    assert [body[0] for kind, body in log if kind == MessageType.TRANSACTION_COMMAND] == [3, 1]


@pytest.mark.parametrize(
    ("refusal", "error", "commands"),
    [("no", ServerError, [3, 2, 1]), ("herddb.log.LogNotAvailableException: fenced", OutcomeUnknown, [3, 2])],
)
def test_a_transaction_whose_commit_is_refused_is_rolled_back(refusal: str, error: type[Exception], commands: list[int]) -> None:
    """Its rows would stay locked for a quarter of an hour. Where the log decides about it, nothing is left to end."""
    log: list[tuple[int, bytes]] = []

    def refuses(kind: int, body: bytes) -> Answer:
        return error_answer(0, refusal) if body[0] == 2 else scripted_transaction(kind, body)

    with (
        node(refuses, log) as address,
        Connection.connect(address, CREDENTIALS, timeout_seconds=60) as connection,
        pytest.raises(error),
        connection.transaction(),
    ):
        pass
    assert [body[0] for kind, body in log if kind == MessageType.TRANSACTION_COMMAND] == commands


def test_a_lost_answer_to_a_commit_leaves_the_outcome_unknown() -> None:
    def begin_only(kind: int, body: bytes) -> Answer | None:
        return scripted_transaction(kind, body) if body[0] == 3 else None

    with (
        node(begin_only) as address,
        Connection.connect(address, CREDENTIALS, timeout_seconds=60) as connection,
        pytest.raises(OutcomeUnknown),
        connection.transaction(),
    ):
        pass


def test_a_lost_answer_inside_a_transaction_is_a_lost_connection() -> None:
    def begin_only(kind: int, body: bytes) -> Answer | None:
        return scripted_transaction(kind, body) if kind == MessageType.TRANSACTION_COMMAND else None

    with (
        node(begin_only) as address,
        Connection.connect(address, CREDENTIALS, timeout_seconds=60) as connection,
        pytest.raises(ConnectionLost),
        connection.transaction() as transaction,
    ):
        transaction.execute("DELETE FROM t")


def test_a_batch_sends_all_parameter_lists_in_one_message_and_returns_each_count() -> None:
    log: list[tuple[int, bytes]] = []
    answer = (MessageType.EXECUTE_STATEMENTS_RESULT, struct.pack(">qiqqi", 0, 2, 1, 0, 0))
    with (
        node(lambda kind, body: answer, log) as address,
        Connection.connect(address, CREDENTIALS, "demo", timeout_seconds=60) as connection,
    ):
        assert connection.execute_batch("INSERT", [[None], [True]]) == [1, 0]
        assert connection.execute_batch("INSERT", []) == []
    assert log[1:] == [(15, struct.pack(">bqq", 0, 0, 0) + b"\x04demo\x06INSERT\x02\x01\x05\x01\x07\x01")]


def test_a_node_is_asked_whether_it_leads_by_preparing_a_statement() -> None:
    answers = [error_answer(1, "not leader for demo"), (MessageType.PREPARE_STATEMENT_RESULT, struct.pack(">q", 7))]
    with (
        node(lambda kind, body: answers.pop(0)) as address,
        Connection.connect(address, CREDENTIALS, "demo", timeout_seconds=60) as connection,
    ):
        with pytest.raises(NotLeader):
            connection.require_leader()
        connection.require_leader()


def test_another_protocol_on_the_port_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def speak_http() -> None:
            stream, _ = listener.accept()
            with stream:
                stream.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
                stream.recv(1000)

        thread = threading.Thread(target=speak_http, daemon=True)
        thread.start()
        with pytest.raises(ConnectionLost, match="is this the SQL port of a HerdDB node"):
            Connection.connect(Address("127.0.0.1", listener.getsockname()[1]), CREDENTIALS, timeout_seconds=60)
        thread.join(60)


@pytest.mark.parametrize("logins", [0, 1])
def test_an_answer_without_rows_takes_no_memory_for_the_gigabyte_that_it_announces(logins: int) -> None:
    """The operator asks SQL nodes, too, and whoever may be one must not end it."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def announce() -> None:
            stream, _ = listener.accept()
            with stream:
                for _ in range(logins):
                    request = receive(stream)
                    assert request
                    stream.sendall(struct.pack(">Ibbbq", 11, 3, 2, MessageType.SASL_RESPONSE, request[1]))
                receive(stream)
                stream.sendall(struct.pack(">I", 1 << 30))
                stream.recv(1)

        thread = threading.Thread(target=announce, daemon=True)
        thread.start()
        address = Address("127.0.0.1", listener.getsockname()[1])
        with pytest.raises(SqlError, match="a frame of 1073741824 bytes") as refused:
            Connection.connect(address, CREDENTIALS, timeout_seconds=60).execute("CREATE TABLESPACE 'x'")
        assert type(refused.value) is (OutcomeUnknown if logins else ConnectionLost)
        thread.join(60)


def test_a_large_batch_is_cut_into_messages_that_the_servers_stack_survives() -> None:
    log: list[tuple[int, bytes]] = []

    def count(kind: int, body: bytes) -> Answer:
        lists = JavaDataReader(body[17:])
        lists.array()
        lists.array()
        counts = [1] * lists.v_int()
        return MessageType.EXECUTE_STATEMENTS_RESULT, struct.pack(f">qi{len(counts)}qi", 0, len(counts), *counts, 0)

    with node(count, log) as address, Connection.connect(address, CREDENTIALS, "demo", timeout_seconds=60) as connection:
        assert connection.execute_batch("INSERT", [[number] for number in range(2 * BATCH_LISTS + 1)]) == [1] * (2 * BATCH_LISTS + 1)
    assert [kind for kind, _ in log] == [MessageType.SASL_REQUEST] + [MessageType.EXECUTE_STATEMENTS] * 3


NO_LEADER_ANY_MORE = error_answer(0, "java.util.concurrent.CompletionException: herddb.model.NotLeaderException: not leader")


@pytest.mark.parametrize(("lists", "error"), [(1, NotLeader), (2, OutcomeUnknown)])
def test_lists_before_the_one_at_which_a_node_stops_leading_may_be_durable(lists: int, error: type[Exception]) -> None:
    """The server executes them one by one, and its answer does not say at which one it stopped."""
    with node(lambda kind, body: NO_LEADER_ANY_MORE) as address, Connection.connect(address, CREDENTIALS, timeout_seconds=60) as connection:
        with pytest.raises(error) as told:
            connection.execute_batch("UPDATE t SET v=v+? WHERE k=1", [[1]] * lists)
        assert type(told.value) is error


def test_a_later_message_of_a_batch_that_is_lost_leaves_the_earlier_ones_durable() -> None:
    answers = iter([(MessageType.EXECUTE_STATEMENTS_RESULT, struct.pack(f">qi{BATCH_LISTS}q", 0, BATCH_LISTS, *[1] * BATCH_LISTS))])
    with (
        node(lambda kind, body: next(answers, NO_LEADER_ANY_MORE)) as address,
        Connection.connect(address, CREDENTIALS, timeout_seconds=60) as connection,
        pytest.raises(OutcomeUnknown),
    ):
        connection.execute_batch("INSERT INTO t(v) VALUES(?)", [[1]] * (BATCH_LISTS + 1))


def test_a_lost_answer_to_a_statement_that_commits_its_transaction_leaves_the_outcome_unknown() -> None:
    with (
        node(lambda kind, body: scripted_transaction(kind, body) if kind == MessageType.TRANSACTION_COMMAND else None) as address,
        Connection.connect(address, CREDENTIALS, timeout_seconds=60) as connection,
        pytest.raises(OutcomeUnknown),
    ):
        connection.begin().execute("/* one more */ alter table t add column v int")


def test_an_interrupt_in_the_middle_of_a_request_closes_the_connection() -> None:
    """The server would take the next request for the rest of that one, and execute a mixture of both."""

    class Interrupted:
        """Sends a part of the first request, as a large one is sent in parts, and meets Ctrl-C."""

        def __init__(self, stream: socket.socket) -> None:
            self.stream, self.interrupts = stream, [KeyboardInterrupt()]
            self.settimeout, self.close, self.recv, self.fileno = stream.settimeout, stream.close, stream.recv, stream.fileno

        def sendall(self, data: bytes) -> None:
            self.stream.sendall(data[:3] if self.interrupts else data)
            if self.interrupts:
                raise self.interrupts.pop()

    with node(scripted_transaction) as address, Connection.connect(address, CREDENTIALS, timeout_seconds=60) as connection:
        connection._stream = Interrupted(connection._stream)  # type: ignore[assignment]
        with pytest.raises(KeyboardInterrupt):
            connection.execute("INSERT INTO t(k) VALUES(?)", ["a"])
        with pytest.raises(ConnectionLost, match="is closed"):
            connection.execute("DELETE FROM t")


def test_an_interrupt_in_the_middle_of_an_answer_closes_the_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    """The rest of that answer must not be taken for the next one."""
    with node(lambda kind, body: chunk([["a", 1]], last=True)) as address, Connection.connect(address, CREDENTIALS) as connection:
        read = Connection._read

        def interrupted(self: Connection, size: int, deadline: float) -> bytes:
            read(self, 1, deadline)
            raise KeyboardInterrupt

        monkeypatch.setattr(Connection, "_read", interrupted)
        with pytest.raises(KeyboardInterrupt):
            connection.query("SELECT k, v FROM t")
        monkeypatch.undo()
        with pytest.raises(ConnectionLost, match="is closed"):
            connection.query("SELECT k, v FROM t")


def test_a_read_that_is_not_answered_in_time_is_told_apart_from_one_whose_connection_broke() -> None:
    released = threading.Event()

    def silent(kind: int, body: bytes) -> Answer | None:
        released.wait(60)
        return None

    with node(silent) as address, Connection.connect(address, CREDENTIALS, timeout_seconds=60) as connection:
        connection.timeout_seconds = 0.2
        with pytest.raises(NoAnswer):
            connection.query("SELECT k, v FROM t")
        released.set()
    with node(lambda kind, body: None) as address, Connection.connect(address, CREDENTIALS) as connection:
        with pytest.raises(ConnectionLost) as lost:
            connection.query("SELECT k, v FROM t")
        assert not isinstance(lost.value, NoAnswer)


def test_no_column_is_left_out_because_another_one_has_its_name() -> None:
    """As in `kubectl herdkeeper sql -c "SELECT a.k, b.k FROM a, b"`."""
    both = struct.pack(">q?i", 0, True, 2) + b"\x01k\x01k" + struct.pack(">i", 1) + frames.encode_value(1) + frames.encode_value(2)
    with (
        node(lambda kind, body: (MessageType.RESULT_SET_CHUNK, both)) as address,
        Connection.connect(address, CREDENTIALS, timeout_seconds=60) as connection,
    ):
        with pytest.raises(SqlError, match=r"several columns have one name \(k, k\)"):
            connection.query("SELECT a.k, b.k FROM a, b")
        assert next(connection.pieces("SELECT a.k, b.k FROM a, b")).rows == [(1, 2)]


def test_a_transaction_ends_though_not_all_rows_of_its_query_were_fetched() -> None:
    """HerdDB's COMMIT waits until each scanner of its transaction is closed."""
    log: list[tuple[int, bytes]] = []

    with node(scripted_long_query, log) as address, Connection.connect(address, CREDENTIALS, timeout_seconds=60) as connection:
        committed = connection.stream("SELECT k, v FROM t")
        next(committed)
        transaction = connection.begin()
        rows = transaction.pieces("SELECT k, v FROM t")
        assert next(rows).rows == [(1, "a")]
        transaction.commit()
        with pytest.raises(ServerError, match="ended before all rows were fetched"):
            next(rows)
        log_of_the_transaction = [kind for kind, _ in log[2:]]
        connection.rollback(42)
    assert log_of_the_transaction == [
        MessageType.TRANSACTION_COMMAND,
        MessageType.OPEN_SCANNER,
        MessageType.CLOSE_SCANNER,
        MessageType.TRANSACTION_COMMAND,
    ]
    assert log[-1][0] == MessageType.TRANSACTION_COMMAND, "the rows that are read outside of it stay"


def test_a_commit_ends_a_query_that_another_thread_drops_at_that_moment() -> None:
    """As Python's garbage collector does. The COMMIT would wait for a scanner that nobody closes before it ends."""
    log: list[tuple[int, bytes]] = []

    with node(scripted_long_query, log) as address, Connection.connect(address, CREDENTIALS, timeout_seconds=60) as connection:
        transaction = connection.begin()

        class Queries(dict[int, int]):
            def pop(self, *scanner: Any) -> Any:
                found = super().pop(*scanner)
                committing = threading.Thread(target=transaction.commit)
                committing.start()
                committing.join()
                return found

        connection._scanners = Queries()
        rows = transaction.pieces("SELECT k, v FROM t")
        next(rows)
        rows.close()
    assert [kind for kind, _ in log[3:5]] == [MessageType.CLOSE_SCANNER, MessageType.TRANSACTION_COMMAND]


def test_a_piece_that_can_not_be_read_leaves_no_scanner_on_the_server() -> None:
    log: list[tuple[int, bytes]] = []
    unreadable = struct.pack(">q?i", 0, False, 1) + b"\x01k" + struct.pack(">i", 1) + b"\x04" + struct.pack(">q", (1 << 63) - 1)
    with (
        node(lambda kind, body: (MessageType.RESULT_SET_CHUNK, unreadable), log) as address,
        Connection.connect(address, CREDENTIALS, timeout_seconds=60) as connection,
        pytest.raises(OverflowError),
    ):
        connection.query("SELECT k FROM t")
    assert log[-1][0] == MessageType.CLOSE_SCANNER


def test_an_answer_that_can_not_be_decoded_leaves_open_whether_a_write_was_applied_and_is_no_answer_to_a_query() -> None:
    rows_without_columns = struct.pack(">q?i", 0, True, 0) + struct.pack(">i", (1 << 31) - 1)
    for kind, body, error in (
        (MessageType.EXECUTE_STATEMENT_RESULT, bytes(7), OutcomeUnknown),
        (MessageType.EXECUTE_STATEMENT_RESULT, bytes(16) + b"\x01\x05", OutcomeUnknown),
        (MessageType.RESULT_SET_CHUNK, rows_without_columns, ConnectionLost),
    ):
        with (
            node(lambda asked, sent, answer=(kind, body): answer) as address,  # type: ignore[misc]
            Connection.connect(address, CREDENTIALS, timeout_seconds=60) as connection,
            pytest.raises(error),
        ):
            connection.query("SELECT k FROM t") if kind == MessageType.RESULT_SET_CHUNK else connection.execute("DELETE FROM t")


def test_a_query_that_is_dropped_in_the_middle_of_a_request_does_not_come_between_its_parts() -> None:
    """As Python's garbage collector drops one, in any thread: the server would take what is sent then for the values of a row."""
    log: list[tuple[int, bytes]] = []
    begun, drops = threading.Event(), threading.Event()

    class Slow:
        """Sends a request in two parts, as a large one is sent."""

        def __init__(self, stream: socket.socket) -> None:
            self.stream = stream
            self.settimeout, self.close, self.recv, self.fileno = stream.settimeout, stream.close, stream.recv, stream.fileno

        def sendall(self, data: bytes) -> None:
            self.stream.sendall(data[:20])
            if not begun.is_set():
                begun.set()
                drops.wait(60)
            self.stream.sendall(data[20:])

    with node(scripted_long_query, log) as address, Connection.connect(address, CREDENTIALS, timeout_seconds=60) as connection:
        rows = connection.stream("SELECT k, v FROM t")
        next(rows)
        connection._stream = Slow(connection._stream)  # type: ignore[assignment]
        writer = threading.Thread(target=connection.execute, args=("INSERT INTO t(k) VALUES(?)", ["x" * 100]))
        writer.start()
        begun.wait(60)
        rows.close()
        drops.set()
        writer.join(60)
        connection.execute("DELETE FROM t")
    kinds = [kind for kind, _ in log[2:]]
    assert kinds == [MessageType.EXECUTE_STATEMENT, MessageType.CLOSE_SCANNER, MessageType.EXECUTE_STATEMENT]
    assert log[2][1].endswith(b"x" * 100)


@pytest.mark.parametrize(("width", "rows"), [(1_000_000, 4), (100_000, 41), (10, FETCH_ROWS)])
def test_wide_rows_are_fetched_in_pieces_that_a_small_node_has_the_memory_for(width: int, rows: int) -> None:
    asked: list[int] = []

    def script(kind: int, body: bytes) -> Answer:
        asked.append(struct.unpack_from(">i", body, 16 if kind == MessageType.OPEN_SCANNER else 8)[0])
        return chunk([[1, "x" * width]] * asked[-1], last=len(asked) == 6)

    with node(script) as address, Connection.connect(address, CREDENTIALS, timeout_seconds=60) as connection:
        assert len(list(connection.stream("SELECT k, v FROM t"))) == sum(asked)
    assert asked[0] * 1_000_000 < 64 << 20, "nothing is known of the first rows: they may have a megabyte each"
    assert max(asked[1:]) == asked[-1] == rows
