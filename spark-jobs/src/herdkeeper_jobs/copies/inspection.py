"""Which of the entries that a bookie gave are what the writer wrote, and what they say, column by column. Runs on executors.

A deep audit spends nearly all of its own time here, so no object is made for an entry that is as it should be.

What can be said of a copy alone: its digest and ids; and its LAC, which is at least -1. The writer puts the LAC into an entry that it has
when it sends it, so it is below the entry's own id; but whoever copies an entry to another bookie later puts in the one that he knows by
then, which of a closed ledger is its last entry (LedgerFragmentReplicator of BookKeeper 4.18.0). So the LAC is below the id only in the
last segment of a ledger that is not closed, which nobody copies, and of a closed one it is the ledger's last entry at most.
What neighbours say together: the length in an entry is that of the entry before plus its own payload.
What copies say together: payload and length. `content` is a number made of both, and of the id so that two entries can't stand for each
other. It is equal for equal copies, whatever their LAC, and its sums over many entries can be compared without knowing the entries.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from operator import itemgetter

import crc32c
import numpy as np
import numpy.typing as npt

from herdkeeper.codecs.bookkeeper.entry import HEADER_BYTES, DigestMismatchError, EntryDigest

Numbers = npt.NDArray[np.int64]
Marks = npt.NDArray[np.uint64]
Flags = npt.NDArray[np.bool_]
_NUMBERS = [("ledger_id", ">i8"), ("entry_id", ">i8"), ("lac", ">i8"), ("length", ">i8")]
_DIGESTS = {0: "V0", 4: ">u4", 8: ">u8", 20: "V20"}
"""By their size in bytes."""
_FIELDS = {size: np.dtype([*_NUMBERS, ("digest", kind)]) for size, kind in _DIGESTS.items()}
_NOTHING = bytes(HEADER_BYTES + max(_DIGESTS))
_LENGTHS_WEIGHT = np.uint64(0x9E3779B97F4A7C15)
"""Odd, so that no difference of lengths is lost in the product."""


@dataclass(frozen=True, slots=True)
class Inspected:
    """One element per entry in each array. Of an entry that is not sound the others mean nothing."""

    ids: Numbers
    sound: Flags
    """Whether its digest is right and it is the entry that was asked for."""
    lac: Numbers
    sizes: Numbers
    """Bytes, header and digest included."""
    length_before: Numbers
    """Bytes of payloads of the ledger before the entry, as the entry tells."""
    length_after: Numbers
    """The same with its own."""
    content: Marks


def inspect(digest: EntryDigest, ledger_id: int, ids: Numbers, entries: Sequence[bytes]) -> Inspected:
    """What these bytes are, which a bookie gave as the ledger's entries `ids`; at least one."""
    payload_at = HEADER_BYTES + digest.size
    sizes = np.fromiter(map(len, entries), np.int64, len(entries))
    if sizes.min() < payload_at:
        # What is too short has nothing to look at; zeros, which are an entry of no ledger, stand in for it.
        entries = [data if len(data) >= payload_at else _NOTHING for data in entries]
    wanted, checksums = _checksums(digest, entries)
    fields = np.frombuffer(b"".join(map(itemgetter(slice(payload_at)), entries)), _FIELDS[digest.size])
    right = wanted != 0 if digest.crc is None else fields["digest"] == wanted
    length = fields["length"].astype(np.int64)
    return Inspected(
        ids=ids,
        sound=(fields["entry_id"] == ids) & (fields["ledger_id"] == ledger_id) & (sizes >= payload_at) & right,
        lac=fields["lac"].astype(np.int64),
        sizes=sizes,
        length_before=length - (sizes - payload_at),
        length_after=length,
        content=checksums * (2 * ids + 1).view(np.uint64) + length.view(np.uint64) * _LENGTHS_WEIGHT,
    )


def lac_is_possible(lac: Numbers, ids: Numbers, highest: int | None) -> Flags:
    """Whether each of these LACs can be in its entry; `highest` is None where it must be below the entry's id."""
    possible: Flags = (lac >= -1) & (lac < ids if highest is None else lac <= highest)
    return possible


def sums_of_content(content: Marks, ids: Numbers, classes: int) -> tuple[int, ...]:
    """The wrapping sum for each remainder of the ids by `classes`, as signed 64-bit numbers."""
    if classes == 1:
        return (int(content.sum(dtype=np.uint64).view(np.int64)),)
    own = ids % classes
    return tuple(int(content[own == each].sum(dtype=np.uint64).view(np.int64)) for each in range(classes))


def _checksums(digest: EntryDigest, entries: Sequence[bytes]) -> tuple[Marks, Marks]:
    """For each entry the digest that it should have, or where that is no number 1 if it is right; and a checksum of the payload.

    Entry by entry, since a payload that was just cut out is still in the processor's cache: column by column takes half as long again.
    """
    payload_at, crc, of_payload = HEADER_BYTES + digest.size, digest.crc, crc32c.crc32c
    wanted: list[int] = []
    checksums: list[int] = []
    for data in entries:
        payload = data[payload_at:]
        checksums.append(of_payload(payload))
        wanted.append(_is_right(digest, data) if crc is None else crc(payload, crc(data[:HEADER_BYTES], 0)))
    return np.array(wanted, np.uint64), np.array(checksums, np.uint64)


def _is_right(digest: EntryDigest, data: bytes) -> bool:
    try:
        digest.verify(data)
    except DigestMismatchError:
        return False
    return True
