"""Bytes as written by Java's DataOutput and HerdDB's ExtendedDataOutputStream.

Fixed-width numbers are big-endian. `VInt`/`VLong` are LEB128, lowest group first, of the number's two's complement (so a VInt of -1 takes
five bytes: `ffffffff0f`). `ZInt`/`ZLong` are the same over the zigzag form. `utf` is an unsigned 16-bit byte count and *modified* UTF-8:
NUL as two bytes, characters beyond the BMP as two surrogates of three bytes each. `array` is a VInt length and bytes; length -1 is null.
Source: herddb.utils.ExtendedDataInputStream/ExtendedDataOutputStream of HerdDB 0.29.0, java.io.DataOutput.
"""

from __future__ import annotations

import struct

_I16 = struct.Struct(">h")
_I32 = struct.Struct(">i")
_I64 = struct.Struct(">q")
_F32 = struct.Struct(">f")
_F64 = struct.Struct(">d")
_U16 = struct.Struct(">H")

_MAX_UTF_BYTES = 0xFFFF


class MalformedDataError(ValueError):
    """The bytes don't match the format. The message has the expectation and the offset."""


def decode_modified_utf8(data: bytes) -> str:
    """Decode Java's modified UTF-8. A lone surrogate stays one. Raises MalformedDataError for what Java's readUTF refuses."""
    if data.isascii():
        return data.decode("ascii")
    if max(data) >= 0xF0:
        raise MalformedDataError(f"modified UTF-8 has no bytes from 0xf0 up, found some in {data[:40]!r}")
    try:
        units = data.replace(b"\xc0\x80", b"\x00").decode("utf-8", "surrogatepass")
    except UnicodeDecodeError as error:
        raise MalformedDataError(f"not modified UTF-8: {error.reason} at byte {error.start} of {data[:40]!r}") from error
    # Only a round trip through UTF-16 merges surrogate pairs into characters.
    return units.encode("utf-16-be", "surrogatepass").decode("utf-16-be", "surrogatepass")


def encode_modified_utf8(text: str) -> bytes:
    """Java's modified UTF-8 of `text`, without the length."""
    if text.isascii() and "\0" not in text:
        return text.encode("ascii")
    utf16 = text.encode("utf-16-be", "surrogatepass")
    units = "".join(chr(unit) for (unit,) in _U16.iter_unpack(utf16))
    return units.encode("utf-8", "surrogatepass").replace(b"\x00", b"\xc0\x80")


class JavaDataReader:
    """A cursor over `data`; every method reads one value. Reading past the end raises MalformedDataError."""

    __slots__ = ("_data", "_end", "position")

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._end = len(data)
        self.position = 0

    @property
    def remaining(self) -> int:
        return self._end - self.position

    def at_end(self) -> bool:
        return self.position >= self._end

    def raw(self, count: int) -> bytes:
        return self._data[self._advance(count) : self.position]

    def rest(self) -> bytes:
        return self.raw(self.remaining)

    def u8(self) -> int:
        return self._data[self._advance(1)]

    def boolean(self) -> bool:
        """One byte; anything but 0 is true, as in Java."""
        return self.u8() != 0

    def u16(self) -> int:
        return int(_U16.unpack_from(self._data, self._advance(2))[0])

    def i16(self) -> int:
        return int(_I16.unpack_from(self._data, self._advance(2))[0])

    def i32(self) -> int:
        return int(_I32.unpack_from(self._data, self._advance(4))[0])

    def i64(self) -> int:
        return int(_I64.unpack_from(self._data, self._advance(8))[0])

    def f32(self) -> float:
        return float(_F32.unpack_from(self._data, self._advance(4))[0])

    def f64(self) -> float:
        return float(_F64.unpack_from(self._data, self._advance(8))[0])

    def v_int(self) -> int:
        """A VInt of one to five bytes; negative numbers take five."""
        value = self._groups(5)
        value &= 0xFFFFFFFF
        return value - (1 << 32) if value & 0x80000000 else value

    def v_long(self) -> int:
        """A VLong of one to ten bytes; negative numbers take ten."""
        value = self._groups(10)
        value &= 0xFFFFFFFFFFFFFFFF
        return value - (1 << 64) if value & (1 << 63) else value

    def utf(self) -> str:
        """A string of DataOutput.writeUTF."""
        return decode_modified_utf8(self.raw(self.u16()))

    def array(self) -> bytes | None:
        """A VInt length and that many bytes; None for length -1. Other negative lengths are refused."""
        start = self.position
        length = self.v_int()
        if length == -1:
            return None
        if length < 0:
            raise MalformedDataError(f"array length {length} at byte {start}: expected -1 (null) or more")
        return self.raw(length)

    def _advance(self, count: int) -> int:
        """Advance by `count` bytes and return where they start."""
        start = self.position
        if start + count > self._end:
            raise MalformedDataError(f"expected {count} bytes at byte {start}, but only {self._end - start} of {self._end} are left")
        self.position = start + count
        return start

    def _groups(self, most: int) -> int:
        start = self.position
        value = 0
        for index in range(most):
            byte = self.u8()
            value |= (byte & 0x7F) << (7 * index)
            if byte < 0x80:
                return value
        raise MalformedDataError(f"variable-length number at byte {start} has more than {most} bytes")


