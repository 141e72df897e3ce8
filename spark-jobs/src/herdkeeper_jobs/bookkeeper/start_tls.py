"""Starts TLS with a bookie."""

from __future__ import annotations

import socket
import ssl

from herdkeeper.codecs.bookkeeper.protocol import LENGTH_BYTES
from herdkeeper.codecs.bookkeeper.start_tls import MOST_BYTES, TlsAnswer, decode_tls_answer, start_tls_request
from herdkeeper.codecs.java_data import MalformedDataError
from herdkeeper.tls.context import mutual_context
from herdkeeper.tls.identity import Identity


def encrypted(opened: socket.socket, identity: Identity, host: str) -> ssl.SSLSocket:
    """Upgrades a fresh connection to TLS; the bookie's certificate must be for `host`.

    Raises:
        OSError: the bookie offers no TLS, can't be verified, or went away. A rejection of our certificate only shows at the first
            request.
        ValueError: it answered with invalid bytes.
    """
    opened.sendall(start_tls_request())
    length = int.from_bytes(_exactly(opened, LENGTH_BYTES), "big")
    if length > MOST_BYTES:
        raise MalformedDataError(f"answer to START_TLS: {length} bytes, expected {MOST_BYTES} at most")
    answer = decode_tls_answer(_exactly(opened, length))
    if answer is not TlsAnswer.BEGINS:
        raise ConnectionError(f"answered {answer.name} when asked for TLS")
    return mutual_context(identity).wrap_socket(opened, server_hostname=host)


def _exactly(opened: socket.socket, count: int) -> bytes:
    """Unbuffered: what follows belongs to the handshake."""
    data = b""
    while len(data) < count:
        part = opened.recv(count - len(data))
        if not part:
            raise ConnectionError("closed the connection on a request for TLS")
        data += part
    return data
