"""Reads and writes the protobuf wire format, field by field.

Only two small messages are needed (LedgerMetadataFormat, BookieServiceInfoFormat), whose field numbers never change. Sixty lines of codec
are less to maintain than a protobuf runtime, generated code and a matching compiler. Source: the protobuf encoding guide (varints, fixed
widths, length-delimited values; readers skip unknown numbers).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from herdkeeper.codecs.java_data import JavaDataWriter, MalformedDataError

_VARINT = 0
_DELIMITED = 2
_VARINT_BYTES = 10


@dataclass(frozen=True, slots=True)
class WireField:
    """One field occurrence: an int for varints and fixed widths (as the unsigned bits), bytes for strings, bytes and messages."""

    number: int
    value: int | bytes

    def signed(self) -> int:
        """The value of an int32 or int64 field, whose negative numbers are ten-byte varints."""
        if isinstance(self.value, bytes):
            raise MalformedDataError(f"protobuf field {self.number}: expected a number, found {len(self.value)} bytes")
        return self.value - (1 << 64) if self.value & (1 << 63) else self.value

    def data(self) -> bytes:
        """The value of a bytes or message field."""
        if isinstance(self.value, int):
            raise MalformedDataError(f"protobuf field {self.number}: expected bytes, found the number {self.value}")
        return self.value

    def text(self) -> str:
        """The value of a string field."""
        try:
            return self.data().decode()
        except UnicodeDecodeError as error:
            raise MalformedDataError(f"protobuf field {self.number}: not UTF-8: {error}") from error


def read_fields(message: bytes) -> Iterator[WireField]:
    """Yields a message's fields in order. Raises MalformedDataError for groups and truncated bytes. Millions of ledgers are read by it."""
    position, end = 0, len(message)
    while position < end:
        tag, position = _varint(message, position)
        match tag & 7:
            case 0:
                value, position = _varint(message, position)
                yield WireField(tag >> 3, value)
                continue
            case 1:
                size = 8
            case 2:
                size, position = _varint(message, position)
            case 5:
                size = 4
            case wire_type:
                raise MalformedDataError(f"protobuf field {tag >> 3} has wire type {wire_type}, which no current message uses")
        following = position + size
        if following > end:
            raise MalformedDataError(f"protobuf field {tag >> 3}: {size} bytes at byte {position}, {end - position} are left")
        data = message[position:following]
        yield WireField(tag >> 3, data if tag & 7 == _DELIMITED else int.from_bytes(data, "little"))
        position = following


def _varint(message: bytes, start: int) -> tuple[int, int]:
    """The unsigned 64 bits at `start`, and where they end."""
    if start < len(message) and (byte := message[start]) < 0x80:
        return byte, start + 1
    value, position = 0, start
    for byte in message[start : start + _VARINT_BYTES]:
        value |= (byte & 0x7F) << 7 * (position - start)
        position += 1
        if byte < 0x80:
            return value & 0xFFFFFFFFFFFFFFFF, position
    raise MalformedDataError(f"protobuf number at byte {start}: it ends nowhere")


def write_field(number: int, value: int | bytes) -> bytes:
    """One field: an int as a varint of its 64-bit two's complement, bytes with their length."""
    if isinstance(value, int):
        return JavaDataWriter().v_long(number << 3 | _VARINT).v_long(value).to_bytes()
    return JavaDataWriter().v_long(number << 3 | _DELIMITED).v_long(len(value)).raw(value).to_bytes()