class JavaDataWriter:
    """The inverse of JavaDataReader; every method appends one value and returns the writer, so that calls chain."""

    __slots__ = ("_parts",)

    def __init__(self) -> None:
        self._parts = bytearray()

    def to_bytes(self) -> bytes:
        return bytes(self._parts)

    def raw(self, data: bytes) -> JavaDataWriter:
        self._parts += data
        return self

    def u8(self, value: int) -> JavaDataWriter:
        self._parts.append(value)
        return self

    def boolean(self, value: bool) -> JavaDataWriter:
        return self.u8(1 if value else 0)

    def i16(self, value: int) -> JavaDataWriter:
        return self.raw(_I16.pack(value))

    def i32(self, value: int) -> JavaDataWriter:
        return self.raw(_I32.pack(value))

    def i64(self, value: int) -> JavaDataWriter:
        return self.raw(_I64.pack(value))

    def f32(self, value: float) -> JavaDataWriter:
        return self.raw(_F32.pack(value))

    def f64(self, value: float) -> JavaDataWriter:
        return self.raw(_F64.pack(value))

    def v_int(self, value: int) -> JavaDataWriter:
        """A VInt of the 32-bit two's complement of `value`."""
        _require_range(value, 32)
        return self._groups(value & 0xFFFFFFFF)

    def v_long(self, value: int) -> JavaDataWriter:
        """A VLong of the 64-bit two's complement of `value`."""
        _require_range(value, 64)
        return self._groups(value & 0xFFFFFFFFFFFFFFFF)

    def utf(self, text: str) -> JavaDataWriter:
        """A string as DataOutput.writeUTF writes it; at most 65535 bytes encoded."""
        encoded = encode_modified_utf8(text)
        if len(encoded) > _MAX_UTF_BYTES:
            raise ValueError(f"text of {len(encoded)} encoded bytes: writeUTF takes at most {_MAX_UTF_BYTES}")
        return self.raw(_U16.pack(len(encoded))).raw(encoded)

    def array(self, data: bytes | None) -> JavaDataWriter:
        """A VInt length and the bytes; None as length -1."""
        if data is None:
            return self.v_int(-1)
        return self.v_int(len(data)).raw(data)

    def _groups(self, value: int) -> JavaDataWriter:
        while value >= 0x80:
            self._parts.append((value & 0x7F) | 0x80)
            value >>= 7
        self._parts.append(value)
        return self


def _require_range(value: int, bits: int) -> None:
    if not -(1 << (bits - 1)) <= value < 1 << (bits - 1):
        raise ValueError(f"{value} does not fit into {bits} bits")
