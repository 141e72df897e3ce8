"""Decodes a node's stream of a follower's tables at an LSN, frame by frame. Pure, apart from reading the stream.

A frame is u8 kind, u32 length, payload; numbers are big-endian. Frames: `P` (version, LSN, uuid of the tablespace); per table `T` (next
auto-increment value, definition), `I` per index, `R` with some rows, `E` (rows and digest). The last frame is `Z` with the number of tables
and rows and a digest of all P, T and I. Or it is `F` with the reason of an early end. Source: images/herddb, TablesWriter.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO, Any

import numpy as np
import pyarrow as pa

from herdkeeper.codecs.herddb.index import IndexDefinition, decode_index
from herdkeeper.codecs.herddb.row_digest import RowDigest, digest_of_rows
from herdkeeper.codecs.herddb.table import TableDefinition, decode_table
from herdkeeper_jobs.checkpoint.stored_rows import digest_of_columns
from herdkeeper_jobs.errors import CheckpointRetryable
from herdkeeper_jobs.wal.lsn import Lsn

_VERSION = 1
_FRAME, _POSITION, _NEXT_VALUE = struct.Struct(">cI"), struct.Struct(">Iqq"), struct.Struct(">q")
_TABLE_END, _END = struct.Struct(">q16s"), struct.Struct(">Iq16s")
_MOST_BYTES = 1 << 30
"""Limit of a frame: a megabyte of rows, or one row, which HerdDB limits to less."""
_LENGTH_BYTES = 4


class StreamBroken(CheckpointRetryable):
    """The stream ended early, or differs from what was sent."""


@dataclass(frozen=True, slots=True)
class StreamedPosition:
    """The first part: all that was committed up to `lsn` follows. No transaction was open there."""

    lsn: Lsn
    tablespace_uuid: str


@dataclass(frozen=True, slots=True)
class StreamedTable:
    """A table begins. `next_value`: HerdDB's next auto-increment key."""

    definition: TableDefinition
    next_value: int


@dataclass(frozen=True, slots=True)
class StreamedIndex:
    """An index of the current table. One that is not `available` was left by a rolled-back transaction."""

    definition: IndexDefinition
    available: bool


@dataclass(frozen=True, slots=True)
class StreamedRows:
    """Some rows of the current table as HerdDB stores them: binary columns of equal length."""

    keys: pa.Array
    values: pa.Array


@dataclass(frozen=True, slots=True)
class StreamedTableEnd:
    """The current table is complete and has these rows."""

    digest: RowDigest


Part = StreamedPosition | StreamedTable | StreamedIndex | StreamedRows | StreamedTableEnd


def read_stream(source: IO[bytes]) -> Iterator[Part]:
    """Yields the parts of a stream in order. If it ends without an error, the stream is whole.

    Raises:
        StreamBroken: it is not whole, its node gives a reason for its end, or rows differ from the node's count or digest.
        MalformedDataError: a definition can't be decoded.
    """
    return _Reader(source).parts()


