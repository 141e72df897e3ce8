"""HTTP requests to servers that may be anybody's: the whole answer has a deadline and a most size, and no redirect is followed.

urllib bounds each read only, so a server that drips bytes holds its caller for ever; it takes an answer of any size; and it follows a
redirect, to which it carries a token along.
"""

from __future__ import annotations

import http.client
import socket
import time
from collections.abc import Generator, Mapping
from contextlib import closing
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

MOST_BYTES = 16 << 20
"""Of an answer with its headers: what a SQL node with thousands of tables says of itself fits ten times over."""
MOST_LINE_BYTES = 1 << 20
"""Of a line of a stream."""
MOST_ADDRESSES = 4
"""Of those that a name has."""
_PART_BYTES = 1 << 16


class TooLargeError(http.client.HTTPException):
    """A server sends more than anybody of ours would."""


@dataclass(frozen=True)
class Answer:
    """The status and the whole body."""

    status: int
    body: bytes


@dataclass(frozen=True)
class Question:
    """What is asked. `seconds` is how long all of it may take, from the connection to the answer's last byte."""

    method: str
    url: str
    seconds: float
    headers: Mapping[str, str]
    body: bytes | None = None


def ask(question: Question) -> Answer:
    """The answer, whatever its status is: a redirect is an answer like any other. Raises OSError, which is TimeoutError when it was not
    whole in time and ConnectionRefusedError when nobody listens, or HTTPException."""
    with closing(_asked(question, MOST_BYTES)) as connection, connection.getresponse() as answer:
        parts = []
        while part := answer.read(_PART_BYTES):  # never by the length that it announces, for which memory would be taken at once
            parts.append(part)
        if answer.length:  # what it announced and did not send
            raise http.client.IncompleteRead(b"", answer.length)
        return Answer(answer.status, b"".join(parts))


def lines(question: Question) -> Generator[bytes, None, None]:
    """The lines of an answer that does not end, each of which may take `seconds`. Raises as `ask`, and HTTPException for any status but
    200."""
    with closing(_asked(question, MOST_LINE_BYTES)) as connection, connection.getresponse() as answer:
        if answer.status != http.client.OK:
            raise http.client.HTTPException(f"{question.url} answered {answer.status}")
        while line := answer.readline(MOST_LINE_BYTES):
            yield line
            connection.allow(question.seconds, MOST_LINE_BYTES)


def _asked(question: Question, most_bytes: int) -> _Connection:
    parts = urlsplit(question.url)
    connection = _Connection(parts.hostname or "", parts.port or http.client.HTTP_PORT)
    connection.allow(question.seconds, most_bytes)
    try:
        path = f"{parts.path or '/'}?{parts.query}" if parts.query else parts.path or "/"
        connection.request(question.method, path, question.body, dict(question.headers))
    except BaseException:
        connection.close()
        raise
    return connection


class _Connection(http.client.HTTPConnection):
    """A connection that receives so much, and no longer than it is allowed to."""

    _until = 0.0
    _bytes_left = 0

    def allow(self, seconds: float, most_bytes: int) -> None:
        """From now on for so long, and so much."""
        self._until, self._bytes_left = time.monotonic() + seconds, most_bytes

    def connect(self) -> None:
        """See HTTPConnection."""
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
            self.sock = connected
            return
        raise failed

    def seconds_left(self) -> float:
        """Until its time is over. Raises TimeoutError when it is."""
        left = self._until - time.monotonic()
        if left <= 0:
            raise TimeoutError("the answer was not whole in time")
        return left

    def received(self, count: int) -> None:
        """So many bytes came. Raises TooLargeError when they are too many."""
        self._bytes_left -= count
        if self._bytes_left < 0:
            raise TooLargeError("the answer is larger than any of ours")


class _Socket(socket.socket):
    """A socket each of whose reads waits no longer than its connection may."""

    def __init__(self, connection: _Connection, family: int, kind: int, protocol: int) -> None:
        super().__init__(family, kind, protocol)
        self._connection = connection

    def recv_into(self, *arguments: Any) -> int:
        """See socket."""
        self.settimeout(self._connection.seconds_left())
        count = super().recv_into(*arguments)
        self._connection.received(count)
        return count
