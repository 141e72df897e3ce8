"""The start of TLS on a bookie's port: one request and its answer, in version 3 of the wire protocol, before anything else.

Request: header = 1 {version = 1 (3), operation = 2 (START_TLS, 9), txnId = 3}, startTLSRequest = 106 (empty). Response: header = 1, status
= 2. The handshake follows the answer at once; later frames may be of version 2. A bookie that rejects a presented certificate sends a
second answer, encrypted, with the status EIO. Source: BookkeeperProtocol.proto and BookieRequestProcessor of BookKeeper 4.18.0.
"""

from __future__ import annotations

import struct
from enum import IntEnum

from herdkeeper.codecs.java_data import MalformedDataError
from herdkeeper.codecs.protobuf_wire import read_fields, write_field

_VERSION, _START_TLS = 3, 9
_HEADER, _STATUS, _REQUEST = 1, 2, 106
_HEADER_OPERATION = 2
MOST_BYTES = 1024
"""Limit for an answer, which has no content."""


class TlsAnswer(IntEnum):
    """A bookie's answer to START_TLS (StatusCode)."""

    BEGINS = 0
    NOT_CONFIGURED = 404
    NOT_LET_IN = 501


def start_tls_request() -> bytes:
    header = write_field(1, _VERSION) + write_field(_HEADER_OPERATION, _START_TLS) + write_field(3, 0)
    body = write_field(_HEADER, header) + write_field(_REQUEST, b"")
    return struct.pack(">i", len(body)) + body


def decode_tls_answer(frame: bytes) -> TlsAnswer:
    """Decode an answer without its length. Raises MalformedDataError for invalid answers and other codes."""
    fields = {field.number: field for field in read_fields(frame)}
    try:
        header = {field.number: field for field in read_fields(fields[_HEADER].data())}
        operation, status = header[_HEADER_OPERATION].signed(), fields[_STATUS].signed()
    except KeyError as error:
        raise MalformedDataError(f"answer to START_TLS: field {error} is missing") from error
    if operation != _START_TLS:
        raise MalformedDataError(f"answer to operation {operation}, expected START_TLS ({_START_TLS})")
    try:
        return TlsAnswer(status)
    except ValueError as error:
        raise MalformedDataError(f"answer to START_TLS: status {status} is unknown") from error
