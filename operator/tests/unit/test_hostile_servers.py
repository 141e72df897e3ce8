"""Servers that answer the operator with ill will: too slowly, too much, or with the way to somebody else. Each has a socket."""

from __future__ import annotations

import itertools
import queue
import socket
import struct
import threading
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, suppress

import pytest
from followed_lines import LONG, followed
from test_sql_connection import CREDENTIALS, Answer, node

from herdkeeper.bookkeeper.execute import BookieAdmin
from herdkeeper.clients import bounded_http, zookeeper_member
from herdkeeper.clients.bounded_http import Question, TooLargeError, ask, follow
from herdkeeper.clients.http import JsonReader
from herdkeeper.clients.kubernetes_writer import RefusedError
from herdkeeper.clients.liveness import NodeLiveness
from herdkeeper.clients.look import look, require_time
from herdkeeper.clients.zookeeper_member import MOST_BYTES, MemberSession
from herdkeeper.engine.key import Key
from herdkeeper.herddb.execute.node_orders import NodeOrders
from herdkeeper.herddb.tablespace import observe_restore
from herdkeeper.herddb.tablespace.observe_restore import told_progress
from herdkeeper.herddb.tablespace.state import RestoreProgress
from herdkeeper.process.node_streams import NodeStreams
from herdkeeper.shared.unknown import NotListening, Unknown
from herdkeeper.sql import frames
from herdkeeper.sql.connection import Connection
from herdkeeper.sql.errors import ConnectionLost
from herdkeeper.sql.frames import MessageType

SHORT = 0.3
OK = b"HTTP/1.1 200 OK\r\n"
Serve = Callable[[socket.socket], None]


class Servers:
    """Servers of this machine, each of which does one thing with each connection."""

    def __init__(self, ends: ExitStack) -> None:
        self._ends = ends

    def serve(self, behave: Serve) -> str:
        """Its `host:port`."""
        listening = self._ends.enter_context(socket.create_server(("127.0.0.1", 0)))

        def accept() -> None:
            with suppress(OSError):
                while True:
                    connection, _ = listening.accept()
                    threading.Thread(target=work, args=(connection,), daemon=True).start()

        def work(connection: socket.socket) -> None:
            with connection, suppress(OSError):
                behave(connection)

        self._ends.callback(listening.shutdown, socket.SHUT_RDWR)
        threading.Thread(target=accept, daemon=True).start()
        return f"127.0.0.1:{listening.getsockname()[1]}"


@pytest.fixture
def servers(monkeypatch: pytest.MonkeyPatch) -> Iterator[Servers]:
    monkeypatch.setattr("herdkeeper.clients.http.ANSWER_SECONDS", LONG)
    with ExitStack() as ends:
        yield Servers(ends)


def dripping(connection: socket.socket, begin: bytes) -> None:
    """Each byte comes in time, and the answer never ends."""
    connection.recv(4096)
    connection.sendall(begin)
    for _ in itertools.count():
        connection.sendall(b" ")
        threading.Event().wait(SHORT / 10)


@pytest.mark.parametrize(
    "begin",
    [b"HTTP/1.1 200 ", OK + b"X: ", OK + b"\r\n", OK + b"Content-Length: 999\r\n\r\n", OK + b"Transfer-Encoding: chunked\r\n\r\nffff\r\n"],
    ids=["in the status", "in a header", "without a length", "below its length", "in a chunk"],
)
def test_a_server_that_drips_its_answer_is_given_up_when_the_time_of_the_whole_is_over(servers: Servers, begin: bytes) -> None:
    address = servers.serve(lambda connection: dripping(connection, begin))
    with pytest.raises(TimeoutError):
        ask(Question("GET", f"http://{address}/", SHORT, {}))


def endless(connection: socket.socket, begin: bytes) -> None:
    connection.recv(4096)
    connection.sendall(begin)
    while True:
        connection.sendall(b"x" * 65536)


@pytest.mark.parametrize(
    "begin",
    [OK + b"\r\n", OK + b"Content-Length: 99999999999999\r\n\r\n", OK + b"Transfer-Encoding: chunked\r\n\r\nffffffffffff\r\n"],
    ids=["without a length", "with a length", "in one chunk"],
)
def test_an_answer_without_end_is_given_up_at_its_most_bytes(servers: Servers, begin: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounded_http, "MOST_BYTES", 1 << 20)
    address = servers.serve(lambda connection: endless(connection, begin))
    with pytest.raises(TooLargeError):
        ask(Question("GET", f"http://{address}/", LONG, {}))


