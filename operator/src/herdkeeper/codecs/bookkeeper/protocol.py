"""The frames of BookKeeper's wire protocol, version 2, as far as reads and repairs of closed ledgers need it.

A frame is a big-endian 32-bit length and that many bytes; a request begins with `version << 24 | operation << 16 | flags`. READ requests
one entry, or the bookie's last one for the entry id -1. BATCH_READ (bookies from 4.17) requests a run; the bookie ends it at the first
missing entry, or at the size limit. A read's only possible flag fences the ledger; no function here can set it. ADD exists only as
recovery's: it has the ledger's master key, then the entry as bookies store it, and is accepted on a fenced ledger. A bookie that knows the
ledger refuses another key; one that doesn't keeps the first. Source: BookieProtocol and BookieProtoEncoding of BookKeeper 4.18.0.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from enum import Enum

from herdkeeper.codecs.java_data import MalformedDataError

_VERSION = 2
_NO_FLAGS = 0
_RECOVERY_ADD = 0x2
_READ_REQUEST = struct.Struct(">iiqq")
_BATCH_REQUEST = struct.Struct(">iiqqqiq")
_READ_RESPONSE = struct.Struct(">iiqq")
_BATCH_RESPONSE = struct.Struct(">iiqqq")
_LENGTH = struct.Struct(">i")

LAST_ENTRY = -1
"""As the entry id of a READ: the last entry of the ledger on this bookie."""
LENGTH_BYTES = _LENGTH.size
MASTER_KEY_BYTES = 20
MOST_FRAME_BYTES = 256 << 20
"""Of a response. A bookie takes no larger entries than its nettyMaxFrameSizeBytes, 5 MiB by default."""


class Operation(Enum):
    """The supported operations."""

    ADD = 1
    READ = 2
    BATCH_READ = 7


class ReadCode(Enum):
    """A bookie's answer."""

    OK = 0
    NO_LEDGER = 1
    NO_ENTRY = 2
    BAD_REQUEST = 100
    IO_ERROR = 101
    UNAUTHORIZED = 102
    BAD_VERSION = 103
    FENCED = 104
    READ_ONLY = 105
    TOO_MANY_REQUESTS = 106
    UNKNOWN_LEDGER_STATE = 107

    @property
    def means_absent(self) -> bool:
        """Whether the bookie certainly does not hold the entry. Every other error leaves that open."""
        return self in (ReadCode.NO_LEDGER, ReadCode.NO_ENTRY)


@dataclass(frozen=True, slots=True)
class ReadResponse:
    """The answer to a READ. `entry_id` repeats the request's; `data` is empty unless the code is OK."""

    code: ReadCode
    ledger_id: int
    entry_id: int
    data: bytes


@dataclass(frozen=True, slots=True)
class BatchReadResponse:
    """The answer to a BATCH_READ: consecutive entries from `entry_id` on, at least one when the code is OK."""

    code: ReadCode
    ledger_id: int
    entry_id: int
    entries: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class AddResponse:
    """The answer to an ADD. With OK, the entry is on the bookie's disk."""

    code: ReadCode
    ledger_id: int
    entry_id: int


def recovery_add_request(master_key: bytes, data: bytes) -> bytes:
    """Returns an ADD frame of recovery; `data` is the entry with header and digest. Raises ValueError for another length of key."""
    if len(master_key) != MASTER_KEY_BYTES:
        raise ValueError(f"master key of {len(master_key)} bytes: expected {MASTER_KEY_BYTES}")
    body = struct.pack(">i", _header(Operation.ADD) | _RECOVERY_ADD) + master_key + data
    return _LENGTH.pack(len(body)) + body


def read_request(ledger_id: int, entry_id: int) -> bytes:
    return _READ_REQUEST.pack(_READ_REQUEST.size - LENGTH_BYTES, _header(Operation.READ), ledger_id, entry_id)


@dataclass(frozen=True, slots=True)
class BatchRead:
    """A requested run of entries: at most `max_count` entries and `max_bytes` in the response; the first comes whatever its size."""

    ledger_id: int
    first_entry_id: int
    max_count: int
    max_bytes: int


def batch_read_request(batch: BatchRead, request_id: int) -> bytes:
    size = _BATCH_REQUEST.size - LENGTH_BYTES
    header = _header(Operation.BATCH_READ)
    return _BATCH_REQUEST.pack(size, header, batch.ledger_id, batch.first_entry_id, request_id, batch.max_count, batch.max_bytes)


def decode_length(data: bytes) -> int:
    """Returns the bytes of the frame after its four-byte length."""
    length = int(_LENGTH.unpack(data)[0])
    if length < _READ_RESPONSE.size:
        raise MalformedDataError(f"a response of {length} bytes is shorter than its header of {_READ_RESPONSE.size}")
    if length > MOST_FRAME_BYTES:
        raise MalformedDataError(f"a response of {length} bytes is refused: at most {MOST_FRAME_BYTES}")
    return length


def decode_response(frame: bytes) -> ReadResponse | BatchReadResponse | AddResponse:
    """Decode a frame without its length. Raises MalformedDataError for other operations, unknown codes, and truncated bytes."""
    if len(frame) < _READ_RESPONSE.size:
        raise MalformedDataError(f"a response of {len(frame)} bytes is shorter than its header of {_READ_RESPONSE.size}")
    header, code_number, ledger_id, entry_id = _READ_RESPONSE.unpack_from(frame)
    code = _code(code_number)
    operation = header >> 16 & 0xFF
    if operation == Operation.READ.value:
        return ReadResponse(code, ledger_id, entry_id, frame[_READ_RESPONSE.size :] if code is ReadCode.OK else b"")
    if operation == Operation.ADD.value:
        return AddResponse(code, ledger_id, entry_id)
    if operation != Operation.BATCH_READ.value:
        raise MalformedDataError(f"response to operation {operation}, expected READ, BATCH_READ or ADD")
    if code is not ReadCode.OK:
        return BatchReadResponse(code, ledger_id, entry_id, ())  # it may lack its request id
    if len(frame) < _BATCH_RESPONSE.size:
        raise MalformedDataError(f"a batch response of {len(frame)} bytes is shorter than its header of {_BATCH_RESPONSE.size}")
    return BatchReadResponse(code, ledger_id, entry_id, _split_entries(frame))


def _split_entries(frame: bytes) -> tuple[bytes, ...]:
    entries: list[bytes] = []
    position, end = _BATCH_RESPONSE.size, len(frame)
    while position < end:
        (size,) = _LENGTH.unpack_from(frame, position) if position + LENGTH_BYTES <= end else (-1,)
        following = position + LENGTH_BYTES + size
        if size < 0 or following > end:
            raise MalformedDataError(f"batch response promises an entry of {size} bytes, {end - position - LENGTH_BYTES} are left")
        entries.append(frame[position + LENGTH_BYTES : following])
        position = following
    return tuple(entries)


def _code(number: int) -> ReadCode:
    try:
        return ReadCode(number)
    except ValueError as error:
        raise MalformedDataError(f"response code {number} is unknown") from error


def _header(operation: Operation) -> int:
    return _VERSION << 24 | operation.value << 16 | _NO_FLAGS
