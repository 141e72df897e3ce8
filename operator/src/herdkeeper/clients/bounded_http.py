"""HTTP requests to untrusted servers: the whole answer has a deadline and a maximum size, and redirects are not followed.

urllib limits only each read, so a server that drips bytes blocks its caller forever. It accepts answers of any size, and follows redirects
with the token.
"""

from __future__ import annotations

import http.client
import socket
import ssl
import time
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from herdkeeper.codecs.authorities import client_context

MOST_BYTES = 16 << 20
"""Of an answer with its headers. The view of a SQL node with thousands of tables fits ten times."""
MOST_LINE_BYTES = 1 << 20
"""Of one line of a stream."""
MOST_ADDRESSES = 4
"""Of a host name."""
_PART_BYTES = 1 << 16
_HEAD_END = b"\r\n\r\n"


class TooLargeError(http.client.HTTPException):
    """Raised for an answer that is larger than any valid one."""


@dataclass(frozen=True)
class Answer:
    """The status and the whole body. Names of headers are in small letters."""

    status: int
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def succeeded(self) -> bool:
        """Whether the server accepted the request."""
        return 200 <= self.status < 300


@dataclass(frozen=True)
class Trust:
    """How a server is verified: by these authorities (PEM certificates), as the host of this name, whatever its address."""

    authorities: str = field(repr=False)
    name: str


@dataclass(frozen=True)
class Question:
    """A request. `seconds` limits all of it, from the connection to the last byte of the answer. With `trust` the server must speak
    TLS 1.3, and is sent nothing before it is verified. Without it the request is in plain text.
    """

    method: str
    url: str
    seconds: float
    headers: Mapping[str, str]
    body: bytes | None = None
    trust: Trust | None = None


def ask(question: Question) -> Answer:
    """Return the answer, whatever its status; a redirect is an answer, too.

    Raises HTTPException or OSError: TimeoutError if it was incomplete in time, ConnectionRefusedError if nothing listens, ssl.SSLError if
    the server can't be verified. Raises ValueError if the URL's scheme and `trust` do not go together.
    """
    with closing(_connection(question, MOST_BYTES)) as connection:
        connection.request(question.method, _path(question.url), question.body, dict(question.headers))
        with connection.getresponse() as answer:
            parts = []
            while part := answer.read(_PART_BYTES):  # never by the announced length, which would allocate memory at once
                parts.append(part)
            if answer.length:  # announced but not sent
                raise http.client.IncompleteRead(b"", answer.length)
            return Answer(answer.status, b"".join(parts), {name.lower(): value for name, value in answer.getheaders()})


class LineStream:
    """The lines of an endless answer as they come. It never waits, so that one thread can follow many."""

    def __init__(self, connected: socket.socket) -> None:
        """`connected` has been sent the request, in HTTP/1.0: the answer has no chunks then."""
        self._socket = connected
        self._socket.setblocking(False)
        self._received = b""
        self._begun = False

    def fileno(self) -> int:
        """Returns the socket, for a selector."""
        return self._socket.fileno()

    def next_line(self) -> bytes | None:
        """Returns the next line with its end, or None if it has not come yet.

        Raises OSError, ConnectionError at the end of the stream; HTTPException for any status but 200 or a line of more than
        MOST_LINE_BYTES.
        """
        if not self.ready:
            try:
                received = self._socket.recv(_PART_BYTES)
            except (BlockingIOError, ssl.SSLWantReadError):
                return None
            if not received:
                raise http.client.RemoteDisconnected("the stream has ended")
            self._received += received
        if not self._begun and _HEAD_END in self._received:
            head, self._received = self._received.split(_HEAD_END, 1)
            status = head.split(b"\r\n", 1)[0].split(b" ")
            if not (status[0].startswith(b"HTTP/") and status[1:2] == [b"200"]):
                raise http.client.HTTPException(f"the answer is {status!r:.80}")
            self._begun = True
        if self.ready:
            line, self._received = self._received.split(b"\n", 1)
            return line + b"\n"
        if len(self._received) > MOST_LINE_BYTES:
            raise TooLargeError("the line is too large")
        return None

    @property
    def ready(self) -> bool:
        """Whether the next line has come already, so that no selector tells of it."""
        return self._begun and b"\n" in self._received

    def close(self) -> None:
        self._socket.close()