def test_a_line_without_end_is_given_up_at_its_most_bytes(servers: Servers) -> None:
    address = servers.serve(lambda connection: endless(connection, OK + b"\r\nalive "))
    with closing(follow(f"http://{address}/alive", LONG, None)) as stream, pytest.raises(TooLargeError):
        next(followed(stream))


def test_a_line_that_drips_is_given_up_as_silence_is(servers: Servers, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("herdkeeper.process.node_streams.SILENCE_SECONDS", SHORT)
    address = servers.serve(lambda connection: dripping(connection, OK + b"\r\nalive\n"))
    lost: queue.Queue[Key] = queue.Queue()
    liveness = NodeLiveness()
    streams = NodeStreams(lost.put, lost.put, liveness, lambda _: follow(f"http://{address}/alive", LONG, None))
    streams.pod(
        Key("HerdDBCluster", "demo", "db"), {"metadata": {"uid": "a", "name": "db-herddb-0"}, "status": {"podIP": "10.0.0.1"}}, over=False
    )
    assert lost.get(timeout=LONG)
    assert liveness.silent_seconds("a") is not None
    streams.stop()


def test_each_line_of_a_stream_has_its_own_time_and_size(servers: Servers, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounded_http, "MOST_LINE_BYTES", 20_000)

    def tell(connection: socket.socket) -> None:
        connection.recv(4096)
        connection.sendall(OK + b"\r\n")
        for _ in range(1000):
            connection.sendall(b"a" * 99 + b"\n")

    address = servers.serve(tell)
    with closing(follow(f"http://{address}/alive", LONG, None)) as stream:
        assert [*itertools.islice(followed(stream), 1000)] == [b"a" * 99 + b"\n"] * 1000


def test_no_redirect_is_followed_so_no_token_is_carried_to_somebody_else(servers: Servers) -> None:
    got: list[bytes] = []

    def take(connection: socket.socket) -> None:
        got.append(connection.recv(4096))
        connection.sendall(OK + b"Content-Length: 2\r\n\r\n{}")

    thief = servers.serve(take)

    def redirect(connection: socket.socket) -> None:
        connection.recv(4096)
        connection.sendall(f"HTTP/1.1 302 Found\r\nLocation: http://{thief}/\r\nContent-Length: 0\r\n\r\n".encode())

    address = servers.serve(redirect)
    for answer in (NodeOrders().post(f"http://{address}/activator/wake", "a-token", LONG), JsonReader().get(f"http://{address}/")):
        assert isinstance(answer, Unknown)
        assert "answered 302" in answer.why
    assert got == []


def test_an_order_that_a_node_accepts_and_has_not_done_yet_is_no_refusal(servers: Servers) -> None:
    def accept(connection: socket.socket) -> None:
        connection.recv(4096)
        connection.sendall(b'HTTP/1.1 202 Accepted\r\nContent-Length: 14\r\n\r\n{"woken":true}')

    assert NodeOrders().post(f"http://{servers.serve(accept)}/activator/wake", "a-token", LONG) == {"woken": True}


def test_a_bookie_that_drips_its_answer_is_a_refusal(servers: Servers, monkeypatch: pytest.MonkeyPatch) -> None:
    address = servers.serve(lambda connection: dripping(connection, OK + b"\r\n"))
    monkeypatch.setattr("herdkeeper.bookkeeper.execute.ANSWER_SECONDS", SHORT)
    monkeypatch.setattr("herdkeeper.shared.names.BOOKIE_ADMIN_PORT", int(address.partition(":")[2]))
    with pytest.raises(RefusedError, match="did not answer"):
        BookieAdmin().set_read_only("bk-bookie-0-abc", "127.0.0.1", True, "a-token")


def test_documents_are_read_whole_or_not_at_all(servers: Servers) -> None:
    def answer(body: bytes) -> Serve:
        def behave(connection: socket.socket) -> None:
            connection.recv(4096)
            connection.sendall(OK + body)

        return behave

    def read(body: bytes) -> object:
        return JsonReader().get(f"http://{servers.serve(answer(body))}/")

    assert read(b'Content-Length: 8\r\n\r\n{"a": 1}') == {"a": 1}
    assert read(b'Transfer-Encoding: chunked\r\n\r\n8\r\n{"a": 1}\r\n0\r\n\r\n') == {"a": 1}
    assert isinstance(read(b"Content-Length: 9\r\n\r\n[]"), Unknown), "it ended early"
    assert isinstance(read(b"\r\n" + b"[" * 100_000), Unknown), "nested too deeply"
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    assert isinstance(JsonReader().get(f"http://127.0.0.1:{port}/"), NotListening)


@pytest.mark.parametrize("values", [b"[],", b"{},", b'{"a":1},'], ids=bytes.decode)
def test_a_document_takes_no_more_memory_for_having_many_values(servers: Servers, values: bytes) -> None:
    """In memory an empty list takes twenty times its text. 16 MiB of them end the operator, for all namespaces."""
    body = b"[" + values * ((8 << 20) // len(values)) + b"0]"

    def answer(connection: socket.socket) -> None:
        connection.recv(4096)
        connection.sendall(OK + b"Content-Length: %d\r\n\r\n" % len(body) + body)

    address = servers.serve(answer)
    tracemalloc.start()
    try:
        for found in (JsonReader().get(f"http://{address}/"), NodeOrders().post(f"http://{address}/", "a-token", LONG)):
            assert isinstance(found, Unknown)
            assert "more than" in found.why
        assert tracemalloc.get_traced_memory()[1] < 64 << 20
    finally:
        tracemalloc.stop()


def test_an_answer_of_zookeeper_of_any_size_is_refused_before_it_is_read(servers: Servers) -> None:
    """An external ensemble is anybody's: kazoo would hold all that it announces in memory."""
    closed = threading.Event()

    def announce(connection: socket.socket) -> None:
        connection.recv(4096)
        connection.sendall(struct.pack(">i", MOST_BYTES + 1) + b"x" * 64)
        with suppress(ConnectionResetError):
            while connection.recv(4096):
                pass
        closed.set()

    session = MemberSession(servers.serve(announce), lambda: None)
    try:
        assert closed.wait(LONG)
    finally:
        session.end().join(LONG)


def test_a_session_ends_though_its_member_drips_an_answer_for_ever(servers: Servers, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(zookeeper_member, "GOODBYE_SECONDS", 0.2)
    begun = threading.Event()

    def drip(connection: socket.socket) -> None:
        connection.recv(4096)
        begun.set()
        dripping_answer = struct.pack(">i", MOST_BYTES)
        connection.sendall(dripping_answer)
        while True:
            connection.sendall(b"x")
            threading.Event().wait(0.02)

    session = MemberSession(servers.serve(drip), lambda: None)
    assert begun.wait(LONG)
    ending = session.end()
    ending.join(LONG)
    assert not ending.is_alive()


def test_a_look_that_reads_in_many_slow_steps_is_over_in_the_end() -> None:
    with look(LONG):
        require_time()
    with look(-1.0), pytest.raises(TimeoutError, match="took too long"):
        require_time()
    require_time()  # nobody looks


def bookkeeping(detail: str, *, last: bool) -> Answer:
    """A piece of rows: one of a restore's bookkeeping."""
    body = struct.pack(">q?i", 0, last, 2) + b"\x06detail\x05total" + struct.pack(">i", 1)
    return MessageType.RESULT_SET_CHUNK, body + frames.encode_value(detail) + frames.encode_value(3)


def test_a_sql_node_that_sends_rows_without_end_is_asked_for_no_more_of_them() -> None:
    """Any SQL user can make the table of a restore's progress, with as many rows."""
    log: list[tuple[int, bytes]] = []
    pieces = iter([bookkeeping('{"rows": 10}', last=False)] * 9)
    with node(lambda kind, body: next(pieces, None), log) as address, Connection.connect(address, CREDENTIALS, timeout_seconds=60) as asked:
        assert told_progress(asked) == RestoreProgress(3, 10)
    assert MessageType.FETCH_SCANNER_DATA not in {kind for kind, _ in log}


def test_a_sql_node_that_sends_a_large_row_is_given_up() -> None:
    large = bookkeeping('{"rows": 10}' + " " * observe_restore.MOST_BYTES, last=True)
    with (
        node(lambda kind, body: large) as address,
        Connection.connect(address, CREDENTIALS, timeout_seconds=60) as asked,
        pytest.raises(ConnectionLost, match="a frame of"),
    ):
        told_progress(asked)
