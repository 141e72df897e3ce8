"""Reads and writes the protobuf wire format, field number by field number.

BookKeeper needs two small messages of us (LedgerMetadataFormat, BookieServiceInfoFormat) whose field numbers never change. Sixty lines of
codec are less to keep than a protobuf runtime, generated code and the compiler that must match both. Source: the protobuf encoding guide
(varints, fixed widths, length-delimited values; the reader of a message skips numbers that it does not know).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from herdkeeper.formats.java_data import JavaDataReader, JavaDataWriter, MalformedDataError

_VARINT = 0
_DELIMITED = 2


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
    """The fields of a message in their order. Raises MalformedDataError for groups and for truncated bytes."""
    reader = JavaDataReader(message)
    while not reader.at_end():
        tag = reader.v_long()
        yield WireField(tag >> 3, _read_value(reader, tag))


def _read_value(reader: JavaDataReader, tag: int) -> int | bytes:
    match tag & 7:
        case 0:
            return reader.v_long() & 0xFFFFFFFFFFFFFFFF
        case 1:
            return int.from_bytes(reader.raw(8), "little")
        case 2:
            return reader.raw(reader.v_long())
        case 5:
            return int.from_bytes(reader.raw(4), "little")
        case wire_type:
            raise MalformedDataError(f"protobuf field {tag >> 3} has wire type {wire_type}, which no current message uses")


def write_field(number: int, value: int | bytes) -> bytes:
    """One field: an int as a varint of its 64-bit two's complement, bytes with their length."""
    if isinstance(value, int):
        return JavaDataWriter().v_long(number << 3 | _VARINT).v_long(value).to_bytes()
    return JavaDataWriter().v_long(number << 3 | _DELIMITED).v_long(len(value)).raw(value).to_bytes()
