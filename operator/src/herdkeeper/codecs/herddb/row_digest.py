"""An order-free digest of a table: row count and the sum, modulo 2^128, of XXH3-128 over each row's stored key and value.

A row is hashed, with seed 0, as u32be length of the key, key, u32be length of the value, value. The same rows give the same digest in any
order and partition. HerdDB's own check does not (ties of composite keys). So the node program computes this one on leader and followers,
and Spark from its fold; equal count and sum prove equal tables.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from dataclasses import dataclass

from xxhash import xxh3_128_intdigest

_LENGTH = struct.Struct(">I")
_MODULUS = 1 << 128


@dataclass(frozen=True, slots=True)
class RowDigest:
    """Rows and their sum. `RowDigest()` is the empty table; `+` merges two disjoint sets of rows."""

    rows: int = 0
    sum: int = 0

    def __add__(self, other: RowDigest) -> RowDigest:
        return RowDigest(self.rows + other.rows, (self.sum + other.sum) % _MODULUS)

    @property
    def hex(self) -> str:
        """32 lower-case hexadecimal digits, most significant first."""
        return f"{self.sum:032x}"

    @staticmethod
    def parse(rows: int, digits: str) -> RowDigest:
        """Raises ValueError unless `digits` are 32 hexadecimal digits."""
        if len(digits) != 32:
            raise ValueError(f"digest {digits!r}: expected 32 hexadecimal digits")
        return RowDigest(rows, int(digits, 16))


def row_hash(key: bytes, value: bytes) -> int:
    """Returns a row's part of the sum."""
    return xxh3_128_intdigest(_LENGTH.pack(len(key)) + key + _LENGTH.pack(len(value)) + value)


def digest_of_rows(rows: Iterable[tuple[bytes, bytes]]) -> RowDigest:
    """Returns the digest of (key, value) pairs, of which it holds one at a time."""
    count = total = 0
    for key, value in rows:
        count += 1
        total += row_hash(key, value)
    return RowDigest(count, total % _MODULUS)