class _Reader:
    def __init__(self, source: IO[bytes]) -> None:
        self._source = source
        self._rows: RowDigest | None = None
        """Digest of the current table; None between tables."""
        self._descriptions = RowDigest()
        self._tables, self._all_rows = 0, 0

    def parts(self) -> Iterator[Part]:
        kind, payload = self._frame()
        if kind != b"P":
            raise StreamBroken(f"it begins with a frame {kind!r} instead of its position")
        self._descriptions += digest_of_rows([(kind, payload)])
        yield _position(payload)
        while (frame := self._frame())[0] != b"Z":
            yield self._part(*frame)
        self._end(frame[1])

    def _part(self, kind: bytes, payload: bytes) -> Part:
        match kind:
            case b"T" if self._rows is None:
                return self._table(payload)
            case b"I" if self._rows is not None:
                self._descriptions += digest_of_rows([(kind, payload)])
                return StreamedIndex(decode_index(payload[1:]), payload[:1] == b"\x01")
            case b"R" if self._rows is not None:
                rows = _rows(payload)
                self._rows += digest_of_columns(rows.keys, rows.values)
                return rows
            case b"E" if self._rows is not None:
                return self._table_end(payload, self._rows)
            case b"F":
                raise StreamBroken(f"the node ended it: {payload.decode(errors='replace')}")
            case _:
                raise StreamBroken(f"a frame {kind!r} is not expected there")

    def _table(self, payload: bytes) -> StreamedTable:
        self._descriptions += digest_of_rows([(b"T", payload)])
        self._tables += 1
        self._rows = RowDigest()
        (next_value,) = _unpacked(_NEXT_VALUE, payload)
        return StreamedTable(decode_table(payload[_NEXT_VALUE.size :]), next_value)

    def _table_end(self, payload: bytes, found: RowDigest) -> StreamedTableEnd:
        rows, digest = _unpacked(_TABLE_END, payload)
        if found != RowDigest(rows, int.from_bytes(digest, "big")):
            raise StreamBroken(f"{found.rows} rows with digest {found.hex} came of a table that has {rows} with {digest.hex()}")
        self._rows = None
        self._all_rows += rows
        return StreamedTableEnd(found)

    def _end(self, payload: bytes) -> None:
        tables, rows, digest = _unpacked(_END, payload)
        came = (self._tables, self._all_rows, self._descriptions.sum.to_bytes(16, "big"))
        if self._rows is not None or came != (tables, rows, digest):
            raise StreamBroken(
                f"{self._tables} tables with {self._all_rows} rows came of {tables} with {rows}, or something was changed on the way"
            )

    def _frame(self) -> tuple[bytes, bytes]:
        kind, length = _FRAME.unpack(self._exactly(_FRAME.size))
        if length > _MOST_BYTES:
            raise StreamBroken(f"a frame of {length} bytes can't be one")
        return kind, self._exactly(length)

    def _exactly(self, size: int) -> bytes:
        parts: list[bytes] = []
        while size > 0:
            try:
                part = self._source.read(size)
            except OSError as error:
                raise StreamBroken(f"it broke off: {error}") from error
            if not part:
                raise StreamBroken("it ends in its middle")
            parts.append(part)
            size -= len(part)
        return b"".join(parts)


def _position(payload: bytes) -> StreamedPosition:
    version, ledger, entry = _unpacked(_POSITION, payload)
    if version != _VERSION:
        raise StreamBroken(f"it is of version {version}, this program knows {_VERSION}")
    return StreamedPosition(Lsn(ledger, entry), payload[_POSITION.size :].decode(errors="replace"))


def _rows(payload: bytes) -> StreamedRows:
    count = int.from_bytes(payload[:_LENGTH_BYTES], "big")
    data = _LENGTH_BYTES + 2 * _LENGTH_BYTES * count
    if len(payload) < data:
        raise StreamBroken(f"a frame of {len(payload)} bytes can't have {count} rows")
    lengths = np.frombuffer(payload, ">u4", 2 * count, _LENGTH_BYTES).astype(np.int64)
    if data + int(lengths.sum()) != len(payload):
        raise StreamBroken(f"a frame of {len(payload)} bytes has lengths for {data + int(lengths.sum())}")
    values = data + int(lengths[:count].sum())
    return StreamedRows(_column(lengths[:count], payload, data), _column(lengths[count:], payload, values))


def _column(lengths: np.ndarray[tuple[int], np.dtype[np.int64]], payload: bytes, first: int) -> pa.Array:
    bounds = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    return pa.Array.from_buffers(
        pa.binary(), len(lengths), [None, pa.py_buffer(bounds), pa.py_buffer(payload).slice(first, int(bounds[-1]))]
    )


def _unpacked(form: struct.Struct, payload: bytes) -> tuple[Any, ...]:
    if len(payload) < form.size:
        raise StreamBroken(f"a frame of {len(payload)} bytes is too short")
    return form.unpack_from(payload)