def follow(url: str, seconds: float, trust: Trust | None) -> LineStream:
    """Ask for an endless answer; `seconds` are for the connection alone, the answer has no limit. Raises like `ask`."""
    connection = _connection(Question("GET", url, seconds, {}, trust=trust), MOST_LINE_BYTES)
    try:
        connection.connect()
        connection.sock.sendall(f"GET {_path(url)} HTTP/1.0\r\n\r\n".encode())
        return LineStream(connection.sock)
    except BaseException:
        connection.close()
        raise


def _connection(question: Question, most_bytes: int) -> _Connection:
    parts = urlsplit(question.url)
    if (parts.scheme == "https") is not (question.trust is not None):
        raise ValueError(f"{question.url} is to be asked {'without' if question.trust is None else 'with'} TLS")
    connection = _Connection(parts.hostname or "", parts.port or http.client.HTTP_PORT)
    connection.trust = question.trust
    connection.allow(question.seconds, most_bytes)
    return connection


def _path(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.path or '/'}?{parts.query}" if parts.query else parts.path or "/"


class _Connection(http.client.HTTPConnection):
    """A connection with a limit on bytes and time."""

    trust: Trust | None = None
    _until = 0.0
    _bytes_left = 0

    def allow(self, seconds: float, most_bytes: int) -> None:
        """Set the limits from now on."""
        self._until, self._bytes_left = time.monotonic() + seconds, most_bytes

    def connect(self) -> None:
        found = socket.getaddrinfo(self.host, self.port, type=socket.SOCK_STREAM)[:MOST_ADDRESSES]
        failed: OSError = OSError(f"{self.host} has no address")
        for family, kind, protocol, _, address in found:
            connected = _Socket(self, family, kind, protocol)
            try:
                connected.settimeout(self.seconds_left())
                connected.connect(address)
            except OSError as error:
                connected.close()
                failed = error
                continue
            self.sock = connected if self.trust is None else self._encrypted(connected, self.trust)
            return
        raise failed

    def _encrypted(self, plain: socket.socket, trust: Trust) -> socket.socket:
        try:
            context = client_context(trust.authorities, ssl.TLSVersion.TLSv1_3)
            context.sslsocket_class = _TlsSocket
            encrypted = context.wrap_socket(plain, server_hostname=trust.name, do_handshake_on_connect=False)
        except BaseException:
            plain.close()
            raise
        assert isinstance(encrypted, _TlsSocket)
        encrypted.connection = self
        try:
            encrypted.settimeout(self.seconds_left())
            encrypted.do_handshake()
        except BaseException:
            encrypted.close()
            raise
        return encrypted

    def seconds_left(self) -> float:
        """Returns the seconds until the deadline. Raises TimeoutError after it."""
        left = self._until - time.monotonic()
        if left <= 0:
            raise TimeoutError("the answer was not complete in time")
        return left

    def received(self, count: int) -> None:
        """Count received bytes. Raises TooLargeError beyond the limit."""
        self._bytes_left -= count
        if self._bytes_left < 0:
            raise TooLargeError("the answer is too large")


class _Socket(socket.socket):
    """A socket whose reads wait no longer than its connection may."""

    def __init__(self, connection: _Connection, family: int, kind: int, protocol: int) -> None:
        super().__init__(family, kind, protocol)
        self._connection = connection

    def recv_into(self, *arguments: Any) -> int:
        self.settimeout(self._connection.seconds_left())
        count = super().recv_into(*arguments)
        self._connection.received(count)
        return count


class _TlsSocket(ssl.SSLSocket):
    """The same with TLS. Its timeout is for all that one call reads and writes."""

    connection: _Connection

    def recv_into(self, *arguments: Any) -> int:
        self.settimeout(self.connection.seconds_left())
        count = super().recv_into(*arguments)
        self.connection.received(count)
        return count
