"""BookKeeper's entries as bookies store and send them, and their digests.

An entry is ledger id, entry id, LAC and cumulative length (four big-endian 64-bit numbers), the digest, and the payload. The digest
covers the four numbers and the payload. CRC32 is stored in 8 bytes, CRC32C in 4, HMAC-SHA1 (key: SHA1 of `mac` and the password) in 20,
DUMMY in none. The LAC in an entry was confirmed when the writer sent it; re-replication may have written another, also confirmed one.
Source: DigestManager and its subclasses of BookKeeper 4.18.0.
"""

from __future__ import annotations

import hashlib
import hmac
import struct
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import assert_never

import crc32c

from herdkeeper.codecs.bookkeeper.metadata import DigestType

_HEADER = struct.Struct(">qqqq")
HEADER_BYTES = _HEADER.size


class DigestMismatchError(ValueError):
    """An entry is not what its writer wrote. The message says how."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One verified entry. `length` is the sum of the payloads of this ledger up to and including this entry, in bytes."""

    ledger_id: int
    entry_id: int
    lac: int
    length: int
    payload: bytes


@dataclass(frozen=True, slots=True)
class EntryDigest:
    """How to verify the entries of one ledger; build it with `entry_digest`, once per ledger."""

    digest_type: DigestType
    size: int
    """Bytes of the digest between header and payload."""
    compute: Callable[[bytes, bytes], bytes]
    """(header, payload) -> digest."""
    crc: Callable[[bytes, int], int] | None = None
    """(bytes, checksum of what came before) -> checksum, if the digest is that number over header and payload."""
    checked: bool = True
    """Whether `verify` compares the digest. Off for a reader that wants the raw bytes; lengths and ids are always checked."""

    def verify(self, data: bytes) -> Entry:
        """Returns the entry in `data`. Raises DigestMismatchError if it is too short or its digest differs."""
        payload_at = HEADER_BYTES + self.size
        if len(data) < payload_at:
            raise DigestMismatchError(f"{len(data)} bytes, but header and {self.digest_type.name} digest alone take {payload_at}")
        header, payload = data[:HEADER_BYTES], data[payload_at:]
        stored = data[HEADER_BYTES:payload_at]
        if self.checked and stored != (expected := self.compute(header, payload)):
            raise DigestMismatchError(f"{self.digest_type.name} digest is {stored.hex()}, expected {expected.hex()} for these bytes")
        ledger_id, entry_id, lac, length = _HEADER.unpack(header)
        return Entry(ledger_id, entry_id, lac, length, payload)

    def verify_as(self, ledger_id: int, entry_id: int, data: bytes) -> Entry:
        """The same, but it must be the requested entry: a bookie's index may point to another one."""
        entry = self.verify(data)
        if entry.ledger_id != ledger_id or entry.entry_id != entry_id:
            raise DigestMismatchError(f"it is entry {entry.entry_id} of ledger {entry.ledger_id}")
        return entry

    def pack(self, entry: Entry) -> bytes:
        """Returns the bytes that a writer would send for `entry`."""
        header = _HEADER.pack(entry.ledger_id, entry.entry_id, entry.lac, entry.length)
        return header + self.compute(header, entry.payload) + entry.payload


def master_key(password: bytes) -> bytes:
    """Returns the key that a bookie requires for adding to a ledger: SHA1 of `ledger` and the password."""
    return hashlib.sha1(b"ledger" + password).digest()  # noqa: S324 - BookKeeper's format, not ours to choose


def entry_digest(digest_type: DigestType, password: bytes = b"") -> EntryDigest:
    """Returns the digest of a ledger's entries. Only HMAC needs the password, which the ledger's metadata has in plain text."""
    match digest_type:
        case DigestType.CRC32:
            return EntryDigest(digest_type, 8, _crc32, zlib.crc32)
        case DigestType.CRC32C:
            return EntryDigest(digest_type, 4, _crc32c, crc32c.crc32c)
        case DigestType.HMAC:
            return EntryDigest(digest_type, 20, _HmacSha1(password))
        case DigestType.DUMMY:
            return EntryDigest(digest_type, 0, _nothing)
        case _:
            assert_never(digest_type)


def _crc32(header: bytes, payload: bytes) -> bytes:
    return zlib.crc32(payload, zlib.crc32(header)).to_bytes(8, "big")


def _crc32c(header: bytes, payload: bytes) -> bytes:
    return crc32c.crc32c(payload, crc32c.crc32c(header)).to_bytes(4, "big")


def _nothing(_header: bytes, _payload: bytes) -> bytes:
    return b""


class _HmacSha1:
    """A class rather than a closure, so that executors can receive it."""

    def __init__(self, password: bytes) -> None:
        self._key = hashlib.sha1(b"mac" + password).digest()  # noqa: S324 - BookKeeper's format, not ours to choose

    def __call__(self, header: bytes, payload: bytes) -> bytes:
        return hmac.digest(self._key, header + payload, "sha1")
